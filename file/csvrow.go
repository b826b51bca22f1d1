package file

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/sluicestream/sluice/connector"
)

// rowType is a struct that CSV records are read into.
type rowType[T any] struct {
	settings *settings
	fields   []rowField
}

// rowField is a field that a column may fill.
type rowField struct {
	name     string
	optional bool
	offset   uintptr
	set      setter
}

// newRowType compiles T, or says everything that is wrong with it.
func newRowType[T any](s *settings) (*rowType[T], error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("CSV is read into a struct, %v is none", t)
	}
	fields, err := rowFields(t, 0, "")
	if err != nil {
		return nil, err
	}
	for i, f := range fields {
		if slices.ContainsFunc(fields[:i], func(o rowField) bool { return o.name == f.name }) {
			return nil, fmt.Errorf("%v has two fields for the column %q", t, f.name)
		}
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%v has no exported field that a column could fill", t)
	}
	return &rowType[T]{s, fields}, nil
}

// rowFields lists the fields of a struct that lies offset bytes into the row.
func rowFields(t reflect.Type, offset uintptr, path string) ([]rowField, error) {
	var fields []rowField
	var faults []error
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("csv"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			below, err := rowFields(f.Type, offset+f.Offset, path+f.Name+".")
			fields, faults = append(fields, below...), append(faults, err)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if option != "" && option != "optional" {
			faults = append(faults, fmt.Errorf("field %s%s: the tag's option %q is unknown; there is only optional", path, f.Name, option))
		}
		set, err := setterOf(f.Type)
		if err != nil {
			faults = append(faults, fmt.Errorf("field %s%s: %w", path, f.Name, err))
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, rowField{name, option == "optional" || f.Type.Kind() == reflect.Pointer, offset + f.Offset, set})
	}
	return fields, together(faults...)
}

// columns finds the field of each column; a column without one has no setter.
func (r *rowType[T]) columns(names []string) ([]rowField, error) {
	columns := make([]rowField, len(names))
	filled := make([]int, len(r.fields))
	var faults, strangers []error
	for i, name := range names {
		columns[i].name = name
		field := slices.IndexFunc(r.fields, func(f rowField) bool { return f.name == name })
		switch {
		case field >= 0:
			columns[i] = r.fields[field]
			filled[field]++
		case r.settings.strict:
			strangers = append(strangers, fmt.Errorf("column %s has no field", shownNames(names[i:i+1])))
		}
	}
	for i, f := range r.fields {
		if filled[i] > 1 {
			faults = append(faults, fmt.Errorf("column %q is there %d times", f.name, filled[i]))
		}
		if filled[i] == 0 && !f.optional {
			faults = append(faults, fmt.Errorf("field %q has no column", f.name))
		}
	}
	if faults = append(faults, strangers...); len(faults) > 0 {
		return nil, fmt.Errorf("the columns %s don't fit %v: %w", shownNames(names), reflect.TypeFor[T](), shownFaults(faults))
	}
	return columns, nil
}

// shownMost bounds how many columns, or faults of theirs, an error lists.
const shownMost = 20

// shownNames are the columns of a header, whose cells may be anything.
func shownNames(names []string) string {
	shown := make([]string, 0, shownMost)
	for _, name := range names[:min(len(names), shownMost)] {
		shown = append(shown, name[:min(len(name), shownCell)])
	}
	text := quoteAll(shown)
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func shownFaults(faults []error) error {
	if more := len(faults) - shownMost; more > 0 {
		faults = append(faults[:shownMost:shownMost], fmt.Errorf("and %d more", more))
	}
	return together(faults...)
}

// checkHeader tells whether the header's columns fit.
func (r *rowType[T]) checkHeader(header []byte) error {
	_, err := r.parseHeader(header)
	return err
}

func (r *rowType[T]) parseHeader(header []byte) ([]rowField, error) {
	c := cells{comma: r.settings.comma}
	all, err := c.cut(header)
	if err != nil {
		return nil, fmt.Errorf("header line: %w", err)
	}
	names := make([]string, len(all))
	for i, cell := range all {
		names[i] = string(cell.text)
	}
	return r.columns(names)
}

// newDecoder returns a decoder of the source's batches.
func (r *rowType[T]) newDecoder() func(b *connector.Batch, i int, v *T) error {
	d := decoder[T]{row: r, cells: cells{comma: r.settings.comma}}
	if r.settings.columns != nil {
		d.columns, d.fault = r.columns(r.settings.columns)
	}
	return d.decode
}

// decoder decodes CSV records, by the header of the partition they are from.
type decoder[T any] struct {
	row     *rowType[T]
	cells   cells
	header  []byte // what columns was made from; a partition's never changes
	columns []rowField
	fault   error
}

func (d *decoder[T]) decode(b *connector.Batch, i int, v *T) error {
	if d.row.settings.columns == nil && !sameBytes(d.header, b.Preamble) {
		d.header = b.Preamble
		d.columns, d.fault = d.row.parseHeader(b.Preamble)
	}
	if d.fault != nil {
		return &connector.DecodeError{At: -1, Cause: d.fault}
	}
	all, err := d.cells.cut(b.Records[i].Value)
	if err != nil {
		return d.malformed(b.Records[i].Value, err)
	}
	if len(all) != len(d.columns) {
		return &connector.DecodeError{At: -1, Cause: fmt.Errorf("expected %d cells as in the header, found %d", len(d.columns), len(all))}
	}
	for i := range all {
		column, c := &d.columns[i], &all[i]
		if column.set == nil {
			continue
		}
		if d.isNull(c) {
			c.text = nil
		}
		if err := column.set(unsafe.Add(unsafe.Pointer(v), column.offset), c); err != nil {
			return &connector.DecodeError{Field: column.name, At: int64(c.at), Cause: err}
		}
	}
	return nil
}

// isNull tells whether a cell's text stands for nothing.
func (d *decoder[T]) isNull(c *cell) bool {
	if c.quoted {
		return false
	}
	for _, null := range d.row.settings.null {
		if string(c.text) == null {
			return true
		}
	}
	return false
}

// malformed says in which column a record stops being CSV.
func (d *decoder[T]) malformed(record []byte, err error) error {
	e := &connector.DecodeError{At: -1, Cause: err}
	if bad, ok := errors.AsType[*cellError](err); ok {
		e.At = int64(bad.at)
		if n := len(d.cells.all); n < len(d.columns) {
			e.Field = d.columns[n].name
		}
	}
	return e
}

// sameBytes compares by place first: it is called for each record.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (unsafe.SliceData(a) == unsafe.SliceData(b) || bytes.Equal(a, b)) && a != nil
}
