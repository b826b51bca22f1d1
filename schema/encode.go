package schema

import (
	"encoding/binary"
	"time"
	"unsafe"
)

// encodeFunc appends the Avro encoding of what p points to.
type encodeFunc func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error)

// encoder is a compiled type: structs are flattened, so that a value of plain
// fields is written by one loop over them.
type encoder struct{ ops []encodeOp }

type encodeOp struct {
	offset uintptr
	call   encodeFunc // of encodeCall
	size   int32      // of encodeFixed
	code   encodeCode
}

type encodeCode uint8

const (
	encodeBool encodeCode = iota
	encodeInt8
	encodeInt16
	encodeInt32
	encodeInt64
	encodeUint8
	encodeUint16
	encodeUint32
	encodeUint64
	encodeUint // the machine's own size, where that isn't 64 bits
	encodeFloat32
	encodeFloat64
	encodeString // and bytes, which are laid out alike
	encodeFixed
	encodeCall
)

// run appends the encoding of what base points to.
func (e *encoder) run(dst []byte, base unsafe.Pointer, depth int) ([]byte, error) {
	for i := range e.ops {
		op := &e.ops[i]
		p := unsafe.Add(base, op.offset)
		var u uint64
		switch op.code {
		case encodeInt64:
			v := *(*int64)(p)
			u = uint64(v)<<1 ^ uint64(v>>63)
		case encodeString:
			s := *(*string)(p)
			dst = append(binary.AppendUvarint(dst, uint64(len(s))<<1), s...)
			continue
		case encodeBool:
			dst = append(dst, *(*byte)(p))
			continue
		case encodeCall:
			var err error
			if dst, err = op.call(dst, p, depth); err != nil {
				return dst, err
			}
			continue
		default:
			dst = op.appendRare(dst, p)
			continue
		}
		for u >= 0x80 {
			dst = append(dst, byte(u)|0x80)
			u >>= 7
		}
		dst = append(dst, byte(u))
	}
	return dst, nil
}

// appendRare appends what run leaves out to stay small.
func (op *encodeOp) appendRare(dst []byte, p unsafe.Pointer) []byte {
	switch op.code {
	case encodeInt32:
		return appendLong(dst, int64(*(*int32)(p)))
	case encodeFloat64:
		return appendFloat64(dst, *(*float64)(p))
	case encodeInt8:
		return appendLong(dst, int64(*(*int8)(p)))
	case encodeInt16:
		return appendLong(dst, int64(*(*int16)(p)))
	case encodeUint8:
		return appendLong(dst, int64(*(*uint8)(p)))
	case encodeUint16:
		return appendLong(dst, int64(*(*uint16)(p)))
	case encodeUint32:
		return appendLong(dst, int64(*(*uint32)(p)))
	case encodeUint64:
		return appendUint64(dst, *(*uint64)(p))
	case encodeUint:
		return appendUint64(dst, uint64(*(*uint)(p)))
	case encodeFloat32:
		return appendFloat32(dst, *(*float32)(p))
	case encodeFixed:
		return append(dst, unsafe.Slice((*byte)(p), int(op.size))...)
	}
	return dst
}

func appendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

func appendFloat32(dst []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(dst, canonical32(v))
}

func appendFloat64(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, canonical64(v))
}

// appendString appends a string or bytes.
func appendString[B string | []byte](dst []byte, s B) []byte {
	return append(appendLong(dst, int64(len(s))), s...)
}

func encodedBool(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

// encodeCompiler compiles nodes to encoders.
type encodeCompiler struct{ records map[*node]*encoder }

func newEncoder(n *node) *encoder {
	c := encodeCompiler{records: map[*node]*encoder{}}
	return c.compile(n)
}

// compile returns the encoder of a whole value.
func (c *encodeCompiler) compile(n *node) *encoder {
	if n.recursive {
		return c.record(n)
	}
	e := &encoder{}
	c.flatten(e, n, 0)
	return e
}

// value returns what writes a value that stands by itself in memory.
func (c *encodeCompiler) value(n *node) encodeFunc {
	if n.recursive {
		return c.nested(n)
	}
	return c.compile(n).run
}

// record returns the one encoder of a recursive struct.
func (c *encodeCompiler) record(n *node) *encoder {
	if e := c.records[n]; e != nil {
		return e
	}
	e := &encoder{}
	c.records[n] = e
	for _, f := range n.fields {
		c.flatten(e, f.node, f.offset)
	}
	return e
}

// flatten adds what writes a value of n at an offset.
func (c *encodeCompiler) flatten(e *encoder, n *node, offset uintptr) {
	op := encodeOp{code: encodeCall, offset: offset}
	switch n.form {
	case formStruct:
		if !n.recursive {
			for _, f := range n.fields {
				c.flatten(e, f.node, offset+f.offset)
			}
			return
		}
		op.call = c.nested(n)
	case formBool:
		op.code = encodeBool
	case formInt:
		op.code = encodeInt8 + encodeCode(widthIndex(n.bits))
	case formUint:
		op.code = encodeUint8 + encodeCode(widthIndex(n.bits))
	case formUint64:
		op.code = encodeUint64
		if n.bits != 64 {
			op.code = encodeUint
		}
	case formFloat32:
		op.code = encodeFloat32
	case formFloat64:
		op.code = encodeFloat64
	case formString, formBytes:
		op.code = encodeString
	case formFixed:
		op.code, op.size = encodeFixed, int32(n.schema.size)
	case formTime:
		op.call = encodeTime(n)
	case formEnum:
		op.call = encodeEnum(n)
	case formDecimal:
		op.call = encodeDecimal(n)
	case formPointer:
		op.call = c.pointer(n)
	case formSlice:
		op.call = c.slice(n)
	case formArray:
		op.call = c.array(n)
	case formMap, formEntries:
		op.call = c.mapping(n)
	}
	e.ops = append(e.ops, op)
}

// nested writes a recursive struct, and bounds how deep it goes.
func (c *encodeCompiler) nested(n *node) encodeFunc {
	e := c.record(n)
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		if depth >= maxDepth {
			return dst, valueError(n.path, "%v (does it point to itself?)", errDeep)
		}
		return e.run(dst, p, depth+1)
	}
}

func encodeTime(n *node) encodeFunc {
	return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		micros, ok := microsOf(*(*time.Time)(p))
		if !ok {
			return dst, valueError(n.path, "the time %v is out of range: 64 bits of microseconds reach some 292,000 years from 1970", *(*time.Time)(p))
		}
		return appendLong(dst, micros), nil
	}
}

func encodeEnum(n *node) encodeFunc {
	symbols := n.schema.symbols
	index := func(s string) int {
		for i := range symbols {
			if symbols[i] == s {
				return i
			}
		}
		return -1
	}
	if len(symbols) > 8 {
		byName := map[string]int{}
		for i, s := range symbols {
			byName[s] = i
		}
		index = func(s string) int {
			if i, ok := byName[s]; ok {
				return i
			}
			return -1
		}
	}
	return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		s := *(*string)(p)
		i := index(s)
		if i < 0 {
			return dst, valueError(n.path, "%q is none of its Symbols %q%s", s, symbols, emptyHint(s))
		}
		return appendLong(dst, int64(i)), nil
	}
}

func emptyHint(s string) string {
	if s == "" {
		return `; set it, or have Symbols name "" too`
	}
	return ""
}

func (c *encodeCompiler) pointer(n *node) encodeFunc {
	run := c.value(n.element)
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		to := *(*unsafe.Pointer)(p)
		if to == nil {
			return append(dst, 0), nil
		}
		return run(append(dst, 2), to, depth)
	}
}

// sliceHeader is how a slice is laid out.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

func (c *encodeCompiler) slice(n *node) encodeFunc {
	items := c.items(n)
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		h := (*sliceHeader)(p)
		return items(dst, h.data, h.len, depth)
	}
}

func (c *encodeCompiler) array(n *node) encodeFunc {
	items, length := c.items(n), n.typ.Len()
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		return items(dst, p, length, depth)
	}
}

// items writes an array: one block, or none if it is empty.
func (c *encodeCompiler) items(n *node) func(dst []byte, data unsafe.Pointer, length, depth int) ([]byte, error) {
	run, size := c.value(n.element), n.element.typ.Size()
	empty := leastSizes{}.of(n.element.schema) == 0
	return func(dst []byte, data unsafe.Pointer, length, depth int) (_ []byte, err error) {
		if length == 0 {
			return append(dst, 0), nil
		}
		if empty && length > maxEmptyItems {
			return dst, valueError(n.path, "%d items, but %v", length, errTooEmpty)
		}
		dst = appendLong(dst, int64(length))
		for i := range length {
			if dst, err = run(dst, unsafe.Add(data, uintptr(i)*size), depth); err != nil {
				return dst, err
			}
		}
		return append(dst, 0), nil
	}
}
