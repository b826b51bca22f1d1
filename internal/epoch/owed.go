package epoch

import "fmt"

// Owed is a delivery of one sink: the outbox of a manifest brings the sink from one
// position to another.
type Owed struct {
	From, To Position
	// Gap is [DeliveryView]'s.
	Gap      Position
	Manifest Manifest
}

// OwedBy is what a manifest of a live branch owes a sink; false if it owes nothing.
// Behind a gap it begins where the sink stood by the same manifest; [OwedOver] knows
// of what was owed still.
func OwedBy(m Manifest, sink string) (Owed, bool) {
	s, ok := m.Sinks[sink]
	if !ok || m.Kind != Data || m.Live == nil || m.Position <= s.Start || s.Dropped != "" {
		return Owed{}, false
	}
	from := m.Position - 1
	if from == s.Start {
		from = s.Confirmed // behind a gap, the position before it
	}
	return Owed{From: from, To: m.Position, Manifest: m}, true
}

// Piece is what one generation has put out: its link, and manifests of its branch in
// their order, those that it wrote as a follower among them.
type Piece struct {
	Link
	Manifests []Manifest
}

// OwedOver is rule D1: what a sink is owed behind a position, by whichever
// generations have been live since. Each position is delivered from the generation
// whose interval holds it. One that did not have the sink leaves a gap, which
// belongs to the delivery behind it; where the cut filled the sink from the branch's
// base, what the branch wrote as a follower is delivered in its place. A delivery
// that does not begin where the one before it ended means that a manifest is
// missing.
func OwedOver(pieces []Piece, sink string, confirmed Position) ([]Owed, error) {
	w := owing{sink: sink, at: confirmed}
	for _, p := range pieces {
		w.dropped(p.Link)
		before := p.From
		for i, m := range p.Manifests {
			if i > 0 {
				before = p.Manifests[i-1].Position
			}
			if err := w.add(p.Link, before, m); err != nil {
				return nil, err
			}
		}
	}
	return w.owed, nil
}

// owing walks over manifests in the order of their positions.
type owing struct {
	sink string
	at   Position // up to which the sink has all, once what is owed so far is delivered
	owed []Owed

	// The sink's last absence: where it began, once it has had all before that, or
	// that some of it was given up.
	absent  Position
	givenUp bool
}

// dropped notes that a generation lacks the sink.
func (w *owing) dropped(l Link) {
	switch l.Sinks[w.sink].Dropped {
	case ToDrain:
		w.absent, w.givenUp = l.From, false
	case Consented:
		w.absent, w.givenUp = l.From, true
	}
}

// add adds what a manifest owes; before is the position of the one before it.
func (w *owing) add(l Link, before Position, m Manifest) error {
	o, ok := owedUnder(l, before, m, w.sink)
	if !ok || o.To <= w.at {
		return nil
	}
	if start := m.Sinks[w.sink].Start; before == start && w.at <= start { // it begins here, or stands behind a gap
		if w.givenUp {
			o.Gap = start
		} else {
			w.at = max(w.at, w.absent)
		}
		o.From = w.at
	}
	if o.From != w.at {
		return fmt.Errorf("sink %s is owed position %d after %d, and what lies between is not there", w.sink, o.To, w.at)
	}
	w.owed, w.at = append(w.owed, o), o.To
	return nil
}

// owedUnder is what a manifest owes as part of a generation.
func owedUnder(l Link, before Position, m Manifest, sink string) (Owed, bool) {
	if m.Live != nil {
		if *m.Live != l.Live || m.Position <= l.From || m.Position > l.To {
			return Owed{}, false
		}
		return OwedBy(m, sink)
	}
	s, ok := m.Sinks[sink]
	filled := l.Sinks[sink].Start == StartBase
	if !ok || !filled || m.Kind != Data || m.Position <= before {
		return Owed{}, false
	}
	return Owed{From: before, To: m.Position, Manifest: m}, m.Position > s.Start && s.Dropped == ""
}

// Backlog is [OwedOver] for manifests of live branches alone, by ascending position,
// each of the generation that its position belongs to.
func Backlog(chain []Manifest, sink string, confirmed Position) ([]Owed, error) {
	w := owing{sink: sink, at: confirmed}
	for _, m := range chain {
		if m.Live == nil {
			continue
		}
		if err := w.add(Link{Live: *m.Live, To: AllPositions}, m.Position-1, m); err != nil {
			return nil, err
		}
	}
	return w.owed, nil
}
