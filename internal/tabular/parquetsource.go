package tabular

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetSource reads Parquet files.
type parquetSource struct {
	file    *parquet.File
	columns chosen
	plan    *assembly
	reads   []assembleFunc

	groups []parquet.RowGroup // that are not read yet
	rows   parquet.Rows       // of the group in hand
	buffer []parquet.Row
	left   []parquet.Row // read and not given out: they hold parts of the group's pages
	ended  bool          // the group has no more
	size   int64
	read   int64 // rows
}

// rowsAtOnce is how many rows are taken out of a row group at once.
const rowsAtOnce = 64

func newParquetSource(f File, size int64, l Layout, o ReadOptions) (_ source, err error) {
	defer recovered(&err)
	file, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	fields := file.Root().Columns()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name()
	}
	picked, err := l.choose(names, o, false)
	if err != nil {
		return nil, err
	}
	s := &parquetSource{file: file, columns: picked, groups: file.RowGroups(), buffer: make([]parquet.Row, rowsAtOnce), size: size, plan: newAssembly(leaves(file.Root()))}
	for i, c := range picked.columns {
		var read assembleFunc
		if at := picked.from[i]; at >= 0 {
			read, err = s.plan.node(fields[at], c.typ, o.Ignore)
		} else {
			read, err = constant(c)
		}
		if err != nil {
			return nil, within(c.name, err)
		}
		s.reads = append(s.reads, read)
	}
	return s, nil
}

// recovered makes an error of a panic: the library panics on some files that are
// damaged, which is no reason to end the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged Parquet: %v", p)
	}
}

func (s *parquetSource) next(dst []byte) (_ []byte, err error) {
	defer recovered(&err)
	for len(s.left) == 0 {
		if err := s.more(); err != nil {
			return dst, err
		}
	}
	row := s.left[0]
	s.left = s.left[1:]
	s.read++
	if err := s.plan.begin(row); err != nil {
		return dst, err
	}
	for i, read := range s.reads {
		if dst, err = read(dst, 0); err != nil {
			return dst, within(s.columns.columns[i].name, err)
		}
	}
	return dst, nil
}

// more takes rows out of the group in hand, or goes to the next.
func (s *parquetSource) more() error {
	if s.ended { // the rows read from it have been given out
		if err := s.close(); err != nil {
			return err
		}
	}
	if s.rows == nil {
		if len(s.groups) == 0 {
			return io.EOF
		}
		s.rows, s.groups = s.groups[0].Rows(), s.groups[1:]
	}
	n, err := s.rows.ReadRows(s.buffer)
	s.left = s.buffer[:n]
	if err == io.EOF || err == nil && n == 0 {
		s.ended, err = true, nil
	}
	return err
}

func (s *parquetSource) line() int64      { return 0 }
func (s *parquetSource) absent() []string { return s.columns.absent }

// offset is reckoned by the rows: columns are read side by side.
func (s *parquetSource) offset() int64 {
	rows := s.file.NumRows()
	if rows <= 0 {
		return s.size
	}
	return int64(float64(s.size) * (float64(min(s.read, rows)) / float64(rows)))
}

func (s *parquetSource) close() error {
	if s.rows == nil {
		return nil
	}
	err := s.rows.Close()
	s.rows, s.ended = nil, false
	return err
}
