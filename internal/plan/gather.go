package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Build is a build that is to go on with a job.
type Build struct {
	// Version describes it.
	Version epoch.Version
	// Ways are those of its states, by their names, given what is stored.
	Ways func(stored func(name string) *carry.Stored) map[string]*carry.Way
	// Drop and Gap are the consents that are given.
	Drop, Gap []string
	// Build is the build itself; the zero one for one that nobody has replaced.
	// Replace lets it run although another one has.
	Build   epoch.Build
	Replace bool
	// Follows says that the build begins a branch that is to take the live one's place.
	Follows bool
	// Backfill says that such a branch fills sinks that are new before that.
	Backfill bool
}

// Gather reads what a plan is made of: what a build finds that goes on from an
// epoch. It changes nothing. A version that the epoch names and that is not there
// is an [epoch.DamagedError].
func Gather(ctx context.Context, job *epoch.Job, from epoch.Manifest, b Build) (Input, error) {
	in := Input{
		Job: job.Name(), At: epoch.At{Job: job.Name(), Branch: from.Branch, Task: from.Task, Epoch: from.Epoch},
		Head: from, New: b.Version, Drop: b.Drop, Gap: b.Gap,
		Build: b.Build, Replace: b.Replace, Follows: b.Follows, Backfill: b.Backfill,
	}
	var err error
	if in.Old, err = versionOf(ctx, job, in.At, from); err != nil {
		return in, err
	}
	stored, err := Stored(in.Old, from)
	if err != nil {
		return in, fmt.Errorf("%s: %w", in.At, err)
	}
	in.Ways = b.Ways(stored)
	if in.Absent, err = absentSinks(ctx, job, from, b.Version); err != nil {
		return in, err
	}
	if in.AbsentSources, err = absentSources(ctx, job, from, in.Old, b.Version); err != nil {
		return in, err
	}
	if len(in.Drop) > 0 {
		in.Dropped, err = droppedBefore(ctx, job, b.Version)
	}
	return in, err
}

// versionOf is the version that a manifest's state is of, with the functions of
// the build that ran it; that of an empty log is empty.
func versionOf(ctx context.Context, job *epoch.Job, at epoch.At, m epoch.Manifest) (epoch.Version, error) {
	if m.Version == "" {
		return epoch.Version{}, nil
	}
	v, err := job.Version(ctx, m.Version)
	if errors.Is(err, store.ErrNotFound) {
		return v, &epoch.DamagedError{
			At: at, Object: job.Object(epoch.VersionPath(m.Version)), Expected: "the description of the epoch's version", Found: "nothing",
		}
	}
	if err == nil && m.Build.Version == m.Version {
		v.Functions, err = job.Functions(ctx, m.Build)
	}
	return v, err
}

// droppedBefore is [Dropped] for all versions that the job has had.
func droppedBefore(ctx context.Context, job *epoch.Job, now epoch.Version) ([]string, error) {
	earlier, err := versionsNamed(ctx, job, "")
	if err != nil {
		return nil, err
	}
	names, err := Dropped(earlier, now)
	if err != nil {
		err = fmt.Errorf("%s: %w", job.Name(), err)
	}
	return names, err
}
