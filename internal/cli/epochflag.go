package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// epochName is how a person names an epoch: by its number or the name of a savepoint.
// Empty is the newest.
type epochName string

// String implements pflag.Value.
func (e *epochName) String() string { return string(*e) }

// Type implements pflag.Value.
func (*epochName) Type() string { return "epoch" }

// Set implements pflag.Value.
func (e *epochName) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < 0 {
		text = "" // the newest
	}
	*e = epochName(text)
	return nil
}

// number is the epoch's number, if it is one.
func (e epochName) number() (epoch.Epoch, bool) {
	n, err := strconv.ParseUint(string(e), 10, 64)
	return epoch.Epoch(n), err == nil
}

// manifest reads the manifest of the epoch that is meant: of a branch, or where a
// savepoint says. A savepoint's may be older than all else that is kept.
func (e epochName) manifest(ctx context.Context, job *epoch.Job, branch string) (m epoch.Manifest, err error) {
	number, ok := e.number()
	if e != "" && !ok {
		return savepointManifest(ctx, job, string(e), branch)
	}
	if branch == "" {
		if branch, err = liveBranch(ctx, job); err != nil {
			return m, err
		}
	}
	if e == "" {
		head, err := job.Head(ctx, branch, epoch.FirstTask)
		return head.Manifest, err
	}
	m, err = job.Manifest(ctx, branch, epoch.FirstTask, number)
	if !errors.Is(err, store.ErrNotFound) {
		return m, err
	}
	if kept, ok, kerr := pinnedManifest(ctx, job, branch, number); kerr != nil || ok {
		return kept, kerr
	}
	return m, fmt.Errorf("%w; `sluice log %s --limit 0` lists the epochs that are kept, `sluice savepoint list %s` those that have names", err, job.Name(), job.Name())
}

// savepointManifest reads the epoch of the newest savepoint of a name; branch, if it
// isn't empty, is the one that is expected.
func savepointManifest(ctx context.Context, job *epoch.Job, name, branch string) (m epoch.Manifest, err error) {
	s, ok, err := job.Savepoint(ctx, name)
	if err != nil {
		return m, err
	}
	if !ok {
		return m, usagef("%s: epoch %s: neither a number nor a savepoint; `sluice savepoint list %s` lists these", job.Name(), name, job.Name())
	}
	if branch != "" && s.Branch != branch {
		return m, usagef("%s: savepoint %s is of branch %s, not of %s; leave --branch out", job.Name(), name, s.Branch, branch)
	}
	e := s.Tasks[epoch.FirstTask]
	m, err = job.ManifestBelow(ctx, s.Branch, epoch.FirstTask, e)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s: savepoint %s: its epoch %d of branch %s has gone: it was made too late, and is none; `sluice savepoint drop %s %s` takes it away", job.Name(), name, e, s.Branch, name, job.Name())
	}
	return m, err
}

// pinnedManifest reads an epoch under the floor, if a savepoint keeps it.
func pinnedManifest(ctx context.Context, job *epoch.Job, branch string, e epoch.Epoch) (m epoch.Manifest, ok bool, err error) {
	all, err := job.Savepoints(ctx)
	if err != nil {
		return m, false, err
	}
	for _, s := range all {
		if at, has := s.Tasks[epoch.FirstTask]; has && at == e && s.Branch == branch {
			m, err = job.ManifestBelow(ctx, branch, epoch.FirstTask, e)
			if errors.Is(err, store.ErrNotFound) {
				return m, false, nil
			}
			return m, err == nil, err
		}
	}
	return m, false, nil
}
