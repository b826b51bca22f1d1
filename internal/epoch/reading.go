package epoch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// readersPin begins the ids of pins of processes that only read.
const readersPin = "read-"

const (
	// readersPinHolds is how long a reader's pin counts, by the time in it: longer
	// than clocks differ, and short enough that one whose process has died holds
	// little back.
	readersPinHolds = time.Hour
	// readersPinRenewed is how often a reader makes a new one.
	readersPinRenewed = 10 * time.Minute
)

// Reading calls read while clean-up leaves some epochs of the job alone: each is
// pinned first, then the floors are read (H11). One that is gone by then is a
// [CleanedError]; one that a savepoint names is not, wherever the floor is. by is
// who reads, for people. If a pin can't be made, unpinned tells whether to read all
// the same.
//
// Whoever reads writes nothing that refers to what was read, so that a reader's pin
// may go at any time: the reader then finds that its epoch was cleaned away. So it
// goes when it is old ([Job.DropReadersPins]), and a reader that takes long makes
// new ones.
func (j *Job) Reading(ctx context.Context, epochs []Manifest, by string, unpinned func(err error) bool, read func(ctx context.Context) error) (err error) {
	r := &reading{job: j, epochs: epochs, by: by}
	defer func() {
		if uerr := r.unpin(context.WithoutCancel(ctx)); err == nil {
			err = uerr
		}
	}()
	if err := r.pin(ctx); err != nil {
		if !unpinned(err) {
			return err
		}
		r.pins = nil
		return read(ctx)
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { stop(r.renew(ctx)) })
	err = read(ctx)
	stop(nil)
	renewing.Wait()
	if cause := context.Cause(ctx); err != nil && errors.Is(err, context.Canceled) && !errors.Is(cause, context.Canceled) {
		err = cause // of the renewal
	}
	return err
}

// reading is a number of epochs that are being read.
type reading struct {
	job    *Job
	epochs []Manifest
	by     string
	pins   []string // ids
}

// pin makes a pin for each epoch.
func (r *reading) pin(ctx context.Context) error {
	for _, m := range r.epochs {
		random, err := r.job.env.ID()
		if err != nil {
			return err
		}
		id := readersPin + random
		pin := Pin{
			Format: Format, JobID: r.job.file.JobID, Point: Point{Branch: m.Branch, Tasks: map[string]Epoch{m.Task: m.Epoch}},
			Reader: true, By: r.by, Time: r.job.now(),
		}
		data, err := encode(pin)
		if err != nil {
			return fmt.Errorf("%s: pin %s: %w", r.job.name, id, err)
		}
		r.pins = append(r.pins, id) // it may be there even if the store fails
		if err := r.job.putNew(ctx, PinPath(id), data); err != nil {
			return err
		}
	}
	return nil
}

// check sees that the pins came in time.
func (r *reading) check(ctx context.Context) error {
	for _, m := range r.epochs {
		floor, err := r.job.Floor(ctx, m.Branch, m.Task)
		if err != nil {
			return err
		}
		if floor <= m.Epoch {
			continue
		}
		saved, err := r.job.saved(ctx, m)
		if err != nil {
			return err
		}
		if !saved {
			return &CleanedError{At: At{r.job.name, m.Branch, m.Task, m.Epoch}, Floor: floor}
		}
	}
	return nil
}

// saved tells whether a savepoint names an epoch.
func (j *Job) saved(ctx context.Context, m Manifest) (bool, error) {
	savepoints, err := j.Savepoints(ctx)
	return slices.ContainsFunc(savepoints, func(s Savepoint) bool {
		e, ok := s.Tasks[m.Task]
		return ok && s.Branch == m.Branch && e == m.Epoch
	}), err
}

// renew makes new pins from time to time, and takes the old ones away after.
func (r *reading) renew(ctx context.Context) error {
	for {
		if err := env.Pause(ctx, r.job.env.Clock, readersPinRenewed); err != nil {
			return err
		}
		old := r.pins
		r.pins = slices.Clone(old)
		if err := r.pin(ctx); err != nil {
			return err
		}
		for _, id := range old {
			if err := r.job.DeletePin(ctx, id); err != nil {
				return err
			}
			r.pins = r.pins[1:]
		}
	}
}

func (r *reading) unpin(ctx context.Context) error {
	for _, id := range r.pins {
		if err := r.job.DeletePin(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// DropReadersPins takes away readers' pins that are an hour old: the processes have
// ended without, or their clocks are far behind, and then they find that out.
func (j *Job) DropReadersPins(ctx context.Context) error {
	pins, err := j.Pins(ctx)
	if err != nil {
		return err
	}
	for id, pin := range pins {
		if !pin.Reader || j.now()-pin.Time < readersPinHolds.Microseconds() {
			continue
		}
		if err := j.DeletePin(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}
