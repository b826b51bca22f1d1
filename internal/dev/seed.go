package dev

import (
	"bufio"
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/sluicestream/sluice/kafka/embedded"
)

// maxLine bounds a line, in bytes: a broker takes about as much in a batch.
const maxLine = 1 << 20

// seed is a file of JSON lines that a topic is filled from.
type seed struct {
	file string
	key  string // the field that is the records' key; empty: they have none
}

// check reads all of the file.
func (s seed) check() error {
	for _, err := range s.records() {
		if err != nil {
			return err
		}
	}
	return nil
}

// records are those of the file's lines, up to the first error. Empty lines are
// none.
func (s seed) records() iter.Seq2[embedded.Record, error] {
	return func(yield func(embedded.Record, error) bool) {
		file, err := os.Open(s.file)
		if err != nil {
			yield(embedded.Record{}, fmt.Errorf("--seed %s: %w; name a file that can be read", s.file, err))
			return
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, maxLine)
		n := 0
		for lines.Scan() {
			n++
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			record, err := s.record(bytes.Clone(line))
			if err != nil {
				err = fmt.Errorf("--seed %s: line %d: %w", s.file, n, err)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(embedded.Record{}, fmt.Errorf("--seed %s: line %d has more than %d bytes; leave it out", s.file, n+1, maxLine))
		} else if err != nil {
			yield(embedded.Record{}, fmt.Errorf("--seed %s: line %d: %w; name a file that can be read", s.file, n+1, err))
		}
	}
}

// record is the one that a line holds.
func (s seed) record(line []byte) (embedded.Record, error) {
	if !jsontext.Value(line).IsValid() {
		return embedded.Record{}, fmt.Errorf("%.60q is no JSON; put one value on each line", line)
	}
	if s.key == "" {
		return embedded.Record{Value: line}, nil
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(line, &fields); err != nil {
		return embedded.Record{}, fmt.Errorf("%.60q is no object; --key needs objects with the field %s", line, s.key)
	}
	value, ok := fields[s.key]
	if !ok {
		return embedded.Record{}, fmt.Errorf("there is no field %s; name one that all lines have with --key", s.key)
	}
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return embedded.Record{Key: text, Value: line}, err
	case '0', 't', 'f':
		return embedded.Record{Key: value, Value: line}, nil
	}
	return embedded.Record{}, fmt.Errorf("field %s is %.60s, expected a string, a number or a boolean; name another with --key", s.key, value)
}
