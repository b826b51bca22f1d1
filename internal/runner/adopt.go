package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/migrate"
	"github.com/sluicestream/sluice/internal/state"
)

// tellEvery is the time between two lines that say how far a migration is.
const tellEvery = 5 * time.Second

// adopt makes a branch whose head is another version's one of this version (T6):
// what has to be written anew is, and an opening says so, before any record is
// read. Until then nothing has changed but who owns the branch.
func (r *runner) adopt(ctx context.Context) error {
	head, _ := r.owner.Head()
	if head.Version == r.o.Build.Version && !r.stored.rewrites() {
		return nil
	}
	next := carried(head)
	next.Kind, next.Version, next.Build = epoch.Open, r.o.Build.Version, r.o.Build
	for _, name := range r.stored.dropped {
		delete(next.State, name)
	}
	next.Partial = r.stored.partial
	r.adoptSinks(next)
	aside, err := r.newSetAsides()
	if err != nil {
		return err
	}
	defer aside.close()
	for _, spec := range r.o.Graph.States() {
		w := r.stored.ways[spec.Name]
		if !w.Rewrites() {
			continue
		}
		entry, err := r.migrate(ctx, head, spec, w, aside)
		if err != nil {
			return err
		}
		next.State[spec.Name] = entry
	}
	if err := aside.commit(); err != nil {
		return err
	}
	if _, err := r.commit(ctx, next); err != nil {
		return err
	}
	for name := range r.stored.ways {
		r.stored.ways[name] = &carry.Way{State: name, Verdict: carry.Same}
	}
	r.stored.dropped = nil
	r.o.Log.Info("adopted a new version", "version", r.o.Build.Version, "before", head.Version)
	return nil
}

// migrate writes a state in this build's schemas.
func (r *runner) migrate(ctx context.Context, head epoch.Manifest, spec *engine.StateSpec, w *carry.Way, aside *setAsides) (epoch.StateEntry, error) {
	entry := entryOf(spec)
	var read atomic.Int64
	stop := r.tellMigrating(spec.Name, rowsOf(head, w), &read)
	defer stop()
	var report migrate.Report
	var segment epoch.Segment
	err := r.retry(ctx, "state "+spec.Name, spec.Name, func(path string) (err error) {
		read.Store(0)
		failed, err := aside.of(spec.Name, head)
		if err != nil {
			return err
		}
		segment, report, err = migrate.State(ctx, migrate.Options{
			Store: r.o.Store, Job: r.o.Job, Way: w, Stored: head.State, Path: path, Workers: r.o.Shards,
			Memory: func(rows, bytes int64) int64 { return rows*int64(spec.EntrySize()) + bytes },
			Failed: failed, Progress: &read,
		})
		return err
	})
	var failed *carry.EntryError
	if errors.As(err, &failed) {
		return entry, &MigrationError{At: epoch.At{Job: r.o.Job, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch}, State: spec.Name, Entry: failed}
	}
	if err != nil {
		return entry, err
	}
	if segment.Rows > 0 {
		entry.Segments = []epoch.Segment{segment}
	}
	r.o.Log.Info("carried a state over", "state", spec.Name, "how", w.Verdict.String(), "read", report.Read, "written", report.Written,
		"dropped", report.Dropped, "merged", report.Merged, "set_aside", report.SetAside)
	return entry, nil
}

// MigrationError says that an entry of a state can't be carried over.
type MigrationError struct {
	epoch.At
	// State is this build's, which the entry was to become part of.
	State string
	Entry *carry.EntryError
}

// Error implements error.
func (e *MigrationError) Error() string {
	return fmt.Sprintf("%s: refused: an entry can't be carried over: %v. Nothing was changed. Mend the migration, or let --set-aside %s=FILE put such entries into a file; `plan --all` finds them all.",
		e.At, e.Entry, e.State)
}

// Unwrap returns what is wrong with the entry.
func (e *MigrationError) Unwrap() error { return e.Entry }

// ExitCode is the exit code of the command line.
func (e *MigrationError) ExitCode() int { return 13 }

// rowsOf is about how many entries a way reads.
func rowsOf(m epoch.Manifest, w *carry.Way) (rows int64) {
	for _, source := range w.Sources {
		for _, s := range m.State[source.Stored.Name].Segments {
			rows += s.Rows
		}
	}
	return rows
}

// tellMigrating says from time to time how far a migration is, until it is
// stopped.
func (r *runner) tellMigrating(name string, rows int64, read *atomic.Int64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := r.o.Env.Clock.NewTimer(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C():
				r.o.Board.Alive()
				r.o.Log.Info("carrying a state over", "state", name, "read", read.Load(), "entries", rows)
				tick.Reset(tellEvery)
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// setAsides are the files for entries that can't be carried over, by state.
type setAsides struct {
	r     *runner
	files map[string]*migrate.SetAside
}

// newSetAsides makes sure that each file is for a state that is carried over.
func (r *runner) newSetAsides() (*setAsides, error) {
	for name := range r.o.SetAside {
		if r.stateSpec(name) == nil {
			return nil, &ConsentError{Job: r.o.Job, Flag: "set-aside", Name: name, Names: r.stateNames()}
		}
	}
	return &setAsides{r, map[string]*migrate.SetAside{}}, nil
}

func (r *runner) stateNames() (names []string) {
	for _, s := range r.o.Graph.States() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// of returns what sets the entries of a state aside, in a file that begins anew;
// nil if nobody asked for that.
func (a *setAsides) of(name string, head epoch.Manifest) (func(*carry.EntryError, *state.Entry) error, error) {
	path := a.r.o.SetAside[name]
	if path == "" {
		return nil, nil
	}
	if f := a.files[name]; f != nil {
		f.Close()
	}
	file, err := migrate.NewSetAside(a.r.o.Env, path, migrate.Migration{Job: a.r.o.Job, State: name, From: a.r.migrated(name, head)})
	if err != nil {
		return nil, &setAsideError{a.r.o.Job, name, err}
	}
	a.files[name] = file
	forms := map[string]state.Form{}
	for _, source := range a.r.stored.ways[name].Sources {
		forms[source.Stored.Name] = source.Stored.Form
	}
	return func(failed *carry.EntryError, e *state.Entry) error {
		if err := file.Put(failed, forms[failed.State], e); err != nil {
			return &setAsideError{a.r.o.Job, name, err}
		}
		return nil
	}, nil
}

// migrated stands for what is migrated and the version that it becomes: the same
// for each start that tries it, whatever openings there are in between.
func (r *runner) migrated(name string, head epoch.Manifest) string {
	sum := sha256.New()
	fmt.Fprintln(sum, r.o.Build.Version)
	for _, source := range r.stored.ways[name].Sources {
		for _, s := range head.State[source.Stored.Name].Segments {
			fmt.Fprintln(sum, source.Stored.Name, s.Path, s.SHA256)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (a *setAsides) commit() error {
	for name, f := range a.files {
		if err := f.Commit(); err != nil {
			return &setAsideError{a.r.o.Job, name, err}
		}
	}
	return nil
}

// setAsideError says that a file of entries that were set aside can't be written.
type setAsideError struct {
	job, state string
	cause      error
}

func (e *setAsideError) Error() string {
	return fmt.Sprintf("%s: state %s: entries can't be set aside: %v. Nothing was changed", e.job, e.state, e.cause)
}

func (e *setAsideError) Unwrap() error { return e.cause }

func (a *setAsides) close() {
	for _, f := range a.files {
		f.Close()
	}
}
