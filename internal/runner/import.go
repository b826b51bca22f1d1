package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/tabular"
	"github.com/sluicestream/sluice/store"
)

// Import is what the first epoch of a job is to hold.
type Import struct {
	// Files are the states' rows, at most one file for each.
	Files []ImportFile
	// Given is where the sources begin.
	Given engine.Given
	// Read, if not nil, is told from time to time how far a file has been read.
	Read func(state string, rows, offset int64)
}

// ImportFile is a file of rows for a state.
type ImportFile struct {
	// State is the state's name.
	State string
	// Open opens the file, whose rows are to have a layout. It may be called twice.
	Open func(l tabular.Layout) (Rows, error)
}

// Rows are the rows of a file, one after the other.
type Rows interface {
	// Next returns the next row, encoded, which holds until the next call, or
	// [io.EOF].
	Next() ([]byte, error)
	// Place tells where the last row stands.
	Place() string
	// Row is its number, Offset how far the file has been read, in bytes.
	Row() int64
	Offset() int64
	// Absent are, once all has been read, the columns that the file lacks, whose
	// defaults the rows have.
	Absent() []tabular.Absent
	Close() error
}

// Imported is what an import has made.
type Imported struct {
	// Base is the job's first epoch.
	Base epoch.Manifest
	// Rows and Entries count, by state, what was read and what came of it.
	Rows, Entries map[string]int64
	// Absent are, by state, the columns that took their defaults in all rows.
	Absent map[string][]tabular.Absent
}

// ImportError says what of an import stands in the way.
type ImportError struct {
	Job, State string
	// Place is the row, if it is one's fault that doesn't say so itself.
	Place string
	Cause error
}

// Error implements error.
func (e *ImportError) Error() string {
	place := ""
	if e.Place != "" {
		place = e.Place + ": "
	}
	return fmt.Sprintf("%s: state %s: %s%v. Nothing was made of the job; mend the file or the function, and import again.", e.Job, e.State, place, e.Cause)
}

// Unwrap returns the cause.
func (e *ImportError) Unwrap() error { return e.Cause }

// ExitCode is the exit code of the command line.
func (e *ImportError) ExitCode() int { return 16 }

// ImportJob makes the first epoch of a job that has never run, of rows of files and
// of places in its sources. Until its last step there is nothing that a run would go
// on from: one that fails, or is killed, is done again from its beginning. The error
// is an [epoch.BeganError] if the last step was begun and isn't known to have failed.
func ImportJob(ctx context.Context, o Options, im Import) (Imported, error) {
	out := Imported{Rows: map[string]int64{}, Entries: map[string]int64{}, Absent: map[string][]tabular.Absent{}}
	if err := probe(ctx, o); err != nil {
		return out, err
	}
	specs, err := importedStates(o, im)
	if err != nil {
		return out, err
	}
	job, err := epoch.OpenJob(ctx, o.Env, o.Store, o.Job, o.TransactionPrefix)
	if err != nil {
		return out, err
	}
	if o.Build.Version, err = o.Version.Hash(); err != nil {
		return out, err
	}
	owner, err := job.BeginImport(ctx, epoch.Identity{Build: o.Build, Version: o.Version, Writer: epoch.ThisProcess()})
	if err != nil {
		return out, err
	}
	eo := o.engineOptions()
	eo.JobID, eo.TransactionPrefix = job.ID(), job.TransactionPrefix()
	sources, err := o.Graph.Locate(ctx, eo, im.Given)
	if err != nil {
		return out, fmt.Errorf("%s: %w", o.Job, err)
	}
	base := epoch.Manifest{
		Version: o.Build.Version, Build: o.Build, Now: job.Now(),
		Sources: map[string]epoch.SourceState{}, State: map[string]epoch.StateEntry{}, Counts: map[string]int64{},
	}
	for name, partitions := range sources {
		base.Sources[name] = sourceState(partitions)
	}
	i := &importer{o: o, owner: owner, read: im.Read, runBytes: importRunBytes}
	defer i.cleanUp(ctx)
	for n, file := range im.Files {
		entry := entryOf(specs[n])
		done, err := i.state(ctx, specs[n], file)
		if err != nil {
			return out, err
		}
		if done.segment.Rows > 0 {
			entry.Segments = []epoch.Segment{done.segment}
		}
		base.State[file.State] = entry
		base.Counts["state."+file.State] = done.segment.Rows
		out.Rows[file.State], out.Entries[file.State] = done.rows, done.segment.Rows
		out.Absent[file.State] = done.absent
		if err := memory.Admit(importedAt(o.Job), needs(base), o.Limit); err != nil {
			return out, err
		}
	}
	out.Base, err = owner.CommitBase(ctx, base)
	if _, began := errors.AsType[*epoch.BeganError](err); began {
		i.made() // or it may be
	}
	if err != nil {
		return out, err
	}
	if out.Base.Owner != owner.ID() {
		return out, nil // an earlier import's, which refers to what that has written
	}
	i.made()
	if err := owner.Beat(ctx, epoch.Heartbeat{Released: true, Role: "stopped", Lease: o.Lease.Microseconds()}); err != nil {
		o.Log.Warn("the heartbeat could not be written; a start on another machine waits for a lease", "error", err)
	}
	return out, nil
}

// importedAt is the epoch that an import makes.
func importedAt(job string) epoch.At {
	return epoch.At{Job: job, Branch: epoch.MainBranch, Task: epoch.FirstTask}
}

// importedStates are the states of the files.
func importedStates(o Options, im Import) (specs []*engine.StateSpec, err error) {
	all := map[string]*engine.StateSpec{}
	for _, s := range o.Graph.States() {
		all[s.Name] = s
	}
	seen := map[string]bool{}
	for _, f := range im.Files {
		switch {
		case all[f.State] == nil:
			return nil, fmt.Errorf("%s: there is no state %s in the job; it has %s: name one of those", o.Job, f.State, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		case seen[f.State]:
			return nil, fmt.Errorf("%s: state %s is to come from two files; put them into one, or leave one out", o.Job, f.State)
		}
		seen[f.State] = true
		specs = append(specs, all[f.State])
	}
	return specs, nil
}

// layoutOf is how the rows of a state lie in a file.
func layoutOf(spec *engine.StateSpec) tabular.Layout {
	if row := spec.Intake.Row; row != nil {
		return tabular.Records(spec.Name, row)
	}
	return tabular.Entries(spec.Name, spec.Form.Key, spec.Form.Element, spec.Form.Value)
}

// importer turns files into segments.
type importer struct {
	o        Options
	owner    *epoch.Owner
	read     func(state string, rows, offset int64)
	runBytes int      // of a run
	tried    []string // paths of objects that may be there
	keep     []string // of them, what the epoch refers to
	done     bool
}

// newName is a new name for an object.
func (i *importer) newName(name string) (string, error) {
	path, err := i.owner.DataName(0, name)
	if err == nil {
		i.tried = append(i.tried, path)
	}
	return path, err
}

// made says that the epoch is there, or may be: what it refers to stays.
func (i *importer) made() { i.done = true }

// cleanUp removes what was written and is not needed: all of it, if nothing came of
// the import.
func (i *importer) cleanUp(ctx context.Context) {
	for _, path := range i.tried {
		if i.done && slices.Contains(i.keep, path) {
			continue
		}
		err := i.o.Store.Delete(context.WithoutCancel(ctx), i.owner.Job().Object(path))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			i.o.Log.Warn("what the import has left could not be removed; clean-up of the running job does it", "object", path, "error", err)
		}
	}
}

// importedState is what came of a file.
type importedState struct {
	segment epoch.Segment
	rows    int64
	absent  []tabular.Absent
}

// rowsPerLook is the number of rows between two looks at whether all is to stop.
const rowsPerLook = 1 << 12

// state reads a file, and writes what comes of it as one segment.
func (i *importer) state(ctx context.Context, spec *engine.StateSpec, file ImportFile) (out importedState, err error) {
	rows, err := file.Open(layoutOf(spec))
	if err != nil {
		return out, i.failed(spec, "", err)
	}
	defer rows.Close()
	runs := &importRuns{importer: i, spec: spec}
	take := spec.Intake.New()
	put := func(e *state.Entry) error { // a row may give many
		if runs.full() {
			if err := runs.flush(ctx); err != nil {
				return err
			}
		}
		return runs.add(e)
	}
	for {
		row, err := rows.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return out, i.failed(spec, "", err)
		}
		if err := take(row, put); err != nil {
			return out, i.explain(spec, file, rows.Place(), err)
		}
		if out.rows++; out.rows%rowsPerLook == 0 {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			if i.read != nil {
				i.read(spec.Name, out.rows, rows.Offset())
			}
		}
	}
	out.absent = rows.Absent()
	for _, a := range out.absent {
		i.o.Log.Info("a column is not in the file: its default is taken", "state", spec.Name, "column", a.Column, "default", a.Default)
	}
	if out.segment, err = runs.finish(ctx); err == nil {
		out.segment, err = runs.limit(ctx, out.segment)
	}
	if err != nil {
		return out, i.explain(spec, file, "", err)
	}
	if out.segment.Rows > 0 {
		i.keep = append(i.keep, out.segment.Path)
	}
	return out, nil
}

func (i *importer) failed(spec *engine.StateSpec, place string, cause error) error {
	return &ImportError{Job: i.o.Job, State: spec.Name, Place: place, Cause: cause}
}

// explain adds to an error what can be said about it.
func (i *importer) explain(spec *engine.StateSpec, file ImportFile, place string, err error) error {
	twice, ok := errors.AsType[*twiceError](err)
	switch {
	case !ok && place == "":
		return err
	case !ok:
		return i.failed(spec, place, err)
	}
	twice.places, err = i.placesOf(spec, file, twice)
	if err != nil {
		return err
	}
	return i.failed(spec, "", twice)
}
