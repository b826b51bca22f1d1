package schema

import (
	"fmt"
	"math/big"
	"slices"
	"unsafe"

	"github.com/sluicestream/sluice/internal/twos"
)

// encodeDecimal writes a big.Rat, or a pointer to one, as its unscaled value:
// the fewest bytes in two's complement, big-endian.
func encodeDecimal(n *node) encodeFunc {
	decimal, _ := n.schema.NonNull()
	return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		if n.typ == ratPointer {
			if p = *(*unsafe.Pointer)(p); p == nil {
				return append(dst, 0), nil
			}
			dst = append(dst, 2)
		}
		raw, err := unscaled(decimal, (*big.Rat)(p))
		if err != nil {
			return dst, &ValueError{Path: n.path, Reason: err.Error()}
		}
		return appendString(dst, raw), nil
	}
}

// unscaled returns the bytes of r as a decimal of s.
func unscaled(s *Schema, r *big.Rat) ([]byte, error) {
	v := new(big.Int).Mul(r.Num(), powerOfTen(s.scale))
	rest := new(big.Int)
	if v.QuoRem(v, r.Denom(), rest); rest.Sign() != 0 {
		return nil, fmt.Errorf("%s has more than %d digits behind the point", r.RatString(), s.scale)
	}
	if v.CmpAbs(powerOfTen(s.precision)) >= 0 {
		return nil, fmt.Errorf("%s has more digits than a %s", r.RatString(), s.Word())
	}
	return twos.Append(nil, v), nil
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// readUnscaled returns the unscaled value that raw is of a decimal of s.
func readUnscaled(s *Schema, raw []byte) (*big.Int, error) {
	raw = withoutSigns(raw)
	if len(raw) > s.precision {
		return nil, fmt.Errorf("%d bytes are more than a %s", len(raw), s.Word())
	}
	v := twos.Int(raw)
	if v.CmpAbs(powerOfTen(s.precision)) >= 0 {
		return nil, fmt.Errorf("%v has more digits than a %s", v, s.Word())
	}
	return v, nil
}

// withoutSigns cuts off leading bytes that only repeat the sign: a fixed is as
// long as it is, whatever the number.
func withoutSigns(raw []byte) []byte {
	for len(raw) > 1 && (raw[0] == 0 && raw[1] < 0x80 || raw[0] == 0xff && raw[1] >= 0x80) {
		raw = raw[1:]
	}
	return raw
}

// appendDecimal appends the exact digits of the decimal that raw is.
func appendDecimal(dst []byte, s *Schema, raw []byte) ([]byte, error) {
	v, err := readUnscaled(s, raw)
	if err != nil {
		return dst, err
	}
	if v.Sign() < 0 {
		dst = append(dst, '-')
	}
	digits := v.Abs(v).Append(nil, 10)
	for len(digits) <= s.scale {
		digits = slices.Concat([]byte{'0'}, digits)
	}
	point := len(digits) - s.scale
	dst = append(dst, digits[:point]...)
	if s.scale > 0 {
		dst = append(append(dst, '.'), digits[point:]...)
	}
	return dst, nil
}
