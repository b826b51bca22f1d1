package tabular

import (
	"errors"
	"fmt"
	"io"
)

// File is a file that is read.
type File interface {
	io.Reader
	io.ReaderAt
}

// ReadOptions say how a file is read.
type ReadOptions struct {
	// Ignore leaves out columns and fields that are not wanted; they are an error
	// otherwise.
	Ignore bool
	// Defaults lets columns and fields be missing that have no default but their
	// type's zero value; they are an error otherwise.
	Defaults bool
}

// Reader reads a file's rows, one after the other. It is not safe for concurrent
// use.
type Reader struct {
	file   string
	source source
	strict bool // zero values don't stand in for what is missing
	row    []byte
	count  int64
}

// source is a format's reader.
type source interface {
	// next appends the next row to dst; [io.EOF] says that there is none. An error
	// about a value is a misfit.
	next(dst []byte) ([]byte, error)
	// line is that in which the last row began, or 0.
	line() int64
	// offset is how far the file has been read, in bytes.
	offset() int64
	// absent are the columns and fields that the file lacks, whose defaults the rows
	// have: once it has been read.
	absent() []Absent
	close() error
}

// Open opens a file of a size in bytes whose rows are to be read in a layout. Parts
// are found by their names: each as a column of its own, or, in a flat file, their
// fields as columns. The error is a *[ColumnsError] if the file's columns don't fit,
// and a *[RowError] if its first row doesn't.
func Open(file File, size int64, name string, f Format, l Layout, o ReadOptions) (*Reader, error) {
	r := &Reader{file: name, strict: !o.Defaults}
	var err error
	switch f {
	case Avro:
		r.source, err = newAvroSource(file, l, o)
	case CSV:
		r.source, err = newCSVSource(file, l, o)
	case JSONL:
		r.source, err = newJSONSource(file, l, o)
	case Parquet:
		r.source, err = newParquetSource(file, size, l, o)
	default:
		err = fmt.Errorf("format %q: use avro, jsonl, csv or parquet", f)
	}
	if err == nil {
		if err = r.complete(); err != nil {
			r.Close()
		}
	}
	if faults, ok := errors.AsType[*ColumnsError](err); ok {
		faults.File = name
		return nil, faults
	}
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", name, err)
	}
	return r, nil
}

// complete says which columns are missing, of those that are known so far to be.
func (r *Reader) complete() error {
	var faults []string
	for _, a := range r.source.absent() {
		if a.Implied && r.strict {
			faults = append(faults, a.fault())
		}
	}
	if err := columnsError(faults); err != nil {
		return &ColumnsError{File: r.file, Faults: faults}
	}
	return nil
}

// Next returns the next row, encoded, which holds until the next call; [io.EOF]
// says that there is none. A row that doesn't fit is a *[RowError]; in JSON lines, a
// field that no row has is a *[ColumnsError] at the end.
func (r *Reader) Next() ([]byte, error) {
	row, err := r.source.next(r.row[:0])
	if err == io.EOF {
		if missing := r.complete(); missing != nil {
			return nil, missing
		}
		return nil, err
	}
	r.count++
	r.row = row
	if err == nil && len(row) > maxRowBytes {
		err = &misfit{"", fmt.Sprintf("a row of at most %d bytes", maxRowBytes), fmt.Sprint(len(row))}
	}
	if m, ok := errors.AsType[*misfit](err); ok {
		return nil, &RowError{File: r.file, Row: r.count, Line: r.source.line(), Column: m.path, Expected: m.expected, Found: m.found}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(r.file, r.count, r.source.line()), err)
	}
	return row, nil
}

// Row is the number of the last row, from 1.
func (r *Reader) Row() int64 { return r.count }

// Place tells where the last row stands: "file spend.csv, row 3 (line 4)".
func (r *Reader) Place() string { return place(r.file, r.count, r.source.line()) }

// Offset is how far the file has been read, in bytes.
func (r *Reader) Offset() int64 { return r.source.offset() }

// Absent are the columns and fields that the file lacks, whose defaults the rows
// have; of JSON lines those that no row has had, once all have been read.
func (r *Reader) Absent() []Absent { return r.source.absent() }

// Close releases the reader, not the file.
func (r *Reader) Close() error { return r.source.close() }
