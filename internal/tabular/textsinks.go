package tabular

import (
	"bytes"
	"fmt"
	"io"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/schema"
)

// textFunc appends the text of the value that src begins with.
type textFunc func(dst, src []byte) (out, rest []byte, err error)

// jsonSink writes JSON lines.
type jsonSink struct {
	w      io.Writer
	layout Layout
}

func newJSONSink(w io.Writer, l Layout) sink { return jsonSink{w, l} }

func (s jsonSink) renderer() func(c *chunk) error {
	render := schema.JSON(s.layout.Schema())
	return func(c *chunk) (err error) {
		c.out = c.out[:0]
		rest := c.rows
		for range c.count {
			if c.out, rest, err = render(c.out, rest); err != nil {
				return unreadable(s.layout, err)
			}
			c.out = append(c.out, '\n')
		}
		return complete(s.layout, rest)
	}
}

func (s jsonSink) append(c *chunk) error {
	_, err := s.w.Write(c.out)
	return err
}

func (s jsonSink) close() error { return nil }

// unreadable says that a row is none of its schema.
func unreadable(l Layout, err error) error {
	return fmt.Errorf("%s: a row can't be read: %w", l.Name, err)
}

// complete sees that nothing stands behind the last row of a chunk.
func complete(l Layout, rest []byte) error {
	if len(rest) > 0 {
		return unreadable(l, fmt.Errorf("%d bytes too many", len(rest)))
	}
	return nil
}

// csvSink writes comma-separated values as RFC 4180 has them, behind a line with
// the columns' names.
type csvSink struct {
	w      io.Writer
	layout Layout
}

func newCSVSink(w io.Writer, l Layout) (sink, error) {
	var header []byte
	for _, c := range l.flat() {
		header = append(appendCell(header, []byte(c.name)), ',')
	}
	_, err := w.Write(endLine(header))
	return csvSink{w, l}, err
}

// csvColumn is a column that is written.
type csvColumn struct {
	text     textFunc
	nullable bool // a union that begins with null: what begins with 0 is nothing
}

func (s csvSink) renderer() func(c *chunk) error {
	columns := s.layout.flat()
	render := make([]csvColumn, len(columns))
	for i, c := range columns {
		branches := c.typ.Branches()
		render[i] = csvColumn{schema.Text(c.typ), len(branches) > 0 && branches[0].Kind() == schema.KindNull}
	}
	var cell []byte
	return func(c *chunk) (err error) {
		c.out = c.out[:0]
		rest := c.rows
		for range c.count {
			begin := len(c.out)
			for i := range render {
				null := render[i].nullable && len(rest) > 0 && rest[0] == 0
				if cell, rest, err = render[i].text(cell[:0], rest); err != nil {
					return unreadable(s.layout, fmt.Errorf("%s: %w", columns[i].name, err))
				}
				if !null {
					c.out = appendCell(c.out, cell)
				}
				c.out = append(c.out, ',')
			}
			c.out = append(c.out[:begin], endLine(c.out[begin:])...)
		}
		return complete(s.layout, rest)
	}
}

func (s csvSink) append(c *chunk) error {
	_, err := s.w.Write(c.out)
	return err
}

func (s csvSink) close() error { return nil }

// endLine puts a line's end in the place of its last comma; rows without columns
// are empty lines.
func endLine(line []byte) []byte {
	if len(line) == 0 {
		return append(line, '\n')
	}
	line[len(line)-1] = '\n'
	return line
}

// appendCell appends a cell, quoted where it must be. An empty text is quoted, to
// tell it from a missing one.
func appendCell(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, ",\"\r\n") {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	dst = append(dst, bytes.ReplaceAll(text, []byte(`"`), []byte(`""`))...)
	return append(dst, '"')
}

// avroSink writes an Avro object container file.
type avroSink struct{ file *avrofile.Writer }

func newAvroSink(w io.Writer, l Layout) sink {
	return avroSink{avrofile.New(w, avrofile.Options{
		Schema: l.Schema().String(), Meta: map[string]string{stateMeta: l.Name},
	})}
}

// stateMeta tells in a file's metadata what it holds.
const stateMeta = "sluice.state"

func (s avroSink) renderer() func(c *chunk) error {
	var packer avrofile.Packer
	return func(c *chunk) error {
		c.out = packer.Pack(c.out[:0], c.rows, c.count)
		return nil
	}
}

func (s avroSink) append(c *chunk) error { return s.file.AppendPacked(c.out, c.rows, c.count) }

func (s avroSink) close() error {
	_, err := s.file.Close()
	return err
}
