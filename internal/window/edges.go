package window

import (
	"math"
	"math/big"
)

// searched is how far ahead a common edge with a calendar is looked for: in 400
// years the calendar has gone through all its days, weeks and leap years.
const searched = 146_097 * day

// NextEdge is the first instant from t on at which a window begins whatever the
// records are; ok is false where there is none: for sliding, session and custom
// windows, and where Append refuses.
func (d *Definition) NextEdge(t int64) (edge int64, ok bool) {
	switch {
	case d.isFixed():
		edge, ok := alignedBefore(t, d.Slide, d.Offset)
		if !ok {
			return 0, false
		}
		if edge < t {
			if edge > math.MaxInt64-d.Slide {
				return 0, false
			}
			edge += d.Slide
		}
		return edge, edge <= math.MaxInt64-d.Size
	case d.Kind == CalendarKind:
		window, ok := d.calendarWindow(t)
		if !ok || window.Start == t {
			return t, ok
		}
		return window.End, true
	}
	return 0, false
}

// isEdge tells whether windows begin at an instant.
func (d *Definition) isEdge(at int64) bool {
	edge, ok := d.NextEdge(at)
	return ok && edge == at
}

// Boundary is the first instant after another that is an edge of both definitions.
// ok is false where there is none: sliding, session and custom windows have no
// edges, offsets can be such that they never meet, and times of two clocks can't be
// compared. With calendar windows the next 400 years are searched; otherwise the
// answer is exact.
func Boundary(old, now *Definition, after int64) (at int64, ok bool) {
	switch {
	case old.Clock != now.Clock || after == math.MaxInt64:
		return 0, false
	case old.isFixed() && now.isFixed():
		at, ok = meeting(old, now, after)
		return at, ok && old.isEdge(at) && now.isEdge(at)
	}
	last := int64(math.MaxInt64)
	if after < math.MaxInt64-searched {
		last = after + searched
	}
	// Each turn passes an edge of both, of which those of a calendar are about a day
	// apart or more: there are at most 150,000.
	for at := after + 1; ; {
		of, ok := old.NextEdge(at)
		if !ok || of > last {
			return 0, false
		}
		at, ok = now.NextEdge(of)
		if !ok || at > last {
			return 0, false
		}
		if at == of {
			return at, true
		}
	}
}

// meeting is the first instant after another at which two even rows of edges meet.
//
// Edges of the first are first.Offset + first.Slide·m. Those that the second has as
// well are those whose m leaves a certain remainder when it is divided by the
// second's slide without what both slides have in common: such an m is looked for.
func meeting(first, second *Definition, after int64) (at int64, ok bool) {
	slide, offset := big.NewInt(first.Slide), big.NewInt(first.Offset)
	common := new(big.Int).GCD(nil, nil, slide, big.NewInt(second.Slide))
	apart := big.NewInt(second.Offset - first.Offset)
	if new(big.Int).Rem(apart, common).Sign() != 0 {
		return 0, false
	}
	every := new(big.Int).Quo(big.NewInt(second.Slide), common)
	remainder := new(big.Int).ModInverse(new(big.Int).Quo(slide, common), every)
	remainder.Mul(remainder, apart.Quo(apart, common)).Mod(remainder, every)

	// The first m after the instant, then the first from there on that will do. Div
	// and Mod of big.Int round down, their divisors being positive.
	m := new(big.Int).Sub(big.NewInt(after), offset)
	m.Div(m, slide).Add(m, big.NewInt(1))
	m.Add(m, remainder.Sub(remainder, m).Mod(remainder, every))

	meets := m.Mul(m, slide).Add(m, offset)
	return meets.Int64(), meets.IsInt64()
}
