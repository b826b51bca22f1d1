package codec

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"reflect"
	"time"
	"unsafe"
)

// timeFields says where a Go type holds times and durations, which need care
// beyond what encoding/json does: it gives a time the machine's own zone where
// the offset happens to be the same, so that equal bytes would make different
// values on two machines; and it has no form for durations.
type timeFields struct {
	flat      []uintptr // offsets of the times that lie in the value itself
	times     bool      // there are others, behind pointers, slices or maps
	durations bool
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	durationType    = reflect.TypeFor[time.Duration]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	fromType        = reflect.TypeFor[json.UnmarshalerFrom]()
)

func timeFieldsOf(t reflect.Type) *timeFields {
	var f timeFields
	f.find(t, 0, true, map[reflect.Type]bool{})
	return &f
}

// find looks through t, which lies offset bytes into the value if it is in the
// value itself.
func (f *timeFields) find(t reflect.Type, offset uintptr, inside bool, seen map[reflect.Type]bool) {
	switch {
	case t == timeType && inside:
		f.flat = append(f.flat, offset)
		return
	case t == timeType:
		f.times = true
		return
	case t == durationType:
		f.durations = true
		return
	case reflect.PointerTo(t).Implements(unmarshalerType), reflect.PointerTo(t).Implements(fromType):
		return // it decodes itself
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if !seen[t] {
			seen[t] = true
			f.find(t.Elem(), 0, false, seen)
		}
	case reflect.Struct:
		if !inside {
			if seen[t] {
				return
			}
			seen[t] = true
		}
		for field := range t.Fields() {
			f.find(field.Type, offset+field.Offset, inside, seen)
		}
	}
}

// toUTC sets the zone of the times in the value itself.
func (f *timeFields) toUTC(v unsafe.Pointer) {
	for _, offset := range f.flat {
		t := (*time.Time)(unsafe.Add(v, offset))
		*t = t.UTC()
	}
}

// unmarshalers are the options for decoding the other times, and durations.
func (f *timeFields) unmarshalers() []json.Options {
	var all []*json.Unmarshalers
	if f.times {
		all = append(all, json.UnmarshalFromFunc(unmarshalTime))
	}
	if f.durations {
		all = append(all, json.UnmarshalFromFunc(unmarshalDuration))
	}
	if all == nil {
		return nil
	}
	return []json.Options{json.WithUnmarshalers(json.JoinUnmarshalers(all...))}
}

// marshalers are the options for encoding durations.
func (f *timeFields) marshalers() []json.Options {
	if !f.durations {
		return nil
	}
	return []json.Options{json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteToken(jsontext.String(d.String()))
	}))}
}

func unmarshalTime(d *jsontext.Decoder, t *time.Time) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == 'n' {
		*t = time.Time{}
		return nil
	}
	if err := t.UnmarshalJSON(value); err != nil {
		return err
	}
	*t = t.UTC()
	return nil
}

func unmarshalDuration(d *jsontext.Decoder, v *time.Duration) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*v = 0
		return nil
	case '"':
		*v, err = time.ParseDuration(token.String())
		return err
	default:
		return &json.SemanticError{JSONKind: token.Kind(), GoType: durationType, Err: errNoDuration}
	}
}
