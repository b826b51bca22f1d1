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
	if err := checkMagic(f, size); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("damaged Parquet: %w", err)
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
			err = s.plan.lacks.at(c.name, func() (err error) {
				read, err = s.plan.node(fields[at], c.typ, o.Ignore)
				return err
			})
		} else {
			read, err = constant(c)
		}
		if err != nil {
			return nil, within(c.name, err)
		}
		s.reads = append(s.reads, read)
	}
	s.columns.absent = append(s.columns.absent, s.plan.lacks.all...)
	return s, nil
}

// parquetMagic is what a file begins and ends with.
const parquetMagic = "PAR1"

// checkMagic sees that a file begins and ends as Parquet does.
func checkMagic(f io.ReaderAt, size int64) error {
	if size < int64(2*len(parquetMagic)) {
		return &misfit{"", "Parquet, which begins and ends with " + parquetMagic, fmt.Sprintf("a file of %d bytes: it is cut short, or another format", size)}
	}
	var begin, end [len(parquetMagic)]byte
	if _, err := f.ReadAt(begin[:], 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(end[:], size-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	switch {
	case string(begin[:]) != parquetMagic:
		return &misfit{"", "Parquet, which begins with " + parquetMagic, shown(begin[:]) + " at its begin: it is another format"}
	case string(end[:]) != parquetMagic:
		return &misfit{"", "Parquet, which ends with " + parquetMagic, fmt.Sprintf("%s at its end, byte %d: it is cut short", shown(end[:]), size)}
	}
	return nil
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
func (s *parquetSource) absent() []Absent { return s.columns.absent }

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
