package postgres

import (
	"encoding/binary"
	"github.com/sluicestream/sluice/internal/twos"
	"math/big"
	"strconv"
)

// A numeric's binary form has its digits in groups of four, the first of which
// counts 10000 to the power of weight.
const (
	groupDigits  = 4
	negativeSign = 0x4000
)

// appendNumeric appends the number whose digits are given, scale of which stand
// behind the point.
func appendNumeric(dst, digits []byte, scale int, negative bool) []byte {
	dst, start := begin(dst)
	head := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	groups, weight := 0, 0
	// Counted from the point, the first digit stands at place len(digits)-scale-1.
	whole := len(digits) - scale
	first := floorDiv(whole-1, groupDigits)
	zeros := 0 // groups of zeros that are written only if another follows
	for g := first; ; g-- {
		from := whole - (g+1)*groupDigits
		if from >= len(digits) {
			break
		}
		value := uint16(0)
		for i := from; i < from+groupDigits; i++ {
			value *= 10
			if i >= 0 && i < len(digits) {
				value += uint16(digits[i] - '0')
			}
		}
		switch {
		case value == 0 && groups == 0:
		case value == 0:
			zeros++
		default:
			if groups == 0 {
				weight = g
			}
			for ; zeros > 0; zeros-- {
				dst, groups = append(dst, 0, 0), groups+1
			}
			dst, groups = binary.BigEndian.AppendUint16(dst, value), groups+1
		}
	}
	binary.BigEndian.PutUint16(dst[head:], uint16(groups))
	binary.BigEndian.PutUint16(dst[head+2:], uint16(int16(weight)))
	if negative && groups > 0 {
		binary.BigEndian.PutUint16(dst[head+4:], negativeSign)
	}
	binary.BigEndian.PutUint16(dst[head+6:], uint16(scale))
	return end(dst, start)
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// most64 is the digits of the largest 64-bit number.
const most64 = 20

// appendNumericInt appends a whole number.
func appendNumericInt(dst []byte, v int64) []byte {
	magnitude := uint64(v)
	if v < 0 {
		magnitude = -magnitude
	}
	var room [most64]byte
	return appendNumeric(dst, strconv.AppendUint(room[:0], magnitude, 10), 0, v < 0)
}

// appendNumericUint appends a whole number without a sign.
func appendNumericUint(dst []byte, v uint64) []byte {
	var room [most64]byte
	return appendNumeric(dst, strconv.AppendUint(room[:0], v, 10), 0, false)
}

// appendDecimal appends the decimal whose unscaled value raw is, in two's
// complement.
func appendDecimal(dst, raw []byte, scale int) []byte {
	if len(raw) <= 8 {
		v := int64(0)
		if len(raw) > 0 && raw[0] >= 0x80 {
			v = -1
		}
		for _, b := range raw {
			v = v<<8 | int64(b)
		}
		magnitude := uint64(v)
		if v < 0 {
			magnitude = -magnitude
		}
		var room [most64]byte
		return appendNumeric(dst, strconv.AppendUint(room[:0], magnitude, 10), scale, v < 0)
	}
	v := twos.Int(raw)
	return appendNumeric(dst, new(big.Int).Abs(v).Append(nil, 10), scale, v.Sign() < 0)
}
