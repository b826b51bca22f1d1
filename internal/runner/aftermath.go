package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/vitals"
)

// heirEvery is the time between two looks for the generation behind a seal.
const heirEvery = time.Second

// afterSeal is rule Q: what a process does whose branch was sealed. It delivers its own
// epochs as long as nobody else is live, and tells then how to go on: with other
// options, or with the error that ends it.
func (r *runner) afterSeal(ctx context.Context, sealed *epoch.SealedError) (next *Options, err error) {
	me := epoch.Identity{Build: r.o.Build, Replace: r.o.Replace}
	owner := r.owner != nil
	r.o.Log.Info("the branch has ended: nothing is read any more, and what is owed is delivered until another branch is live", "branch", sealed.Branch, "by", sealed.By)
	r.o.Board.SetRole(vitals.Stopping)
	var still time.Duration
	for {
		step, live, err := r.job.LookEnded(ctx, sealed.Branch, epoch.FirstTask, epoch.Aftermath{
			Me: me, Owner: owner, Still: still.Microseconds(), After: r.o.ResumeAfter.Microseconds(), Resume: r.o.ResumeNow,
		})
		if err != nil {
			return nil, err
		}
		switch step {
		case epoch.ResumeNow:
			r.o.Log.Warn("nobody has gone on behind the seal: this build does", "branch", sealed.Branch, "waited", still.String())
			o := r.o
			o.known = r.pulse.known.Load()
			point, err := r.endOf(ctx, sealed.Branch)
			if err != nil {
				return nil, err
			}
			o.Follow = &Following{Kind: epoch.Resume, Name: "resume", From: &point, Auto: true}
			return &o, nil
		case epoch.EndSuperseded:
			if owner {
				if err := r.endDeliveries(ctx, live); err != nil {
					return nil, err
				}
			}
			if r.o.FollowAfterCut {
				o := r.o
				o.known = r.pulse.known.Load()
				point, err := r.endOf(ctx, sealed.Branch)
				if err != nil {
					return nil, err
				}
				o.Follow = &Following{Kind: epoch.Rollback, Name: string(epoch.Rollback), From: &point, Again: true}
				return &o, nil
			}
			return nil, r.superseded(ctx, live)
		case epoch.StandByAgain:
			o := r.o
			o.known = r.pulse.known.Load()
			o.Follow = nil
			return &o, nil
		case epoch.EndGivenUp:
			head, err := r.job.Head(ctx, live.Branch, epoch.FirstTask)
			if err != nil {
				return nil, err
			}
			return nil, &GivenUpError{At: epoch.At{Job: r.o.Job, Branch: sealed.Branch, Task: epoch.FirstTask}, By: sealed.By, Sealed: head.Sealed()}
		}
		if err := r.askedMeanwhile(ctx); err != nil {
			return nil, err
		}
		if err := env.Pause(ctx, r.o.Env.Clock, heirEvery); err != nil {
			return nil, err
		}
		r.o.Board.Alive()
		still += heirEvery
	}
}

// askedMeanwhile sees requests to stop, which end the run as a signal does.
func (r *runner) askedMeanwhile(ctx context.Context) error {
	if r.pulse.stop != nil { // the heartbeat has ended, or is about to: it reads them no more
		r.pulse.stop()
		r.pulse.ending.Wait()
	}
	found, err := r.job.RequestsAfter(ctx, r.pulse.known.Load())
	if err != nil {
		return err
	}
	for _, request := range found {
		if r.pulse.known.Store(request.N); request.Kind.Stops() {
			r.pulse.done(request)
			r.halt()
			return context.Canceled
		}
	}
	return nil
}

// drainDropped delivers what sinks are owed that the next generation has dropped, for
// at most the grace: nobody else may have them any more. What is left then stays owed.
func (r *runner) drainDropped(ctx context.Context, live epoch.LiveRecord) error {
	waiting, cancel := env.Within(ctx, r.o.Env.Clock, r.o.Grace)
	defer cancel()
	for _, s := range r.sinks {
		if live.Sinks[s.spec.Name].Dropped != epoch.ToDrain || s.deliver == nil {
			continue
		}
		if s.deliver.Wait(waiting, 0) != nil {
			r.o.Log.Warn("a sink that the next build lacks did not get all that it is owed; this build's `deliver` brings the rest",
				"sink", s.spec.Name, "pending", s.deliver.Pending())
			continue
		}
		_, span := s.deliver.Reached()
		if err := r.job.PutDrained(ctx, live.N, epoch.FirstTask, s.spec.Name, span); err != nil {
			return err
		}
		r.o.Log.Info("delivered the rest of a sink that the next build lacks", "sink", s.spec.Name)
	}
	return nil
}

// endOf is the final epoch of a branch that has ended.
func (r *runner) endOf(ctx context.Context, branch string) (epoch.Point, error) {
	head, err := r.job.Head(ctx, branch, epoch.FirstTask)
	return epoch.Point{Branch: branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: head.Manifest.Epoch}}, err
}

// superseded is the error of a build that another one's branch has replaced.
func (r *runner) superseded(ctx context.Context, live epoch.LiveRecord) error {
	at := epoch.At{Job: r.o.Job, Branch: live.Branch, Task: epoch.FirstTask}
	e := &epoch.SupersededError{At: at, Build: r.o.Build}
	head, err := r.job.Head(ctx, live.Branch, epoch.FirstTask)
	var none *epoch.NoLogError
	if err != nil && !errors.As(err, &none) {
		return err
	}
	e.Epoch, e.Now = head.Manifest.Epoch, head.Manifest.Build
	return e
}

// GivenUpError says that the branch that a process followed on was given up.
type GivenUpError struct {
	epoch.At
	// By is who gave it up.
	By string
	// Sealed tells that the live branch has been sealed: a cut had begun.
	Sealed bool
}

// Error implements error.
func (e *GivenUpError) Error() string {
	by := e.By
	if by == "" {
		by = "somebody"
	}
	rest := "The live branch was not touched; run `upgrade` again for a new one."
	if e.Sealed {
		rest = "The cut had begun, and the live branch is sealed: nobody reads the job until a build goes on. One that waits does so after its --resume-after; run `JOB resume` with the one that is to go on for it to do so now."
	}
	return fmt.Sprintf("%s: the branch was given up by %s. %s", e.At, by, rest)
}

// ExitCode is the exit code of the command line.
func (e *GivenUpError) ExitCode() int { return 12 }

// checkSealed refuses to resume a job whose live branch has not ended.
func (r *runner) checkSealed(ctx context.Context) error {
	m, begun, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	head := epoch.Head{}
	if begun {
		if head, err = r.job.HeadNear(ctx, m.Branch, m.Task, m.Epoch); err != nil {
			return err
		}
	}
	if !head.Sealed() {
		return &NotSealedError{At: epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}}
	}
	return nil
}

// NotSealedError says that there is nothing to resume.
type NotSealedError struct{ epoch.At }

// Error implements error.
func (e *NotSealedError) Error() string {
	return fmt.Sprintf("%s: the live branch goes on: expected one that was sealed, with nothing after it. Nothing was changed; run the job with `run`.", e.At)
}

// ExitCode is the exit code of the command line.
func (e *NotSealedError) ExitCode() int { return 13 }
