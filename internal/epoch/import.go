package epoch

import (
	"context"
	"errors"
	"fmt"
)

// HasRunError says that a job has epochs, so that its first one can't come from
// elsewhere any more.
type HasRunError struct {
	At // its newest epoch
}

// Error implements error.
func (e *HasRunError) Error() string {
	return fmt.Sprintf("%s: the job has epochs: expected one that has never run. Nothing was changed. Use another store, or give the job another name.", e.At)
}

// ExitCode is the exit code of the command line.
func (e *HasRunError) ExitCode() int { return 13 }

// BeginImport prepares the first epoch of a job that has never run; the error is a
// [HasRunError] if it has. The owner names the data objects that the epoch is to
// refer to, of epoch 0, and [Owner.CommitBase] makes it. Until then there is nothing
// that a run would go on from, and another import may begin anew.
func (j *Job) BeginImport(ctx context.Context, me Identity) (*Owner, error) {
	head, err := j.Head(ctx, MainBranch, FirstTask)
	var none *NoLogError
	if err == nil {
		return nil, &HasRunError{At{j.name, MainBranch, FirstTask, head.Manifest.Epoch}}
	}
	if !errors.As(err, &none) {
		return nil, err
	}
	live, ok, err := j.Live(ctx)
	if err != nil {
		return nil, err
	}
	if ok {
		return nil, &HasRunError{At{j.name, live.Branch, FirstTask, 0}}
	}
	return j.newOwner(ctx, MainBranch, FirstTask, &me)
}

// CommitBase makes the first epoch of the job, and main the live branch. The caller
// has filled in the version, the build, the clock, and what the epoch holds. The
// error is a [HasRunError] if somebody else was quicker.
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
	data, err := base.Encode()
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: the base can't be written: %w", At{o.job.name, o.branch, o.task, 0}, err)
	}
	verdict, holder, err := o.put(ctx, 0, data)
	if err != nil {
		return Manifest{}, err
	}
	if verdict == Fenced || verdict == Sealed {
		return Manifest{}, &HasRunError{At{o.job.name, o.branch, o.task, 0}}
	}
	if err := o.refusal(0, verdict, holder); err != nil {
		return Manifest{}, err
	}
	if err := o.makeFirstLive(ctx); err != nil {
		return Manifest{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.head, o.hash = base, Hash(data)
	return base, nil
}
