// Package twos writes and reads integers in two's complement, big-endian, as Avro
// and Parquet have the unscaled values of decimals.
package twos

import (
	"math/big"
	"slices"
)

// Append appends v in the fewest bytes; 0 is one byte.
func Append(dst []byte, v *big.Int) []byte {
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

// Int is the reverse of Append; it takes more bytes than needed too, and none as 0.
func Int(raw []byte) *big.Int {
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
