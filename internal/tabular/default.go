package tabular

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicestream/sluice/schema"
)

// defaultOf is the encoding of a column's default; nil if it has none.
func defaultOf(c column) ([]byte, error) {
	if c.standard == "" {
		return nil, nil
	}
	t := new(tape)
	err := t.parse([]byte(c.standard))
	if err == nil {
		var out []byte
		if out, err = appendDefault([]byte{}, c.typ, t, 0); err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("column %s: its default %s: %w", c.name, c.standard, err)
}

// appendDefault encodes a default, whose form is Avro's: bytes are a character
// each, and what is a number in Avro is a number.
func appendDefault(dst []byte, s *schema.Schema, t *tape, at int32) ([]byte, error) {
	p := t.parts[at]
	wrong := &misfit{"", s.Word(), t.show(p)}
	switch s.Kind() {
	case schema.KindNull, schema.KindBoolean, schema.KindString:
		return jsonScalar(s)(dst, t, at)
	case schema.KindInt, schema.KindLong:
		n, err := strconv.ParseInt(string(t.text(p)), 10, 64)
		if p.kind != '0' || err != nil {
			return dst, wrong
		}
		return binary.AppendVarint(dst, n), nil
	case schema.KindFloat, schema.KindDouble:
		return jsonScalar(s)(dst, t, at)
	case schema.KindBytes, schema.KindFixed:
		var raw []byte
		for _, r := range string(t.text(p)) {
			if r > 0xff {
				return dst, wrong
			}
			raw = append(raw, byte(r))
		}
		if s.Kind() == schema.KindBytes {
			return appendText(dst, raw), nil
		}
		if len(raw) != s.Size() {
			return dst, wrong
		}
		return append(dst, raw...), nil
	case schema.KindEnum:
		symbol := string(t.text(p))
		i := slices.Index(s.Symbols(), symbol)
		if i < 0 && symbol == "_" { // as the empty one is written
			i = slices.Index(s.Symbols(), "")
		}
		if i < 0 {
			return dst, wrong
		}
		return binary.AppendVarint(dst, int64(i)), nil
	case schema.KindUnion:
		for i, b := range s.Branches() {
			if out, err := appendDefault(binary.AppendVarint(dst, int64(i)), b, t, at); err == nil {
				return out, nil
			}
		}
		return dst, wrong
	}
	return appendNestedDefault(dst, s, t, at)
}

func appendNestedDefault(dst []byte, s *schema.Schema, t *tape, at int32) (_ []byte, err error) {
	p := t.parts[at]
	switch {
	case s.Kind() == schema.KindRecord && p.kind == '{':
		members := map[string]int32{}
		for name := at + 1; name < p.next; name = t.parts[name+1].next {
			members[string(t.text(t.parts[name]))] = name + 1
		}
		for _, f := range s.Fields() {
			place, ok := members[f.Name]
			if ok {
				dst, err = appendDefault(dst, f.Type, t, place)
			} else {
				var own []byte
				if own, err = defaultOf(fieldColumn(f)); own == nil && err == nil {
					err = &misfit{f.Name, f.Type.Word(), "nothing"}
				}
				dst = append(dst, own...)
			}
			if err != nil {
				return dst, err
			}
		}
		return dst, nil
	case s.Kind() == schema.KindArray && p.kind == '[':
		n := int64(0)
		for i := at + 1; i < p.next; i = t.parts[i].next {
			n++
		}
		if n > 0 {
			dst = binary.AppendVarint(dst, n)
		}
		for i := at + 1; i < p.next; i = t.parts[i].next {
			if dst, err = appendDefault(dst, s.Element(), t, i); err != nil {
				return dst, err
			}
		}
		return append(dst, 0), nil
	case s.Kind() == schema.KindMap && p.kind == '{':
		return object(func(dst, name []byte) ([]byte, error) { return appendText(dst, name), nil },
			func(dst []byte, t *tape, at int32) ([]byte, error) { return appendDefault(dst, s.Element(), t, at) })(dst, t, at)
	}
	return dst, &misfit{"", s.Word(), t.show(p)}
}
