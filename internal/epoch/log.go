package epoch

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/store"
)

// floorPage is how many floor records are listed at once. Clean-up removes all
// but the newest, so that one page nearly always holds them.
const floorPage = 100

// Head is the end of a task's log.
type Head struct {
	// Manifest is the newest entry that is no seal: the final epoch of a log
	// that is sealed. It is zero only if a seal took the base's place.
	Manifest Manifest
	// Hash is the sha256 of the manifest's bytes.
	Hash string
	// Seal is the seal behind it; nil while the log goes on.
	Seal *Manifest
}

// Sealed tells whether the log has ended.
func (h Head) Sealed() bool { return h.Seal != nil }

// Floor returns the newest floor of a log: manifests under it are not to be
// believed, and may be gone. It is 0 before any clean-up.
func (j *Job) Floor(ctx context.Context, branch, task string) (Epoch, error) {
	return j.floorFrom(ctx, branch, task, 0)
}

// floorFrom looks only for floors above one that is known.
func (j *Job) floorFrom(ctx context.Context, branch, task string, known Epoch) (Epoch, error) {
	folder := j.Object(LogPath(branch, task) + "floor/")
	after := j.Object(FloorPath(branch, task, known))
	for {
		page, err := j.store.List(ctx, folder, after, floorPage)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", j.name, err)
		}
		for _, listed := range page {
			path := listed.Name[len(j.name)+1:]
			name, ok := ParsePath(path)
			if !ok || name.Kind != FloorObject {
				return 0, j.damaged(At{Branch: branch}, path, "a floor's name, 20 digits", "another")
			}
			known, after = max(known, name.Epoch), listed.Name
		}
		if len(page) < floorPage {
			return known, nil
		}
	}
}

// Head finds the end of a log (T2). The error is a [NoLogError] if the log has
// no epochs, and a [VoidError] if all of it has been cleaned away.
func (j *Job) Head(ctx context.Context, branch, task string) (Head, error) {
	return j.headFrom(ctx, branch, task, 0)
}

// headFrom begins its search at an epoch that is thought to be near the head.
func (j *Job) headFrom(ctx context.Context, branch, task string, hint Epoch) (Head, error) {
	if err := checkLogName(branch, task); err != nil {
		return Head{}, err
	}
	at := At{Job: j.name, Branch: branch, Task: task}
	floor, err := j.Floor(ctx, branch, task)
	for range maxLooks {
		if err != nil {
			return Head{}, err
		}
		if floor == AllEpochs {
			return Head{}, &VoidError{At: at, Floor: floor}
		}
		search := SearchHead(floor, hint)
		if err := j.search(ctx, search, func(e Epoch) string { return ManifestPath(branch, task, e) }); err != nil {
			return Head{}, err
		}
		head, ok := search.Head()
		var found Head
		if at.Epoch = floor; ok {
			found, err = j.readHead(ctx, branch, task, head)
		} else {
			err = &missingError{At: at}
		}
		// What was seen counts only if the floor stayed where it was.
		look, before := err, floor
		if floor, err = j.floorFrom(ctx, branch, task, floor); err != nil || floor > before {
			continue
		}
		if !ok && floor == 0 {
			return Head{}, &NoLogError{At: at}
		}
		if missing := (*missingError)(nil); errors.As(look, &missing) {
			look = j.damaged(missing.At, ManifestPath(branch, task, missing.Epoch), "a manifest, not under the floor", "none")
		}
		return found, look
	}
	return Head{}, fmt.Errorf("%s: the floor rose %d times while the head was looked for: something cleans this log up in a loop", at, maxLooks)
}

// missingError says that there is no manifest of an epoch.
type missingError struct{ At }

func (e *missingError) Error() string { return e.At.String() + ": there is no such manifest" }

func (e *missingError) Unwrap() error { return store.ErrNotFound }

// readHead reads the last entry and, if it is a seal, the one before it.
func (j *Job) readHead(ctx context.Context, branch, task string, last Epoch) (Head, error) {
	m, hash, err := j.manifest(ctx, branch, task, last)
	if err != nil || m.Kind != Seal {
		return Head{Manifest: m, Hash: hash}, err
	}
	if last == 0 {
		return Head{Seal: &m}, nil
	}
	final, hash, err := j.manifest(ctx, branch, task, last-1)
	if err != nil {
		return Head{}, err
	}
	if err := j.checkParent(final, hash, m); err != nil {
		return Head{}, err
	}
	return Head{Manifest: final, Hash: hash, Seal: &m}, nil
}

// Manifest reads one epoch of a log, a seal too. The error matches
// [store.ErrNotFound] if there is none, or none any more.
func (j *Job) Manifest(ctx context.Context, branch, task string, e Epoch) (Manifest, error) {
	if err := checkLogName(branch, task); err != nil {
		return Manifest{}, err
	}
	floor, err := j.Floor(ctx, branch, task)
	if err != nil {
		return Manifest{}, err
	}
	if e < floor {
		return Manifest{}, fmt.Errorf("%s: %w: epochs before %d have been cleaned away", At{j.name, branch, task, e}, store.ErrNotFound, floor)
	}
	m, _, err := j.manifest(ctx, branch, task, e)
	return m, err
}

// manifest reads one manifest, wherever the floor is, and its hash.
func (j *Job) manifest(ctx context.Context, branch, task string, e Epoch) (Manifest, string, error) {
	at := At{j.name, branch, task, e}
	path := ManifestPath(branch, task, e)
	m, hash, err := read[Manifest](ctx, j, at, path)
	if errors.Is(err, store.ErrNotFound) {
		return m, "", &missingError{at}
	}
	if err != nil {
		return m, "", err
	}
	if m.JobID != j.file.JobID || m.Branch != branch || m.Task != task || m.Epoch != e {
		return m, "", j.damaged(at, path, fmt.Sprintf("the manifest of job %s", j.file.JobID),
			fmt.Sprintf("that of job %s, branch %s, task %s, epoch %d", m.JobID, m.Branch, m.Task, m.Epoch))
	}
	return m, hash, nil
}

// checkParent is rule S5 for two neighbours.
func (j *Job) checkParent(parent Manifest, hash string, child Manifest) error {
	if child.Parent == hash {
		return nil
	}
	at := At{j.name, parent.Branch, parent.Task, parent.Epoch}
	return j.damaged(at, ManifestPath(parent.Branch, parent.Task, parent.Epoch),
		fmt.Sprintf("sha256 %s by epoch %d", child.Parent, child.Epoch), hash)
}

// Manifests reads the epochs of a log from one to another, both included, and
// checks that each holds the hash of the one before (S5). Epochs under the
// floor are left out. It ends early, without an error, at the log's end, and
// with an error at the first epoch that can't be had.
func (j *Job) Manifests(ctx context.Context, branch, task string, from, to Epoch) iter.Seq2[Manifest, error] {
	return func(yield func(Manifest, error) bool) {
		floor, err := j.Floor(ctx, branch, task)
		if err != nil {
			yield(Manifest{}, err)
			return
		}
		var before Manifest
		var hash string
		for e := max(from, floor); e <= to; e++ {
			m, own, err := j.manifest(ctx, branch, task, e)
			if errors.Is(err, store.ErrNotFound) {
				if err = j.explainGap(ctx, branch, task, e); err == nil {
					return
				}
			}
			if err == nil && hash != "" {
				err = j.checkParent(before, hash, m)
			}
			if !yield(m, err) || err != nil || e == AllEpochs {
				return
			}
			before, hash = m, own
		}
	}
}

// explainGap says why an epoch is missing: nil if the log ends before it.
func (j *Job) explainGap(ctx context.Context, branch, task string, e Epoch) error {
	at := At{j.name, branch, task, e}
	floor, err := j.Floor(ctx, branch, task)
	if err != nil {
		return err
	}
	if floor > e {
		return fmt.Errorf("%s: %w: it was cleaned away while it was to be read; start over from epoch %d", at, store.ErrNotFound, floor)
	}
	later, err := j.store.List(ctx, j.Object(LogPath(branch, task)), j.Object(ManifestPath(branch, task, e)), 1)
	if err != nil {
		return fmt.Errorf("%s: %w", j.name, err)
	}
	for _, listed := range later {
		if name, ok := ParsePath(listed.Name[len(j.name)+1:]); ok && name.Kind == ManifestObject {
			return j.damaged(at, ManifestPath(branch, task, e), "a manifest, since later epochs are there", "none")
		}
	}
	return nil
}

// Missed is rule S4, for who has met an error while reading what a manifest
// refers to: a [CleanedError] if an object was not there because the epoch was
// cleaned away meanwhile, otherwise the error as it is.
func (j *Job) Missed(ctx context.Context, m Manifest, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	floor, ferr := j.Floor(ctx, m.Branch, m.Task)
	if ferr != nil {
		return fmt.Errorf("%w; and whether it was cleaned away is not known: %w", err, ferr)
	}
	if floor <= m.Epoch {
		return err
	}
	return &CleanedError{At: At{j.name, m.Branch, m.Task, m.Epoch}, Floor: floor}
}
