package schema

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"unsafe"
)

// Key is the schema of a Go type that can be a key, and compiled functions that
// write and read it. Keys are strings, integers, booleans, arrays of bytes,
// [Instant]s and structs of these. It is immutable; any number of goroutines
// may use it.
type Key[K comparable] struct {
	node   *node
	form   keyForm
	ops    keyEncoder
	decode *decoder
}

// keyForm says which path a key takes: most are one string or one integer.
type keyForm uint8

const (
	keyOther keyForm = iota
	keyString
	keyInt64
	keyInt32
)

// KeyOf derives the schema of K, which is named like that of [Of]. The error is
// an [*UnsupportedError] that holds every part of K that can't be part of a key:
// floating-point numbers, pointers, interfaces, [time.Time].
func KeyOf[K comparable](name string) (*Key[K], error) {
	n, err := build(reflect.TypeFor[K](), name, true)
	if err != nil {
		return nil, err
	}
	k := &Key[K]{node: n, ops: newKeyEncoder(n), decode: newDecoder(n.schema, n)}
	switch {
	case n.form == formString:
		k.form = keyString
	case n.form == formInt && n.bits == 64:
		k.form = keyInt64
	case n.form == formInt && n.bits == 32:
		k.form = keyInt32
	}
	return k, nil
}

// Schema returns the schema of K.
func (k *Key[K]) Schema() *Schema { return k.node.schema }

// Append appends the encoding of a key to dst. Equal keys have equal encodings,
// and other keys have others.
func (k *Key[K]) Append(dst []byte, key K) []byte {
	switch k.form {
	case keyString:
		s := *(*string)(unsafe.Pointer(&key))
		return append(appendLong(dst, int64(len(s))), s...)
	case keyInt64:
		return appendLong(dst, *(*int64)(unsafe.Pointer(&key)))
	case keyInt32:
		return appendLong(dst, int64(*(*int32)(unsafe.Pointer(&key))))
	}
	return k.ops.append(dst, unsafe.Pointer(&key))
}

// Decode reads the key that src begins with and returns what stands behind.
// Nothing in the key points into src. Bytes that are no key are a
// [*ValueError].
func (k *Key[K]) Decode(src []byte) (key K, rest []byte, err error) {
	switch k.form {
	case keyString:
		n, start, err := readLength(src, 0)
		if err != nil {
			return key, nil, &ValueError{Path: k.node.path, Reason: err.Error()}
		}
		*(*string)(unsafe.Pointer(&key)) = string(src[start : start+n])
		return key, src[start+n:], nil
	case keyInt64:
		v, end := readLong(src, 0)
		if end < 0 {
			return key, nil, &ValueError{Path: k.node.path, Reason: varintError(end).Error()}
		}
		*(*int64)(unsafe.Pointer(&key)) = v
		return key, src[end:], nil
	}
	rest, err = decodeInto(k.decode, src, &key)
	return key, rest, err
}

// Compare compares two keys in Avro's order, which is that of their encodings
// ([Comparer]), without encoding them.
func (k *Key[K]) Compare(a, b *K) int {
	p, q := unsafe.Pointer(a), unsafe.Pointer(b)
	switch k.form {
	case keyString:
		return strings.Compare(*(*string)(p), *(*string)(q))
	case keyInt64:
		return cmp.Compare(*(*int64)(p), *(*int64)(q))
	}
	return k.ops.compare(p, q)
}

// keyEncoder writes keys: an encoder without calls, and so without errors. It
// calls nothing that the compiler can't see through, so that a key need not be
// on the heap.
type keyEncoder []encodeOp

func newKeyEncoder(n *node) keyEncoder { return newEncoder(n).ops }

func (k keyEncoder) append(dst []byte, base unsafe.Pointer) []byte {
	for i := range k {
		op := &k[i]
		p := unsafe.Add(base, op.offset)
		switch op.code {
		case encodeInt64:
			dst = appendLong(dst, *(*int64)(p))
		case encodeString:
			dst = appendString(dst, *(*string)(p))
		case encodeBool:
			dst = append(dst, *(*byte)(p))
		default:
			dst = op.appendRare(dst, p)
		}
	}
	return dst
}

// compare compares keys in memory.
func (k keyEncoder) compare(a, b unsafe.Pointer) int {
	for i := range k {
		op := &k[i]
		if order := op.compare(unsafe.Add(a, op.offset), unsafe.Add(b, op.offset)); order != 0 {
			return order
		}
	}
	return 0
}

// compare compares what one operation writes, of the forms that keys have.
func (op *encodeOp) compare(p, q unsafe.Pointer) int {
	switch op.code {
	case encodeString:
		return strings.Compare(*(*string)(p), *(*string)(q))
	case encodeInt64:
		return compareAt[int64](p, q)
	case encodeInt32:
		return compareAt[int32](p, q)
	case encodeInt16:
		return compareAt[int16](p, q)
	case encodeInt8:
		return compareAt[int8](p, q)
	case encodeUint64:
		return compareAt[uint64](p, q)
	case encodeUint32:
		return compareAt[uint32](p, q)
	case encodeUint16:
		return compareAt[uint16](p, q)
	case encodeUint8, encodeBool: // false is 0
		return compareAt[uint8](p, q)
	case encodeUint:
		return compareAt[uint](p, q)
	case encodeFixed:
		return bytes.Compare(unsafe.Slice((*byte)(p), int(op.size)), unsafe.Slice((*byte)(q), int(op.size)))
	}
	panic("schema: no form of a key")
}

func compareAt[T cmp.Ordered](p, q unsafe.Pointer) int { return cmp.Compare(*(*T)(p), *(*T)(q)) }
