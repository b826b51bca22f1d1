package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tag is what a struct field's `avro:"..."` says.
type tag struct {
	name             string
	aliases          []string
	def              string
	hasDefault       bool
	skip             bool
	precision, scale int
	decimal          bool // a precision or a scale is given
	decimalUsed      bool
}

// parseTag reads `name,alias=old,precision=12,scale=2,default=...`. A default
// is the last: it goes to the end and may hold commas.
func parseTag(text string) (*tag, error) {
	t := &tag{}
	if text == "-" {
		t.skip = true
		return t, nil
	}
	name, rest, more := strings.Cut(text, ",")
	t.name = name
	for more {
		if def, ok := strings.CutPrefix(rest, "default="); ok {
			t.def, t.hasDefault = def, true
			break
		}
		var option string
		option, rest, more = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(option, "=")
		if err := t.set(key, value); err != nil {
			return nil, err
		}
	}
	if t.decimal && !validDecimal(t.precision, t.scale) {
		return nil, fmt.Errorf("precision=%d,scale=%d is no decimal: 1 <= precision <= %d, 0 <= scale <= precision", t.precision, t.scale, maxPrecision)
	}
	return t, nil
}

func (t *tag) set(key, value string) (err error) {
	switch key {
	case "alias":
		t.aliases = append(t.aliases, value)
		return checkSimpleName(value)
	case "precision":
		t.decimal = true
		t.precision, err = strconv.Atoi(value)
	case "scale":
		t.decimal = true
		t.scale, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("unknown option %q in the tag; there are alias=, precision=, scale= and default=", key)
	}
	if err != nil {
		return fmt.Errorf("%s=%q is no number", key, value)
	}
	return nil
}

// parseDefault returns the value that a tag's default= gives to a field of
// node n, encoded, and in Avro's JSON form.
func (n *node) parseDefault(text string) (encoded []byte, json string, err error) {
	s := n.schema
	switch n.form {
	case formBool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, "", fmt.Errorf("no boolean")
		}
		return encodedBool(v), strconv.FormatBool(v), nil
	case formInt:
		v, err := parseInteger(s, text, n.bits)
		return appendLong(nil, v), strconv.FormatInt(v, 10), err
	case formUint:
		v, err := strconv.ParseUint(text, 10, n.bits)
		return appendLong(nil, int64(v)), strconv.FormatUint(v, 10), rangeError(err, s)
	case formUint64:
		v, err := strconv.ParseUint(text, 10, 64)
		raw := appendUint64(nil, v)
		return raw, string(appendQuoted(nil, fromLatin1(raw))), rangeError(err, s)
	case formFloat32:
		v, err := strconv.ParseFloat(text, 32)
		return appendFloat32(nil, float32(v)), string(appendJSONFloat(nil, v, 32, false)), rangeError(err, s)
	case formFloat64:
		v, err := strconv.ParseFloat(text, 64)
		return appendFloat64(nil, v), string(appendJSONFloat(nil, v, 64, false)), rangeError(err, s)
	case formString:
		return appendString(nil, text), string(appendQuoted(nil, text)), nil
	case formBytes:
		return appendString(nil, text), string(appendQuoted(nil, fromLatin1([]byte(text)))), nil
	case formEnum:
		i := slices.Index(n.schema.symbols, text)
		if i < 0 {
			return nil, "", fmt.Errorf("none of the symbols")
		}
		return appendLong(nil, int64(i)), string(appendQuoted(nil, writtenSymbol(text))), nil
	case formTime:
		v, err := parseMoment(text)
		return appendLong(nil, v), strconv.FormatInt(v, 10), err
	case formDecimal:
		if n.typ == ratType {
			return parseDecimal(s, text)
		}
	}
	return nil, "", fmt.Errorf("only numbers, booleans, strings, bytes, enums, times and big.Rat have defaults of their own")
}

// parseInteger reads a plain integer, a duration or a moment.
func parseInteger(s *Schema, text string, bits int) (int64, error) {
	switch s.logical {
	case LogicalDuration:
		v, err := time.ParseDuration(text)
		return int64(v), err
	case LogicalTimestamp:
		return parseMoment(text)
	}
	v, err := strconv.ParseInt(text, 10, bits)
	return v, rangeError(err, s)
}

func parseMoment(text string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, fmt.Errorf("no time such as 2006-01-02T15:04:05Z")
	}
	v, ok := microsOf(t)
	if !ok {
		return 0, fmt.Errorf("out of range")
	}
	return v, nil
}

func parseDecimal(s *Schema, text string) ([]byte, string, error) {
	if len(text) > 2*maxPrecision || strings.ContainsAny(text, "eE/_xX") {
		return nil, "", fmt.Errorf("no decimal such as 12.50")
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, "", fmt.Errorf("no decimal such as 12.50")
	}
	raw, err := unscaled(s, r)
	if err != nil {
		return nil, "", err
	}
	return appendString(nil, raw), string(appendQuoted(nil, fromLatin1(raw))), nil
}

func rangeError(err error, s *Schema) error {
	if err != nil {
		return fmt.Errorf("no %s", s.Word())
	}
	return nil
}
