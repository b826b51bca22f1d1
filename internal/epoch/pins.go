package epoch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/store"
)

// What the store is asked for at once, and what a job may have of one kind. The
// bound is far above what people and upgrades make; a store with more is no
// store of ours.
const (
	listPage   = 1000
	listAtMost = 100_000
)

// Now is the job's clock, in microseconds since 1970 UTC, as manifests have it.
func (j *Job) Now() int64 { return j.now() }

// Branches are the names of the branches that were ever begun, in their order.
// It looks at one object of each.
func (j *Job) Branches(ctx context.Context) ([]string, error) {
	prefix := j.Object("branches/")
	var names []string
	for after := ""; len(names) <= listAtMost; {
		page, err := j.store.List(ctx, prefix, after, 1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.name, err)
		}
		if len(page) == 0 {
			return names, nil
		}
		name, _, below := strings.Cut(page[0].Name[len(prefix):], "/")
		if after = page[0].Name; below {
			after = prefix + name + lastBelow
		}
		if below && CheckName("branch", name) == nil { // others aren't the job's
			names = append(names, name)
		}
	}
	return nil, fmt.Errorf("%s: more than %d branches; is this a store of Sluice's?", j.name, listAtMost)
}

// lastBelow is behind every name in a folder.
const lastBelow = "/\U0010FFFF"

// Pins reads the pins that there are, by their ids.
func (j *Job) Pins(ctx context.Context) (map[string]Pin, error) {
	pins := map[string]Pin{}
	err := j.each(ctx, "pins/", PinObject, func(path string, name Name) error {
		pin, _, err := read[Pin](ctx, j, At{}, path)
		if err == nil && pin.JobID != j.file.JobID {
			err = j.damaged(At{}, path, "a pin of job "+j.file.JobID, "one of job "+pin.JobID)
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil // unpinned since it was listed
		}
		pins[name.Label] = pin
		return err
	})
	return pins, err
}

// Savepoints reads the savepoints that there are, by their names, and of one
// name the newest first: that is the one which counts, but each pins its epoch.
func (j *Job) Savepoints(ctx context.Context) ([]Savepoint, error) {
	var all []Savepoint
	err := j.each(ctx, "savepoints/", SavepointObject, func(path string, name Name) error {
		s, _, err := read[Savepoint](ctx, j, At{}, path)
		if err == nil && (s.JobID != j.file.JobID || s.Name != name.Given) {
			err = j.damaged(At{}, path, fmt.Sprintf("savepoint %s of job %s", name.Given, j.file.JobID), fmt.Sprintf("savepoint %s of job %s", s.Name, s.JobID))
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		s.ID = name.Label
		all = append(all, s)
		return err
	})
	slices.SortStableFunc(all, func(a, b Savepoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Time, a.Time))
	})
	return all, err
}

// each visits the objects of a kind in a folder below the job's; what has
// another name isn't the job's.
func (j *Job) each(ctx context.Context, folder string, kind ObjectKind, visit func(path string, name Name) error) error {
	seen := 0
	for after := ""; ; {
		page, err := j.store.List(ctx, j.Object(folder), after, listPage)
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		for _, listed := range page {
			path := listed.Name[len(j.name)+1:]
			after = listed.Name
			name, ok := ParsePath(path)
			if !ok || name.Kind != kind {
				continue
			}
			if seen++; seen > listAtMost {
				return fmt.Errorf("%s: more than %d objects in %s; is this a store of Sluice's?", j.name, listAtMost, folder)
			}
			if err := visit(path, name); err != nil {
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
	}
}

// PutPin pins an epoch of each task under an id that was never used before:
// that of a branch, a dash, and more. Who pins reads the floors afterwards; if
// one is above the epoch, the pin came too late (H11).
func (j *Job) PutPin(ctx context.Context, id string, at Point, by string) error {
	if err := CheckName("pin", id); err != nil {
		return err
	}
	data, err := encode(Pin{Format: Format, JobID: j.file.JobID, Point: at, By: by, Time: j.now()})
	if err != nil {
		return fmt.Errorf("%s: pin %s: %w", j.name, id, err)
	}
	return j.putNew(ctx, PinPath(id), data)
}

// DeletePin takes a pin away. That of another's branch may go only once the
// branch's next name is sealed (H11b). It is no error if there is none.
func (j *Job) DeletePin(ctx context.Context, id string) error {
	if err := CheckName("pin", id); err != nil {
		return err
	}
	if err := j.store.Delete(ctx, j.Object(PinPath(id))); err != nil {
		return fmt.Errorf("%s: %w", j.name, err)
	}
	return nil
}

// putNew creates an object whose name must be new; the error matches
// [store.ErrExists] if it is another's.
func (j *Job) putNew(ctx context.Context, path string, data []byte) error {
	outcome, _, err := j.create(ctx, path, data)
	if err == nil && outcome != Mine {
		err = fmt.Errorf("%s: %s: %w, and it is another's; use another name", j.name, path, store.ErrExists)
	}
	return err
}

// PutFloor records that a log's epochs under e are going (G2). It is no error if
// the record is there already, or a higher one is.
func (j *Job) PutFloor(ctx context.Context, branch, task string, e Epoch) error {
	if err := checkLogName(branch, task); err != nil {
		return err
	}
	newest, err := j.Floor(ctx, branch, task)
	if err != nil || newest >= e {
		return err
	}
	floor := Floor{Format: Format, JobID: j.file.JobID, Branch: branch, Task: task, Epoch: e, Time: j.now()}
	return j.makeRecord(ctx, FloorPath(branch, task, e), func() ([]byte, error) { return encode(floor) })
}

// DropOldFloors removes all floor records of a log but the newest.
func (j *Job) DropOldFloors(ctx context.Context, branch, task string) error {
	newest, err := j.Floor(ctx, branch, task)
	if err != nil {
		return err
	}
	return j.each(ctx, LogPath(branch, task)+"floor/", FloorObject, func(path string, name Name) error {
		if name.Epoch >= newest {
			return nil
		}
		if err := j.store.Delete(ctx, j.Object(path)); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		return nil
	})
}

// HeadNear is [Job.Head] with the epoch near which the head is thought to be: a
// matter of speed alone.
func (j *Job) HeadNear(ctx context.Context, branch, task string, hint Epoch) (Head, error) {
	return j.headFrom(ctx, branch, task, hint)
}

// ManifestBelow reads one manifest in spite of the floor, as clean-up does, and
// whoever reads what a pin or a follower keeps. The error matches
// [store.ErrNotFound] if there is none.
func (j *Job) ManifestBelow(ctx context.Context, branch, task string, e Epoch) (Manifest, error) {
	if err := checkLogName(branch, task); err != nil {
		return Manifest{}, err
	}
	m, _, err := j.manifest(ctx, branch, task, e)
	return m, err
}
