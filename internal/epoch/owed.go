package epoch

import (
	"fmt"
	"slices"
)

// Owed is a delivery of one sink: the outbox of a manifest brings the sink from one
// position to another.
type Owed struct {
	// From and To are the positions; equal if the delivery fills a sink before a cut.
	From, To Position
	// Part is the number of parts behind From that come before this delivery.
	Part int
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
	o := Owed{From: m.Position - 1, To: m.Position, Manifest: m}
	if o.From == s.Start {
		o.From = s.Confirmed // behind a gap, the position before it
		if s.Fill != nil {
			o.Part = s.Fill.Parts
		}
	}
	return o, true
}

// OwedToFillBy is what a manifest of a branch that is not live owes a sink that it
// fills; false if it owes nothing.
func OwedToFillBy(m Manifest, sink string) (Owed, bool) {
	s := m.Sinks[sink]
	n := s.PartsOf()
	if m.Live != nil || s.Fill == nil || s.Fill.Branch != m.Branch || n == 0 {
		return Owed{}, false
	}
	return Owed{From: s.Confirmed, To: s.Confirmed, Part: s.Fill.Parts - n, Manifest: m}, true
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
// belongs to the delivery behind it; one that has filled the sink from its branch's
// base owes what the branch wrote as a follower, before its own first position. A
// delivery that does not begin where the one before it ended means that a manifest is
// missing. now is what the newest manifest says of the sink.
func OwedOver(pieces []Piece, sink string, now SinkState) ([]Owed, error) {
	w := owing{sink: sink, at: now.Confirmed}
	if now.Fill != nil {
		w.part, w.filler = now.Fill.Delivered, now.Fill.Branch
	}
	for i, p := range slices.Backward(pieces) {
		if p.Sinks[sink].Start != "" { // what was before is not this sink's
			pieces = pieces[i:]
			break
		}
	}
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
	part int      // and how many parts behind that, of what the filler has put out
	owed []Owed

	filler string // the branch that fills the sink; empty: none

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
	if m.Live == nil {
		return w.fill(m)
	}
	if *m.Live != l.Live || m.Position <= l.From || m.Position > l.To {
		return nil
	}
	o, ok := OwedBy(m, w.sink)
	if !ok || o.To <= w.at {
		return nil
	}
	if start := m.Sinks[w.sink].Start; before == start && w.at <= start { // it begins here, or stands behind a gap
		if w.givenUp {
			o.Gap = start
		} else {
			w.at = max(w.at, w.absent)
		}
		o.From, o.Part = w.at, w.part
	}
	if o.From != w.at {
		return fmt.Errorf("sink %s is owed position %d after %d, and what lies between is not there", w.sink, o.To, w.at)
	}
	w.owed, w.at, w.part = append(w.owed, o), o.To, 0
	return nil
}

// fill adds what an epoch of a follower owes a sink that its branch fills.
func (w *owing) fill(m Manifest) error {
	o, ok := OwedToFillBy(m, w.sink)
	if !ok || m.Branch != w.filler || o.From != w.at {
		return nil
	}
	if end := o.Part + m.Sinks[w.sink].PartsOf(); end <= w.part {
		return nil
	} else if o.Part != w.part {
		return fmt.Errorf("sink %s is owed part %d of what fills it after %d, and what lies between is not there", w.sink, o.Part+1, w.part)
	} else {
		w.owed, w.part = append(w.owed, o), end
	}
	return nil
}
