package epoch

import (
	"context"
	"fmt"
	"slices"
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

// GiveUp ends a branch that follows, and has not been live: it seals the next name
// of each of its logs, name 0 of one without a base, and takes its pins away then
// (H11b, H16). It may be called again after a crash, and for a branch of which there
// is nothing but pins: that gets a record, so that nobody can begin it any more. by is
// who gave it up, for people.
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
