package tabular

import (
	"bytes"
	"fmt"
	"io"
)

// csvSource reads comma-separated values whose first line has the columns' names.
type csvSource struct {
	lines   *lines
	record  []byte // the record in hand, if it has several lines
	began   int64  // the line in which it begins
	cells   []cell
	tape    tape
	columns chosen
	reads   []cellFunc
}

// cell is a cell's text, without quotes.
type cell struct {
	text   []byte
	quoted bool
}

func newCSVSource(f File, l Layout, o ReadOptions) (source, error) {
	s := &csvSource{lines: newLines(f)}
	err := s.cut()
	if err == io.EOF {
		return nil, fmt.Errorf("it is empty; expected a line with the columns' names")
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(s.cells))
	for i, c := range s.cells {
		names[i] = string(c.text)
	}
	if s.columns, err = l.choose(names, o, true); err != nil {
		return nil, err
	}
	for i, c := range s.columns.columns {
		read, err := cellOf(c, &s.tape, o.Ignore)
		if s.columns.from[i] < 0 {
			read, err = noCell(c)
		}
		if err != nil {
			return nil, err
		}
		s.reads = append(s.reads, read)
	}
	s.cells = make([]cell, len(names)) // how many there are to be
	return s, nil
}

func (s *csvSource) next(dst []byte) ([]byte, error) {
	want := len(s.cells)
	if err := s.cut(); err != nil {
		s.cells = s.cells[:want]
		return dst, err
	}
	if got := len(s.cells); got != want {
		s.cells = make([]cell, want)
		return dst, &misfit{"", fmt.Sprintf("%d cells as in the header", want), fmt.Sprint(got)}
	}
	var err error
	for i, read := range s.reads {
		c := &s.columns.columns[i]
		var text cell
		if at := s.columns.from[i]; at >= 0 {
			text = s.cells[at]
		}
		if dst, err = read(dst, text.text, text.quoted); err != nil {
			return dst, within(c.name, err)
		}
	}
	return dst, nil
}

// cut reads the next record into cells.
func (s *csvSource) cut() error {
	var line []byte
	for len(bytes.TrimRight(line, "\r\n")) == 0 { // empty lines are none
		var err error
		if line, err = s.lines.next(); err != nil {
			return err
		}
		if s.lines.number == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
	}
	s.began = s.lines.number
	open := oddQuotes(line)
	if !open && line[len(line)-1] != '\n' { // a cell that was cut may look like a whole one
		return &misfit{"", "the end of the line", "the end of the file: it is cut short, or lacks a line end behind its last row"}
	}
	if open {
		s.record = append(s.record[:0], line...)
	}
	for open { // it goes on in the next line
		more, err := s.lines.next()
		if err == io.EOF {
			return &misfit{"", "a quote at the end of a cell", "the end of the file"}
		}
		if err != nil {
			return err
		}
		open = oddQuotes(more) != open
		s.record = append(s.record, more...)
		if line = s.record; len(line) > maxRowBytes {
			return &misfit{"", fmt.Sprintf("a row of at most %d bytes", maxRowBytes), "more; is a quote missing?"}
		}
	}
	return s.split(line)
}

// oddQuotes tells whether a line opens a quote that it doesn't close, or the other
// way round.
func oddQuotes(line []byte) bool { return bytes.Count(line, []byte{'"'})%2 == 1 }

// split divides a whole record into cells. Quotes are taken out in place.
func (s *csvSource) split(line []byte) error {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
	s.cells = s.cells[:0]
	for {
		if len(line) == 0 || line[0] != '"' {
			text, rest, more := bytes.Cut(line, []byte{','})
			if bytes.IndexByte(text, '"') >= 0 {
				return &misfit{"", "quotes around a whole cell", shown(text)}
			}
			s.cells = append(s.cells, cell{text, false})
			if !more {
				return nil
			}
			line = rest
			continue
		}
		text, rest, err := unquote(line[1:])
		if err != nil {
			return err
		}
		s.cells = append(s.cells, cell{text, true})
		if len(rest) == 0 {
			return nil
		}
		if rest[0] != ',' {
			return &misfit{"", "a comma behind a quoted cell", shown(rest)}
		}
		line = rest[1:]
	}
}

// unquote takes a quoted cell, behind its first quote, from the begin of a line.
func unquote(line []byte) (text, rest []byte, err error) {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] != '"' {
			line[end] = line[i]
			end++
			continue
		}
		if i+1 == len(line) || line[i+1] != '"' {
			return line[:end:end], line[i+1:], nil
		}
		line[end] = '"'
		end++
		i++
	}
	return nil, nil, &misfit{"", "a quote at the end of a cell", shown(line)}
}

func (s *csvSource) line() int64      { return s.began }
func (s *csvSource) offset() int64    { return s.lines.read }
func (s *csvSource) absent() []Absent { return s.columns.absent }
func (s *csvSource) close() error     { return nil }
