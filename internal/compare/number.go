package compare

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// The marks that begin a value's canonical form. Equal values have equal forms, and
// others have others; no form is the beginning of another.
const (
	markNull byte = iota
	markFalse
	markTrue
	markInteger // a varint
	markDigits  // the length, and the digits of a number that is no int64, as 1.25e-01
	markNaN
	markInfinity
	markMinusInfinity
	markText     // the length, and the text
	markRaw      // the length, and the bytes
	markMoment   // varints: seconds since 1970, and nanoseconds, both negative before it
	markDuration // a varint of nanoseconds, or markDigits
	markItem     // an item of an array follows
	markEntry    // a key and a value of a map follow
	markEnd      // of an array or a map
	markBranch   // the number of a union's branch that only one side has, and its value
)

func appendInteger(dst []byte, v int64) []byte {
	return binary.AppendVarint(append(dst, markInteger), v)
}

func appendText(dst []byte, mark byte, s []byte) []byte {
	dst = binary.AppendUvarint(append(dst, mark), uint64(len(s)))
	return append(dst, s...)
}

// The integers that a float64 can hold and an int64 can too.
const (
	leastInt64  = -1 << 63
	beyondInt64 = 1 << 63
)

// appendFloat appends a floating-point number, whose value is what its shortest digits
// say: so 0.1 is one tenth, as in a decimal, and the same in 32 bits and 64.
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, markNaN)
	case math.IsInf(v, 1):
		return append(dst, markInfinity)
	case math.IsInf(v, -1):
		return append(dst, markMinusInfinity)
	case v == math.Trunc(v) && v >= leastInt64 && v < beyondInt64:
		return appendInteger(dst, int64(v))
	}
	var room [32]byte
	return appendText(dst, markDigits, strconv.AppendFloat(room[:0], v, 'e', -1, bits))
}

// appendDecimal appends unscaled / 10^scale.
func appendDecimal(dst []byte, unscaled *big.Int, scale int) []byte {
	if scale == 0 && unscaled.IsInt64() {
		return appendInteger(dst, unscaled.Int64())
	}
	var room [64]byte
	digits := unscaled.Append(room[:0], 10)
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for scale > 0 && len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits, scale = digits[:len(digits)-1], scale-1
	}
	if digits[0] == '0' {
		return appendInteger(dst, 0)
	}
	if scale == 0 {
		if v, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			if negative {
				v = -v
			}
			return appendInteger(dst, v)
		}
		if v := new(big.Int); negative {
			if v.SetString("-"+string(digits), 10); v.IsInt64() {
				return appendInteger(dst, v.Int64())
			}
		}
	}
	return appendText(dst, markDigits, scientific(negative, digits, -scale))
}

// scientific writes digits × 10^exponent as strconv does: 1.25e-01.
func scientific(negative bool, digits []byte, exponent int) []byte {
	exponent += len(digits) - 1
	digits = bytes.TrimRight(digits, "0")
	var out []byte
	if negative {
		out = append(out, '-')
	}
	out = append(out, digits[0])
	if len(digits) > 1 {
		out = append(append(out, '.'), digits[1:]...)
	}
	sign := byte('+')
	if exponent < 0 {
		sign, exponent = '-', -exponent
	}
	out = append(out, 'e', sign)
	if exponent < 10 {
		out = append(out, '0')
	}
	return strconv.AppendInt(out, int64(exponent), 10)
}

// quantity is a number in its canonical form, for being reckoned with.
type quantity struct {
	approx float64
	whole  int64
	digits string // where it isn't whole
}

// quantityOf reads a canonical number; ok is false for what isn't finite.
func quantityOf(canonical []byte) (q quantity, ok bool) {
	if len(canonical) == 0 {
		return q, false
	}
	switch canonical[0] {
	case markInteger:
		q.whole, _ = binary.Varint(canonical[1:])
		q.approx = float64(q.whole)
		return q, true
	case markDigits:
		n, size := binary.Uvarint(canonical[1:])
		q.digits = string(canonical[1+size : 1+size+int(n)])
		var err error
		if q.approx, err = strconv.ParseFloat(q.digits, 64); err != nil {
			q.approx = math.Inf(1) // a decimal beyond float64: exact reckoning decides
		}
		return q, true
	}
	return q, false
}

func (q quantity) exact() *big.Rat {
	if q.digits == "" {
		return new(big.Rat).SetInt64(q.whole)
	}
	return ratOf(q.digits)
}

// ratOf reads digits that are known to be a number.
func ratOf(digits string) *big.Rat {
	r, ok := new(big.Rat).SetString(digits)
	if !ok {
		return new(big.Rat)
	}
	return r
}

func ratOfFloat(v float64) *big.Rat {
	return ratOf(strings.TrimPrefix(strconv.FormatFloat(v, 'e', -1, 64), "+"))
}
