package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// beginning is where a partition without an offset of its own is read from: where
// the author says if the job is new, and so was the partition then; else from the
// log's beginning.
func (r *reader) beginning(ctx context.Context, at place, s span) (connector.Offset, error) {
	from := connector.Offset{Next: s.start, LeaderEpoch: -1}
	if r.opening.Begun || !r.first[at] || r.settings.begin.kind == atEarliest {
		return from, nil
	}
	if r.beginnings == nil {
		all := make([]place, 0, len(r.first))
		for p := range r.first {
			all = append(all, p)
		}
		found := make(map[place]int64, len(all))
		if err := r.resolve(ctx, r.settings.begin, all, found); err != nil {
			return from, err
		}
		r.beginnings = found
	}
	from.Next = r.beginnings[at]
	return from, nil
}

// resolve finds out where partitions begin.
func (r *reader) resolve(ctx context.Context, b Beginning, all []place, found map[place]int64) error {
	missing := &NoBeginningError{}
	var rest []place
	switch b.kind {
	case atEarliest:
		return r.resolveListed(ctx, all, listEarliest, found)
	case atLatest:
		return r.resolveListed(ctx, all, listLatest, found)
	case atTime:
		return r.resolveListed(ctx, all, b.at.UnixMilli()+ceiling(b.at.Nanosecond()), found)
	case atOffsets:
		for _, p := range all {
			offset, ok := b.offsets[p.topic][p.number]
			if !ok {
				rest = append(rest, p)
				continue
			}
			found[p] = offset
		}
	case atGroup:
		missing.Group = b.group
		committed, err := r.committed(ctx, b.group)
		if err != nil {
			return err
		}
		for _, p := range all {
			offset, ok := committed[p]
			if !ok {
				rest = append(rest, p)
				continue
			}
			found[p] = offset.At
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if b.otherwise != nil {
		return r.resolve(ctx, *b.otherwise, rest, found)
	}
	for _, p := range rest {
		missing.Partitions = append(missing.Partitions, p.String())
	}
	slices.Sort(missing.Partitions)
	return missing
}

// OffsetsAt implements [connector.TimedReader].
func (r *reader) OffsetsAt(ctx context.Context, at time.Time) (map[string]connector.Offset, error) {
	found := map[place]int64{}
	if err := r.resolve(ctx, At(at), r.places(), found); err != nil {
		return nil, err
	}
	out := make(map[string]connector.Offset, len(found))
	for p, next := range found {
		out[p.String()] = connector.Offset{Next: next, LeaderEpoch: -1}
	}
	return out, nil
}

// ceiling is 1 if a time isn't a whole millisecond: then the first that is not
// earlier is the next.
func ceiling(nanoseconds int) int64 {
	if nanoseconds%1e6 != 0 {
		return 1
	}
	return 0
}

// resolveListed asks for the offsets of a time; where no record is that late, the
// partition begins at its end.
func (r *reader) resolveListed(ctx context.Context, all []place, at int64, found map[place]int64) error {
	listed, err := r.listOffsets(ctx, all, at)
	if err != nil {
		return err
	}
	var late []place
	for p, offset := range listed {
		if offset < 0 {
			late = append(late, p)
			continue
		}
		found[p] = offset
	}
	if len(late) == 0 {
		return nil
	}
	return r.resolveListed(ctx, late, listLatest, found)
}
