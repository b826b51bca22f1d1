package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/sluicestream/sluice/connector"
)

// SinkOption is a setting of a sink.
type SinkOption func(*sinkSettings)

type sinkSettings struct{ csv bool }

// AsCSV writes CSV files, each with a header line. Defaults to JSON lines.
func AsCSV() SinkOption { return func(s *sinkSettings) { s.csv = true } }

// folder is the half of a sink that knows no types: a folder that deliveries
// are written to.
type folder struct {
	path     string
	mode     string // "append" or "upsert"
	settings sinkSettings
}

func newFolder(path, mode string, opts []SinkOption) folder {
	f := folder{path: path, mode: mode}
	for _, o := range opts {
		o(&f.settings)
	}
	return f
}

// Append writes a stream's records to files in the folder dir, one file for
// each delivery. The row of a record is the record: a struct's fields, or the
// field "value" if T is no struct.
func Append[T any](dir string, opts ...SinkOption) connector.StreamSink[T] {
	return appendSink[T]{newFolder(dir, "append", opts)}
}

type appendSink[T any] struct{ folder }

// Rows implements [connector.StreamSink].
func (s appendSink[T]) Rows() (connector.Rows[T], error) {
	rows, err := connector.RowsOf[T]()
	if err != nil {
		return rows, fmt.Errorf("files in %s: %w", s.path, err)
	}
	return rows, nil
}

// Upsert writes a table's changes to files in the folder dir, one file for each
// delivery: what row makes of an entry, or that the key is gone.
func Upsert[K comparable, S, R any](dir string, row func(K, S) R, opts ...SinkOption) connector.TableSink[K, S] {
	return upsertSink[K, S, R]{newFolder(dir, "upsert", opts), row}
}

type upsertSink[K comparable, S, R any] struct {
	folder
	row func(K, S) R
}

// TableRows implements [connector.TableSink].
func (s upsertSink[K, S, R]) TableRows() (connector.TableRows[K, S], error) {
	rows, err := connector.TableRowsOf(s.row)
	if err != nil {
		return rows, fmt.Errorf("files in %s: %w", s.path, err)
	}
	return rows, nil
}

// Describe implements [connector.Sink].
func (f folder) Describe() connector.Description {
	kind := "file.json"
	if f.settings.csv {
		kind = "file.csv"
	}
	return connector.Description{
		Connector:  kind,
		Contract:   1,
		Target:     f.path,
		Parameters: []connector.Parameter{{Name: "mode", Value: f.mode}},
	}
}

// onlyTask is the task of a job that has but one; its files need no folder of
// their own.
const onlyTask = "0.0"

// Open implements [connector.Sink].
func (f folder) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	if f.path == "" {
		return nil, errors.New("no folder named to write files to")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := filepath.Clean(f.path)
	info, err := o.Env.Files.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return nil, fmt.Errorf("%s is no folder; a sink writes a file for each delivery to a folder of its own", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if key.Task != onlyTask && key.Task != "" {
		path = filepath.Join(path, key.Task)
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &target{env: o.Env, log: log, path: path, hidden: filepath.Join(path, hiddenFolder), key: key, extension: ".jsonl"}
	if f.settings.csv {
		t.csv, t.extension = true, ".csv"
	}
	return t, nil
}
