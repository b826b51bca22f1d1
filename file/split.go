package file

import "bytes"

// splitter finds where records end: at newlines, and in CSV only at those
// outside quotes. It remembers how far it looked, so that a long record that
// comes in pieces is looked through once.
type splitter struct {
	quotes bool // newlines inside quotes don't count

	searched int
	inside   bool // an odd number of quotes was seen since the record began
}

// reset forgets what was seen; the next search begins with a record.
func (s *splitter) reset() { s.searched, s.inside = 0, false }

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
		// A quote inside a quoted cell is doubled, so the count's parity tells
		// whether a cell is open.
		if s.quotes && bytes.Count(line, quote)&1 == 1 {
			s.inside = !s.inside
		}
		if i < 0 {
			s.searched = len(buf)
			return -1
		}
		from += i + 1
		if !s.inside {
			s.searched = from
			return from
		}
	}
}

var quote = []byte{'"'}

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
