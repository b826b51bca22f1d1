package schema

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of the JSON that a schema is written in.
const maxJSONDepth = 2000

// tree is a piece of JSON. Numbers keep their digits.
type tree struct {
	kind    jsontext.Kind // 'n', 't', 'f', '"', '0', '[' or '{'
	text    string        // of a string or a number
	items   []*tree
	members []member
}

type member struct {
	name  string
	value *tree
}

// get returns the member of that name, or nil.
func (t *tree) get(name string) *tree {
	for _, m := range t.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// str returns the text of the string that is the member of that name, or "".
func (t *tree) str(name string) string {
	if m := t.get(name); m != nil && m.kind == '"' {
		return m.text
	}
	return ""
}

// integer returns the member of that name if it is an integer, else def.
func (t *tree) integer(name string, def int) int {
	if m := t.get(name); m != nil && m.kind == '0' {
		if n, err := strconv.ParseInt(m.text, 10, 32); err == nil {
			return int(n)
		}
	}
	return def
}

// strings returns the strings of the array that is the member of that name.
func (t *tree) strings(name string) ([]string, error) {
	m := t.get(name)
	if m == nil {
		return nil, nil
	}
	if m.kind != '[' {
		return nil, fmt.Errorf("%q is no array", name)
	}
	texts := make([]string, 0, len(m.items))
	for _, item := range m.items {
		if item.kind != '"' {
			return nil, fmt.Errorf("%q holds something that is no string", name)
		}
		texts = append(texts, item.text)
	}
	return texts, nil
}

// readTree reads the one JSON value that data is.
func readTree(data []byte) (*tree, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	t, err := nextTree(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("something stands behind the schema, at byte %d", d.InputOffset())
	}
	return t, nil
}

func nextTree(d *jsontext.Decoder, depth int) (*tree, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxJSONDepth)
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	t := &tree{kind: token.Kind()}
	switch t.kind {
	case '"', '0':
		t.text = token.String()
	case '[':
		for d.PeekKind() != ']' {
			item, err := nextTree(d, depth+1)
			if err != nil {
				return nil, err
			}
			t.items = append(t.items, item)
		}
		_, err = d.ReadToken()
	case '{':
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String()}
			if m.value, err = nextTree(d, depth+1); err != nil {
				return nil, err
			}
			t.members = append(t.members, m)
		}
		_, err = d.ReadToken()
	}
	return t, err
}

// appendQuoted appends s as a JSON string. Bytes that are no UTF-8 become
// U+FFFD.
func appendQuoted[B string | []byte](dst []byte, s B) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := decodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// decodeRune decodes the first rune of s.
func decodeRune[B string | []byte](s B) (rune, int) {
	var b [utf8.UTFMax]byte
	return utf8.DecodeRune(b[:copy(b[:], s)])
}
