package schema

import (
	"encoding/binary"
	"math"
	"strings"
	"unsafe"
)

// Narrowing returns what [Type.Reader] does, and what also reads, where allow
// says so by the path, what [Differences] says narrows. A value that fits is
// carried over as it is, but for a double that is read as a float, which is
// rounded; reading one that does not fit is a [*ValueError].
//
// The error is a [*ResolveError]; what was allowed counts as resolving in it.
func (t *Type[T]) Narrowing(writer *Schema, allow func(path string) bool) (*Reader[T], error) {
	return t.reader(writer, allow)
}

// reader returns what reads a writer's schema; allow may be nil.
func (t *Type[T]) reader(writer *Schema, allow func(path string) bool) (*Reader[T], error) {
	if writer.Equal(t.node.schema) {
		return &Reader[T]{t.decode}, nil
	}
	differences, resolves := Differences(writer, t.node.schema), true
	for i := range differences {
		d := &differences[i]
		d.Resolves = d.Resolves || d.Narrows && allow != nil && allow(d.Path)
		resolves = resolves && d.Resolves
	}
	if !resolves {
		return nil, &ResolveError{Name: t.node.path, Differences: differences}
	}
	return &Reader[T]{newNarrowingDecoder(writer, t.node, allow)}, nil
}

// pathOf returns a node's path as differences have it.
func (c *decodeCompiler) pathOf(n *node) string {
	return strings.TrimPrefix(strings.TrimPrefix(n.path, c.root), ".")
}

// decodeInteger reads a number that isn't written as Avro's int or long into one of
// Go's integers, which op says how to set; or one that is into a uint64.
func decodeInteger(w *Schema, n *node, op decodeOp) decodeFunc {
	fail := func(err error) (int, error) { return 0, &ValueError{Path: n.path, Reason: err.Error()} }
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		v, end, err := readInteger(w, src, pos)
		switch {
		case err != nil:
			return fail(err)
		case v.big && n.form != formUint64:
			return fail(valueRange(uint64(v.bits), n.schema.Word()))
		case n.form != formUint64:
			err = op.setLong(v.bits, p)
		case v.bits < 0 && !v.big:
			err = valueRange(v.bits, n.schema.Word())
		case n.bits == 64:
			*(*uint64)(p) = uint64(v.bits)
		case uint64(v.bits) > math.MaxUint:
			err = valueRange(uint64(v.bits), "a uint")
		default:
			*(*uint)(p) = uint(v.bits)
		}
		if err != nil {
			return fail(err)
		}
		return end, nil
	}
}

// integer is a whole number of 64 bits; big tells that it is a uint64 that is no
// int64.
type integer struct {
	bits int64
	big  bool
}

// readInteger reads a number of any kind that is a whole one.
func readInteger(w *Schema, src []byte, pos int) (v integer, end int, err error) {
	switch w.kind {
	case KindInt, KindLong:
		if v.bits, end = readLong(src, pos); end < 0 {
			err = varintError(end)
		}
		return v, end, err
	case KindFixed:
		if len(src)-pos < 8 {
			return v, 0, errShort
		}
		u := binary.BigEndian.Uint64(src[pos:])
		return integer{bits: int64(u), big: u > math.MaxInt64}, pos + 8, nil
	}
	f, end, err := readFloat(w, src, pos)
	if err != nil {
		return v, 0, err
	}
	if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 { // NaN and the infinities among them
		return v, 0, valueRange(f, "an integer")
	}
	return integer{bits: int64(f)}, end, nil
}

// readFloat reads a float or a double.
func readFloat(w *Schema, src []byte, pos int) (f float64, end int, err error) {
	size := 8
	if w.kind == KindFloat {
		size = 4
	}
	if len(src)-pos < size {
		return 0, 0, errShort
	}
	if w.kind == KindFloat {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(src[pos:]))), pos + size, nil
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(src[pos:])), pos + size, nil
}

// decodeRounded reads a double as the nearest float.
func decodeRounded(w *Schema, n *node) decodeFunc {
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		f, end, err := readFloat(w, src, pos)
		if err == nil && math.IsInf(float64(float32(f)), 0) && !math.IsInf(f, 0) {
			err = valueRange(f, "a float")
		}
		if err != nil {
			return 0, &ValueError{Path: n.path, Reason: err.Error()}
		}
		*(*float32)(p) = float32(f)
		return end, nil
	}
}

// carried returns what an enum's written symbols are read as, by their indexes,
// and which of them can't be.
func carried(w, reader *Schema) (symbols []string, gone []bool) {
	fallback, replaces := reader.DefaultSymbol()
	known := map[string]bool{}
	for _, s := range reader.symbols {
		known[s] = true
	}
	symbols = make([]string, len(w.symbols))
	for i, s := range w.symbols {
		switch symbols[i] = s; {
		case known[s]:
		case replaces:
			symbols[i] = fallback
		default:
			if gone == nil {
				gone = make([]bool, len(w.symbols))
			}
			gone[i] = true
		}
	}
	return symbols, gone
}

// decodeKnown reads an enum, some of whose symbols are gone.
func decodeKnown(symbols []string, gone []bool, n *node) decodeFunc {
	return func(src []byte, pos int, p unsafe.Pointer, _ int) (int, error) {
		i, end, err := readIndex(src, pos, len(symbols), errSymbol)
		if err != nil {
			return 0, &ValueError{Path: n.path, Reason: err.Error()}
		}
		if gone[i] {
			return 0, valueError(n.path, "the symbol %s is none of %q", symbols[i], n.schema.symbols)
		}
		*(*string)(p) = symbols[i]
		return end, nil
	}
}
