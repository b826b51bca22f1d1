package epoch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/store"
)

// HasRunError says that a job has epochs, so that its first one can't come from
// elsewhere any more.
type HasRunError struct {
	At // its newest epoch
	// Imported says that all it has is the first epoch of an import, with other
	// content.
	Imported bool
}

// Error implements error.
func (e *HasRunError) Error() string {
	if e.Imported {
		return fmt.Sprintf("%s: another import has made the first epoch: expected none, or one with the same states and offsets. Nothing was changed. Run the job, use another store, or give the job another name.", e.At)
	}
	return fmt.Sprintf("%s: the job has epochs: expected one that has never run. Nothing was changed. Use another store, or give the job another name.", e.At)
}

// ExitCode is the exit code of the command line.
func (e *HasRunError) ExitCode() int { return 13 }

// BeganError says that an import has tried to make a job's first epoch, and that it
// isn't known to have failed: what the epoch refers to must stay.
type BeganError struct {
	At
	// Made says that the epoch is there. Otherwise it may be, or may appear yet.
	Made bool
	// Cause is what went wrong.
	Cause error
}

// Error implements error.
func (e *BeganError) Error() string {
	if e.Made {
		return fmt.Sprintf("%s: the import is done, the first epoch is there; what comes after it failed: %v. Run the job.", e.At, e.Cause)
	}
	return fmt.Sprintf("%s: the first epoch may be there or not: %v. Start the same import again: it finishes what is there, or makes it.", e.At, e.Cause)
}

// Unwrap returns the cause.
func (e *BeganError) Unwrap() error { return e.Cause }

// BeginImport prepares the first epoch of a job that has never run; the error is a
// [HasRunError] if it has. The owner names the data objects that the epoch is to
// refer to, of epoch 0, and [Owner.CommitBase] makes it. Until then there is nothing
// that a run would go on from, and another import may begin anew. A job that has
// nothing but the first epoch of an import that ended right behind it is as one that
// has never run: the same import finishes it.
func (j *Job) BeginImport(ctx context.Context, me Identity) (*Owner, error) {
	head, err := j.Head(ctx, MainBranch, FirstTask)
	_, none := errors.AsType[*NoLogError](err)
	if err != nil && !none {
		return nil, err
	}
	live, isLive, err := j.Live(ctx)
	switch {
	case err != nil:
		return nil, err
	case isLive && none:
		return nil, &HasRunError{At: At{j.name, live.Branch, FirstTask, 0}}
	case !none && (isLive || head.Sealed() || !isImported(head.Manifest)):
		return nil, &HasRunError{At: At{j.name, MainBranch, FirstTask, head.Manifest.Epoch}}
	}
	return j.newOwner(ctx, MainBranch, FirstTask, &me)
}

// isImported tells whether a manifest is a first epoch that an import has made: that
// of a run is empty.
func isImported(m Manifest) bool {
	return m.Kind == Base && m.Epoch == 0 && len(m.Sources) > 0
}

// sameImport tells whether two imports have made the same of a job. Where the data
// lies and who wrote it when doesn't count.
func sameImport(a, b Manifest) bool {
	return a.Version == b.Version && maps.EqualFunc(a.Sources, b.Sources, func(a, b SourceState) bool {
		return maps.Equal(a.Partitions, b.Partitions)
	}) && maps.EqualFunc(a.State, b.State, func(a, b StateEntry) bool {
		return a.Key == b.Key && a.Element == b.Element && a.Value == b.Value && slices.EqualFunc(a.Segments, b.Segments, func(a, b Segment) bool {
			return a.Rows == b.Rows && a.Bytes == b.Bytes && a.SHA256 == b.SHA256
		})
	})
}

// CommitBase makes the first epoch of the job, and main the live branch. The caller
// has filled in the version, the build, the clock, and what the epoch holds. If
// another import has made the same, that one's epoch is returned, whose owner is
// another. The error is a [HasRunError] if somebody else was quicker, and a
// [BeganError] if the epoch is there nevertheless, or may be; with any other it is
// not, and never will be.
func (o *Owner) CommitBase(ctx context.Context, base Manifest) (Manifest, error) {
	file := BranchFile{
		Format: Format, JobID: o.job.file.JobID, Branch: o.branch,
		Build: base.Build, Kind: First, By: o.writer.String(), Time: o.job.now(),
	}
	if err := o.job.makeRecord(ctx, BranchPath(o.branch), file.encode); err != nil {
		return Manifest{}, err
	}
	o.committing.Lock()
	defer o.committing.Unlock()
	base.Kind = Base
	o.identify(&base, 0, "")
	at := At{o.job.name, o.branch, o.task, 0}
	data, err := base.Encode()
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: the base can't be written: %w", at, err)
	}
	outcome, found, err := o.job.create(ctx, ManifestPath(o.branch, o.task, 0), data)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return Manifest{}, &BeganError{At: at, Cause: err}
	case err != nil:
		return Manifest{}, err
	case outcome == Theirs:
		if base, data, err = o.otherBase(base, found); err != nil {
			return Manifest{}, err
		}
	}
	if o.floor, err = o.job.floorFrom(ctx, o.branch, o.task, o.floor); err != nil {
		return Manifest{}, &BeganError{At: at, Made: true, Cause: err}
	}
	if o.floor > 0 {
		return Manifest{}, &HasRunError{At: At{o.job.name, o.branch, o.task, o.floor}}
	}
	if err := o.makeFirstLive(ctx); err != nil {
		return Manifest{}, &BeganError{At: at, Made: true, Cause: err}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.head, o.hash = base, Hash(data)
	return base, nil
}

// otherBase is the first epoch that somebody else has made, if it is the same.
func (o *Owner) otherBase(base Manifest, found []byte) (Manifest, []byte, error) {
	at := At{o.job.name, o.branch, o.task, 0}
	if found == nil {
		return base, nil, &HasRunError{At: at} // it was there, and was cleaned away
	}
	other, err := Decode[Manifest](found)
	switch {
	case err != nil:
		return base, nil, o.job.unreadable(at, ManifestPath(o.branch, o.task, 0), err)
	case !isImported(other):
		return base, nil, &HasRunError{At: at}
	case !sameImport(base, other):
		return base, nil, &HasRunError{At: at, Imported: true}
	}
	return other, found, nil
}
