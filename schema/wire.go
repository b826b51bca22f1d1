package schema

import (
	"encoding/binary"
	"fmt"
	"math"
)

// maxDepth bounds how deep values of a recursive type may be nested, written
// or read: a chain of more would cost a stack that grows with hostile input.
const maxDepth = 1000

// maxWalk bounds the same where only a schema is known. Which records of a cycle
// count as a level depends on where one begins, so it is wider: what can be
// written can be walked.
const maxWalk = 2 * maxDepth

// maxEmptyItems bounds arrays of items that take no bytes, such as records
// without fields: nothing else bounds what they cost to read.
const maxEmptyItems = 1 << 10

// What is wrong with bytes that are no value of their schema.
var (
	errShort    = fmt.Errorf("the data ends in the middle of a value")
	errVarint   = fmt.Errorf("a number is longer than Avro's ten bytes")
	errDeep     = fmt.Errorf("nested more than %d deep", maxDepth)
	errBoolean  = fmt.Errorf("a boolean is neither 0 nor 1")
	errLength   = fmt.Errorf("a length is negative or more than the bytes that are left")
	errSymbol   = fmt.Errorf("an enum's index is none of its symbols'")
	errBranch   = fmt.Errorf("a union's index is none of its branches'")
	errCount    = fmt.Errorf("a block holds more items than the bytes that are left")
	errTooEmpty = fmt.Errorf("more than %d items that take no bytes", maxEmptyItems)
)

// appendLong appends v as Avro's zig-zag varint.
func appendLong(dst []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	if u < 0x80 {
		return append(dst, byte(u))
	}
	return binary.AppendUvarint(dst, u)
}

// readLong reads a zig-zag varint at pos. It returns the position behind it, or
// a negative one if there is none.
func readLong(src []byte, pos int) (v int64, end int) {
	u, end := readUvarint(src, pos)
	return int64(u>>1) ^ -int64(u&1), end
}

// readUvarint reads a varint at pos. It returns the position behind it, or -1
// if the data ends before, -2 if it is too long.
func readUvarint(src []byte, pos int) (u uint64, end int) {
	if pos < len(src) && src[pos] < 0x80 {
		return uint64(src[pos]), pos + 1
	}
	return readLongUvarint(src, pos)
}

func readLongUvarint(src []byte, pos int) (u uint64, end int) {
	for shift := uint(0); pos < len(src); shift += 7 {
		b := src[pos]
		pos++
		if shift == 63 && b > 1 {
			return 0, -2
		}
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return u, pos
		}
	}
	return 0, -1
}

// varintError says what the negative position that a read returned means.
func varintError(end int) error {
	if end == -2 {
		return errVarint
	}
	return errShort
}

// readLength reads the length of a string or of bytes, and checks it against
// what is left.
func readLength(src []byte, pos int) (n, start int, err error) {
	v, start := readLong(src, pos)
	if start < 0 {
		return 0, 0, varintError(start)
	}
	if uint64(v) > uint64(len(src)-start) {
		return 0, 0, errLength
	}
	return int(v), start, nil
}

// readIndex reads the index of a symbol or a branch, of which there are n.
func readIndex(src []byte, pos, n int, wrong error) (i, end int, err error) {
	v, end := readLong(src, pos)
	if end < 0 {
		return 0, 0, varintError(end)
	}
	if uint64(v) >= uint64(n) {
		return 0, 0, wrong
	}
	return int(v), end, nil
}

// readBlock reads the head of a block of an array or a map: the number of items
// (0 ends the blocks), and how many bytes they take where that is told, else
// -1. least is the fewest bytes that an item takes.
func readBlock(src []byte, pos, least int) (count, size, start int, err error) {
	v, start := readLong(src, pos)
	if start < 0 {
		return 0, 0, 0, varintError(start)
	}
	size = -1
	if v < 0 {
		if v == math.MinInt64 {
			return 0, 0, 0, errCount
		}
		v = -v
		if size, start, err = readLength(src, start); err != nil {
			return 0, 0, 0, err
		}
	}
	switch {
	case least == 0 && v > maxEmptyItems:
		return 0, 0, 0, errTooEmpty
	case least > 0 && v > int64((len(src)-start)/least):
		return 0, 0, 0, errCount
	}
	return int(v), size, start, nil
}

// leastSizes remembers the fewest bytes that a value of a schema takes.
type leastSizes map[*Schema]int

// of returns the fewest bytes that a value of s takes. It is 0 only for what
// never takes any.
func (l leastSizes) of(s *Schema) int {
	switch s.kind {
	case KindNull:
		return 0
	case KindFloat:
		return 4
	case KindDouble:
		return 8
	case KindFixed:
		return s.size
	case KindRecord:
		if n, ok := l[s]; ok {
			return n
		}
		l[s] = 1 // within itself, a recursive record takes something
		n := 0
		for i := range s.fields {
			n = min(n+l.of(s.fields[i].Type), math.MaxInt32)
		}
		l[s] = n
		return n
	}
	return 1
}

// canonical64 returns the bits of f, with every NaN turned into the one that is
// written.
func canonical64(f float64) uint64 {
	if f != f {
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

// canonical32 does so for 32 bits.
func canonical32(f float32) uint32 {
	if f != f {
		return 0x7fc00000
	}
	return math.Float32bits(f)
}
