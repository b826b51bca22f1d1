package epoch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// maxSeals bounds how often the next name of one log is tried: each time its owner
// has committed another epoch within the moments of one create.
const maxSeals = 1000

// sealer ends logs.
type sealer struct {
	job      *Job
	id       string
	writer   Writer
	by       string
	attempts int
}

// SealBranch is rule U6: it ends every log of a branch, and returns their ends by
// task. A log that somebody else has ended is as good, and one that is gone
// altogether has a zero head with a seal. It never undoes a seal, waits for nobody,
// and may be called again after a crash. by is who asks, for people.
func (j *Job) SealBranch(ctx context.Context, branch string, writer Writer, by string) (map[string]Head, error) {
	tasks, err := j.tasksOf(ctx, branch)
	if err != nil {
		return nil, err
	}
	id, err := j.env.ID()
	if err != nil {
		return nil, err
	}
	s := &sealer{job: j, id: id, writer: writer, by: by}
	ends := map[string]Head{}
	for _, task := range tasks {
		if ends[task], err = s.end(ctx, branch, task); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// end ends one log.
func (s *sealer) end(ctx context.Context, branch, task string) (Head, error) {
	at := At{Job: s.job.name, Branch: branch, Task: task}
	head, gone, err := s.job.endOf(ctx, branch, task, 0)
	looked := false
	for range maxSeals {
		if err != nil {
			return head, err
		}
		step, name := DecideSeal(head, gone)
		if at.Epoch = name; step != PutSeal {
			return head, nil
		}
		if step == PutSeal && !looked {
			looked = true
			if head, gone, err = s.lookBeyond(ctx, head, at); err != nil || head.Manifest.Epoch >= name && head.Hash != "" {
				continue
			}
		}
		verdict, holder, err := s.put(ctx, head, at)
		if err != nil {
			return head, err
		}
		if DecideLostSeal(verdict) == PutSeal {
			head = Head{Manifest: *holder.manifest, Hash: holder.hash}
			continue
		}
		head, gone, err = s.job.endOf(ctx, branch, task, name)
		if err != nil {
			return head, err
		}
	}
	return head, fmt.Errorf("%s: the branch's owner committed %d times while it was to be sealed; stop it, or try again", at, maxSeals)
}

// lookBeyond makes sure that nothing stands behind a head that is to be the last: a
// manifest that was lost in the middle of a log must not pass for its end. It returns
// the newer head if there is one by now.
func (s *sealer) lookBeyond(ctx context.Context, head Head, at At) (Head, bool, error) {
	err := s.job.explainGap(ctx, at.Branch, at.Task, at.Epoch)
	if err == nil {
		return head, false, nil
	}
	path := s.job.Object(ManifestPath(at.Branch, at.Task, at.Epoch))
	if there, xerr := s.job.store.Exists(ctx, path); xerr != nil || !there {
		floor, ferr := s.job.Floor(ctx, at.Branch, at.Task)
		if xerr != nil || ferr != nil || floor <= at.Epoch {
			return head, false, cmp.Or(xerr, ferr, err)
		}
	}
	return s.job.endOf(ctx, at.Branch, at.Task, at.Epoch)
}

// put creates the seal behind a head.
func (s *sealer) put(ctx context.Context, head Head, at At) (Verdict, entry, error) {
	s.attempts++
	m := Manifest{
		Format: Format, JobID: s.job.file.JobID, Branch: at.Branch, Task: at.Task, Epoch: at.Epoch, Kind: Seal, Parent: head.Hash,
		Owner: s.id, Attempt: fmt.Sprintf("%s-%d", s.id, s.attempts), Position: head.Manifest.Position,
		Version: head.Manifest.Version, Build: head.Manifest.Build, Writer: s.writer, Time: s.job.now(), By: s.by,
	}
	data, err := m.Encode()
	if err != nil {
		return 0, entry{}, fmt.Errorf("%s: the seal can't be written: %w", at, err)
	}
	verdict, holder, _, err := s.job.putEntry(ctx, at.Branch, at.Task, at.Epoch, data, 0)
	return verdict, holder, err
}

// endOf is the head of a log that may have no epochs, which is a zero one, or be gone.
func (j *Job) endOf(ctx context.Context, branch, task string, hint Epoch) (head Head, gone bool, err error) {
	head, err = j.headFrom(ctx, branch, task, hint)
	var none *NoLogError
	var void *VoidError
	switch {
	case errors.As(err, &none):
		return Head{}, false, nil
	case errors.As(err, &void):
		return Head{Seal: &Manifest{Kind: Seal, Branch: branch, Task: task}}, true, nil
	}
	return head, false, err
}
