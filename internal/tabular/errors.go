package tabular

import (
	"errors"
	"fmt"
	"strings"
)

// RowError says what is wrong with a row of a file.
type RowError struct {
	// File is the file's name.
	File string
	// Row is the row's number, from 1. Line is the line that it begins in, from 1,
	// or 0 in a file that has none.
	Row, Line int64
	// Column is the column, with the path inside of it; empty for the whole row.
	Column string
	// Expected and Found say what should be there and what is.
	Expected, Found string
}

// Error implements error.
func (e *RowError) Error() string {
	column := ""
	if e.Column != "" {
		column = ", column " + e.Column
	}
	return fmt.Sprintf("%s%s: expected %s, found %s; mend the file", place(e.File, e.Row, e.Line), column, e.Expected, e.Found)
}

// place is where a row stands.
func place(file string, row, line int64) string {
	if line == 0 {
		return fmt.Sprintf("file %s, row %d", file, row)
	}
	return fmt.Sprintf("file %s, row %d (line %d)", file, row, line)
}

// ColumnsError says that a file's columns are not those that are wanted.
type ColumnsError struct {
	// File is the file's name.
	File string
	// Faults has one text for each column.
	Faults []string
}

// Error implements error.
func (e *ColumnsError) Error() string {
	return fmt.Sprintf("file %s: its columns don't fit: %s. Name them as `sluice state export` does, or give the file another form", e.File, strings.Join(e.Faults, "; "))
}

// Summary is what the error says without the faults, and Details are these: for
// those who show them as a list.
func (e *ColumnsError) Summary() string {
	return fmt.Sprintf("file %s: its columns don't fit; name them as `sluice state export` does, or give the file another form", e.File)
}

// Details has one text for each column.
func (e *ColumnsError) Details() []string { return e.Faults }

// misfit says what is wrong with a value, by its path in the row.
type misfit struct{ path, expected, found string }

func (m *misfit) Error() string {
	path := m.path
	if path != "" {
		path += ": "
	}
	return fmt.Sprintf("%sexpected %s, found %s", path, m.expected, m.found)
}

// within puts a path in front of that of a misfit.
func within(path string, err error) error {
	m, ok := errors.AsType[*misfit](err)
	if !ok || path == "" {
		return err
	}
	joined := path
	if m.path != "" {
		if joined += m.path; m.path[0] != '[' && m.path[0] != '{' {
			joined = path + "." + m.path
		}
	}
	return &misfit{joined, m.expected, m.found}
}

// shownBytes bounds how much of a bad value an error repeats.
const shownBytes = 40

// shown is a text as an error repeats it.
func shown(text []byte) string {
	if len(text) > shownBytes {
		return fmt.Sprintf("%q…", text[:shownBytes])
	}
	return fmt.Sprintf("%q", text)
}
