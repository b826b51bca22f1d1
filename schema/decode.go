package schema

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// decodeFunc reads a value at pos into what p points to, which is zero. It
// returns the position behind the value.
type decodeFunc func(src []byte, pos int, p unsafe.Pointer, depth int) (int, error)

// decoder is a compiled way to read values of a writer's schema into a Go type:
// one operation for each thing that was written, in the order of writing.
// Records are flattened.
type decoder struct{ ops []decodeOp }

type decodeOp struct {
	code    decodeCode
	offset  uintptr
	size    int        // of decodeFixed
	call    decodeFunc // of decodeCall
	symbols []string   // of decodeEnum
	path    string
}

type decodeCode uint8

const (
	decodeBool decodeCode = iota
	decodeInt8
	decodeInt16
	decodeInt32
	decodeInt64
	decodeUint8
	decodeUint16
	decodeUint32
	decodeUint64
	decodeUint
	decodeFloat32
	decodeFloat64
	decodeLongToFloat32
	decodeLongToFloat64
	decodeFloatToFloat64
	decodeString
	decodeBytes
	decodeFixed
	decodeTime
	decodeEnum
	decodeSkipLong
	decodeCall
)

// run reads a value at pos into what base points to.
func (d *decoder) run(src []byte, pos int, base unsafe.Pointer, depth int) (int, error) {
	for i := range d.ops {
		op := &d.ops[i]
		p := unsafe.Add(base, op.offset)
		switch op.code {
		case decodeInt64, decodeSkipLong:
			var u uint64
			if pos < len(src) && src[pos] < 0x80 {
				u = uint64(src[pos])
				pos++
			} else if u, pos = readLongUvarint(src, pos); pos < 0 {
				return 0, op.fail(varintError(pos))
			}
			if op.code == decodeInt64 {
				*(*int64)(p) = int64(u>>1) ^ -int64(u&1)
			}
		case decodeString:
			start := pos + 1
			if pos < len(src) && src[pos] < 0x80 && src[pos]&1 == 0 && start+int(src[pos]>>1) <= len(src) {
				pos = start + int(src[pos]>>1) // a short text, as most are
			} else {
				var n int
				var err error
				if n, start, err = readLength(src, pos); err != nil {
					return 0, op.fail(err)
				}
				pos = start + n
			}
			*(*string)(p) = string(src[start:pos])
		case decodeBool:
			if pos >= len(src) {
				return 0, op.fail(errShort)
			}
			if src[pos] > 1 {
				return 0, op.fail(errBoolean)
			}
			*(*bool)(p) = src[pos] == 1
			pos++
		case decodeFloat64:
			if len(src)-pos < 8 {
				return 0, op.fail(errShort)
			}
			*(*uint64)(p) = binary.LittleEndian.Uint64(src[pos:])
			pos += 8
		case decodeCall:
			var err error
			if pos, err = op.call(src, pos, p, depth); err != nil {
				return 0, err
			}
		default:
			var err error
			if pos, err = op.readRare(src, pos, p); err != nil {
				return 0, op.fail(err)
			}
		}
	}
	return pos, nil
}

func (op *decodeOp) fail(err error) error { return &ValueError{Path: op.path, Reason: err.Error()} }

// readRare reads what run leaves out to stay small.
func (op *decodeOp) readRare(src []byte, pos int, p unsafe.Pointer) (int, error) {
	switch op.code {
	case decodeFloat32, decodeFloatToFloat64:
		if len(src)-pos < 4 {
			return 0, errShort
		}
		raw := binary.LittleEndian.Uint32(src[pos:])
		if op.code == decodeFloat32 {
			*(*uint32)(p) = raw
		} else {
			*(*float64)(p) = float64(math.Float32frombits(raw))
		}
		return pos + 4, nil
	case decodeUint64, decodeUint:
		if len(src)-pos < 8 {
			return 0, errShort
		}
		v := binary.BigEndian.Uint64(src[pos:])
		if op.code == decodeUint64 {
			*(*uint64)(p) = v
		} else if v > math.MaxUint {
			return 0, valueRange(v, "a uint")
		} else {
			*(*uint)(p) = uint(v)
		}
		return pos + 8, nil
	case decodeFixed:
		if len(src)-pos < op.size {
			return 0, errShort
		}
		return pos + copy(unsafe.Slice((*byte)(p), op.size), src[pos:]), nil
	case decodeBytes:
		n, start, err := readLength(src, pos)
		if err == nil && n > 0 {
			*(*[]byte)(p) = append([]byte(nil), src[start:start+n]...)
		}
		return start + n, err
	}
	v, end := readLong(src, pos)
	if end < 0 {
		return 0, varintError(end)
	}
	return end, op.setLong(v, p)
}

// setLong sets what is read from one of Avro's longs or ints.
func (op *decodeOp) setLong(v int64, p unsafe.Pointer) error {
	switch op.code {
	case decodeInt64:
		*(*int64)(p) = v
	case decodeInt32:
		*(*int32)(p) = int32(v)
		return narrow(v, int64(int32(v)), "an int")
	case decodeInt16:
		*(*int16)(p) = int16(v)
		return narrow(v, int64(int16(v)), "an int16")
	case decodeInt8:
		*(*int8)(p) = int8(v)
		return narrow(v, int64(int8(v)), "an int8")
	case decodeUint32:
		*(*uint32)(p) = uint32(v)
		return narrow(v, int64(uint32(v)), "a uint32")
	case decodeUint16:
		*(*uint16)(p) = uint16(v)
		return narrow(v, int64(uint16(v)), "a uint16")
	case decodeUint8:
		*(*uint8)(p) = uint8(v)
		return narrow(v, int64(uint8(v)), "a uint8")
	case decodeLongToFloat32:
		*(*float32)(p) = float32(v)
	case decodeLongToFloat64:
		*(*float64)(p) = float64(v)
	case decodeTime:
		*(*time.Time)(p) = time.UnixMicro(v).UTC()
	case decodeEnum:
		if uint64(v) >= uint64(len(op.symbols)) {
			return errSymbol
		}
		*(*string)(p) = op.symbols[v]
	}
	return nil
}

func narrow(v, kept int64, what string) error {
	if v != kept {
		return valueRange(v, what)
	}
	return nil
}

// decodeCompiler compiles pairs of a writer's schema and a node, between which
// every difference resolves, to decoders.
type decodeCompiler struct {
	records map[recordPair]*decoder
	skips   *skipCompiler
	least   leastSizes
	root    string                 // the path of the whole
	allow   func(path string) bool // where branches may narrow; nil: nowhere
}

type recordPair struct {
	writer *Schema
	node   *node
}

func newDecoder(w *Schema, n *node) *decoder { return newNarrowingDecoder(w, n, nil) }

func newNarrowingDecoder(w *Schema, n *node, allow func(path string) bool) *decoder {
	c := &decodeCompiler{records: map[recordPair]*decoder{}, least: leastSizes{}, skips: newSkipCompiler(), root: n.path, allow: allow}
	return c.compile(w, n)
}

// compile returns the decoder of a whole value.
func (c *decodeCompiler) compile(w *Schema, n *node) *decoder {
	if n.recursive && w.kind == KindRecord {
		return c.record(w, n)
	}
	d := &decoder{}
	c.flatten(d, w, n, 0)
	return d
}

// value returns what reads a value that stands by itself in memory.
func (c *decodeCompiler) value(w *Schema, n *node) decodeFunc {
	if n.recursive && w.kind == KindRecord {
		return c.nested(w, n)
	}
	return c.compile(w, n).run
}

// record returns the one decoder of a recursive struct and a writer's record.
func (c *decodeCompiler) record(w *Schema, n *node) *decoder {
	pair := recordPair{w, n}
	if d := c.records[pair]; d != nil {
		return d
	}
	d := &decoder{}
	c.records[pair] = d
	c.fields(d, w, n, 0)
	return d
}

// fields adds what reads a record's fields into a struct at an offset.
func (c *decodeCompiler) fields(d *decoder, w *Schema, n *node, offset uintptr) {
	from := matchFields(w.fields, n.schema.fields)
	to := make(map[int]int, len(from))
	for r, i := range from {
		if i >= 0 {
			to[i] = r
		}
	}
	for i := range w.fields {
		if r, ok := to[i]; ok {
			c.flatten(d, w.fields[i].Type, n.fields[r].node, offset+n.fields[r].offset)
		} else {
			c.skip(d, w.fields[i].Type, n.path)
		}
	}
	for r, i := range from {
		if i < 0 {
			c.absent(d, n.fields[r], offset)
		}
	}
}

// flatten adds what reads a value of w into one of n at an offset.
func (c *decodeCompiler) flatten(d *decoder, w *Schema, n *node, offset uintptr) {
	op := decodeOp{code: decodeCall, offset: offset, path: n.path}
	if w.kind == KindUnion && n.schema.kind != KindUnion {
		op.call = c.required(w, n)
		d.ops = append(d.ops, op)
		return
	}
	switch n.form {
	case formStruct:
		if !n.recursive {
			c.fields(d, w, n, offset)
			return
		}
		op.call = c.nested(w, n)
	case formBool:
		op.code = decodeBool
	case formInt, formUint, formUint64:
		op.integer(w, n)
	case formFloat32:
		switch w.kind {
		case KindFloat:
			op.code = decodeFloat32
		case KindDouble:
			op.call = decodeRounded(w, n)
		default:
			op.code = decodeLongToFloat32
		}
	case formFloat64:
		op.code = decodeFloat64
		if w.kind == KindFloat {
			op.code = decodeFloatToFloat64
		} else if w.kind != KindDouble {
			op.code = decodeLongToFloat64
		}
	case formString:
		op.code = decodeString
		if w.kind == KindFixed {
			op.code, op.call = decodeCall, decodeUUIDText(n)
		}
	case formBytes:
		op.code = decodeBytes
	case formFixed:
		op.code, op.size = decodeFixed, n.schema.size
		if w.kind == KindString {
			op.code, op.call = decodeCall, decodeUUIDBytes(n)
		}
	case formTime:
		op.code = decodeTime
		if r, _ := w.moment(); r != (ratio{1, 1}) {
			op.code, op.call = decodeCall, decodeMoment(w, n)
		}
	case formEnum:
		op.enum(w, n)
	case formDecimal:
		op.call = c.decimal(w, n)
	case formPointer:
		op.call = c.pointer(w, n)
	case formSlice:
		op.call = c.slice(w, n)
	case formArray:
		op.call = c.array(w, n)
	case formMap, formEntries:
		op.call = c.mapping(w, n)
	}
	d.ops = append(d.ops, op)
}

// integer makes op read a number as one of Go's integers, a moment or a duration.
func (op *decodeOp) integer(w *Schema, n *node) {
	moment, _ := w.moment()
	_, ofDay := w.timeOfDay()
	integer := w.kind == KindInt || w.kind == KindLong
	switch {
	case n.form == formUint64 && w.kind == KindFixed && n.bits == 64:
		op.code = decodeUint64
		return
	case n.form == formUint64 && w.kind == KindFixed:
		op.code = decodeUint
		return
	case n.schema.logical == LogicalTimestamp && moment != ratio{1, 1}:
		op.call = decodeMoment(w, n)
		return
	case n.schema.logical == LogicalDuration && ofDay:
		op.call = decodeTimeOfDay(w, n)
		return
	}
	op.code = decodeInt8 + decodeCode(widthIndex(n.bits))
	if n.form == formUint {
		op.code = decodeUint8 + decodeCode(widthIndex(n.bits))
	}
	if n.form == formUint64 || !integer {
		op.call = decodeInteger(w, n, *op)
		op.code = decodeCall
	}
}

// enum makes op read an enum.
func (op *decodeOp) enum(w *Schema, n *node) {
	symbols, gone := carried(w, n.schema)
	op.code, op.symbols = decodeEnum, symbols
	if gone != nil {
		op.code, op.call = decodeCall, decodeKnown(symbols, gone, n)
	}
}

// skip adds what passes over a value that has no place any more.
func (c *decodeCompiler) skip(d *decoder, w *Schema, path string) {
	op := decodeOp{code: decodeSkipLong, path: path}
	if w.kind != KindInt && w.kind != KindLong {
		skip := c.skips.root(w)
		op.code = decodeCall
		op.call = func(src []byte, pos int, _ unsafe.Pointer, depth int) (int, error) {
			end, err := skip(src, pos, depth)
			if err != nil {
				return 0, &ValueError{Path: path, Reason: "a field that is passed over: " + err.Error()}
			}
			return end, nil
		}
	}
	d.ops = append(d.ops, op)
}

// absent adds what sets a field that wasn't written to its default; nothing
// where that is Go's zero value.
func (c *decodeCompiler) absent(d *decoder, f nodeField, offset uintptr) {
	c.fill(d, f.node, f.def, offset+f.offset)
}

func (c *decodeCompiler) fill(d *decoder, n *node, def []byte, offset uintptr) {
	switch {
	case def != nil:
	case n.form == formStruct:
		for _, f := range n.fields {
			c.absent(d, f, offset)
		}
		return
	case n.form == formArray:
		for i := range n.typ.Len() {
			before := len(d.ops)
			c.fill(d, n.element, nil, offset+uintptr(i)*n.element.typ.Size())
			if len(d.ops) == before {
				return
			}
		}
		return
	case n.form == formEnum && n.schema.symbols[n.zeroSymbol()] != "":
		def = appendLong(nil, int64(n.zeroSymbol()))
	default:
		return
	}
	constant := newDecoder(n.schema, n)
	d.ops = append(d.ops, decodeOp{code: decodeCall, offset: offset, path: n.path,
		call: func(_ []byte, pos int, p unsafe.Pointer, depth int) (int, error) {
			_, err := constant.run(def, 0, p, depth)
			return pos, err
		}})
}
