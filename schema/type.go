package schema

import (
	"reflect"
	"unsafe"
)

// Type is a Go type's schema, and compiled functions that write and read values
// of T. It is immutable; any number of goroutines may use it.
type Type[T any] struct {
	node   *node
	encode *encoder
	decode *decoder
}

// Of derives the schema of T. name is the name of the record, whatever the Go
// type is called; what is nested is named by its path behind it. The error is
// an [*UnsupportedError] that holds every part of T that has no schema.
func Of[T any](name string) (*Type[T], error) {
	n, err := build(reflect.TypeFor[T](), name, false)
	if err != nil {
		return nil, err
	}
	return &Type[T]{node: n, encode: newEncoder(n), decode: newDecoder(n.schema, n)}, nil
}

// Schema returns the schema of T.
func (t *Type[T]) Schema() *Schema { return t.node.schema }

// Append appends the encoding of *v to dst. Equal values have equal encodings:
// a map's entries are ordered, and an empty slice or map is written as nil is.
// A value that has no encoding (a symbol that is none, a decimal with too many
// digits, a pointer that leads back to itself) is a [*ValueError].
func (t *Type[T]) Append(dst []byte, v *T) ([]byte, error) {
	return t.encode.run(dst, noescape(unsafe.Pointer(v)), 0)
}

// Decode reads the value that src begins with into *v, all of which it
// overwrites, and returns what stands behind. Nothing in *v points into src.
// Bytes that are no value of T are a [*ValueError]; *v is then undefined.
func (t *Type[T]) Decode(src []byte, v *T) (rest []byte, err error) {
	return decodeInto(t.decode, src, v)
}

// Reader returns what reads values that were written with another schema, by
// Avro's rules: fields are found by name or alias, fields that were not written
// get their default, fields that are gone are passed over, numbers are widened,
// and of a union those branches are read that T can hold. What means the same in
// another form is read too: moments of other units, decimals of fewer digits.
// The error is a [*ResolveError] that lists every difference.
func (t *Type[T]) Reader(writer *Schema) (*Reader[T], error) { return t.reader(writer, nil) }

// Reader reads values that were written with another schema. It is immutable;
// any number of goroutines may use it.
type Reader[T any] struct{ decode *decoder }

// Decode reads the value that src begins with into *v, as [Type.Decode] does.
func (r *Reader[T]) Decode(src []byte, v *T) (rest []byte, err error) {
	return decodeInto(r.decode, src, v)
}

func decodeInto[T any](d *decoder, src []byte, v *T) ([]byte, error) {
	var zero T
	*v = zero
	end, err := d.run(src, 0, noescape(unsafe.Pointer(v)), 0)
	if err != nil {
		return nil, err
	}
	return src[end:], nil
}

// noescape hides from the compiler that p is passed on, so that what it points
// to need not be on the heap. None of the compiled functions keeps it.
//
// While only hidden holds the place, the stack must not move: a check of the
// pointer, which is a call, would let it grow just there.
//
//go:nosplit
//go:norace
//go:nocheckptr
func noescape(p unsafe.Pointer) unsafe.Pointer {
	hidden := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&hidden))
}
