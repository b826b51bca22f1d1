package epoch

import "fmt"

// Owed is a delivery of one sink: the outbox of a manifest brings the sink from one
// position to another.
type Owed struct {
	From, To Position
	Manifest Manifest
}

// OwedBy is what a manifest owes a sink; false if it owes nothing.
func OwedBy(m Manifest, sink string) (Owed, bool) {
	s, ok := m.Sinks[sink]
	if !ok || m.Kind != Data || m.Live == nil || m.Position <= s.Start || s.Dropped != "" {
		return Owed{}, false
	}
	from := m.Position - 1
	if from == s.Start {
		from = s.Confirmed // behind a gap, the position before it
	}
	return Owed{from, m.Position, m}, true
}

// Backlog is rule D1: what a sink is owed behind a position, by whichever branches
// have been live since. The chain holds the data manifests of live branches, by
// ascending position, each of the generation that the position belongs to. A
// delivery that does not begin where the one before it ended means that a manifest
// is missing.
func Backlog(chain []Manifest, sink string, confirmed Position) ([]Owed, error) {
	var owed []Owed
	for _, m := range chain {
		o, ok := OwedBy(m, sink)
		if !ok || o.To <= confirmed {
			continue
		}
		if len(owed) > 0 && o.From != owed[len(owed)-1].To {
			return nil, fmt.Errorf("sink %s is owed position %d after %d, and what lies between is not there", sink, o.To, owed[len(owed)-1].To)
		}
		owed = append(owed, o)
	}
	return owed, nil
}
