package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// folder is the job's output in files, as far as it has been read.
type folder struct {
	dir  string
	last string // name of the last file read
	rows map[key]row
}

func newFolder(dir string) *folder {
	return &folder{dir: filepath.Join(dir, "out"), rows: map[key]row{}}
}

func (f *folder) String() string { return "folder " + f.dir }

// read reads the files that have come since the last time. Each is whole from
// the moment it appears, and holds the rows that one epoch has changed; in the
// order of their names they make the table.
func (f *folder) read(context.Context) (map[key]row, error) {
	files, err := os.ReadDir(f.dir) // sorted by name
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".jsonl") || entry.Name() <= f.last {
			continue
		}
		if err := f.apply(filepath.Join(f.dir, entry.Name())); err != nil {
			return nil, err
		}
		f.last = entry.Name()
	}
	return f.rows, nil
}

func (f *folder) apply(name string) error {
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
		switch change.Op {
		case "put":
			f.rows[change.Key] = change.Row
		case "delete":
			delete(f.rows, change.Key)
		default:
			return fmt.Errorf("%s: expected put or delete: %s", name, line)
		}
	}
	return nil
}
