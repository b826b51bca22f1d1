package epoch

import (
	"iter"
	"slices"
)

// What fills a sink before a cut (D10).

// replaceRecord is D10: the sink is emptied, and begun anew.
func (*sinkState) replaceRecord(w *moment) func(int, *proc) bool {
	return func(i int, p *proc) bool {
		k, noted := &w.sink, p.head.Sinks["out"]
		switch {
		case k.record.there && k.record.id == noted.Takes:
			k.record, k.holder = remembered{there: true, at: Place{Position: noted.RecordAt()}, id: noted.Record, by: p.branch}, none
			if !w.s.off("D10: the rows stay") {
				k.rows = nil
			}
			w.say("%s empties the sink, and puts its own record there", w.nameOf(i))
			k.check(w)
		case !k.record.there || k.record.id != noted.Record:
			p.at = disagreed
			w.say("%s finds another record than the two", w.nameOf(i))
			return true
		}
		p.took = true
		return true
	}
}

// wasLive tells whether a branch is live, or has been.
func (w *moment) wasLive(log int8) bool {
	return slices.ContainsFunc(w.live, func(g *generation) bool { return g.Branch == w.s.branches[log] })
}

// owedToSink are the live epochs that the sink is to get, behind those that fill it.
func (w *moment) owedToSink() iter.Seq[*logEntry] {
	from := Generation(0)
	for _, g := range w.live {
		if g.Sinks["out"].Start == StartBase {
			from = g.N
		}
	}
	return func(yield func(*logEntry) bool) {
		for _, e := range w.liveEntries() {
			if w.sink.record.there && w.toBeEmptied() {
				return
			}
			if s, has := e.Sinks["out"]; has && s.Dropped == "" && *e.Live >= from && !yield(e) {
				return
			}
		}
	}
}

// toBeEmptied tells whether what the sink holds is of a branch that filled it in vain.
func (w *moment) toBeEmptied() bool {
	return !w.wasLive(w.sink.record.by) || w.sink.record.id != "" && w.liveSink().Takes == w.sink.record.id
}

// fillers are the epochs that fill the sink: those of the branch that the chain says has,
// or of the one whose record it is.
func (w *moment) fillers(by int8) (all []*logEntry) {
	for _, g := range w.live {
		if g.Sinks["out"].Start == StartBase && !w.toBeEmptied() {
			by = w.logOf(g.Branch)
		}
	}
	for _, e := range w.logs[by].truth {
		if s := e.Sinks["out"]; e.Kind == Data && e.Live == nil && s.Fill != nil && len(s.Outbox) > 0 {
			all = append(all, e)
		}
	}
	return all
}
