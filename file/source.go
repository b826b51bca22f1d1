package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// source is a pattern of files whose records are decoded to T.
type source[T any] struct {
	kind       string
	pattern    string
	settings   settings
	form       form
	parameters []connector.Parameter
	decoder    func() func(b *connector.Batch, i int, v *T) error
	fault      error // of the type or the options; Open tells it
}

// form is how records lie in a file.
type form struct {
	quotes bool // newlines in quotes don't end a record
	header bool // the first record is the batches' preamble
	// checkHeader looks at the header before any record is read; nil: no need.
	checkHeader func(header []byte) error
}

// JSONLines reads files in which each line is a JSON object, decoded by
// [codec.JSON]. Empty lines are skipped.
func JSONLines[T any](pattern string, opts ...Option) connector.Source[T] {
	var jsonOpts []codec.JSONOption
	if newSettings(opts).strict {
		jsonOpts = append(jsonOpts, codec.Strict())
	}
	s := newLines(pattern, codec.JSON[T](jsonOpts...), opts)
	s.kind = "file.json"
	return s
}

// Lines reads files in which each line is a record, decoded by c. The line's
// end, "\n" or "\r\n", is no part of it. Empty lines are skipped.
func Lines[T any](pattern string, c codec.Codec[T], opts ...Option) connector.Source[T] {
	s := newLines(pattern, c, opts)
	s.parameters = append([]connector.Parameter{{Name: "codec", Value: c.Name()}}, s.parameters...)
	return s
}

func newLines[T any](pattern string, c codec.Codec[T], opts []Option) *source[T] {
	set := newSettings(opts)
	return &source[T]{
		kind:       "file.lines",
		pattern:    pattern,
		settings:   set,
		parameters: c.Parameters(),
		fault:      set.check(),
		decoder: func() func(b *connector.Batch, i int, v *T) error {
			decode := c.NewDecoder()
			return func(b *connector.Batch, i int, v *T) error { return decode(b.Records[i].Value, v) }
		},
	}
}

// CSV reads files of comma-separated values as RFC 4180 has them. The first
// record is the header; a column goes to the field of the struct T that has its
// name, or the tag `csv:"name"`. Tagged "-", a field is left out. A field
// without a column is an error unless it is a pointer or its tag says
// `csv:",optional"`.
//
// Fields are strings, integers, floats, booleans, [time.Time] in RFC 3339
// (decoded to UTC), [time.Duration] as in "1h30m", []byte in base64, types with
// an UnmarshalText method, structs embedded, and pointers to these, which an
// empty cell leaves nil. An empty cell for a number, a boolean or a time that
// is no pointer is an error.
func CSV[T any](pattern string, opts ...Option) connector.Source[T] {
	set := newSettings(opts)
	row, err := newRowType[T](&set)
	s := &source[T]{
		kind:       "file.csv",
		pattern:    pattern,
		settings:   set,
		form:       form{quotes: true},
		parameters: set.parameters(),
		fault:      together(set.check(), err),
	}
	if err != nil {
		s.decoder = func() func(*connector.Batch, int, *T) error {
			return func(*connector.Batch, int, *T) error { return err }
		}
		return s
	}
	s.decoder = row.newDecoder
	if set.columns == nil {
		s.form.header = true
		s.form.checkHeader = row.checkHeader
	} else if _, err := row.columns(set.columns); err != nil {
		s.fault = together(s.fault, err)
	}
	return s
}

// Describe implements [connector.Source].
func (s *source[T]) Describe() connector.Description {
	return connector.Description{Connector: s.kind, Contract: 1, Target: s.pattern, Parameters: s.parameters}
}

// NewDecoder implements [connector.Source].
func (s *source[T]) NewDecoder() func(b *connector.Batch, i int, v *T) error { return s.decoder() }

// Open implements [connector.Source].
func (s *source[T]) Open(ctx context.Context, o connector.Opening) (connector.Reader, error) {
	if s.fault != nil {
		return nil, fmt.Errorf("files %s: %w", s.pattern, s.fault)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := parsePattern(s.pattern)
	if err != nil {
		return nil, err
	}
	r := &reader{env: o.Env, pattern: p, settings: &s.settings, form: s.form}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open finds the files, and sees that each can be read.
func (r *reader) open() error {
	names, err := r.list()
	if err != nil {
		return err
	}
	if len(names) == 0 && !r.settings.follow {
		return r.nothingFound()
	}
	for _, name := range names {
		f, err := r.env.Files.Open(r.pattern.path(name))
		if err != nil {
			return fmt.Errorf("a file of pattern %q can't be read: %w", r.pattern.text, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	r.names = names
	return nil
}

// nothingFound says why a pattern fits no file.
func (r *reader) nothingFound() error {
	if !r.pattern.single() {
		return fmt.Errorf("no file fits the pattern %q; file.Follow waits for the first", r.pattern.text)
	}
	path := r.pattern.path(r.pattern.parts[0])
	info, err := r.env.Files.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s (%w); file.Follow waits for it", path, fs.ErrNotExist)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, expected a file; %s names the files in it", path, filepath.Join(path, "*"))
	default:
		return fmt.Errorf("%s is no regular file, and can't be read again from an offset", path)
	}
}

// isPacked tells by its name whether a file is to be unpacked.
func isPacked(name string) bool { return strings.HasSuffix(name, ".gz") }
