package schema

import (
	"encoding/binary"
	"slices"
	"time"
	"unsafe"
)

// encodeFunc appends the Avro encoding of what p points to.
type encodeFunc func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error)

// encoder is a compiled type: structs are flattened, so that a value of plain
// fields is written by one loop over them.
type encoder struct{ stretches []stretch }

// stretch is some plain fields, and behind them one thing that takes any number
// of bytes: room is made once for all that has a bound.
type stretch struct {
	plain  []plainOp
	room   int // the most bytes that plain takes
	end    stretchEnd
	offset uintptr    // of what stands at the end
	call   encodeFunc // of endCall
}

type stretchEnd uint8

const (
	endNone   stretchEnd = iota
	endString            // or bytes, which are laid out alike; the length is plain
	endCall
)

type plainOp struct {
	offset uintptr
	code   plainCode
	size   uint8 // of plainFixed
}

type plainCode uint8

const (
	plainInt8 plainCode = iota
	plainInt16
	plainInt32
	plainInt64
	plainUint8
	plainUint16
	plainUint32
	plainUint64
	plainUint // the machine's own size, where that isn't 64 bits
	plainBool
	plainFloat32
	plainFloat64
	plainFixed  // up to maxPlainFixed bytes
	plainLength // of a string or bytes
)

// maxPlainFixed is how many bytes one operation copies; its size fits a byte.
const maxPlainFixed = 128

// run appends the encoding of what base points to.
func (e *encoder) run(dst []byte, base unsafe.Pointer, depth int) ([]byte, error) {
	for i := range e.stretches {
		s := &e.stretches[i]
		if cap(dst)-len(dst) < s.room {
			dst = slices.Grow(dst, s.room)
		}
		n := putPlain(dst[:cap(dst)], len(dst), s.plain, base)
		switch s.end {
		case endString:
			text := *(*string)(unsafe.Add(base, s.offset))
			dst = append(dst[:n], text...)
		case endCall:
			var err error
			if dst, err = s.call(dst[:n], unsafe.Add(base, s.offset), depth); err != nil {
				return dst, err
			}
		default:
			dst = dst[:n]
		}
	}
	return dst, nil
}

// putPlain writes plain fields at b[n:], where there is room, and returns where
// to go on. It calls nothing on the way of the common ones, so that all it works
// on stays in registers; and it asks for these one by one, which the processor
// foresees better than a jump by table.
func putPlain(b []byte, n int, ops []plainOp, base unsafe.Pointer) int {
	for i := range ops {
		op := &ops[i]
		p := unsafe.Add(base, op.offset)
		var v int64
		if op.code == plainInt64 {
			v = *(*int64)(p)
		} else if op.code == plainLength {
			v = int64(len(*(*string)(p)))
		} else if op.code == plainBool {
			b[n] = *(*byte)(p)
			n++
			continue
		} else if op.code == plainInt32 {
			v = int64(*(*int32)(p))
		} else {
			n = op.put(b, n, p)
			continue
		}
		u := uint64(v)<<1 ^ uint64(v>>63)
		for u >= 0x80 {
			b[n] = byte(u) | 0x80
			u >>= 7
			n++
		}
		b[n] = byte(u)
		n++
	}
	return n
}

// put writes one of the other plain fields.
func (op *plainOp) put(b []byte, n int, p unsafe.Pointer) int {
	var v int64
	switch op.code {
	case plainInt8:
		v = int64(*(*int8)(p))
	case plainInt16:
		v = int64(*(*int16)(p))
	case plainUint8:
		v = int64(*(*uint8)(p))
	case plainUint16:
		v = int64(*(*uint16)(p))
	case plainUint32:
		v = int64(*(*uint32)(p))
	case plainUint64:
		binary.BigEndian.PutUint64(b[n:], *(*uint64)(p))
		return n + 8
	case plainUint:
		binary.BigEndian.PutUint64(b[n:], uint64(*(*uint)(p)))
		return n + 8
	case plainFloat32:
		binary.LittleEndian.PutUint32(b[n:], canonical32(*(*float32)(p)))
		return n + 4
	case plainFloat64:
		binary.LittleEndian.PutUint64(b[n:], canonical64(*(*float64)(p)))
		return n + 8
	case plainFixed:
		return n + copy(b[n:], unsafe.Slice((*byte)(p), op.size))
	}
	return n + binary.PutVarint(b[n:], v)
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
	switch n.form {
	case formStruct:
		if n.recursive {
			e.call(offset, c.nested(n))
			return
		}
		for _, f := range n.fields {
			c.flatten(e, f.node, offset+f.offset)
		}
	case formBool:
		e.plain(offset, plainBool, 1)
	case formInt:
		e.plain(offset, plainInt8+plainCode(widthIndex(n.bits)), binary.MaxVarintLen64)
	case formUint:
		e.plain(offset, plainUint8+plainCode(widthIndex(n.bits)), binary.MaxVarintLen64)
	case formUint64:
		code := plainUint64
		if n.bits != 64 {
			code = plainUint
		}
		e.plain(offset, code, 8)
	case formFloat32:
		e.plain(offset, plainFloat32, 4)
	case formFloat64:
		e.plain(offset, plainFloat64, 8)
	case formFixed:
		e.fixed(offset, n.schema.size)
	case formString, formBytes:
		e.plain(offset, plainLength, binary.MaxVarintLen64)
		s := e.last()
		s.end, s.offset = endString, offset
	default:
		e.call(offset, c.composite(n))
	}
}

// composite returns what writes a value that isn't plain.
func (c *encodeCompiler) composite(n *node) encodeFunc {
	switch n.form {
	case formTime:
		return encodeTime(n)
	case formEnum:
		return encodeEnum(n)
	case formDecimal:
		return encodeDecimal(n)
	case formPointer:
		return c.pointer(n)
	case formSlice:
		return c.slice(n)
	case formArray:
		return c.array(n)
	}
	return c.mapping(n)
}

// last returns the stretch that is still without an end.
func (e *encoder) last() *stretch {
	if n := len(e.stretches); n == 0 || e.stretches[n-1].end != endNone {
		e.stretches = append(e.stretches, stretch{})
	}
	return &e.stretches[len(e.stretches)-1]
}

func (e *encoder) call(offset uintptr, f encodeFunc) {
	s := e.last()
	s.end, s.offset, s.call = endCall, offset, f
}

// plain adds a plain field of at most so many bytes.
func (e *encoder) plain(offset uintptr, code plainCode, most int) {
	s := e.last()
	s.plain = append(s.plain, plainOp{offset: offset, code: code, size: uint8(most)})
	s.room += most
}

// fixed adds an array of bytes, in parts that are plain.
func (e *encoder) fixed(offset uintptr, size int) {
	for size > maxPlainFixed {
		e.plain(offset, plainFixed, maxPlainFixed)
		offset += maxPlainFixed
		size -= maxPlainFixed
	}
	e.plain(offset, plainFixed, size)
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
