package tabular

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/sluicestream/sluice/schema"
)

// rowGroupBytes is how much of rows, encoded as Avro, a row group gets: it is held
// in memory until it is whole.
const rowGroupBytes = 64 << 20

// shreds are a chunk's rows, taken apart into columns.
type shreds struct {
	values []parquet.Value
	rows   []parquet.Row
	ends   []int
}

// parquetSink writes a Parquet file.
type parquetSink struct {
	file   *parquet.GenericWriter[any] // rows have no Go type
	layout Layout
	shape  shape
	inHand int // bytes in the row group in hand
}

func newParquetSink(w io.Writer, l Layout) (sink, error) {
	p := newShaper()
	s := p.of(l.Schema(), 0, 0)
	if p.columns > parquet.MaxColumnIndex {
		return nil, fmt.Errorf("%s: %d columns are more than the %d of a Parquet file; use another format", l.Name, p.columns, parquet.MaxColumnIndex)
	}
	file := parquet.NewGenericWriter[any](w, parquet.NewSchema(parquetName(l.Name), s.node),
		parquet.Compression(&parquet.Snappy), parquet.KeyValueMetadata(stateMeta, l.Name))
	return &parquetSink{file: file, layout: l, shape: s}, nil
}

func newShaper() *shaper { return &shaper{open: map[*schema.Schema]bool{}} }

// parquetName is the name of a file's rows.
func parquetName(name string) string {
	if name == "" {
		return "rows"
	}
	return name
}

func (s *parquetSink) renderer() func(c *chunk) error {
	sh := shredder{columns: make([][]parquet.Value, s.shape.last)}
	return func(c *chunk) (err error) {
		sheet := &c.sheet
		sheet.values, sheet.ends = sheet.values[:0], sheet.ends[:0]
		rest := c.rows
		for range c.count {
			for i := range sh.columns {
				sh.columns[i] = sh.columns[i][:0]
			}
			if rest, err = s.shape.write(&sh, rest, 0); err != nil {
				return unreadable(s.layout, err)
			}
			for _, values := range sh.columns {
				sheet.values = append(sheet.values, values...)
			}
			sheet.ends = append(sheet.ends, len(sheet.values))
		}
		return complete(s.layout, rest)
	}
}

func (s *parquetSink) append(c *chunk) error {
	sheet := &c.sheet
	sheet.rows = sheet.rows[:0]
	start := 0
	for _, end := range sheet.ends {
		sheet.rows = append(sheet.rows, sheet.values[start:end])
		start = end
	}
	if _, err := s.file.WriteRows(sheet.rows); err != nil {
		return err
	}
	clear(sheet.values) // which may hold on to much
	if s.inHand += len(c.rows); s.inHand < rowGroupBytes {
		return nil
	}
	s.inHand = 0
	return s.file.Flush()
}

func (s *parquetSink) close() error { return s.file.Close() }
