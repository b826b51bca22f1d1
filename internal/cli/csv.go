package cli

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// csvExporter writes a state as CSV.
type csvExporter struct {
	w                   *bufio.Writer
	form                state.Form
	key, element, value []csvColumn
	line, cell          []byte
	err                 error // of the header
}

// csvColumn is a column: a part of a key, an element or a value.
type csvColumn struct {
	name     string
	text     func(dst, src []byte) (out, rest []byte, err error)
	nullable bool // a union that begins with null: what begins with 0 is nothing
}

func newCSVExporter(w *bufio.Writer, f state.Form) *csvExporter {
	x := &csvExporter{w: w, form: f, key: csvColumns("key", "key.", f.Key)}
	taken := x.key
	if f.Element != nil {
		x.element = csvColumns("element", "element.", f.Element)
		taken = append(taken[:len(taken):len(taken)], x.element...)
	}
	x.value = csvColumns("value", "", f.Value)
	if clash(taken, x.value) {
		x.value = csvColumns("value", "value.", f.Value)
	}
	x.header()
	return x
}

// csvColumns are the columns of a schema: one for each field of a record, under
// its name behind a prefix, or a single one.
func csvColumns(whole, prefix string, s *schema.Schema) []csvColumn {
	if s.Kind() != schema.KindRecord {
		return []csvColumn{csvColumnOf(whole, s)}
	}
	var columns []csvColumn
	for _, f := range s.Fields() {
		columns = append(columns, csvColumnOf(prefix+f.Name, f.Type))
	}
	return columns
}

func csvColumnOf(name string, s *schema.Schema) csvColumn {
	branches := s.Branches()
	return csvColumn{name, schema.Text(s), len(branches) > 0 && branches[0].Kind() == schema.KindNull}
}

// clash tells whether columns have a name in common.
func clash(a, b []csvColumn) bool {
	names := map[string]bool{}
	for _, c := range a {
		names[c.name] = true
	}
	for _, c := range b {
		if names[c.name] {
			return true
		}
	}
	return false
}

func (x *csvExporter) header() {
	for _, columns := range [][]csvColumn{x.key, x.element, x.value} {
		for _, c := range columns {
			x.line = append(appendCell(x.line, []byte(c.name)), ',')
		}
	}
	x.err = x.endLine()
}

func (x *csvExporter) entry(e *state.Entry) error {
	if x.err != nil {
		return x.err
	}
	if err := x.cells("key", x.key, e.Key); err != nil {
		return err
	}
	if err := x.cells("element", x.element, e.Element); err != nil {
		return err
	}
	if err := x.cells("value", x.value, e.Value); err != nil {
		return err
	}
	return x.endLine()
}

// cells adds the columns' cells, each with a comma behind it.
func (x *csvExporter) cells(what string, columns []csvColumn, src []byte) error {
	for i := range columns {
		c := &columns[i]
		null := c.nullable && len(src) > 0 && src[0] == 0
		var err error
		if x.cell, src, err = c.text(x.cell[:0], src); err != nil {
			return fmt.Errorf("state %s: an entry can't be read: %s: %w", x.form.Name, c.name, err)
		}
		if !null {
			x.line = appendCell(x.line, x.cell)
		}
		x.line = append(x.line, ',')
	}
	if len(src) > 0 {
		return fmt.Errorf("state %s: an entry can't be read: %s: %d bytes too many", x.form.Name, what, len(src))
	}
	return nil
}

// endLine writes the line, with its end in the place of the last comma.
func (x *csvExporter) endLine() error {
	if len(x.line) == 0 { // a record without fields, alone
		x.line = append(x.line, ',')
	}
	x.line[len(x.line)-1] = '\n'
	_, err := x.w.Write(x.line)
	x.line = x.line[:0]
	return err
}

func (x *csvExporter) close() error { return x.err }

// appendCell appends a cell, quoted where it must be. An empty text is quoted,
// to tell it from a missing one.
func appendCell(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, ",\"\r\n") {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	dst = append(dst, bytes.ReplaceAll(text, []byte(`"`), []byte(`""`))...)
	return append(dst, '"')
}
