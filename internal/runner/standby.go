package runner

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/vitals"
)

// take takes the branch once nobody else owns it (T1 to T5).
func (r *runner) take(ctx context.Context, me epoch.Identity) (err error) {
	standby := epoch.Standby{
		Lease: r.o.Lease, TakeOver: r.o.TakeOver, Me: me, Known: r.pulse.known,
		Waiting: func(head epoch.Manifest) {
			r.o.Board.SetRole(vitals.Standby)
			r.o.Log.Info("standing by: another process runs the job; this one goes on when that is gone",
				"owner", head.Owner, "writer", head.Writer.String(), "epoch", head.Epoch, "lease", r.o.Lease.String())
		},
	}
	for {
		if err := r.job.AwaitLive(ctx, epoch.FirstTask, standby); err != nil {
			return err
		}
		r.o.Board.SetRole(vitals.Starting)
		if err := r.check(ctx); err != nil { // by a head that may be another than when the wait began
			return err
		}
		var fenced *epoch.FencedError
		if r.owner, err = r.job.TakeLive(ctx, epoch.FirstTask, me); !errors.As(err, &fenced) {
			return err
		}
		// Another one was quicker. This process has owned nothing, so that it may
		// stand by; taking it over at once would begin a duel.
		standby.TakeOver = false
		r.o.Log.Info("another process was quicker", "owner", fenced.Owner, "writer", fenced.Writer.String())
	}
}
