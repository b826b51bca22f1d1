package tabular

import (
	"fmt"
	"path"
	"strings"
)

// Format is a form of files.
type Format string

// The formats.
const (
	Avro    Format = "avro"
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// ParseFormat reads the name of a format.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Avro, JSONL, CSV, Parquet:
		return f, nil
	}
	return "", fmt.Errorf("format %q: use avro, jsonl, csv or parquet", name)
}

// FormatOf tells a file's format by the end of its name; ok is false if that says
// nothing.
func FormatOf(file string) (f Format, ok bool) {
	switch strings.ToLower(path.Ext(file)) {
	case ".avro":
		return Avro, true
	case ".jsonl", ".ndjson", ".json":
		return JSONL, true
	case ".csv":
		return CSV, true
	case ".parquet":
		return Parquet, true
	}
	return "", false
}

// maxRowBytes bounds a row, in a file and as Avro: it is held in memory whole, and
// no block of an Avro file can be larger.
const maxRowBytes = 64 << 20
