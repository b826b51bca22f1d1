package compare

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"time"
)

// tolerance tells of two values that are not equal whether they count as equal.
type tolerance struct {
	absolute, relative float64
	within             time.Duration
}

// allows tells so of two canonical forms.
func (t *tolerance) allows(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	switch {
	case a[0] == markMoment && b[0] == markMoment:
		return t.moments(a, b)
	case a[0] == markDuration && b[0] == markDuration:
		return t.durations(a[1:], b[1:])
	}
	p, ok := quantityOf(a)
	if !ok {
		return false
	}
	q, ok := quantityOf(b)
	return ok && t.numbers(p, q)
}

// numbers compares in floating point where that settles it, exactly elsewhere.
func (t *tolerance) numbers(p, q quantity) bool {
	size := max(math.Abs(p.approx), math.Abs(q.approx))
	bound := max(t.absolute, t.relative*size)
	distance := math.Abs(p.approx - q.approx)
	// Each of the two is off by half a unit of its last place at the most, and so is
	// their difference.
	doubt := 0x1p-51*size + 0x1p-50*bound
	switch {
	case distance+doubt < bound:
		return true
	case distance-doubt > bound:
		return false
	}
	x, y := p.exact(), q.exact()
	d := new(big.Rat).Sub(x, y)
	d.Abs(d)
	if d.Cmp(ratOfFloat(t.absolute)) <= 0 {
		return true
	}
	x.Abs(x)
	if y.Abs(y); y.Cmp(x) > 0 {
		x = y
	}
	return d.Cmp(x.Mul(x, ratOfFloat(t.relative))) <= 0
}

const nanosPerSecond = 1_000_000_000

// moments compares seconds and nanoseconds.
func (t *tolerance) moments(a, b []byte) bool {
	x, y := scan{src: a, pos: 1}, scan{src: b, pos: 1}
	seconds := x.long() - y.long()
	// What a Duration can hold is less than 2^34 seconds; the seconds of a moment of
	// micros or millis can't overflow, and those of a date are few.
	if seconds > 1<<34 || seconds < -1<<34 {
		return false
	}
	rest := x.long() - y.long()
	d := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(nanosPerSecond))
	d.Add(d, big.NewInt(rest))
	return d.CmpAbs(big.NewInt(int64(t.within))) <= 0
}

// durations compares nanoseconds.
func (t *tolerance) durations(a, b []byte) bool {
	p, ok := quantityOf(a)
	if !ok {
		return false
	}
	q, ok := quantityOf(b)
	return ok && (&tolerance{absolute: float64(t.within), relative: t.relative}).numbers(p, q)
}

// appendMoment appends a count of units since 1970.
func appendMoment(dst []byte, v int64, u unit) []byte {
	dst = append(dst, markMoment)
	if u < 0 {
		return append(binary.AppendVarint(dst, v*int64(-u)), 0)
	}
	dst = binary.AppendVarint(dst, v/int64(u))
	return binary.AppendVarint(dst, v%int64(u)*(nanosPerSecond/int64(u)))
}

// appendDuration appends a count of units as a number of nanoseconds.
func appendDuration(dst []byte, v int64, u unit) []byte {
	dst = append(dst, markDuration)
	times := nanosPerSecond / int64(u)
	if v > math.MaxInt64/times || v < math.MinInt64/times {
		return appendDecimal(dst, new(big.Int).Mul(big.NewInt(v), big.NewInt(times)), 0)
	}
	return appendInteger(dst, v*times)
}

// compareForms orders canonical forms: numbers, durations and moments by value.
func compareForms(a, b []byte) int {
	if len(a) == 0 || len(b) == 0 || a[0] != b[0] && (a[0] > markDigits || b[0] > markDigits) {
		return bytes.Compare(a, b)
	}
	switch a[0] {
	case markMoment:
		x, y := scan{src: a, pos: 1}, scan{src: b, pos: 1}
		return cmp.Or(cmp.Compare(x.long(), y.long()), cmp.Compare(x.long(), y.long()))
	case markDuration:
		return compareForms(a[1:], b[1:])
	}
	p, ok := quantityOf(a)
	if !ok {
		return bytes.Compare(a, b)
	}
	q, ok := quantityOf(b)
	if !ok {
		return bytes.Compare(a, b)
	}
	if order := cmp.Compare(p.approx, q.approx); order != 0 {
		return order
	}
	return p.exact().Cmp(q.exact())
}
