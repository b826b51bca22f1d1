package postgres

import (
	"encoding/binary"
	"errors"
	"math"
)

// What is wrong with bytes that are no value of their schema.
var (
	errShort  = errors.New("the frozen row is damaged: it ends in the middle of a value")
	errLong   = errors.New("the frozen row is damaged: a number is longer than ten bytes")
	errIndex  = errors.New("the frozen row is damaged: an index is out of range")
	errCount  = errors.New("the frozen row is damaged: a block holds more items than there are bytes")
	errBehind = errors.New("the frozen row is damaged: bytes are left over behind it")
)

// readLong reads Avro's zig-zag varint at pos.
func readLong(src []byte, pos int) (v int64, end int, err error) {
	if pos < len(src) && src[pos] < 0x80 {
		u := src[pos]
		return int64(u>>1) ^ -int64(u&1), pos + 1, nil
	}
	u, n := binary.Uvarint(src[min(pos, len(src)):])
	switch {
	case n == 0:
		return 0, 0, errShort
	case n < 0:
		return 0, 0, errLong
	}
	return int64(u>>1) ^ -int64(u&1), pos + n, nil
}

// readBytes reads what has its length before it.
func readBytes(src []byte, pos int) (b []byte, end int, err error) {
	n, start, err := readLong(src, pos)
	if err != nil {
		return nil, 0, err
	}
	if n < 0 || n > int64(len(src)-start) {
		return nil, 0, errShort
	}
	end = start + int(n)
	return src[start:end], end, nil
}

// readFixed reads size bytes.
func readFixed(src []byte, pos, size int) (b []byte, end int, err error) {
	if len(src)-pos < size {
		return nil, 0, errShort
	}
	return src[pos : pos+size], pos + size, nil
}

// readIndex reads the index of a branch or a symbol, of which there are n.
func readIndex(src []byte, pos, n int) (i, end int, err error) {
	v, end, err := readLong(src, pos)
	if err == nil && (v < 0 || v >= int64(n)) {
		err = errIndex
	}
	return int(v), end, err
}

// readBlock reads the head of an array's block: how many items follow, 0 at the
// end.
func readBlock(src []byte, pos int) (count, end int, err error) {
	v, end, err := readLong(src, pos)
	if err == nil && v < 0 {
		v = -v
		_, end, err = readLong(src, end) // the block's size in bytes
	}
	if err == nil && (v < 0 || v > int64(len(src)-end)) {
		err = errCount
	}
	return int(v), end, err
}

// null is how COPY writes that there is no value.
const null = math.MaxUint32

// appendNull appends no value.
func appendNull(dst []byte) []byte { return binary.BigEndian.AppendUint32(dst, null) }

// begin leaves room for a value's length; end fills it in.
func begin(dst []byte) (_ []byte, start int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

func end(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// appendValue appends a value with its length.
func appendValue(dst, value []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(value))), value...)
}

func appendInt16(dst []byte, v int16) []byte {
	return binary.BigEndian.AppendUint16(append(dst, 0, 0, 0, 2), uint16(v))
}

func appendInt32(dst []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 4), uint32(v))
}

func appendInt64(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0, 0, 0, 8), uint64(v))
}
