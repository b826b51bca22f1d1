package epoch

import (
	"context"
	"fmt"
)

// TooLateError says that an epoch had been given up to clean-up before it was
// pinned: what it refers to may be gone.
type TooLateError struct {
	At
	// Name is the savepoint's.
	Name string
	// Floor is the oldest epoch that is kept.
	Floor Epoch
}

// Error implements error.
func (e *TooLateError) Error() string {
	return fmt.Sprintf("%s: savepoint %s came too late: epochs before %d are being cleaned away. The savepoint was taken back; use a newer epoch, `sluice log %s --limit 0` lists those that are kept.",
		e.At, e.Name, e.Floor, e.Job)
}

// MakeSavepoint gives a name to an epoch of each task, and makes sure that it is
// in time (H11): clean-up writes its floor before it reads the savepoints, so that
// a savepoint under no floor that is read after it was put was seen. One that came
// too late is taken back, with a *[TooLateError]. The name may be one that there
// is; of several the newest counts. The caller has filled in Name, Point, By and
// Schedule.
func (j *Job) MakeSavepoint(ctx context.Context, s Savepoint) (Savepoint, error) {
	if len(s.Tasks) == 0 {
		return s, fmt.Errorf("%s: savepoint %s names no epoch", j.name, s.Name)
	}
	s, err := j.putSavepoint(ctx, s)
	if err != nil {
		return s, err
	}
	if err = j.inTime(ctx, s); err != nil {
		// Whatever kept the floor from being read: a savepoint of which nobody
		// knows whether it holds is none.
		if left := j.DropSavepoint(context.WithoutCancel(ctx), s); left != nil {
			err = fmt.Errorf("%w Yet it could not be: %w", err, left)
		}
	}
	return s, err
}

// inTime is the second half of H11.
func (j *Job) inTime(ctx context.Context, s Savepoint) error {
	for task, e := range s.Tasks {
		floor, err := j.Floor(ctx, s.Branch, task)
		if err != nil {
			return err
		}
		if floor > e {
			return &TooLateError{At: At{j.name, s.Branch, task, e}, Name: s.Name, Floor: floor}
		}
	}
	return nil
}

// PutSavepoint gives a name to an epoch of each task. It is the first half of
// [Job.MakeSavepoint]: like a pin it came too late if a floor that is read
// afterwards is above the epoch.
func (j *Job) PutSavepoint(ctx context.Context, name string, at Point, by string) (Savepoint, error) {
	return j.putSavepoint(ctx, Savepoint{Name: name, Point: at, By: by})
}

func (j *Job) putSavepoint(ctx context.Context, s Savepoint) (Savepoint, error) {
	if err := CheckName("savepoint", s.Name); err != nil {
		return s, err
	}
	id, err := j.env.ID()
	if err != nil {
		return s, err
	}
	s.Format, s.JobID, s.ID, s.Time = Format, j.file.JobID, id, j.now()
	data, err := encode(s)
	if err != nil {
		return s, fmt.Errorf("%s: savepoint %s: %w", j.name, s.Name, err)
	}
	return s, j.putNew(ctx, SavepointPath(s.Name, s.ID), data)
}

// DropSavepoint lets clean-up have what only this savepoint keeps. It is no error
// if it has gone already.
func (j *Job) DropSavepoint(ctx context.Context, s Savepoint) error {
	if err := CheckName("savepoint", s.Name); err != nil {
		return err
	}
	if err := j.store.Delete(ctx, j.Object(SavepointPath(s.Name, s.ID))); err != nil {
		return fmt.Errorf("%s: savepoint %s could not be dropped: %w", j.name, s.Name, err)
	}
	return nil
}

// Savepoint is the newest savepoint of a name, which is the one that counts; ok is
// false if there is none.
func (j *Job) Savepoint(ctx context.Context, name string) (s Savepoint, ok bool, err error) {
	all, err := j.Savepoints(ctx)
	if err != nil {
		return s, false, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, true, nil
		}
	}
	return s, false, nil
}
