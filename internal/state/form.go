package state

import (
	"fmt"
	"strconv"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// segmentFormat is the version of the form of segments, in their metadata.
const segmentFormat = 1

const (
	formatKey = "sluice.format"
	stateKey  = "sluice.state"
	// deletesKey tells that none of a segment's records is a delete: then an export
	// can copy its blocks as they are.
	deletesKey = "sluice.deletes"
	noDeletes  = "none"
)

// Form is a state's name and its schemas.
type Form struct {
	Name string
	// Key is the schema of the keys. Element is that of a map's keys, or of a
	// list's index, in a state that is stored by element; otherwise nil.
	Key, Element *schema.Schema
	// Value is the schema of the values.
	Value *schema.Schema
}

// FormOf is the form of a state as a manifest has it.
func FormOf(name string, e epoch.StateEntry) (Form, error) {
	f := Form{Name: name}
	for _, part := range []struct {
		what, text string
		schema     **schema.Schema
	}{{"key", e.Key, &f.Key}, {"element", e.Element, &f.Element}, {"value", e.Value, &f.Value}} {
		if part.text == "" && part.what == "element" {
			continue
		}
		s, err := schema.Parse([]byte(part.text))
		if err != nil {
			return Form{}, fmt.Errorf("state %s: schema of the %s: %w", name, part.what, err)
		}
		*part.schema = s
	}
	return f, nil
}

// Schema is the schema of the state's segments.
func (f Form) Schema() *schema.Schema {
	fields := []schema.Field{{Name: "slot", Type: schema.Int()}, {Name: "key", Type: f.Key}}
	if f.Element != nil {
		fields = append(fields, schema.Field{Name: "element", Type: f.Element})
	}
	fields = append(fields, schema.Field{Name: "value", Type: schema.Nullable(f.Value)})
	return schema.Record("sluice.entry", fields...)
}

// meta is the metadata of a segment; live says that it holds no deletes.
func (f Form) meta(live bool) map[string]string {
	m := map[string]string{formatKey: strconv.Itoa(segmentFormat), stateKey: f.Name}
	if live {
		m[deletesKey] = noDeletes
	}
	return m
}

// check refuses what a segment's record can't hold.
func (f Form) check() error {
	if k := f.Value.Kind(); k == schema.KindUnion || k == schema.KindNull {
		return fmt.Errorf("state %s: values of the schema %s: a state's value can't be null or one of several types; put it into a record", f.Name, f.Value)
	}
	return nil
}

// Comparer compares two encodings of a key with, if there is one, the element
// that follows it.
func (f Form) Comparer() (func(a, b []byte) int, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	s := f.Key
	if f.Element != nil {
		s = schema.Record("sluice.row", schema.Field{Name: "key", Type: f.Key}, schema.Field{Name: "element", Type: f.Element})
	}
	compare, err := schema.Comparer(s)
	if err != nil {
		return nil, fmt.Errorf("state %s: %w", f.Name, err)
	}
	return compare, nil
}
