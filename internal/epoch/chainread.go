package epoch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/store"
)

// LiveRecords reads all live records behind those that are known, which it returns
// with them: record n is the n-th.
func (j *Job) LiveRecords(ctx context.Context, known []LiveRecord) ([]LiveRecord, error) {
	for len(known) <= listAtMost {
		r, err := j.LiveRecord(ctx, Generation(len(known)))
		if errors.Is(err, store.ErrNotFound) {
			return known, nil
		}
		if err != nil {
			return known, err
		}
		known = append(known, r)
	}
	return known, fmt.Errorf("%s: more than %d live records; is this a store of Sluice's?", j.name, listAtMost)
}

// Chain reads the chain of a task's generations.
func (j *Job) Chain(ctx context.Context, task string) ([]Link, error) {
	_, chain, err := j.chain(ctx, task, nil)
	return chain, err
}

// chain reads what has come behind live records that are known.
func (j *Job) chain(ctx context.Context, task string, known []LiveRecord) ([]LiveRecord, []Link, error) {
	records, err := j.LiveRecords(ctx, known)
	if err != nil {
		return records, nil, err
	}
	chain, err := ChainOf(records, task)
	if err != nil {
		n := Generation(len(records) - 1)
		return records, nil, j.damaged(At{}, LivePath(n), "live records of which each ends the one before", err.Error())
	}
	return records, chain, nil
}

// OwedTo is rule D1: what sinks are owed by all generations up to the one of a
// branch, behind what head, that branch's newest manifest, says is delivered.
func (j *Job) OwedTo(ctx context.Context, head Manifest, sinks []string) (map[string][]Owed, error) {
	chain, err := j.Chain(ctx, head.Task)
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(chain, func(l Link) bool { return l.Branch == head.Branch })
	if own < 0 {
		return nil, nil // a follower's deliveries are nobody's
	}
	return j.owedOver(ctx, head, chain[:own+1], sinks)
}

// OwedToFill is what sinks are owed by a branch that fills them and is not live, by its
// newest manifest.
func (j *Job) OwedToFill(ctx context.Context, head Manifest, sinks []string) (map[string][]Owed, error) {
	return j.owedOver(ctx, head, []Link{{Branch: head.Branch, To: AllPositions}}, sinks)
}

// owedOver is what sinks are owed by a chain of which head is the newest manifest.
func (j *Job) owedOver(ctx context.Context, head Manifest, chain []Link, sinks []string) (map[string][]Owed, error) {
	r := &owedReader{job: j, head: head, chain: chain, logs: make([][]Manifest, len(chain))}
	owed := map[string][]Owed{}
	for _, name := range sinks {
		s, known := head.Sinks[name]
		if !known {
			continue
		}
		pieces, err := r.pieces(ctx, name, s)
		if err != nil {
			return nil, err
		}
		found, err := OwedOver(pieces, name, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; `sluice fsck %s` tells more", j.name, err, j.name)
		}
		if len(found) > 0 {
			owed[name] = found
		}
	}
	return owed, nil
}

// owedReader reads back over the logs of generations, each manifest once.
type owedReader struct {
	job   *Job
	head  Manifest
	chain []Link
	logs  [][]Manifest // of each link, newest first
}

// pieces reads what generations may owe a sink, back to where it stands or began.
func (r *owedReader) pieces(ctx context.Context, sink string, now SinkState) ([]Piece, error) {
	pieces := make([]Piece, len(r.chain))
	for i, link := range r.chain {
		pieces[i].Link = link
	}
	for i := len(r.chain) - 1; i >= 0; i-- {
		link := r.chain[i]
		if link.To <= now.Confirmed {
			break
		}
		if link.Ended() && link.Hash == "" {
			continue // it had no epochs
		}
		end, err := r.back(ctx, i, 0)
		if err != nil {
			return nil, err
		}
		s, named := end.Sinks[sink]
		if !named || s.Dropped == Consented {
			break // nothing before is owed
		}
		if s.Dropped != "" {
			if drained, err := r.job.Drained(ctx, link.Live, r.head.Task, sink); err != nil || drained {
				return pieces, err
			}
			continue
		}
		until := max(link.From, s.Start, now.Confirmed)
		have := func(m Manifest) bool { return m.Position <= until }
		if fill := now.Fill; fill != nil && fill.Branch == link.Branch {
			have = func(m Manifest) bool { // nothing is owed by it, and by none before
				put := m.Sinks[sink].Fill
				return put != nil && put.Parts <= fill.Delivered && (m.Live == nil || m.Position <= until)
			}
		}
		if pieces[i].Manifests, err = r.until(ctx, i, have); err != nil {
			return nil, err
		}
		if s.Start > link.From || link.Sinks[sink].Start != "" {
			break // it began here, or came back in place, with nothing pending
		}
	}
	return pieces, nil
}

// until are the manifests of a link from the newest that the sink has, or the link's
// first, on.
func (r *owedReader) until(ctx context.Context, i int, has func(Manifest) bool) ([]Manifest, error) {
	for n := 0; ; n++ {
		m, err := r.back(ctx, i, n)
		if err != nil {
			return nil, err
		}
		if has(m) || m.Epoch == 0 {
			all := slices.Clone(r.logs[i][:n+1])
			slices.Reverse(all)
			return all, nil
		}
	}
}

// back is the manifest n epochs before the last of a link.
func (r *owedReader) back(ctx context.Context, i, n int) (Manifest, error) {
	link, log := r.chain[i], r.logs[i]
	if n < len(log) {
		return log[n], nil
	}
	e, hash := link.Final, link.Hash
	switch {
	case n > 0:
		e, hash = log[n-1].Epoch-1, log[n-1].Parent
	case !link.Ended():
		r.logs[i] = []Manifest{r.head}
		return r.head, nil
	}
	m, own, err := r.job.manifest(ctx, link.Branch, r.head.Task, e)
	if err != nil {
		return m, r.job.owedGone(err)
	}
	if own != hash {
		return m, r.job.damaged(At{r.job.name, link.Branch, r.head.Task, e}, ManifestPath(link.Branch, r.head.Task, e), "sha256 "+hash, own)
	}
	r.logs[i] = append(log, m)
	return m, nil
}

// owedGone names a manifest whose outboxes are owed and that isn't there.
func (j *Job) owedGone(err error) error {
	missing := (*missingError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	return j.damaged(missing.At, ManifestPath(missing.Branch, missing.Task, missing.Epoch), "a manifest whose outboxes are owed", "none")
}
