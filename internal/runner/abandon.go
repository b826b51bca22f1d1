package runner

import (
	"context"
	"errors"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

// abandon gives branches up that nobody has followed on for a long time: until then
// they hold clean-up back. Days are told apart by the clocks of processes.
func (r *runner) abandon(ctx context.Context) error {
	if r.o.AbandonAfter <= 0 {
		return nil
	}
	if _, live := r.owner.Live(); !live {
		return nil
	}
	all, err := upgrade.Look(ctx, r.job, epoch.FirstTask)
	if err != nil {
		return err
	}
	before := r.job.Now() - r.o.AbandonAfter.Microseconds()
	for _, b := range all.All {
		if b.Standing != upgrade.Follows || b.LastSign() >= before {
			continue
		}
		last := time.UnixMicro(b.LastSign()).UTC()
		if err := r.job.GiveUp(ctx, b.Name, epoch.ThisProcess(), "the live branch's owner, since nobody has followed on it for "+r.o.AbandonAfter.String()); err != nil {
			if _, cut := errors.AsType[*epoch.CutUnderWayError](err); cut {
				return nil // this owner's branch has ended, and the next one's looks again
			}
			return err
		}
		r.o.Log.Warn("a branch was given up on which nobody has followed for a long time: it held clean-up back; start the upgrade again for a new one",
			"branch", b.Name, "since", last.Format(time.RFC3339), "after", r.o.AbandonAfter.String())
	}
	return nil
}
