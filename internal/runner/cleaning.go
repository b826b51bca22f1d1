package runner

import (
	"context"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
)

const (
	// cleanEvery is the longest time between two clean-ups of a job that commits.
	cleanEvery = time.Minute
	// allEvery is after how many of them the other branches are cleaned up as well.
	allEvery = 30
	// cleanPause is the pause after each [clean.PauseEvery] removals: five hundred
	// a second at most. A removal takes about 0.15 ms of CPU, so that a long past
	// takes less than a tenth of a core from the job. A job that makes more than
	// that is cleaned up without pauses.
	cleanPause = 200 * time.Millisecond
)

// cleaning removes epochs that need not be kept any longer, beside all else.
type cleaning struct {
	due   chan struct{} // has room for one
	since int           // epochs since the last clean-up was due
	hurry bool          // the last clean-up took longer than it took to need the next
	stop  context.CancelFunc
	ended chan struct{}
}

// startCleaning begins to clean up. It ends with the returned function.
func (r *runner) startCleaning(ctx context.Context) (end func()) {
	if r.o.KeepEpochs < 0 {
		return func() {}
	}
	g := &cleaning{due: make(chan struct{}, 1), ended: make(chan struct{})}
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.cleaning = g
	go func() {
		defer close(g.ended)
		r.cleanLoop(ctx, g)
	}()
	return func() {
		g.stop()
		<-g.ended
	}
}

// committed says that there is a new epoch; after half as many as are kept it is
// time to clean up.
func (g *cleaning) committed(keep int) {
	if g == nil {
		return
	}
	if g.since++; g.since < keep/2 {
		return
	}
	g.since = 0
	select {
	case g.due <- struct{}{}:
	default:
	}
}

func (r *runner) cleanLoop(ctx context.Context, g *cleaning) {
	cleaner := clean.New(r.job, clean.Options{Keep: r.o.Keep, KeepEpochs: r.o.KeepEpochs, Log: r.o.Log, Pause: r.pauseCleaning})
	timer := r.o.Env.Clock.NewTimer(cleanEvery)
	defer timer.Stop()
	run := cleaner.All // now and then; else the log that grows
	var last epoch.Epoch
	looks := 0
	for {
		if head := r.owner.NextEpoch(); head != last {
			last = head
			_, err := run(ctx)
			if err == nil {
				err = r.abandon(ctx)
			}
			g.hurry = len(g.due) > 0
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				r.o.Log.Warn("clean-up has failed; it is tried again later, and the job goes on", "error", err)
			}
		}
		looks++
		if run = cleaner.All; looks%allEvery != 0 {
			run = func(ctx context.Context) (clean.Result, error) {
				return cleaner.Log(ctx, r.owner.Branch(), epoch.FirstTask)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-g.due:
		case <-timer.C():
		}
		timer.Reset(cleanEvery)
	}
}

// pauseCleaning waits for as long as a clean-up that goes on leaves the job to
// itself.
func (r *runner) pauseCleaning(ctx context.Context) error {
	if r.cleaning.hurry {
		return ctx.Err()
	}
	return env.Pause(ctx, r.o.Env.Clock, cleanPause)
}
