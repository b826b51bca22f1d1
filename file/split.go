package file

import "bytes"

// splitter finds where records end.
type splitter struct {
	quotes bool // newlines inside quotes don't count
	comma  byte // between cells, where quotes matter

	searched int
	state    cellState
}

// cellState is where in a cell a search stands. A quote opens a cell at its
// beginning only: one elsewhere is a fault of its own record, and leaves the
// records behind it alone.
type cellState uint8

const (
	atBeginning cellState = iota
	inPlain
	inQuotes
	behindQuote // which closes the cell, unless another quote follows
)

// inside tells whether a quote is open.
func (s *splitter) inside() bool { return s.state == inQuotes }

// reset forgets what was seen; the next search begins with a record.
func (s *splitter) reset() { s.searched, s.state = 0, atBeginning }

// end is the index behind the newline of the record that begins at start, or
// -1 if it isn't in buf yet.
func (s *splitter) end(buf []byte, start int) int {
	from := max(start, s.searched)
	for {
		i := bytes.IndexByte(buf[from:], '\n')
		line := buf[from:]
		if i >= 0 {
			line = line[:i]
		}
		if s.quotes {
			s.pass(line, i >= 0)
		}
		if i < 0 {
			s.searched = len(buf)
			return -1
		}
		from += i + 1
		if !s.inside() {
			s.searched, s.state = from, atBeginning
			return from
		}
	}
}

// pass passes over a line, or a part of one. Most whole lines have no quote, and
// then nothing in them matters.
func (s *splitter) pass(line []byte, whole bool) {
	if whole && !s.inside() && bytes.IndexByte(line, '"') < 0 {
		return
	}
	for len(line) > 0 {
		next := 1
		switch {
		case s.state == inQuotes:
			next = bytes.IndexByte(line, '"') + 1
			s.stateAfter(next, behindQuote)
		case s.state == inPlain:
			next = bytes.IndexByte(line, s.comma) + 1
			s.stateAfter(next, atBeginning)
		case line[0] == '"':
			s.state = inQuotes
		case line[0] == s.comma:
			s.state = atBeginning
		case s.state == atBeginning && bytes.IndexByte(byteOrderMark, line[0]) >= 0:
		default:
			s.state = inPlain
		}
		if next == 0 {
			return
		}
		line = line[next:]
	}
}

// stateAfter is the state behind what was looked for, if it was found.
func (s *splitter) stateAfter(found int, state cellState) {
	if found > 0 {
		s.state = state
	}
}

// byteOrderMark may stand before a file's first line.
var byteOrderMark = []byte("\xef\xbb\xbf")

// trimNewline takes a record's newline off.
func trimNewline(record []byte) []byte {
	n := len(record)
	if n > 0 && record[n-1] == '\n' {
		n--
		if n > 0 && record[n-1] == '\r' {
			n--
		}
	}
	return record[:n]
}

// trimMark takes the byte order mark off a file's first record.
func trimMark(line []byte, offset int64) []byte {
	if offset == 0 {
		return bytes.TrimPrefix(line, byteOrderMark)
	}
	return line
}
