package schema

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// JSON returns a function that appends the value that src begins with as JSON
// to dst, and returns what stands behind the value in src.
//
// Times are strings in RFC 3339's form, in UTC; decimals are strings of their
// exact digits; durations are strings in Go's form; bytes are base64; NaN and
// the infinities are strings; maps are objects, if their keys are of one part;
// a union is the value that it has. Equal bytes give equal text.
func JSON(s *Schema) func(dst, src []byte) (out, rest []byte, err error) {
	return transcoder(s, false)
}

// Text returns a function that does as [JSON] does, but for a cell of a table:
// null is empty, and what would be a string in JSON stands without quotes.
// Records, arrays and maps are JSON.
func Text(s *Schema) func(dst, src []byte) (out, rest []byte, err error) {
	return transcoder(s, true)
}

func transcoder(s *Schema, bare bool) func(dst, src []byte) (out, rest []byte, err error) {
	c := jsonCompiler{records: map[*Schema]*jsonRecord{}, heads: heads{}, least: leastSizes{}}
	c.heads.find(s)
	write := c.value(s, s.name, bare)
	return func(dst, src []byte) ([]byte, []byte, error) {
		out, end, err := write(dst, src, 0, 0)
		if err != nil {
			return dst, nil, err
		}
		return out, src[end:], nil
	}
}

// jsonFunc appends the value at pos and returns the position behind it.
type jsonFunc func(dst, src []byte, pos, depth int) ([]byte, int, error)

type jsonCompiler struct {
	records map[*Schema]*jsonRecord
	heads   heads
	least   leastSizes
}

type jsonRecord struct {
	names  [][]byte // `"name":`, with what stands before it
	fields []jsonFunc
}

// value compiles s. bare leaves out a string's quotes and null.
func (c *jsonCompiler) value(s *Schema, path string, bare bool) jsonFunc {
	switch s.kind {
	case KindRecord:
		return c.record(s, path)
	case KindUnion:
		return c.union(s, path, bare)
	case KindArray:
		if s.logical == LogicalMap {
			return c.entries(s, path)
		}
		return c.array(s, path)
	case KindMap:
		key := c.value(String(), path+"{key}", false)
		return c.object(key, c.value(s.element, path+"{}", false), 1+c.least.of(s.element), path)
	}
	return located(jsonScalar(s, bare), path)
}

// located puts the path into errors.
func located(f jsonFunc, path string) jsonFunc {
	return func(dst, src []byte, pos, depth int) ([]byte, int, error) {
		dst, end, err := f(dst, src, pos, depth)
		if err != nil {
			err = &ValueError{Path: path, Reason: err.Error()}
		}
		return dst, end, err
	}
}

func (c *jsonCompiler) record(s *Schema, path string) jsonFunc {
	r := c.records[s]
	if r == nil {
		r = &jsonRecord{}
		c.records[s] = r
		for i, f := range s.fields {
			before := "{"
			if i > 0 {
				before = ","
			}
			r.names = append(r.names, append(appendQuoted([]byte(before), f.Name), ':'))
			r.fields = append(r.fields, c.value(f.Type, join(path, f.Name), false))
		}
	}
	level := 0
	if c.heads[s] {
		level = 1
	}
	return func(dst, src []byte, pos, depth int) (_ []byte, _ int, err error) {
		if depth += level; depth > maxWalk {
			return dst, 0, &ValueError{Path: path, Reason: errDeep.Error()}
		}
		if len(r.fields) == 0 {
			return append(dst, "{}"...), pos, nil
		}
		for i, write := range r.fields {
			dst = append(dst, r.names[i]...)
			if dst, pos, err = write(dst, src, pos, depth); err != nil {
				return dst, 0, err
			}
		}
		return append(dst, '}'), pos, nil
	}
}

func (c *jsonCompiler) union(s *Schema, path string, bare bool) jsonFunc {
	branches := make([]jsonFunc, len(s.branches))
	for i, b := range s.branches {
		branches[i] = c.value(b, path, bare)
	}
	return func(dst, src []byte, pos, depth int) ([]byte, int, error) {
		i, pos, err := readIndex(src, pos, len(branches), errBranch)
		if err != nil {
			return dst, 0, &ValueError{Path: path, Reason: err.Error()}
		}
		return branches[i](dst, src, pos, depth)
	}
}

func (c *jsonCompiler) array(s *Schema, path string) jsonFunc {
	return jsonBlocks('[', ']', c.value(s.element, path+"[]", false), c.least.of(s.element), path)
}

// entries writes a map whose keys aren't strings: as an object if a key is of
// one part, else as an array of keys and values.
func (c *jsonCompiler) entries(s *Schema, path string) jsonFunc {
	k, v := s.entry()
	if k.kind >= KindRecord && k.kind != KindEnum && k.kind != KindFixed {
		return c.array(s, path)
	}
	key := c.value(k, path+"{key}", !quoted(k))
	if !quoted(k) {
		bare := key
		key = func(dst, src []byte, pos, depth int) ([]byte, int, error) {
			dst, pos, err := bare(append(dst, '"'), src, pos, depth)
			return append(dst, '"'), pos, err
		}
	}
	return c.object(key, c.value(v, path+"{}", false), c.least.of(s.element), path)
}

func (c *jsonCompiler) object(key, value jsonFunc, least int, path string) jsonFunc {
	entry := func(dst, src []byte, pos, depth int) ([]byte, int, error) {
		dst, pos, err := key(dst, src, pos, depth)
		if err != nil {
			return dst, 0, err
		}
		return value(append(dst, ':'), src, pos, depth)
	}
	return jsonBlocks('{', '}', entry, least, path)
}

func jsonBlocks(first, last byte, item jsonFunc, least int, path string) jsonFunc {
	return func(dst, src []byte, pos, depth int) ([]byte, int, error) {
		dst = append(dst, first)
		n := 0
		for {
			count, _, start, err := readBlock(src, pos, least)
			if err == nil && least == 0 && n+count > maxEmptyItems {
				err = errTooEmpty
			}
			if err != nil {
				return dst, 0, &ValueError{Path: path, Reason: err.Error()}
			}
			if pos = start; count == 0 {
				return append(dst, last), pos, nil
			}
			for range count {
				dst = comma(dst, n)
				if dst, pos, err = item(dst, src, pos, depth); err != nil {
					return dst, 0, err
				}
				n++
			}
		}
	}
}

// quoted tells whether JSON writes a scalar as a string in every case.
func quoted(s *Schema) bool {
	switch s.kind {
	case KindBytes, KindString, KindEnum:
		return true
	case KindFixed:
		return s.logical != LogicalUint64
	case KindInt, KindLong:
		return longText(s) != nil
	}
	return false
}

// jsonScalar writes what holds nothing else.
func jsonScalar(s *Schema, bare bool) jsonFunc {
	switch s.kind {
	case KindNull:
		return func(dst, _ []byte, pos, _ int) ([]byte, int, error) {
			if bare {
				return dst, pos, nil
			}
			return append(dst, "null"...), pos, nil
		}
	case KindBoolean:
		return jsonBoolean
	case KindInt, KindLong:
		return jsonLong(longText(s), bare)
	case KindFloat:
		return func(dst, src []byte, pos, _ int) ([]byte, int, error) {
			if len(src)-pos < 4 {
				return dst, 0, errShort
			}
			return appendJSONFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(src[pos:]))), 32, bare), pos + 4, nil
		}
	case KindDouble:
		return func(dst, src []byte, pos, _ int) ([]byte, int, error) {
			if len(src)-pos < 8 {
				return dst, 0, errShort
			}
			return appendJSONFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(src[pos:])), 64, bare), pos + 8, nil
		}
	case KindEnum:
		return func(dst, src []byte, pos, _ int) ([]byte, int, error) {
			i, end, err := readIndex(src, pos, len(s.symbols), errSymbol)
			if err != nil {
				return dst, 0, err
			}
			return appendText(dst, s.symbols[i], bare), end, nil
		}
	case KindFixed:
		return jsonRaw(func(src []byte, pos int) (int, int, error) {
			if len(src)-pos < s.size {
				return 0, 0, errShort
			}
			return s.size, pos, nil
		}, s, bare)
	}
	return jsonRaw(readLength, s, bare)
}

func jsonBoolean(dst, src []byte, pos, _ int) ([]byte, int, error) {
	if pos >= len(src) {
		return dst, 0, errShort
	}
	if src[pos] > 1 {
		return dst, 0, errBoolean
	}
	return strconv.AppendBool(dst, src[pos] == 1), pos + 1, nil
}

// jsonLong writes an integer, or the text that it stands for.
func jsonLong(text func(dst []byte, v int64) []byte, bare bool) jsonFunc {
	return func(dst, src []byte, pos, _ int) ([]byte, int, error) {
		v, end := readLong(src, pos)
		switch {
		case end < 0:
			return dst, 0, varintError(end)
		case text == nil:
			return strconv.AppendInt(dst, v, 10), end, nil
		case bare:
			return text(dst, v), end, nil
		}
		return append(text(append(dst, '"'), v), '"'), end, nil
	}
}

// longText returns how a logical type of integers is written; nil: as a number.
func longText(s *Schema) func(dst []byte, v int64) []byte {
	switch s.logical {
	case LogicalTimestamp:
		return func(dst []byte, v int64) []byte { return appendTime(dst, time.UnixMicro(v)) }
	case "timestamp-millis":
		return func(dst []byte, v int64) []byte { return appendTime(dst, time.UnixMilli(v)) }
	case "timestamp-nanos":
		return func(dst []byte, v int64) []byte { return appendTime(dst, time.Unix(0, v)) }
	case LogicalDuration:
		return func(dst []byte, v int64) []byte { return append(dst, time.Duration(v).String()...) }
	case "date":
		if s.kind == KindInt {
			return func(dst []byte, v int64) []byte {
				return time.Unix(int64(int32(v))*24*60*60, 0).UTC().AppendFormat(dst, time.DateOnly)
			}
		}
	}
	return nil
}

// jsonRaw writes what is a run of bytes, whose length and start find tells.
func jsonRaw(find func(src []byte, pos int) (n, start int, err error), s *Schema, bare bool) jsonFunc {
	return func(dst, src []byte, pos, _ int) ([]byte, int, error) {
		n, start, err := find(src, pos)
		if err != nil {
			return dst, 0, err
		}
		raw, end := src[start:start+n], start+n
		switch {
		case s.kind == KindString:
			return appendText(dst, raw, bare), end, nil
		case s.logical == LogicalUint64:
			return strconv.AppendUint(dst, binary.BigEndian.Uint64(raw), 10), end, nil
		}
		if !bare {
			dst = append(dst, '"')
		}
		if s.logical == LogicalDecimal {
			dst, err = appendDecimal(dst, s, raw)
		} else {
			dst = base64.StdEncoding.AppendEncode(dst, raw)
		}
		if !bare {
			dst = append(dst, '"')
		}
		return dst, end, err
	}
}

func appendText[B string | []byte](dst []byte, s B, bare bool) []byte {
	if bare {
		return append(dst, s...)
	}
	return appendQuoted(dst, s)
}

func appendJSONFloat(dst []byte, f float64, bits int, bare bool) []byte {
	switch {
	case math.IsNaN(f):
		return appendText(dst, "NaN", bare)
	case math.IsInf(f, 1):
		return appendText(dst, "Infinity", bare)
	case math.IsInf(f, -1):
		return appendText(dst, "-Infinity", bare)
	}
	return appendFloat(dst, f, bits)
}

// appendFloat appends a finite number in the fewest digits that give it back,
// with an exponent where it would be long, as JavaScript has it.
func appendFloat(dst []byte, f float64, bits int) []byte {
	format := byte('f')
	abs := math.Abs(f)
	if abs != 0 && (bits == 64 && (abs < 1e-6 || abs >= 1e21) || bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21)) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, bits)
	if n := len(dst); format == 'e' && dst[n-2] == '0' { // e-07 becomes e-7
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}
