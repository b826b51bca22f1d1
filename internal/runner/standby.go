package runner

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/vitals"
)

// try opens the sinks once, before an owner that works is shut out: a start that
// can't reach them would leave the job without any.
func (r *runner) try(ctx context.Context) error {
	head, _, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	if err := r.openSinks(ctx, head); err != nil {
		return err
	}
	for _, s := range r.sinks {
		if err := s.target.Close(); err != nil {
			return err
		}
	}
	r.sinks = nil
	return nil
}

// standby is how this process waits for an owner.
func (r *runner) standby(me epoch.Identity) epoch.Standby {
	return epoch.Standby{
		Lease: r.o.Lease, TakeOver: r.o.TakeOver, Me: me, Known: r.pulse.known.Load(),
		Waiting: func(head epoch.Manifest) {
			r.o.Board.SetRole(vitals.Standby)
			r.o.Log.Info("standing by: another process runs the job; this one goes on when that is gone",
				"owner", head.Owner, "writer", head.Writer.String(), "branch", head.Branch, "epoch", head.Epoch, "lease", r.o.Lease.String())
		},
	}
}

// take takes the branch once nobody else owns it (T1 to T5).
func (r *runner) take(ctx context.Context, me epoch.Identity) error {
	standby := r.standby(me)
	if r.o.TakeOver {
		if err := r.try(ctx); err != nil {
			return err
		}
	}
	for {
		head, err := r.job.AwaitOwner(ctx, epoch.FirstTask, standby)
		if err != nil {
			return err
		}
		if me.Awaited = &head; standby.TakeOver {
			me.Awaited = nil // from whoever has it
		}
		r.o.Board.SetRole(vitals.Starting)
		if err := r.check(ctx); err != nil { // by a head that may be another than when the wait began
			return err
		}
		var fenced *epoch.FencedError
		if r.owner, err = r.job.TakeLive(ctx, epoch.FirstTask, me); !errors.As(err, &fenced) && !errors.Is(err, epoch.ErrHeadMoved) {
			return err
		}
		// Another one was quicker. This process has owned nothing, so that it may
		// stand by; taking it over at once would begin a duel.
		standby.TakeOver = false
		r.o.Log.Info("another process was quicker", "error", err)
	}
}
