package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
)

const (
	// defaultPoll is how often a followed file is looked at: often enough for
	// an epoch of a second, rare enough to cost nothing.
	defaultPoll = 200 * time.Millisecond
	// defaultMaxLine bounds a line, so that a file without newlines doesn't
	// fill the memory.
	defaultMaxLine = 16 << 20
	// largestMaxLine keeps offsets inside a buffer far from overflowing.
	largestMaxLine = 1 << 30
)

// Option is a setting of a source.
type Option func(*settings)

type settings struct {
	follow  bool
	poll    time.Duration
	maxLine int
	strict  bool
	comma   byte
	columns []string
	null    []string
}

func newSettings(opts []Option) settings {
	s := settings{poll: defaultPoll, maxLine: defaultMaxLine, comma: ','}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// Follow reads files on as they grow, and takes up new files that fit the
// pattern, of which there need be none at first. A last line waits for its
// newline. A file that is removed is an error. Defaults to reading each file to
// its end. Packed files can't be followed.
func Follow() Option { return func(s *settings) { s.follow = true } }

// Poll sets how often a followed file is looked at for more.
// Defaults to 200 ms.
func Poll(d time.Duration) Option { return func(s *settings) { s.poll = d } }

// MaxLine sets how many bytes a line, or a CSV record, may have. A longer one
// is an error. Defaults to 16 MiB; at most 1 GiB.
func MaxLine(bytes int) Option { return func(s *settings) { s.maxLine = bytes } }

// Strict refuses what T has no field for: members of a JSON object, columns of
// a CSV file. Defaults to ignoring them.
func Strict() Option { return func(s *settings) { s.strict = true } }

// Comma sets what separates the cells of a CSV record: one ASCII character.
// Defaults to a comma.
func Comma(c byte) Option { return func(s *settings) { s.comma = c } }

// Columns gives the columns' names for CSV files without a header line.
// Defaults to taking the first record for the header.
func Columns(names ...string) Option { return func(s *settings) { s.columns = names } }

// Null names texts that stand for nothing, such as NA: an unquoted CSV cell
// that is one of them is read as an empty cell. Defaults to none.
func Null(texts ...string) Option { return func(s *settings) { s.null = texts } }

// check lists the settings that make no sense.
func (s *settings) check() error {
	var faults []error
	if s.poll <= 0 {
		faults = append(faults, fmt.Errorf("file.Poll(%v): expected a time above 0", s.poll))
	}
	if s.maxLine <= 0 || s.maxLine > largestMaxLine {
		faults = append(faults, fmt.Errorf("file.MaxLine(%d): expected 1 to %d bytes", s.maxLine, largestMaxLine))
	}
	if s.comma >= 0x80 || strings.IndexByte("\"\r\n\x00", s.comma) >= 0 {
		faults = append(faults, fmt.Errorf("file.Comma(%q): expected an ASCII character other than a quote or newline", s.comma))
	}
	return together(faults...)
}

// parameters are the settings that matter to the values.
func (s *settings) parameters() []connector.Parameter {
	var ps []connector.Parameter
	add := func(name, value string) { ps = append(ps, connector.Parameter{Name: name, Value: value}) }
	if s.comma != ',' {
		add("comma", strconv.QuoteToASCII(string(rune(s.comma))))
	}
	if s.columns != nil {
		add("columns", quoteAll(s.columns))
	}
	if s.null != nil {
		add("null", quoteAll(s.null))
	}
	if s.strict {
		add("strict", "true")
	}
	return ps
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return strings.Join(quoted, " ")
}
