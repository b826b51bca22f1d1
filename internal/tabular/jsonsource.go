package tabular

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/sluicestream/sluice/schema"
)

// lineBuffer is how much of a file is read at once.
const lineBuffer = 256 << 10

// lines reads a file line by line.
type lines struct {
	in     *bufio.Reader
	number int64 // of the line that was read last
	read   int64 // bytes
	long   []byte
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, lineBuffer)} }

// next returns the next line with its end, which holds until the next call.
func (l *lines) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = append(l.long[:0], line...)
		for err == bufio.ErrBufferFull {
			if len(l.long) > maxRowBytes {
				return nil, &misfit{"", fmt.Sprintf("a row of at most %d bytes", maxRowBytes), "more"}
			}
			line, err = l.in.ReadSlice('\n')
			l.long = append(l.long, line...)
		}
		line = l.long
	}
	l.read += int64(len(line))
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	l.number++
	return line, nil
}

// byteOrderMark may stand at a file's beginning.
const byteOrderMark = "\ufeff"

// jsonSource reads JSON lines.
type jsonSource struct {
	lines   *lines
	tape    tape
	layout  Layout
	options ReadOptions
	record  *jsonRecord // once the first row was seen
	records map[*schema.Schema]*jsonRecord
}

func newJSONSource(f File, l Layout, o ReadOptions) (source, error) {
	return &jsonSource{lines: newLines(f), layout: l, options: o}, nil
}

func (s *jsonSource) next(dst []byte) ([]byte, error) {
	for {
		line, err := s.lines.next()
		if err != nil {
			return dst, err
		}
		if s.lines.number == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := s.tape.parse(line); err != nil {
			return dst, err
		}
		if s.record == nil {
			if err := s.begin(); err != nil {
				return dst, err
			}
		}
		return s.record.append(dst, &s.tape, 0)
	}
}

// begin finds out by the first row what all consist of.
func (s *jsonSource) begin() error {
	var names []string
	if first := s.tape.parts[0]; first.kind == '{' {
		for at := int32(1); at < first.next; at = s.tape.parts[at+1].next {
			names = append(names, string(s.tape.text(s.tape.parts[at])))
		}
	}
	columns := s.layout.flat()
	if s.layout.isWhole(names) {
		columns = s.layout.whole()
	}
	record := &jsonRecord{}
	compiler := newJSONCompiler(s.options.Ignore)
	if err := compiler.fill(record, columns); err != nil {
		return err
	}
	s.record, s.records = record, compiler.records
	return nil
}

func (s *jsonSource) line() int64   { return s.lines.number }
func (s *jsonSource) offset() int64 { return s.lines.read }
func (s *jsonSource) close() error  { return nil }

// absent is known at the end: another row may have what one lacks.
func (s *jsonSource) absent() []Absent {
	if s.record == nil {
		return nil
	}
	return s.record.unseen(s.records, map[*jsonRecord]bool{}, "")
}
