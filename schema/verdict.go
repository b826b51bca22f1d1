package schema

import "math"

// verdict is what is said of one type and an earlier one. The zero verdict says
// that there is no difference.
type verdict struct {
	change                     Change
	resolves, mayFail, narrows bool
}

// scalarVerdict compares types without looking into them.
func scalarVerdict(old, now *Schema) verdict {
	if v, ok := logicalVerdict(old, now); ok {
		return v
	}
	if lo, hi, ok := old.count(now); ok {
		if nowLo, nowHi, ok := now.span(); ok {
			return widening(nowLo <= lo && nowHi >= hi, lo != nowLo || hi != nowHi)
		}
	}
	switch {
	case old.meaning() != now.meaning():
		return verdict{change: Retyped}
	case old.kind != now.kind:
		return promotion(old.kind, now.kind)
	case old.kind == KindFixed && old.size != now.size:
		return verdict{change: Retyped}
	}
	return verdict{}
}

func widening(wider, differs bool) verdict {
	switch {
	case !differs:
		return verdict{}
	case wider:
		return verdict{change: Widened, resolves: true}
	}
	return verdict{change: Narrowed, narrows: true}
}

// promotion says what Avro's rules make of another kind.
func promotion(old, now Kind) verdict {
	number := func(k Kind) bool { return k >= KindInt && k <= KindDouble }
	text := func(k Kind) bool { return k == KindBytes || k == KindString }
	switch {
	case number(old) && number(now):
		return widening(old < now, true)
	case text(old) && text(now):
		return verdict{change: Retyped, resolves: true}
	}
	return verdict{change: Retyped}
}

// span returns the range of a plain integer.
func (s *Schema) span() (lo int64, hi uint64, ok bool) {
	bits, signed := s.Integer()
	switch {
	case bits == 0:
		return 0, 0, false
	case signed:
		return -1 << (bits - 1), 1<<(bits-1) - 1, true
	}
	return 0, math.MaxUint64 >> (64 - bits), true
}

// count returns the range of a plain integer, or of what counts as one for a
// reader that has one: Go has no type for days, and none but a duration for
// the time since midnight.
func (s *Schema) count(reader *Schema) (lo int64, hi uint64, ok bool) {
	_, ofDay := s.timeOfDay()
	switch {
	case reader.meaning() != "" || !ofDay && s.logical != logicalDate:
		return s.span()
	case s.kind == KindInt:
		return math.MinInt32, math.MaxInt32, true
	}
	return math.MinInt64, math.MaxInt64, true
}
