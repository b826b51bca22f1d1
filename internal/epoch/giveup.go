package epoch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/store"
)

// LiveBranchError says that a branch which is or was live was to be given up.
type LiveBranchError struct {
	At
	// Live is the generation.
	Live Generation
}

// Error implements error.
func (e *LiveBranchError) Error() string {
	return fmt.Sprintf("%s: it has been live, as generation %d: expected a branch that has only followed. Nothing was changed. `sluice stop %s` stops a live branch, and a rollback goes back to the one before.", e.At, e.Live, e.Job)
}

// ExitCode is the exit code of the command line.
func (e *LiveBranchError) ExitCode() int { return 13 }

// CutUnderWayError says that a branch was to be given up while the live one has been
// sealed: perhaps for a cut to it.
type CutUnderWayError struct {
	At
	// Sealed is the live branch of before.
	Sealed string
	// Ended tells that the branch was sealed all the same: the seal of the other came
	// meanwhile.
	Ended bool
	// Live tells that it had become the live one by then.
	Live bool
}

// Error implements error.
func (e *CutUnderWayError) Error() string {
	const on = "nobody reads the job until a build goes on. One that waits does so after its --resume-after; run `JOB resume` with the one that is to go on for it to do so now"
	switch {
	case e.Live:
		return fmt.Sprintf("%s: it went live in the moment in which it was given up: expected a branch that only follows. It has ended; %s.", e.At, on)
	case e.Ended:
		return fmt.Sprintf("%s: it is given up, but a cut to it had begun: expected branch %s to go on, found it sealed. So %s.", e.At, e.Sealed, on)
	}
	return fmt.Sprintf("%s: branch %s has been sealed, perhaps for a cut to this one: expected none under way. Nothing was changed. Look at `sluice status %s` until one is live, or end the cut by `JOB resume`; give the branch up then.", e.At, e.Sealed, e.Job)
}

// ExitCode is the exit code of the command line.
func (e *CutUnderWayError) ExitCode() int { return 13 }

// GiveUp ends a branch that follows, and has not been live: it seals the next name
// of each of its logs, name 0 of one without a base, and takes its pins away then
// (H11b, H16). It may be called again after a crash, and for a branch of which there
// is nothing but pins: that gets a record, so that nobody can begin it any more. by is
// who gave it up, for people.
//
// The error is a [LiveBranchError] for one that has been live, and a [CutUnderWayError]
// while the live branch is sealed, or if it was in the meantime.
func (j *Job) GiveUp(ctx context.Context, branch string, writer Writer, by string) error {
	records, err := j.LiveRecords(ctx, nil)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(records, func(r LiveRecord) bool { return r.Branch == branch }); i >= 0 || branch == MainBranch {
		return &LiveBranchError{At: At{Job: j.name, Branch: branch}, Live: Generation(max(i, 0))}
	}
	if err := CheckName("branch", branch); err != nil {
		return err
	}
	file, err := j.BranchFile(ctx, branch)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if file.Kind == Rehearsal { // which no cut is ever to
		return j.giveUp(ctx, branch, records, writer, by)
	}
	live := newestOf(records)
	if ended, err := j.sealed(ctx, branch); err != nil || ended { // all but its pins is done
		return cmp.Or(err, j.giveUp(ctx, branch, records, writer, by))
	}
	if sealed, err := j.sealed(ctx, live); err != nil || sealed {
		return cmp.Or(err, error(&CutUnderWayError{At: At{Job: j.name, Branch: branch}, Sealed: live}))
	}
	if err := j.giveUp(ctx, branch, records, writer, by); err != nil {
		return err
	}
	// A cut is not held up by this: it may have begun, or even ended, in between.
	if records, err = j.LiveRecords(ctx, nil); err != nil {
		return err
	}
	e := &CutUnderWayError{At: At{Job: j.name, Branch: branch}, Sealed: live, Ended: true, Live: newestOf(records) == branch}
	if sealed, err := j.sealed(ctx, newestOf(records)); err != nil || sealed {
		return cmp.Or(err, error(e))
	}
	return nil
}

// giveUp is GiveUp, whatever is under way.
func (j *Job) giveUp(ctx context.Context, branch string, records []LiveRecord, writer Writer, by string) error {
	record := BranchFile{Format: Format, JobID: j.file.JobID, Branch: branch, Kind: GivenUp, By: by, Time: j.now()}
	if len(records) > 0 {
		record.Layout = records[len(records)-1].Layout
	}
	if err := j.makeRecord(ctx, BranchPath(branch), record.encode); err != nil {
		return err
	}
	if _, err := j.SealBranch(ctx, branch, writer, by); err != nil {
		return err
	}
	return j.UnpinBranch(ctx, branch)
}

// newestOf is the live branch of some records.
func newestOf(records []LiveRecord) string {
	if len(records) == 0 {
		return MainBranch
	}
	return records[len(records)-1].Branch
}

// sealed tells whether a branch has ended; one without an epoch has not.
func (j *Job) sealed(ctx context.Context, branch string) (bool, error) {
	head, err := j.Head(ctx, branch, FirstTask)
	var none *NoLogError
	if errors.As(err, &none) {
		return false, nil
	}
	return head.Sealed(), err
}

// Aftermath is how a process looks at a branch of its that has ended.
type Aftermath struct {
	// Me is this process, its build with its version.
	Me Identity
	// Resume says that a person wants the job to go on now.
	Resume bool
	// Owner says that this process wrote the branch's last epochs.
	Owner bool
	// Still is for how long it has looked since the seal, in microseconds of pauses
	// of its own; After is how long that has to be before it goes on itself.
	Still, After int64
}

// LookEnded is rule Q: what to do about a sealed log, and the newest live record.
func (j *Job) LookEnded(ctx context.Context, branch, task string, a Aftermath) (EndedStep, LiveRecord, error) {
	head, _, err := j.endOf(ctx, branch, task, 0)
	if err != nil {
		return 0, LiveRecord{}, err
	}
	if !head.Sealed() {
		return 0, LiveRecord{}, fmt.Errorf("%s: it has not ended", At{j.name, branch, task, head.Manifest.Epoch})
	}
	records, err := j.LiveRecords(ctx, nil) // after the seal was seen
	if err != nil {
		return 0, LiveRecord{}, err
	}
	if len(records) == 0 {
		return 0, LiveRecord{}, j.damaged(At{}, LivePath(0), "a live record, since a branch was sealed", "none")
	}
	v := EndedView{
		Final: head.Manifest, Live: records[len(records)-1], Me: a.Me.Build, Replace: a.Me.Replace,
		Resume: a.Resume, Owner: a.Owner, Still: a.Still, After: a.After,
		WasLive: slices.ContainsFunc(records, func(r LiveRecord) bool { return r.Branch == branch }),
	}
	v.Final.Branch = branch
	if v.Live.Branch != branch {
		next, _, err := j.endOf(ctx, v.Live.Branch, task, 0)
		if err != nil {
			return 0, v.Live, err
		}
		v.Now = next.Manifest.Build
	}
	return DecideEnded(v), v.Live, nil
}
