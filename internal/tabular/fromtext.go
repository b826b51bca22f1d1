package tabular

import (
	"encoding/binary"

	"github.com/sluicestream/sluice/schema"
)

// cellFunc appends the encoding of a table's cell. quoted says that its text stood
// in quotes, so that an empty one is a text and not nothing.
type cellFunc func(dst, text []byte, quoted bool) ([]byte, error)

// cellOf compiles what reads a column's cells. An empty one is null, or else the
// column's default; of a text or bytes it is the empty one.
func cellOf(c column, t *tape, ignore bool) (cellFunc, error) {
	standard, err := defaultOf(c)
	if err != nil {
		return nil, err
	}
	null := -1
	for i, b := range c.typ.Branches() {
		if b.Kind() == schema.KindNull {
			null = i
		}
	}
	read, err := filledCell(c.typ, t, ignore)
	if err != nil {
		return nil, err
	}
	kind := c.typ.Kind()
	texts := (kind == schema.KindString || kind == schema.KindBytes) && c.typ.Logical() == ""
	return func(dst, text []byte, quoted bool) ([]byte, error) {
		switch {
		case len(text) > 0 || quoted || texts || kind == schema.KindNull:
			return read(dst, text, quoted)
		case null >= 0:
			return binary.AppendVarint(dst, int64(null)), nil
		case standard != nil:
			return append(dst, standard...), nil
		}
		return dst, &misfit{"", c.typ.Word(), "an empty cell"}
	}, nil
}

// noCell appends the default of a column that a file lacks.
func noCell(c column) (cellFunc, error) {
	standard, err := defaultOf(c)
	return func(dst, _ []byte, _ bool) ([]byte, error) { return append(dst, standard...), nil }, err
}

// filledCell compiles what reads cells that have a text.
func filledCell(s *schema.Schema, t *tape, ignore bool) (cellFunc, error) {
	switch {
	case s.Kind() == schema.KindUnion:
		return unionCell(s, t, ignore)
	case scalar(s):
		return func(dst, text []byte, _ bool) ([]byte, error) { return appendScalar(dst, s, string(text)) }, nil
	}
	read, err := newJSONCompiler(ignore).value(s)
	if err != nil {
		return nil, err
	}
	return func(dst, text []byte, _ bool) ([]byte, error) {
		if err := t.parse(text); err != nil {
			return dst, err
		}
		return read(dst, t, 0)
	}, nil
}

func unionCell(s *schema.Schema, t *tape, ignore bool) (cellFunc, error) {
	branches := s.Branches()
	reads := make([]cellFunc, len(branches))
	others := 0
	for i, b := range branches {
		if b.Kind() == schema.KindNull {
			continue
		}
		others++
		var err error
		if reads[i], err = filledCell(b, t, ignore); err != nil {
			return nil, err
		}
	}
	return func(dst, text []byte, quoted bool) ([]byte, error) {
		failed := error(&misfit{"", s.Word(), shown(text)})
		for i, read := range reads {
			if read == nil {
				continue
			}
			out, err := read(binary.AppendVarint(dst, int64(i)), text, quoted)
			if err == nil {
				return out, nil
			}
			if others == 1 {
				failed = err
			}
		}
		return dst, failed
	}, nil
}
