package schema

import (
	"fmt"
	"math/big"
	"slices"
	"unsafe"
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
	return appendTwos(nil, v), nil
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// appendTwos appends v in two's complement, in the fewest bytes.
func appendTwos(dst []byte, v *big.Int) []byte {
	if v.Sign() >= 0 {
		raw := v.Bytes()
		if len(raw) == 0 || raw[0] >= 0x80 {
			dst = append(dst, 0)
		}
		return append(dst, raw...)
	}
	// -v-1 has the same bytes as v, each turned over.
	raw := new(big.Int).Not(v).Bytes()
	if len(raw) == 0 || raw[0] >= 0x80 {
		raw = slices.Concat([]byte{0}, raw)
	}
	for _, b := range raw {
		dst = append(dst, ^b)
	}
	return dst
}

// fromTwos is the reverse of appendTwos; it takes more bytes than needed too.
func fromTwos(raw []byte) *big.Int {
	v := new(big.Int)
	if len(raw) == 0 || raw[0] < 0x80 {
		return v.SetBytes(raw)
	}
	turned := make([]byte, len(raw))
	for i, b := range raw {
		turned[i] = ^b
	}
	return v.Not(v.SetBytes(turned))
}

// readUnscaled returns the unscaled value that raw is of a decimal of s.
func readUnscaled(s *Schema, raw []byte) (*big.Int, error) {
	raw = withoutSigns(raw)
	if len(raw) > s.precision {
		return nil, fmt.Errorf("%d bytes are more than a %s", len(raw), s.Word())
	}
	v := fromTwos(raw)
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
