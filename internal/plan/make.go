package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Build is the build that is to go on, with the consents that it was given.
type Build struct {
	Version epoch.Version
	// Carriers are those of its states, by their names.
	Carriers  map[string]carry.Carrier
	Drop, Gap []string
}

// Make makes the plan of a build for a manifest of a job, and changes nothing. It
// returns the ways of the build's states as well.
func Make(ctx context.Context, job *epoch.Job, m epoch.Manifest, b Build) (*Plan, map[string]*carry.Way, error) {
	at := epoch.At{Job: job.Name(), Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}
	old, err := versionOf(ctx, job, at, m)
	if err != nil {
		return nil, nil, err
	}
	stored, err := Stored(old, m)
	if err != nil {
		return nil, nil, err
	}
	ways := map[string]*carry.Way{}
	for name, c := range b.Carriers {
		ways[name] = c.Find(stored)
	}
	in := Input{Job: job.Name(), At: at, Head: m, Old: old, New: b.Version, Ways: ways, Drop: b.Drop, Gap: b.Gap}
	if len(b.Drop) > 0 {
		earlier, err := versions(ctx, job)
		if err != nil {
			return nil, nil, err
		}
		if in.Dropped, err = Dropped(earlier, b.Version); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	return Compare(in), ways, nil
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
	if err != nil {
		return v, err
	}
	build := m.Build
	build.Version = m.Version
	v.Functions, err = job.Functions(ctx, build)
	return v, err
}

// versionsAtMost bounds the versions of a job that are looked at.
const versionsAtMost = 10_000

// versions are those that a job ever had.
func versions(ctx context.Context, job *epoch.Job) ([]epoch.Version, error) {
	listed, err := job.Store().List(ctx, job.Object("versions/"), "", versionsAtMost)
	if err != nil {
		return nil, err
	}
	var all []epoch.Version
	for _, l := range listed {
		name, ok := epoch.ParsePath(strings.TrimPrefix(l.Name, job.Object("")))
		if !ok || name.Kind != epoch.VersionObject {
			continue
		}
		v, err := job.Version(ctx, name.Label)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return slices.Clip(all), nil
}
