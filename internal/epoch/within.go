package epoch

import (
	"context"
	"errors"
)

// NewestWithin is the position of the newest kept epoch of a branch none of whose
// offsets lies beyond given ones: whoever begins at these follows from there, and skips
// what the branch has read before them. It is 0 if there is none.
func (j *Job) NewestWithin(ctx context.Context, branch, task string, offsets map[string]SourceState) (Position, error) {
	head, err := j.Head(ctx, branch, task)
	if err != nil {
		return 0, err
	}
	low, err := j.Floor(ctx, branch, task)
	if err != nil {
		return 0, err
	}
	var found Position
	for high := head.Manifest.Epoch; low <= high; {
		middle := low + (high-low)/2
		m, _, err := j.manifest(ctx, branch, task, middle)
		if missing := (*missingError)(nil); errors.As(err, &missing) {
			low = middle + 1
			continue
		}
		if err != nil {
			return 0, err
		}
		if Within(m.Sources, offsets) {
			found, low = m.Position, middle+1
		} else if middle == 0 {
			break
		} else {
			high = middle - 1
		}
	}
	return found, nil
}

// OldestKept is the oldest manifest from which on every epoch of the chain of live
// branches is kept.
func (j *Job) OldestKept(ctx context.Context, task string) (oldest Manifest, err error) {
	chain, err := j.Chain(ctx, task)
	if err != nil {
		return oldest, err
	}
	for i := len(chain) - 1; i >= 0; i-- {
		link := chain[i]
		if link.Ended() && link.Hash == "" {
			continue // it had no epochs
		}
		floor, err := j.Floor(ctx, link.Branch, task)
		if err != nil {
			return oldest, err
		}
		if floor == AllEpochs || link.Ended() && floor > link.Final {
			break
		}
		m, _, err := j.manifest(ctx, link.Branch, task, floor)
		if missing := (*missingError)(nil); errors.As(err, &missing) {
			break // what comes before it is gone as well
		}
		if err != nil {
			return oldest, err
		}
		if oldest = m; m.Position > link.From {
			break
		}
	}
	if oldest.Branch == "" {
		return oldest, &NoLogError{At: At{Job: j.name, Task: task}}
	}
	return oldest, nil
}
