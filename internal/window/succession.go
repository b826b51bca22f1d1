package window

import (
	"fmt"
	"math"
	"slices"
)

// A Part is a definition of a succession and how far it goes.
type Part struct {
	Definition *Definition

	// Until ends it: its windows begin earlier. Forever, of the last.
	Until int64

	// Cut tells that its windows end there as well: records from Until on are none
	// of its own, and what belongs to the next part begins there. Otherwise Until
	// is an edge of both, and windows that began earlier go on until they end.
	Cut bool
}

// A Succession is the definitions in force, oldest first. A window belongs to the
// part in whose time it begins, so that the windows of a record are those of its
// time under each definition which begin between where that part begins and ends.
//
// It is a value: methods that change it give another one. That without parts is of
// no use; Begin makes one.
type Succession struct {
	from  int64 // where the first part begins: math.MinInt64, or the end of one that was dropped
	cut   bool  // whether windows are cut there
	parts []Part
}

// Begin is the succession of one definition.
func Begin(d *Definition) Succession {
	return Succession{from: math.MinInt64, parts: []Part{{Definition: d, Until: Forever}}}
}

// Then goes on with a definition from an instant on that is an edge of both; see
// [Boundary]. Windows that began before go on until they end.
func (s Succession) Then(d *Definition, at int64) (Succession, error) {
	return s.followed(d, at, false)
}

// Cut goes on with a definition from any instant on. Windows of the one before end
// there, and those of the new one begin there at the earliest: [Succession.Partial]
// tells which these are.
func (s Succession) Cut(d *Definition, at int64) (Succession, error) { return s.followed(d, at, true) }

func (s Succession) followed(d *Definition, at int64, cut bool) (Succession, error) {
	last := s.stretch(len(s.parts) - 1)
	switch {
	case at <= last.from || at == Forever:
		return s, fmt.Errorf("windows can't change at %d: the definition before them begins at %d", at, last.from)
	case d.Clock != last.Definition.Clock:
		return s, fmt.Errorf("windows can't change from %s time to %s time: their times can't be compared", last.Definition.Clock, d.Clock)
	case !cut && !(last.Definition.isEdge(at) && d.isEdge(at)):
		return s, fmt.Errorf("windows can't change at %d without being cut: it isn't where windows of both definitions begin, as the rules of time zones are here", at)
	}
	s.parts = append(slices.Clone(s.parts), Part{Definition: d, Until: Forever})
	s.parts[len(s.parts)-2].Until, s.parts[len(s.parts)-2].Cut = at, cut
	return s, nil
}

// Parts are the definitions, oldest first. They are not to be changed.
func (s Succession) Parts() []Part { return s.parts }

// Append appends the windows of t, in the order of their starts. There are none
// where they belong to parts that were dropped. It refuses, and appends nothing,
// where a definition does.
func (s Succession) Append(dst []Span, t int64) (windows []Span, ok bool) {
	n := len(dst)
	for i := range s.parts {
		part := s.stretch(i)
		if dst, ok = part.append(dst, t); !ok {
			return dst[:n], false
		}
	}
	return dst, true
}

// Finished is how many of the oldest parts can be dropped at a watermark: windows
// that end there or earlier are done, and theirs all do. So do the others of each time
// that was in one, of which nothing would tell any more that it came too late. Where
// windows wait for late records, the watermark is to be less by as much.
func (s Succession) Finished(watermark int64) int {
	for i := range s.parts {
		end := s.stretch(i).end
		if end == Forever || end > watermark {
			return i
		}
		last, ok := s.Append(nil, end-1)
		if !ok || slices.ContainsFunc(last, func(w Span) bool { return w.End > watermark }) {
			return i
		}
	}
	return 0
}

// Last is where windows of the last part begin; math.MinInt64 if it is the only one that
// ever was.
func (s Succession) Last() int64 { return s.stretch(len(s.parts) - 1).from }

// Settled tells whether the last part is all that is left, and a watermark so far that it
// makes no difference any more where its windows began: those that would have begun
// earlier end there at the latest.
func (s Succession) Settled(watermark int64) bool {
	if len(s.parts) > 1 || s.from == math.MinInt64 {
		return len(s.parts) == 1
	}
	earlier, ok := s.parts[0].Definition.Append(nil, s.from-1)
	return ok && !slices.ContainsFunc(earlier, func(w Span) bool { return w.End > watermark })
}

// Drop leaves out the n oldest parts, n being at most what Finished says. Where
// they ended is kept, since no window of the next part begins earlier.
func (s Succession) Drop(n int) Succession {
	if n == 0 {
		return s
	}
	last := s.parts[n-1]
	return Succession{from: last.Until, cut: last.Cut, parts: s.parts[n:]}
}

// Partial tells whether a window of the succession may lack records because it was
// cut. That is exact where the definition says how long a window is. Of sessions it
// is those that a record on the other side of the cut could have been in, of custom
// windows those that touch a cut.
func (s Succession) Partial(window Span) bool {
	for i := range s.parts {
		part := s.stretch(i)
		if part.from <= window.Start && window.Start < part.Until {
			return part.partial(window)
		}
	}
	return false
}

// stretch is a part and what it is between.
type stretch struct {
	Part
	from      int64 // its windows begin there or later
	cutBefore bool  // whether windows are cut there
	end       int64 // none of its windows ends later
}

func (s Succession) stretch(i int) stretch {
	part := stretch{Part: s.parts[i], from: s.from, cutBefore: s.cut, end: s.parts[i].Until}
	if i > 0 {
		part.from, part.cutBefore = s.parts[i-1].Until, s.parts[i-1].Cut
	}
	// Until being an edge, its last window begins a slide earlier, if windows aren't
	// cut; days and tumbling windows end there.
	if d := part.Definition; !part.Cut && part.Until != Forever && d.isFixed() {
		further := d.Size - d.Slide
		part.end = min(part.Until, Forever-further) + further
	}
	return part
}

// append appends the part's windows of t.
func (p *stretch) append(dst []Span, t int64) ([]Span, bool) {
	if t < p.from || t >= p.end && p.end != Forever {
		return dst, true
	}
	n := len(dst)
	dst, ok := p.Definition.Append(dst, t)
	if !ok {
		return dst, false
	}
	kept := dst[:n]
	for _, window := range dst[n:] {
		if p.cutBefore {
			window.Start = max(window.Start, p.from)
		}
		if p.Cut {
			window.End = min(window.End, p.Until)
		}
		// Windows that were cut at both ends have become one.
		if p.from <= window.Start && window.Start < p.Until && (len(kept) == n || kept[len(kept)-1] != window) {
			kept = append(kept, window)
		}
	}
	if p.Definition.Kind == CustomKind {
		return ordered(kept, n), true
	}
	return kept, true
}

func (p *stretch) partial(window Span) bool {
	d := p.Definition
	switch d.Kind {
	case TumblingKind, HoppingKind, SlidingKind:
		return window.End-window.Start < d.Size
	case CalendarKind:
		whole, ok := d.One(window.Start)
		return ok && whole != window
	case SessionKind:
		// A record just before the cut reaches as far as gap-1 behind it.
		return p.cutBefore && window.Start-p.from < d.Gap-1 || p.Cut && window.End == p.Until
	default:
		return p.cutBefore && window.Start == p.from || p.Cut && window.End == p.Until
	}
}
