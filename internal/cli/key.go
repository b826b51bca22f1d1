package cli

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicestream/sluice/schema"
)

// encodeKey encodes a key that a person has written: a struct as a JSON object,
// anything else as its bare text.
func encodeKey(s *schema.Schema, text string) ([]byte, error) {
	if s.Kind() == schema.KindRecord {
		return appendObject(nil, s, jsontext.Value(text))
	}
	return appendText(nil, s, text)
}

// maxKeyDepth bounds records within records.
const maxKeyDepth = 100

// appendObject encodes a record that is written as a JSON object with all its
// fields.
func appendObject(dst []byte, s *schema.Schema, value jsontext.Value) ([]byte, error) {
	return appendRecord(dst, s, value, maxKeyDepth)
}

func appendRecord(dst []byte, s *schema.Schema, value jsontext.Value, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, fmt.Errorf("nested more than %d deep", maxKeyDepth)
	}
	if value.Kind() != '{' {
		return nil, errors.New("expected a JSON object")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(value, &members); err != nil {
		return nil, err
	}
	for name := range sorted(members) {
		if !slices.ContainsFunc(s.Fields(), func(f schema.Field) bool { return f.Name == name }) {
			return nil, fmt.Errorf("there is no field %s", name)
		}
	}
	for _, f := range s.Fields() {
		member, ok := members[f.Name]
		if !ok {
			return nil, fmt.Errorf("field %s is missing", f.Name)
		}
		var err error
		if dst, err = appendValue(dst, f.Type, member, depth-1); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return dst, nil
}

func appendValue(dst []byte, s *schema.Schema, value jsontext.Value, depth int) ([]byte, error) {
	if s.Kind() == schema.KindRecord {
		return appendRecord(dst, s, value, depth)
	}
	if value.Kind() != '"' {
		if s.Kind() == schema.KindString || s.Kind() == schema.KindEnum {
			return nil, fmt.Errorf("expected a string, found %s", value)
		}
		return appendText(dst, s, string(value))
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, err
	}
	return appendText(dst, s, text)
}

// appendText encodes what is no record, from its text.
func appendText(dst []byte, s *schema.Schema, text string) ([]byte, error) {
	switch {
	case s.Logical() == schema.LogicalTimestamp:
		at, err := parseTime(text)
		return binary.AppendVarint(dst, at), err
	case s.Logical() == schema.LogicalDuration:
		d, err := time.ParseDuration(text)
		return binary.AppendVarint(dst, int64(d)), err
	}
	if bits, signed := s.Integer(); bits != 0 {
		return appendInteger(dst, text, bits, signed)
	}
	switch s.Kind() {
	case schema.KindString:
		return append(binary.AppendVarint(dst, int64(len(text))), text...), nil
	case schema.KindBoolean:
		switch text {
		case "false":
			return append(dst, 0), nil
		case "true":
			return append(dst, 1), nil
		}
		return nil, errors.New("expected true or false")
	case schema.KindEnum:
		i := slices.Index(s.Symbols(), text)
		if i < 0 {
			return nil, fmt.Errorf("expected one of %q", s.Symbols())
		}
		return binary.AppendVarint(dst, int64(i)), nil
	case schema.KindFixed:
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(data) != s.Size() {
			return nil, fmt.Errorf("expected %d bytes in base64", s.Size())
		}
		return append(dst, data...), nil
	}
	return nil, fmt.Errorf("a key of the type %s can't be given here; `sluice state export` has it", s.Word())
}

func appendInteger(dst []byte, text string, bits int, signed bool) ([]byte, error) {
	if signed {
		n, err := strconv.ParseInt(text, 10, bits)
		return binary.AppendVarint(dst, n), integerFault(err, bits, signed)
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if bits == 64 {
		return binary.BigEndian.AppendUint64(dst, n), integerFault(err, bits, signed)
	}
	return binary.AppendVarint(dst, int64(n)), integerFault(err, bits, signed)
}

func integerFault(err error, bits int, signed bool) error {
	if err == nil {
		return nil
	}
	kind := "a number"
	if signed {
		kind = "an integer"
	}
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s that fits %d bits is expected", kind, bits)
	}
	return fmt.Errorf("%s is expected", kind)
}

// parseTime reads a time as JSON has it, or microseconds since 1970.
func parseTime(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, errors.New("expected a time such as 2026-01-31T12:00:00Z")
	}
	return at.UnixMicro(), nil
}
