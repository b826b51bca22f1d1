package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	head, hash := r.owner.Head()
	aside, err := r.newSetAsides(ctx, head)
	if err != nil {
		return err
	}
	defer aside.close()
	if head.Version == r.o.Build.Version && !r.stored.rewrites() {
		return nil
	}
	next := carried(head)
	next.Kind, next.Version, next.Build, next.Idle = epoch.Open, r.o.Build.Version, r.o.Build, nil
	r.adoptSinks(next)
	r.rewriteInPlace(next, epoch.Head{Manifest: head, Hash: hash})
	err = r.carryOver(ctx, head, &next, aside, func() error {
		_, err := r.commit(ctx, next)
		return err
	})
	if err != nil {
		return err
	}
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
		segment, report, err = migrate.State(ctx, migrate.Options{
			Store: r.o.Store, Job: r.o.Job, Way: w, Stored: head.State, Path: path, Workers: r.o.Shards,
			Memory: func(rows, bytes int64) int64 { return rows*int64(spec.EntrySize()) + bytes },
			Failed: aside.of(spec.Name), Progress: &read, Grown: r.growing(head, spec.Name),
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
		"dropped", report.Dropped, "merged", report.Merged, "set_aside", report.SetAside, "behind_limit", report.Behind)
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
	if errors.Is(e.Entry, migrate.ErrMeet) {
		return fmt.Sprintf("%s: refused: %v. Nothing was changed. Mend the migration; `plan --all` tells how many there are.", e.At, e.Entry)
	}
	return fmt.Sprintf("%s: refused: an entry can't be carried over: %v. Nothing was changed. Mend the migration, or let --set-aside %s=FILE put such entries into a file; `plan --all` finds them all.",
		e.At, e.Entry, e.State)
}

// Unwrap returns what is wrong with the entry.
func (e *MigrationError) Unwrap() error { return e.Entry }

// ExitCode is the exit code of the command line.
func (e *MigrationError) ExitCode() int { return 13 }

// growing gives a migration up that takes more memory than there is, before the
// kernel ends the process for that.
func (r *runner) growing(head epoch.Manifest, name string) func(rows int64) error {
	if r.guard == nil {
		return nil
	}
	at := epoch.At{Job: r.o.Job, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch}
	return func(rows int64) error { return r.guard.Loading(at, name, rows, rows) }
}

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

// newSetAsides checks what was asked for, and finishes what starts before have
// left.
func (r *runner) newSetAsides(ctx context.Context, head epoch.Manifest) (*setAsides, error) {
	of := map[string]string{}
	for name, path := range r.o.SetAside {
		if r.stateSpec(name) == nil {
			return nil, &ConsentError{Job: r.o.Job, Flag: "set-aside", Name: name, Names: r.stateNames()}
		}
		if other, taken := of[filepath.Clean(path)]; taken {
			return nil, fmt.Errorf("%s: --set-aside %s and %s: both name the file %s; give each state its own", r.o.Job, min(name, other), max(name, other), path)
		}
		of[filepath.Clean(path)] = name
		if err := r.settleAside(ctx, name, path, head); err != nil {
			return nil, &setAsideError{r.o.Job, name, err}
		}
	}
	return &setAsides{r, map[string]*migrate.SetAside{}}, nil
}

// settleAside gives the file of a migration its name whose process died as soon as
// it was done, and removes those of migrations that came to nothing.
func (r *runner) settleAside(ctx context.Context, name, path string, head epoch.Manifest) error {
	left, err := migrate.LeftAside(r.o.Env.Files, path, r.o.Job, name)
	if err != nil {
		return err
	}
	for _, m := range left {
		done, err := r.adopted(ctx, m, head)
		switch {
		case err != nil:
			return err
		case done:
			err = m.Publish(r.o.Env.Files, path)
		default:
			err = m.GiveUp(r.o.Env.Files, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// adopted tells whether a migration's owner has put its version.
func (r *runner) adopted(ctx context.Context, m migrate.Migration, head epoch.Manifest) (bool, error) {
	for at := head; at.Version == m.Version; {
		if at.Owner == m.Owner {
			return true, nil
		}
		if at.Epoch == 0 {
			return false, nil
		}
		var err error
		if at, err = r.job.Manifest(ctx, at.Branch, at.Task, at.Epoch-1); err != nil {
			return false, fmt.Errorf("whether the migration of owner %s was done can't be told any more: %w; look at the file, and remove it", m.Owner, err)
		}
	}
	return false, nil
}

func (r *runner) stateNames() (names []string) {
	for _, s := range r.o.Graph.States() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// of returns what sets the entries of a state aside, in a file that begins with the
// first of them; nil if nobody asked for that.
func (a *setAsides) of(name string) func(*carry.EntryError, *state.Entry) error {
	path := a.r.o.SetAside[name]
	if path == "" {
		return nil
	}
	if f := a.files[name]; f != nil { // of an earlier try
		f.Close()
		delete(a.files, name)
	}
	forms := map[string]state.Form{}
	for _, source := range a.r.stored.ways[name].Sources {
		forms[source.Stored.Name] = source.Stored.Form
	}
	return func(failed *carry.EntryError, e *state.Entry) (err error) {
		file := a.files[name]
		if file == nil {
			file, err = migrate.NewSetAside(a.r.o.Env, path, migrate.Migration{
				Job: a.r.o.Job, State: name, Version: a.r.o.Build.Version, Owner: a.r.owner.ID(),
			})
			if err != nil {
				return &setAsideError{a.r.o.Job, name, err}
			}
			a.files[name] = file
		}
		if err := file.Put(failed, forms[failed.State], e); err != nil {
			return &setAsideError{a.r.o.Job, name, err}
		}
		return nil
	}
}

// sync makes the files durable, before the manifest that leaves their entries out.
func (a *setAsides) sync() error {
	for name, f := range a.files {
		if err := f.Sync(); err != nil {
			return &setAsideError{a.r.o.Job, name, err}
		}
	}
	return nil
}

// publish gives the files their names, behind that manifest.
func (a *setAsides) publish() error {
	for name, f := range a.files {
		if err := f.Publish(); err != nil {
			return fmt.Errorf("%s: state %s: %w; the state is migrated, and nothing is lost", a.r.o.Job, name, err)
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
