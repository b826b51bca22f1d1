package runner

import (
	"context"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
)

// At a cut the ended branch's owner is in the middle of a delivery as often as not. Whoever
// begins to deliver where that shuts others out (a producer of Kafka) undoes it, and makes
// all of it again, while consumers wait. So the owner that ends lets it come to its end,
// and the one that begins waits for that. Nothing depends on either: both may die, or be
// late.

const (
	// lastWithin bounds how long an owner that has a successor lets deliveries end that
	// are under way.
	lastWithin = 2 * time.Second
	// handOverWithin bounds how long a successor waits for them, handOverLook is the time
	// between two looks.
	handOverWithin = 250 * time.Millisecond
	handOverLook   = 10 * time.Millisecond
)

// endDeliveries ends the deliveries of an owner that has a successor (Q2): it begins none,
// but to sinks which that one has dropped, and lets those end that are under way.
func (r *runner) endDeliveries(ctx context.Context, live epoch.LiveRecord) error {
	for _, s := range r.sinks {
		if s.deliver != nil && live.Sinks[s.spec.Name].Dropped != epoch.ToDrain {
			s.deliver.Cease()
		}
	}
	if err := r.drainDropped(ctx, live); err != nil {
		return err
	}
	for _, s := range r.sinks {
		if s.deliver != nil {
			s.deliver.Cease()
		}
	}
	r.deliveriesEnd(lastWithin)
	return nil
}

// awaitLast waits, before the first delivery to a sink behind a cut, for what the ended
// branch's owner is delivering, where to begin would undo that. owed is what the sink is
// owed from before: nothing of the branch's own can come before it.
func (r *runner) awaitLast(ctx context.Context, s *sink, owed []epoch.Owed) {
	if _, undoes := s.target.(connector.OpenEndsTarget); !undoes || !r.handedOver || len(owed) == 0 {
		return
	}
	within, cancel := env.Within(ctx, r.o.Env.Clock, handOverWithin)
	defer cancel()
	// That this took too long is no failure of the sink's, which would look for its cause.
	looking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(within, stop)()
	last, first := owed[len(owed)-1].To, epoch.Position(0)
	for looks := 0; ; looks++ {
		found, err := s.target.Record(looking)
		if err != nil || found == nil {
			return // what is wrong with it the delivery will tell
		}
		stands := epoch.Position(found.Position)
		if looks == 0 {
			first = stands
		}
		if stands >= last || stands > first { // with all, or with the one that was under way
			return
		}
		if env.Pause(within, r.o.Env.Clock, handOverLook) != nil {
			return
		}
	}
}
