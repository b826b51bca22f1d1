package file

import (
	"bytes"
	"errors"
	"fmt"
)

// cell is one value of a CSV record.
type cell struct {
	text   []byte
	quoted bool
	at     int // where it begins in the record
}

// cellError is a record that isn't CSV, and where.
type cellError struct {
	at    int
	cause error
}

func (e *cellError) Error() string { return fmt.Sprintf("not CSV at byte %d: %v", e.at, e.cause) }
func (e *cellError) Unwrap() error { return e.cause }

var (
	errOpenQuote  = errors.New("a quote is left open")
	errBareQuote  = errors.New("a quote inside an unquoted cell; such a cell is quoted whole, its quotes doubled")
	errAfterQuote = errors.New("text behind a closing quote; a quote inside a cell is doubled")
)

// cells cuts records into cells. Its memory is used again for each record; a
// cell's text lies there or in the record.
type cells struct {
	comma   byte
	all     []cell
	scratch []byte
}

// cut returns the record's cells.
func (c *cells) cut(record []byte) ([]cell, error) {
	c.all, c.scratch = c.all[:0], c.scratch[:0]
	// The scratch must not move while cells lie in it.
	if cap(c.scratch) < len(record) && bytes.IndexByte(record, '"') >= 0 {
		c.scratch = make([]byte, 0, len(record)+len(record)/2)
	}
	for at := 0; ; {
		next, err := c.cutOne(record, at)
		if err != nil {
			return nil, err
		}
		if next > len(record) {
			return c.all, nil
		}
		at = next
	}
}

// cutOne cuts the cell that begins at at, and returns where the next begins:
// behind the record's end if there is none.
func (c *cells) cutOne(record []byte, at int) (next int, err error) {
	if at < len(record) && record[at] == '"' {
		return c.cutQuoted(record, at)
	}
	end := bytes.IndexByte(record[at:], c.comma)
	if end < 0 {
		end = len(record)
	} else {
		end += at
	}
	text := record[at:end]
	if i := bytes.IndexByte(text, '"'); i >= 0 {
		return 0, &cellError{at + i, errBareQuote}
	}
	c.all = append(c.all, cell{text: text, at: at})
	return end + 1, nil
}

func (c *cells) cutQuoted(record []byte, at int) (next int, err error) {
	begin, from := len(c.scratch), at+1
	for {
		i := bytes.IndexByte(record[from:], '"')
		if i < 0 {
			return 0, &cellError{at, errOpenQuote}
		}
		end := from + i
		if end+1 < len(record) && record[end+1] == '"' { // doubled
			c.scratch = append(c.scratch, record[from:end+1]...)
			from = end + 2
			continue
		}
		if end+1 < len(record) && record[end+1] != c.comma {
			return 0, &cellError{end + 1, errAfterQuote}
		}
		text := record[from:end]
		if len(c.scratch) > begin {
			c.scratch = append(c.scratch, text...)
			text = c.scratch[begin:]
		}
		c.all = append(c.all, cell{text: text, quoted: true, at: at})
		return end + 2, nil
	}
}
