package codec

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/sluicestream/sluice/connector"
)

// maxJSON bounds one JSON text in bytes: larger than any line or message that a
// source lets through unless it is told to, small enough to be held twice.
const maxJSON = 256 << 20

var errNoDuration = errors.New(`a duration is a text such as "1h30m"`)

// shownValue bounds how much of a bad value an error repeats.
const shownValue = 40

// shownCause bounds how much of what another package said an error repeats.
const shownCause = 200

// JSONOption is a setting of [JSON].
type JSONOption func(*jsonSettings)

type jsonSettings struct{ strict bool }

// Strict refuses objects with a member that the Go type has no field for.
// Defaults to ignoring such members.
func Strict() JSONOption { return func(s *jsonSettings) { s.strict = true } }

// JSON returns the codec of JSON texts by the rules of encoding/json/v2: names
// are matched with their case, a name that an object has twice is an error, and
// so is text that is not UTF-8 or follows the value. Names that T doesn't have
// are ignored unless [Strict] is given. A text may have 256 MiB and be nested
// 10,000 deep. Maps are encoded in the order of their keys. Times are RFC 3339
// and decoded to UTC; durations are as Go writes them: "1h30m". A null in a struct
// is the field's zero; one in place of the whole struct is an error.
func JSON[T any](opts ...JSONOption) Codec[T] {
	var s jsonSettings
	for _, o := range opts {
		o(&s)
	}
	return jsonCodec[T]{s}
}

// maxNull bounds what may be a null with space around it.
const maxNull = 64

type jsonCodec[T any] struct{ jsonSettings }

func (c jsonCodec[T]) Name() string { return "json" }

func (c jsonCodec[T]) Parameters() []connector.Parameter {
	if c.strict {
		return []connector.Parameter{{Name: "strict", Value: "true"}}
	}
	return nil
}

func (c jsonCodec[T]) NewDecoder() func(src []byte, v *T) error {
	times := timeFieldsOf(reflect.TypeFor[T]())
	opts := times.unmarshalers()
	if c.strict {
		opts = append(opts, json.RejectUnknownMembers(true))
	}
	isStruct := reflect.TypeFor[T]().Kind() == reflect.Struct
	return func(src []byte, v *T) error {
		if isStruct && len(src) < maxNull && string(bytes.TrimSpace(src)) == "null" {
			return &connector.DecodeError{At: 0, Cause: errors.New("null is no record")}
		}
		if len(src) > maxJSON {
			return &connector.DecodeError{At: -1, Cause: fmt.Errorf("JSON text of %d bytes, at most %d are read", len(src), maxJSON)}
		}
		if err := json.Unmarshal(src, v, opts...); err != nil {
			return decodeError(src, err)
		}
		times.toUTC(unsafe.Pointer(v))
		return nil
	}
}

func (c jsonCodec[T]) NewEncoder() func(dst []byte, v *T) ([]byte, error) {
	var buf bytes.Buffer
	opts := append(timeFieldsOf(reflect.TypeFor[T]()).marshalers(), json.Deterministic(true))
	return func(dst []byte, v *T) ([]byte, error) {
		buf.Reset()
		if err := json.MarshalWrite(&buf, v, opts...); err != nil {
			return dst, fmt.Errorf("no JSON can be made of %T: %w", *v, err)
		}
		return append(dst, buf.Bytes()...), nil
	}
}

// decodeError says in Sluice's words what encoding/json said in its own.
func decodeError(src []byte, err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		cause := fmt.Errorf("not JSON at byte %d: %w", syntax.ByteOffset, syntax.Err)
		if errors.Is(syntax.Err, io.ErrUnexpectedEOF) {
			cause = fmt.Errorf("JSON ends unfinished after %d bytes: %w", len(src), syntax.Err)
		}
		return &connector.DecodeError{Field: fieldPath(syntax.JSONPointer), At: syntax.ByteOffset, Cause: cause}
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return &connector.DecodeError{
			Field: fieldPath(semantic.JSONPointer),
			At:    semantic.ByteOffset,
			Cause: &mismatch{expected: plainType(semantic.GoType), found: found(src, semantic.ByteOffset), err: semantic.Err},
		}
	}
	return &connector.DecodeError{At: -1, Cause: err}
}

// mismatch is a JSON value that doesn't fit its Go type.
type mismatch struct {
	expected reflect.Type
	found    string
	err      error
}

func (m *mismatch) Error() string {
	if errors.Is(m.err, json.ErrUnknownName) {
		return fmt.Sprintf("no field of %v has this name, and the codec is strict", m.expected)
	}
	s := fmt.Sprintf("expected %v, found %s", m.expected, m.found)
	if m.err != nil {
		s += " (" + shortenTo(shownCause, m.err.Error()) + ")" // some repeat all of the value
	}
	return s
}

// plainType is the type behind pointers, which JSON doesn't know.
func plainType(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func (m *mismatch) Unwrap() error { return m.err }

// found describes the JSON value at a place in a text.
func found(src []byte, at int64) string {
	if at < 0 || at > int64(len(src)) {
		return "something else"
	}
	rest := bytes.TrimLeft(src[at:], " \t\r\n:,") // what may stand before a value
	value, err := jsontext.NewDecoder(bytes.NewReader(rest)).ReadValue()
	if err != nil {
		return "something else"
	}
	switch value.Kind() {
	case '"':
		return "the string " + shorten(value)
	case '0':
		return "the number " + shorten(value)
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return string(value) // null, true, false
	}
}

func shorten(v []byte) string { return shortenTo(shownValue, string(v)) }

func shortenTo(most int, text string) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// shownPath bounds, in bytes, the path of a bad value in an error, and so each
// name in it: hostile text can nest 10,000 deep and have names of any length.
const shownPath = 200

// fieldPath writes a JSON pointer as a path: "Items[2].Name".
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len()+len(token) > shownPath {
			return b.String() + "…"
		}
		token = printable(token)
		switch {
		case isIndex(token):
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

// printable is a name as it is, or quoted if it would spoil the line that it is
// printed in.
func printable(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

func isIndex(token string) bool {
	if token == "" {
		return false
	}
	for i := range len(token) {
		if token[i] < '0' || token[i] > '9' {
			return false
		}
	}
	return true
}
