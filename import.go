package sluice

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/runner"
	"github.com/sluicestream/sluice/internal/tabular"
	"github.com/sluicestream/sluice/schema"
)

// Import is what the first epoch of a job is made of, see [Job.Import].
type Import struct {
	// Files are the rows of states, at most one file for each. A state without one
	// begins empty.
	Files []ImportFile
	// Offsets are where partitions are to be read on, by name: SOURCE:PARTITION, or
	// TOPIC:NUMBER for Kafka, or PARTITION where that is plain.
	Offsets map[string]int64
	// Groups are groups of consumers whose committed offsets count for partitions of
	// Kafka that Offsets lacks.
	Groups []string
	// From, if not zero, begins partitions that those lack with the first record of that
	// time or later, or at the end where there is none. Kafka can find it; a source that
	// can't is an error.
	From time.Time
	// BeginRest begins all other partitions where a new job would. Otherwise they
	// are an error.
	BeginRest bool
	// IgnoreUnknown leaves out columns and fields that the state lacks. Otherwise
	// they are an error.
	IgnoreUnknown bool
	// Defaults takes the zero value of its type for a column that a file lacks and
	// whose field has no default in its tag. Otherwise such a column is an error.
	Defaults bool
	// Read, if set, is told from time to time how many rows of a state's file, and
	// how many bytes of it, have been read.
	Read func(state string, rows, bytes int64)
}

// ImportFile is a file of rows for a state.
type ImportFile struct {
	// State is the state's name, Path the file's.
	State, Path string
	// Format is avro, jsonl, csv or parquet. Defaults to what the end of the file's
	// name says.
	Format string
}

// Imported is what an import has made.
type Imported struct {
	// States are the states that were imported.
	States []ImportedState
	// Offsets are where all partitions are read on.
	Offsets []PartitionProgress
	// Defaults are the columns that files lack, or in JSON lines all rows: their
	// defaults were taken.
	Defaults []ImportedDefault
}

// ImportedDefault is a column of a state's file that took its default in all rows.
type ImportedDefault struct {
	State, Column string
	// Value is the default, in Avro's JSON form. Implied says that it is the type's
	// zero value, which [Import.Defaults] allows.
	Value   string
	Implied bool
}

// ImportedState is a state that was imported.
type ImportedState struct {
	// State is its name; Rows counts what was read, Entries what came of it.
	State         string
	Rows, Entries int64
}

// Import makes the first epoch of a job that has never run, of files with its
// states' entries and of places in its sources: a run then goes on from there. A
// job that has epochs is refused.
//
// Nothing exists of the job until the last step; if it fails or is killed, import
// again. Rows are found by the names of their columns, as `sluice state export`
// writes them, or are what the state's own Import function takes ([State.Import]).
// A column that a file lacks takes the default of its field's tag; one without is an
// error, see [Import.Defaults]. Two rows of one key are an error. Entries that are imported are not sent to sinks
// before they change.
//
// Of o, Store, TransactionPrefix, Volatile, Lease, MemoryLimit, Log and Env count.
// States that would not fit into the memory are refused, as a run would.
func (job *Job) Import(ctx context.Context, o Options, im Import) (Imported, error) {
	if err := job.Check(); err != nil {
		return Imported{}, err
	}
	ro, err := job.runnerOptions(o)
	if err != nil {
		return Imported{}, err
	}
	in, err := job.runnerImport(ro.Env.Files, im)
	if err != nil {
		return Imported{}, err
	}
	done, err := runner.ImportJob(ctx, ro, in)
	if err != nil {
		return Imported{}, err
	}
	var out Imported
	for _, f := range im.Files {
		out.States = append(out.States, ImportedState{f.State, done.Rows[f.State], done.Entries[f.State]})
		for _, a := range done.Absent[f.State] {
			out.Defaults = append(out.Defaults, ImportedDefault{f.State, a.Column, a.Default, a.Implied})
		}
	}
	for _, source := range job.graph.Sources() {
		for partition, at := range done.Base.Sources[source.Name].Partitions {
			out.Offsets = append(out.Offsets, PartitionProgress{Source: source.Name, Partition: partition, Next: at.Next})
		}
	}
	return out, nil
}

func (job *Job) runnerImport(files env.FS, im Import) (runner.Import, error) {
	in := runner.Import{Given: engine.Given{Offsets: im.Offsets, Groups: im.Groups, At: im.From, Rest: im.BeginRest}, Read: im.Read}
	for _, f := range im.Files {
		format, err := formatOf(f)
		if err != nil {
			return in, fmt.Errorf("%s: %w", job.name, err)
		}
		in.Files = append(in.Files, runner.ImportFile{State: f.State, Open: func(l tabular.Layout) (runner.Rows, error) {
			return openRows(files, f.Path, format, l, tabular.ReadOptions{Ignore: im.IgnoreUnknown, Defaults: im.Defaults})
		}})
	}
	return in, nil
}

func formatOf(f ImportFile) (tabular.Format, error) {
	if f.Format != "" {
		return tabular.ParseFormat(f.Format)
	}
	format, ok := tabular.FormatOf(f.Path)
	if !ok {
		return "", fmt.Errorf("file %s: the end of its name tells no format; name it: avro, jsonl, csv or parquet", f.Path)
	}
	return format, nil
}

// openRows opens a file of rows.
func openRows(files env.FS, path string, format tabular.Format, l tabular.Layout, o tabular.ReadOptions) (runner.Rows, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var r *tabular.Reader
		if r, err = tabular.Open(file, info.Size(), path, format, l, o); err == nil {
			return fileRows{r, file}, nil
		}
	}
	file.Close()
	return nil, err
}

// fileRows are the rows of a file that is open.
type fileRows struct {
	*tabular.Reader
	file env.File
}

// Close closes the reader and the file.
func (r fileRows) Close() error {
	err := r.Reader.Close()
	if cerr := r.file.Close(); err == nil {
		err = cerr
	}
	return err
}

// Import gives the state a function that makes its entries of rows that are
// imported: a row of type R, whose columns are the fields of R, becomes any number
// of keys with their values. It is called by [Job.Import] alone, and is no part of
// the job's version.
func (s State[K, S]) Import[R any](rows func(R) iter.Seq2[K, S]) State[K, S] {
	name := connector.FunctionName(rows)
	return s.imports(name, func(r R) (iter.Seq2[K, S], error) { return rows(r), nil })
}

// TryImport is [State.Import] with a function that may refuse a row: the error ends
// the import and is told with the row's place.
func (s State[K, S]) TryImport[R any](rows func(R) (iter.Seq2[K, S], error)) State[K, S] {
	return s.imports(connector.FunctionName(rows), rows)
}

func (s State[K, S]) imports[R any](name string, rows func(R) (iter.Seq2[K, S], error)) State[K, S] {
	s.intake = func(stage *engine.Stage[K], value *schema.Type[S]) (engine.Intake, error) {
		row, err := rowOf[R]()
		if err != nil {
			return engine.Intake{}, err
		}
		in := engine.MappedEntries(stage, value, row, rows)
		in.Function = name
		return in, nil
	}
	return s
}

// rowOf is the schema of rows that are imported.
func rowOf[R any]() (*schema.Type[R], error) {
	row, err := schema.Of[R]("row")
	if err != nil {
		return nil, fmt.Errorf("rows to import: %w", err)
	}
	if row.Schema().Kind() != schema.KindRecord {
		return nil, fmt.Errorf("rows to import are of the type %s; use a struct, whose fields are the columns", row.Schema().Word())
	}
	return row, nil
}

// Import gives the state a function that makes its entries of rows that are
// imported, see [State.Import]: a row becomes any number of keys, each with elements
// of its map. Several rows may give elements of one key, but not the same.
func (s MapState[K, E, V]) Import[R any](rows func(R) iter.Seq2[K, map[E]V]) MapState[K, E, V] {
	name := connector.FunctionName(rows)
	s.intake = func(stage *engine.Stage[K], elements *schema.Key[E], value *schema.Type[V]) (engine.Intake, error) {
		row, err := rowOf[R]()
		if err != nil {
			return engine.Intake{}, err
		}
		in := engine.MappedElements(stage, elements, value, row, func(r R) (iter.Seq2[K, map[E]V], error) { return rows(r), nil })
		in.Function = name
		return in, nil
	}
	return s
}

// Import gives the state a function that makes its entries of rows that are
// imported, see [State.Import]: a row becomes any number of keys, each with its
// whole list.
func (s ListState[K, V]) Import[R any](rows func(R) iter.Seq2[K, []V]) ListState[K, V] {
	name := connector.FunctionName(rows)
	s.intake = func(stage *engine.Stage[K], numbers *schema.Key[int64], value *schema.Type[V]) (engine.Intake, error) {
		row, err := rowOf[R]()
		if err != nil {
			return engine.Intake{}, err
		}
		in := engine.MappedLists(stage, numbers, value, row, func(r R) (iter.Seq2[K, []V], error) { return rows(r), nil })
		in.Function = name
		return in, nil
	}
	return s
}
