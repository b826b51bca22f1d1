package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// key and row are those of the job's output.
type key struct{ Airport, Carrier string }

type row struct {
	Flights, Cancelled, OnTime int64
	MeanDelay                  float64
	WorstDelay                 int64
}

// output is the table that the job's output makes, as far as it has been read.
type output struct {
	dir  string
	last string // name of the last file read
	rows map[key]row
}

// read reads the files that have come since the last time. Each is whole from
// the moment it appears, and holds the rows that one epoch has changed; in the
// order of their names they make the table.
func (o *output) read() error {
	files, err := os.ReadDir(o.dir) // sorted by name
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".jsonl") || f.Name() <= o.last {
			continue
		}
		if err := o.apply(filepath.Join(o.dir, f.Name())); err != nil {
			return err
		}
		o.last = f.Name()
	}
	return nil
}

func (o *output) apply(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(content) {
		var change struct {
			Op  string
			Key key
			Row row
		}
		if err := json.Unmarshal(line, &change); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, line)
		}
		if change.Op != "put" {
			return fmt.Errorf("%s: expected puts only: %s", name, line)
		}
		o.rows[change.Key] = change.Row
	}
	return nil
}

// counts is how many flights the table has for each key.
func (o *output) counts() map[key]int64 {
	counts := map[key]int64{}
	for k, r := range o.rows {
		counts[k] = r.Flights
	}
	return counts
}

// counted is how many flights the table has.
func (o *output) counted() int {
	total := 0
	for _, r := range o.rows {
		total += int(r.Flights)
	}
	return total
}
