package file

import (
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// setter sets a field from a cell.
type setter func(field unsafe.Pointer, c *cell) error

var (
	errNothing     = errors.New("the cell is empty; a pointer field reads it as nil")
	errNotUTF8     = errors.New("text is not UTF-8")
	timeType       = reflect.TypeFor[time.Time]()
	durationType   = reflect.TypeFor[time.Duration]()
	bytesType      = reflect.TypeFor[[]byte]()
	unmarshalsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// setterOf compiles the setter of a field of type t.
func setterOf(t reflect.Type) (setter, error) {
	switch {
	case t == timeType:
		return setTime, nil
	case t == durationType:
		return setDuration, nil
	case t == bytesType:
		return setBytes, nil
	case reflect.PointerTo(t).Implements(unmarshalsText):
		return setText(t), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return pointerSetter(t.Elem())
	case reflect.String:
		return setString, nil
	case reflect.Bool:
		return setBool, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intSetter(t), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintSetter(t), nil
	case reflect.Float32, reflect.Float64:
		return floatSetter(t), nil
	}
	return nil, fmt.Errorf("a CSV cell can't be read into %v; give it an UnmarshalText method, or leave it out with the tag `csv:\"-\"`", t)
}

func pointerSetter(elem reflect.Type) (setter, error) {
	set, err := setterOf(elem)
	if err != nil {
		return nil, err
	}
	return func(field unsafe.Pointer, c *cell) error {
		if len(c.text) == 0 && !c.quoted {
			return nil
		}
		v := reflect.New(elem).UnsafePointer()
		if err := set(v, c); err != nil {
			return err
		}
		*(*unsafe.Pointer)(field) = v
		return nil
	}, nil
}

func setString(field unsafe.Pointer, c *cell) error {
	if !utf8.Valid(c.text) {
		return errNotUTF8
	}
	*(*string)(field) = string(c.text)
	return nil
}

func setBool(field unsafe.Pointer, c *cell) error {
	v, err := strconv.ParseBool(view(c))
	if err != nil {
		return unfit(c, "a boolean", err)
	}
	*(*bool)(field) = v
	return nil
}

func intSetter(t reflect.Type) setter {
	bits := t.Bits()
	return func(field unsafe.Pointer, c *cell) error {
		v, err := strconv.ParseInt(view(c), 10, bits)
		if err != nil {
			return unfit(c, "a whole number for "+t.String(), err)
		}
		switch bits {
		case 8:
			*(*int8)(field) = int8(v)
		case 16:
			*(*int16)(field) = int16(v)
		case 32:
			*(*int32)(field) = int32(v)
		default:
			*(*int64)(field) = v
		}
		return nil
	}
}

func uintSetter(t reflect.Type) setter {
	bits := t.Bits()
	return func(field unsafe.Pointer, c *cell) error {
		v, err := strconv.ParseUint(view(c), 10, bits)
		if err != nil {
			return unfit(c, "a whole number for "+t.String(), err)
		}
		switch bits {
		case 8:
			*(*uint8)(field) = uint8(v)
		case 16:
			*(*uint16)(field) = uint16(v)
		case 32:
			*(*uint32)(field) = uint32(v)
		default:
			*(*uint64)(field) = v
		}
		return nil
	}
}

func floatSetter(t reflect.Type) setter {
	bits := t.Bits()
	return func(field unsafe.Pointer, c *cell) error {
		v, err := strconv.ParseFloat(view(c), bits)
		if err != nil {
			return unfit(c, "a number for "+t.String(), err)
		}
		if bits == 32 {
			*(*float32)(field) = float32(v)
		} else {
			*(*float64)(field) = v
		}
		return nil
	}
}

// setTime decodes to UTC, so that equal bytes make equal values whatever the
// machine's own zone.
func setTime(field unsafe.Pointer, c *cell) error {
	v, err := time.Parse(time.RFC3339, view(c))
	if err != nil {
		return unfit(c, "a time such as 2026-01-31T12:00:00Z", nil)
	}
	*(*time.Time)(field) = v.UTC()
	return nil
}

func setDuration(field unsafe.Pointer, c *cell) error {
	v, err := time.ParseDuration(view(c))
	if err != nil {
		return unfit(c, "a duration such as 1h30m", nil)
	}
	*(*time.Duration)(field) = v
	return nil
}

func setBytes(field unsafe.Pointer, c *cell) error {
	v, err := base64.StdEncoding.AppendDecode(nil, c.text)
	if err != nil {
		return unfit(c, "bytes in base64", err)
	}
	*(*[]byte)(field) = v
	return nil
}

func setText(t reflect.Type) setter {
	return func(field unsafe.Pointer, c *cell) error {
		v := reflect.NewAt(t, field).Interface().(encoding.TextUnmarshaler)
		if err := v.UnmarshalText(c.text); err != nil {
			return unfit(c, "a "+t.String(), err)
		}
		return nil
	}
}

// view is the cell's text for the call of a parser, which keeps none of it.
func view(c *cell) string { return unsafe.String(unsafe.SliceData(c.text), len(c.text)) }

// shownCell bounds how much of a bad cell an error repeats.
const shownCell = 40

// unfit says that a cell isn't what was expected.
func unfit(c *cell, expected string, cause error) error {
	if len(c.text) == 0 {
		return errNothing
	}
	text := string(c.text[:min(len(c.text), shownCell)])
	if errors.Is(cause, strconv.ErrRange) {
		return fmt.Errorf("expected %s, found %q, which is out of range", expected, text)
	}
	if cause != nil && !errors.Is(cause, strconv.ErrSyntax) {
		return fmt.Errorf("expected %s, found %q: %w", expected, text, cause)
	}
	return fmt.Errorf("expected %s, found %q", expected, text)
}
