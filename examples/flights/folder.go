package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// folder is the job's output in files, as far as it has been read.
type folder struct {
	dir  string
	last string // name of the last file read
	rows map[key]row
	all  []delivered // every row, as it was put out
}

// delivered is a row that was put out: in a file, which stands for a position of the
// job's.
type delivered struct {
	file string
	key  key
	row  row
}

func newFolder(dir string) *folder {
	return &folder{dir: filepath.Join(dir, "out"), rows: map[key]row{}}
}

func (f *folder) String() string { return "folder " + f.dir }

// read reads the files that have come since the last time. Each is whole from
// the moment it appears, and holds the rows that one epoch has changed; in the
// order of their names they make the table.
func (f *folder) read(context.Context) (map[key]row, error) {
	names, err := filesBehind(f.dir, f.last)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := f.apply(name); err != nil {
			return nil, err
		}
		f.last = name
	}
	return f.rows, nil
}

// filesBehind are the names of a folder's files behind one, in order.
func filesBehind(dir, last string) (names []string, err error) {
	files, err := os.ReadDir(dir) // sorted by name
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, entry := range files {
		if strings.HasSuffix(entry.Name(), ".jsonl") && entry.Name() > last {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func (f *folder) apply(name string) error {
	content, err := os.ReadFile(filepath.Join(f.dir, name))
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
		switch change.Op {
		case "put":
			f.rows[change.Key] = change.Row
			f.all = append(f.all, delivered{name, change.Key, change.Row})
		case "delete":
			delete(f.rows, change.Key)
		default:
			return fmt.Errorf("%s: expected put or delete: %s", name, line)
		}
	}
	return nil
}

// countsAt is how many flights each key had at a position, of what was read.
func (f *folder) countsAt(position uint64) (map[key]int64, error) {
	counts := map[key]int64{}
	for _, d := range f.all {
		at, err := strconv.ParseUint(strings.TrimSuffix(d.file, ".jsonl"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: expected a position: %w", d.file, err)
		}
		if at <= position {
			counts[d.key] = d.row.Flights
		}
	}
	return counts, nil
}
