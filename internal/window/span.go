package window

import "math"

// Forever is the end of what has none. No window begins there, or ends later.
const Forever = math.MaxInt64

// A Span is the half-open interval [Start, End) of microseconds since 1970 UTC.
type Span struct{ Start, End int64 }

// Holds tells whether t is in the span.
func (s Span) Holds(t int64) bool { return s.Start <= t && t < s.End }

// Overlaps tells whether a time is in both. Spans that only touch don't overlap:
// a session ends where its gap has passed.
func (s Span) Overlaps(other Span) bool { return s.Start < other.End && other.Start < s.End }

// Cover is the shortest span that both are in: of two sessions that overlap, the
// one that they are together.
func (s Span) Cover(other Span) Span {
	return Span{min(s.Start, other.Start), max(s.End, other.End)}
}
