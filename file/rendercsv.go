package file

import (
	"bytes"
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// csvRenderer writes CSV: a stream's fields, or op, the key's columns and the
// row's fields of a table.
type csvRenderer struct {
	table  bool
	key    []csvColumn
	fields []csvColumn
	cell   []byte
}

// csvColumn is a column of what is written.
type csvColumn struct {
	name     string
	text     transcoder
	nullable bool // a union that begins with null: what begins with 0 is nothing
}

func newCSVRenderer(d *connector.Delivery) *csvRenderer {
	c := &csvRenderer{table: d.Key != nil, fields: csvColumns(d.Schema, "")}
	if d.Key == nil {
		return c
	}
	if d.Key.Kind() == schema.KindRecord {
		c.key = csvColumns(d.Key, "key.")
	} else {
		c.key = []csvColumn{csvColumnOf("key", d.Key)}
	}
	return c
}

func csvColumns(record *schema.Schema, prefix string) []csvColumn {
	var columns []csvColumn
	for _, f := range record.Fields() {
		columns = append(columns, csvColumnOf(prefix+f.Name, f.Type))
	}
	return columns
}

func csvColumnOf(name string, s *schema.Schema) csvColumn {
	branches := s.Branches()
	return csvColumn{name, schema.Text(s), len(branches) > 0 && branches[0].Kind() == schema.KindNull}
}

func (c *csvRenderer) header(dst []byte) []byte {
	if c.table {
		dst = append(dst, "op,"...)
	}
	for _, column := range append(c.key[:len(c.key):len(c.key)], c.fields...) {
		dst = append(appendCell(dst, []byte(column.name)), ',')
	}
	return endRecord(dst)
}

func (c *csvRenderer) row(dst []byte, r *connector.Row) (_ []byte, err error) {
	if c.table {
		if r.Op != connector.Put && r.Op != connector.Delete {
			return nil, fmt.Errorf("a table's row says %s", r.Op)
		}
		dst = append(append(dst, r.Op.String()...), ',')
		if dst, err = c.cells(dst, c.key, r.Key); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
	} else if r.Op != connector.Append {
		return nil, fmt.Errorf("a stream's row says %s", r.Op)
	}
	if r.Op == connector.Delete {
		for range c.fields {
			dst = append(dst, ',')
		}
	} else if dst, err = c.cells(dst, c.fields, r.Row); err != nil {
		return nil, err
	}
	return endRecord(dst), nil
}

// cells appends the columns' cells, each with a comma behind it.
func (c *csvRenderer) cells(dst []byte, columns []csvColumn, src []byte) ([]byte, error) {
	for i := range columns {
		column := &columns[i]
		null := column.nullable && len(src) > 0 && src[0] == 0
		text, rest, err := column.text(c.cell[:0], src)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", column.name, err)
		}
		c.cell, src = text, rest
		if !null {
			dst = appendCell(dst, text)
		}
		dst = append(dst, ',')
	}
	if len(src) > 0 {
		return nil, errLeftOver
	}
	return dst, nil
}

// endRecord puts the record's end in the place of the last comma.
func endRecord(dst []byte) []byte {
	dst[len(dst)-1] = '\n'
	return dst
}

// appendCell appends a cell, quoted where it must be. An empty text is quoted,
// to tell it from a missing one.
func appendCell(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, ",\"\r\n") {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			break
		}
		dst = append(append(dst, text[:i+1]...), '"')
		text = text[i+1:]
	}
	return append(append(dst, text...), '"')
}
