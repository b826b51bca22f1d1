package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// absentSinks finds what those of a build's sinks were that are back after an
// absence: as the version had them that last did. Where the log does not reach
// back to that, it is all that versions of the job have had under the name.
func absentSinks(ctx context.Context, job *epoch.Job, from epoch.Manifest, now epoch.Version) (map[string][]epoch.Part, error) {
	absent := map[string][]epoch.Part{}
	for name := range now.Sinks {
		if from.Sinks[name].Dropped == "" {
			continue
		}
		version, err := lastWith(ctx, job, from, name)
		if err != nil {
			return nil, err
		}
		earlier, err := versionsNamed(ctx, job, version)
		if err != nil {
			return nil, err
		}
		for _, v := range earlier {
			if p, had := v.Sinks[name]; had && !slices.ContainsFunc(absent[name], func(other epoch.Part) bool { return samePart(p, other) }) {
				absent[name] = append(absent[name], p)
			}
		}
	}
	return absent, nil
}

// absentSources finds what those of a build's sources were that are back after the
// last version lacked them: all that versions of the job have had under the name, of
// which the offsets are kept.
func absentSources(ctx context.Context, job *epoch.Job, from epoch.Manifest, old, now epoch.Version) (map[string][]epoch.Part, error) {
	absent := map[string][]epoch.Part{}
	for name := range now.Sources {
		_, had := old.Sources[name]
		if _, known := from.Sources[name]; known && !had {
			absent[name] = nil
		}
	}
	if len(absent) == 0 {
		return absent, nil
	}
	earlier, err := versionsNamed(ctx, job, "")
	for name := range absent {
		for _, v := range earlier {
			if p, had := v.Sources[name]; had && !slices.ContainsFunc(absent[name], func(other epoch.Part) bool { return samePart(p, other) }) {
				absent[name] = append(absent[name], p)
			}
		}
	}
	return absent, err
}

// lastWith finds the version that was the last to have a sink, or "" if the log
// does not reach back to it. A sink is gone only once it has all: it stands where
// the job's position was then.
func lastWith(ctx context.Context, job *epoch.Job, from epoch.Manifest, sink string) (version string, err error) {
	floor, err := job.Floor(ctx, from.Branch, from.Task)
	if err != nil {
		return "", err
	}
	if floor > from.Epoch { // as of a savepoint
		return "", nil
	}
	read := func(e epoch.Epoch) (m epoch.Manifest) {
		if err == nil {
			m, err = job.Manifest(ctx, from.Branch, from.Task, e)
		}
		return m
	}
	confirmed := from.Sinks[sink].Confirmed
	behind := floor + epoch.Epoch(sort.Search(int(from.Epoch-floor), func(i int) bool {
		return read(floor+epoch.Epoch(i)).Position > confirmed
	}))
	for e := behind; e > floor && err == nil; e-- {
		m := read(e - 1)
		if s, had := m.Sinks[sink]; had && s.Dropped == "" {
			version = m.Version
			break
		}
		if m.Position < confirmed {
			break
		}
	}
	if errors.Is(err, store.ErrNotFound) { // clean-up has come past
		return "", nil
	}
	return version, err
}

// versionsAtMost bounds the versions of a job that are looked at.
const versionsAtMost = 10_000

// versionsNamed reads the version of a hash, or for "" all that the job has had.
func versionsNamed(ctx context.Context, job *epoch.Job, hash string) (all []epoch.Version, err error) {
	hashes := []string{hash}
	if hash == "" {
		listed, err := job.Store().List(ctx, job.Object("versions/"), "", versionsAtMost)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", job.Name(), err)
		}
		hashes = nil
		for _, l := range listed {
			if name, ok := epoch.ParsePath(strings.TrimPrefix(l.Name, job.Object(""))); ok && name.Kind == epoch.VersionObject {
				hashes = append(hashes, name.Label)
			}
		}
	}
	for _, hash := range hashes {
		v, err := job.Version(ctx, hash)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
