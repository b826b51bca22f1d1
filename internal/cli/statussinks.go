package cli

import (
	"context"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

// spanStatus is where the rows of a sink stand in a partition: from Begin on, up to End.
type spanStatus struct {
	Partition string `json:"partition"`
	// Begin is the offset before which there is no row, End that behind the last; the two
	// are one where there is none. Nil: not known, since the sink's record is older than
	// such marks.
	Begin *int64 `json:"begin,omitempty"`
	End   *int64 `json:"end,omitempty"`
}

func spansOf(s *epoch.Span) (all []spanStatus) {
	if s == nil {
		return nil
	}
	names := maps.Clone(s.Begins)
	if names == nil {
		names = map[string]int64{}
	}
	maps.Copy(names, s.Ends)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		one := spanStatus{Partition: name}
		if s.Begins != nil {
			begin := s.Begins[name] // 0 of one that came later
			one.Begin, one.End = &begin, &begin
		}
		if end, ok := s.Ends[name]; ok {
			one.End = &end
		}
		all = append(all, one)
	}
	return all
}

// sinkStatusOf is how far a sink of an epoch is known to have been delivered.
func sinkStatusOf(ctx context.Context, job *epoch.Job, m epoch.Manifest, name string) (sinkStatus, error) {
	sink := m.Sinks[name]
	s := sinkStatus{
		Sink: name, Start: sink.Start, Confirmed: sink.Confirmed, Pending: m.Position - min(sink.Confirmed, m.Position),
		Partitions: spansOf(sink.Span), Rewriting: rewritingOf(sink.Rewrite),
	}
	if sink.Dropped == "" {
		return s, nil
	}
	ended, err := job.DroppedSink(ctx, m, name)
	s.Dropped, s.GivenUp, s.Pending, s.Partitions = true, ended.GivenUp, ended.Pending, spansOf(ended.Span)
	return s, err
}

// deliveries says in words what the sink is owed.
func (s sinkStatus) deliveries() string {
	text := "done"
	if s.Pending > 0 {
		text = count(s.Pending) + " pending"
	}
	switch {
	case s.GivenUp:
		text = "dropped, the rest was given up"
	case s.Dropped:
		text = "dropped, " + text
	}
	return text
}

func (s status) sinks() *table {
	t := newTable(text("sink"), number("confirmed"), number("position"), text("deliveries"))
	for _, sink := range s.Sinks {
		deliveries := sink.deliveries()
		if sink.Rewriting != nil {
			deliveries += ", " + count(int64(sink.Rewriting.Percent)) + "% written anew"
		}
		t.row(sink.Sink, count(sink.Confirmed), count(s.Position), deliveries)
	}
	return t
}

// spans tell consumers where to leave one sink for another; nothing where no sink with
// offsets was dropped.
func (s status) spans() *table {
	t := newTable(text("rows of"), text("partition"), number("begin at"), number("end before"))
	if !slices.ContainsFunc(s.Sinks, func(sink sinkStatus) bool { return sink.Dropped && len(sink.Partitions) > 0 }) {
		return t
	}
	for _, sink := range s.Sinks {
		for _, p := range sink.Partitions {
			end := known(p.End)
			if sink.Dropped && sink.Pending > 0 {
				end += ", so far"
			}
			t.row(sink.Sink, p.Partition, known(p.Begin), end)
		}
	}
	return t
}

func known(offset *int64) string {
	if offset == nil {
		return "not known"
	}
	return count(*offset)
}
