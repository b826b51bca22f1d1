package epoch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/store"
)

// Objects that are never removed, and that a job's other objects show to have
// been there, are damage if they are not: making them anew would hide what else
// is lost.

// checkRecords finds live records and the branch's own record missing.
func (j *Job) checkRecords(ctx context.Context, head Head, live LiveRecord, haveLive bool) error {
	m := head.Manifest
	if m.Live != nil && (!haveLive || live.N < *m.Live) {
		return j.damaged(At{}, LivePath(*m.Live), fmt.Sprintf("live record %d, under which epoch %d of branch %s was written", *m.Live, m.Epoch, m.Branch), "none")
	}
	if m.JobID == "" {
		return nil // a seal in the base's place: there is nothing to say
	}
	_, err := j.BranchFile(ctx, m.Branch)
	if errors.Is(err, store.ErrNotFound) {
		return j.damaged(At{Branch: m.Branch}, BranchPath(m.Branch), "the branch's record, since it has epochs", "none")
	}
	return err
}

// lostLog is what it means that no log was found, of a branch that is live: that
// one has a base, so either it is lost, or the floor that would say where the
// log begins is.
func (j *Job) lostLog(ctx context.Context, err error, live bool) error {
	var none *NoLogError
	if !live || !errors.As(err, &none) {
		return err
	}
	first, listErr := j.unbroken(ctx, none.Branch, none.Task)
	if listErr != nil {
		return listErr
	}
	if first > 0 {
		return j.damaged(At{j.name, none.Branch, none.Task, first}, FloorPath(none.Branch, none.Task, first),
			fmt.Sprintf("a floor, since the log begins with epoch %d", first), "none")
	}
	return j.damaged(At{j.name, none.Branch, none.Task, 0}, ManifestPath(none.Branch, none.Task, 0),
		"a manifest, since the branch has been live and no floor says that it was cleaned away", "none")
}

// namesAtOnce is how many names are listed at once where a log is looked through.
const namesAtOnce = 50_000

// unbroken is the epoch with which the last unbroken row of manifests begins, up
// to the log's end; 0 if there is none. Those before it are pinned.
func (j *Job) unbroken(ctx context.Context, branch, task string) (begin Epoch, err error) {
	log := j.Object(LogPath(branch, task))
	before, any := Epoch(0), false
	for _, first := range []string{"0", "1"} { // the digits that 20 can begin with
		for after, more := "", true; more; {
			found, err := j.store.List(ctx, log+first, after, namesAtOnce)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", j.name, err)
			}
			for _, listed := range found {
				after = listed.Name
				name, ok := ParsePath(strings.TrimPrefix(listed.Name, j.Object("")))
				if !ok || name.Kind != ManifestObject {
					continue
				}
				if !any || name.Epoch != before+1 {
					begin = name.Epoch
				}
				before, any = name.Epoch, true
			}
			more = len(found) == namesAtOnce
		}
	}
	return begin, nil
}

// checkNew finds that a job which seems to be new is not: job.json is the first
// of its objects to be made.
func checkNew(ctx context.Context, s store.Store, job string) error {
	found, err := s.List(ctx, job+"/", "", 1)
	if err != nil {
		return fmt.Errorf("%s: %w", job, err)
	}
	if len(found) == 0 || found[0].Name == job+"/"+JobPath {
		return nil // somebody else has just made it
	}
	if exists, err := s.Exists(ctx, job+"/"+JobPath); err != nil || exists {
		return err // somebody else has just made it, and more
	}
	return &DamagedError{
		At: At{Job: job}, Object: job + "/" + JobPath,
		Expected: "the job's record, since its folder holds " + strings.TrimPrefix(found[0].Name, job+"/"), Found: "none",
	}
}
