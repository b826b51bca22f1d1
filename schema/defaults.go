package schema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// appendDefault appends a default value of s in its one JSON form, or returns
// an error if it is no value of s.
func appendDefault(dst []byte, s *Schema, v *tree) ([]byte, error) {
	wrong := fmt.Errorf("a value of JSON's kind %s is no %s", v.kind, s.Word())
	switch s.kind {
	case KindNull:
		if v.kind != 'n' {
			return dst, wrong
		}
		return append(dst, "null"...), nil
	case KindBoolean:
		if v.kind != 't' && v.kind != 'f' {
			return dst, wrong
		}
		return strconv.AppendBool(dst, v.kind == 't'), nil
	case KindInt, KindLong:
		bits := 64
		if s.kind == KindInt {
			bits = 32
		}
		n, err := strconv.ParseInt(v.text, 10, bits)
		if v.kind != '0' || err != nil {
			return dst, wrong
		}
		return strconv.AppendInt(dst, n, 10), nil
	case KindFloat, KindDouble:
		return appendDefaultFloat(dst, s, v, wrong)
	case KindString:
		if v.kind != '"' {
			return dst, wrong
		}
		return appendQuoted(dst, v.text), nil
	case KindBytes, KindFixed:
		raw, ok := latin1(v.text)
		if v.kind != '"' || !ok || s.kind == KindFixed && len(raw) != s.size {
			return dst, wrong
		}
		return appendQuoted(dst, v.text), nil
	case KindEnum:
		if v.kind != '"' || !slices.ContainsFunc(s.symbols, func(symbol string) bool { return writtenSymbol(symbol) == v.text }) {
			return dst, fmt.Errorf("%q is none of the symbols", v.text)
		}
		return appendQuoted(dst, v.text), nil
	case KindUnion:
		for _, b := range s.branches {
			if out, err := appendDefault(dst, b, v); err == nil {
				return out, nil
			}
		}
		return dst, wrong
	}
	return appendDefaultNested(dst, s, v, wrong)
}

func appendDefaultFloat(dst []byte, s *Schema, v *tree, wrong error) ([]byte, error) {
	switch {
	case v.kind == '"' && (v.text == "NaN" || v.text == "Infinity" || v.text == "-Infinity"):
		return appendQuoted(dst, v.text), nil
	case v.kind != '0':
		return dst, wrong
	}
	bits := 64
	if s.kind == KindFloat {
		bits = 32
	}
	f, err := strconv.ParseFloat(v.text, bits)
	if err != nil {
		return dst, wrong
	}
	return appendFloat(dst, f, bits), nil
}

func appendDefaultNested(dst []byte, s *Schema, v *tree, wrong error) (out []byte, err error) {
	switch {
	case s.kind == KindArray && v.kind == '[':
		dst = append(dst, '[')
		for i, item := range v.items {
			dst = comma(dst, i)
			if dst, err = appendDefault(dst, s.element, item); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case s.kind == KindMap && v.kind == '{':
		members := slices.SortedFunc(slices.Values(v.members), func(a, b member) int { return strings.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for i, m := range members {
			dst = append(appendQuoted(comma(dst, i), m.name), ':')
			if dst, err = appendDefault(dst, s.element, m.value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case s.kind == KindRecord && v.kind == '{':
		dst = append(dst, '{')
		n := 0
		for _, f := range s.fields {
			m := v.get(f.Name)
			if m == nil {
				if f.Default == "" {
					return dst, fmt.Errorf("field %s has no value", f.Name)
				}
				continue
			}
			dst = append(appendQuoted(comma(dst, n), f.Name), ':')
			if dst, err = appendDefault(dst, f.Type, m); err != nil {
				return dst, err
			}
			n++
		}
		return append(dst, '}'), nil
	}
	return dst, wrong
}

func comma(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

func writtenSymbol(symbol string) string {
	if symbol == "" {
		return zeroSymbol
	}
	return symbol
}

// latin1 returns the bytes that a default value of bytes stands for: one for
// each character.
func latin1(text string) ([]byte, bool) {
	raw := make([]byte, 0, len(text))
	for _, r := range text {
		if r > math.MaxUint8 {
			return nil, false
		}
		raw = append(raw, byte(r))
	}
	return raw, true
}

// fromLatin1 is the reverse of latin1.
func fromLatin1(raw []byte) string {
	runes := make([]rune, len(raw))
	for i, b := range raw {
		runes[i] = rune(b)
	}
	return string(runes)
}
