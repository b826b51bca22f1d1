package runner

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
)

// saveAgainAfter is the pause behind a savepoint that could not be made.
const saveAgainAfter = 10 * time.Second

// saving makes savepoints by schedules, beside all else: no commit waits for one.
type saving struct {
	schedules []epoch.Schedule
	due       chan epoch.Manifest // has room for one
	stop      context.CancelFunc
	ended     chan struct{}

	mu   sync.Mutex
	made map[string]string // by schedule: the newest that is known to be there
}

// startSaving begins to make savepoints, if any are to be. It ends with the returned
// function.
func (r *runner) startSaving(ctx context.Context) (end func()) {
	if len(r.o.Savepoints) == 0 {
		return func() {}
	}
	g := &saving{
		schedules: r.o.Savepoints, due: make(chan epoch.Manifest, 1),
		ended: make(chan struct{}), made: map[string]string{},
	}
	hard := context.WithoutCancel(ctx)
	ctx, g.stop = context.WithCancel(hard)
	r.saving = g
	go func() {
		defer close(g.ended)
		r.saveLoop(ctx, hard, g)
	}()
	return func() {
		g.stop()
		<-g.ended
	}
}

// committed says that there is an epoch, which may be the first behind a full hour.
// Before the first data there is nothing to save.
func (g *saving) committed(m epoch.Manifest) {
	if g == nil || m.Live == nil || m.Position == 0 || len(g.lacking(m.Now)) == 0 {
		return
	}
	select {
	case g.due <- m:
	default: // it is at an earlier one; the next epoch comes here again
	}
}

// lacking are the schedules whose savepoint of a moment is not known to be there.
func (g *saving) lacking(now int64) (all []epoch.Schedule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.schedules {
		if g.made[s.Label] != s.NameAt(now) {
			all = append(all, s)
		}
	}
	return all
}

// saveLoop makes what is due until ctx ends; what was due then is made before it
// returns, so that short runs make theirs too.
func (r *runner) saveLoop(ctx, hard context.Context, g *saving) {
	for {
		select {
		case m := <-g.due:
			if r.trySave(hard, g, m) == nil {
				continue
			}
			if env.Pause(ctx, r.o.Env.Clock, saveAgainAfter) != nil {
				return
			}
		case <-ctx.Done():
			select {
			case m := <-g.due:
				r.trySave(hard, g, m)
			default:
			}
			return
		}
	}
}

func (r *runner) trySave(ctx context.Context, g *saving, m epoch.Manifest) error {
	err := r.save(ctx, g, m)
	if err != nil {
		r.o.Log.Warn("a savepoint of the schedule could not be made; it is tried again, and the job goes on", "epoch", m.Epoch, "error", err)
	}
	return err
}

// save makes what the schedules lack at an epoch, and drops what is beyond their
// numbers. What an owner before has made counts.
func (r *runner) save(ctx context.Context, g *saving, m epoch.Manifest) error {
	all, err := r.job.Savepoints(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, s := range g.lacking(m.Now) {
		at := epoch.Point{Branch: m.Branch, Tasks: map[string]epoch.Epoch{m.Task: m.Epoch}}
		made, err := r.saveOne(ctx, s, all, at, m.Now)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		var kept error
		for _, old := range s.Beyond(append(all, made...)) {
			kept = cmp.Or(kept, r.job.DropSavepoint(ctx, old))
		}
		if kept != nil { // it is lacking still, so that the next epoch tries again
			failed = cmp.Or(failed, kept)
			continue
		}
		g.mu.Lock()
		g.made[s.Label] = s.NameAt(m.Now)
		g.mu.Unlock()
	}
	return failed
}

// saveOne makes the savepoint of a schedule, unless it is among those that there are.
func (r *runner) saveOne(ctx context.Context, s epoch.Schedule, all []epoch.Savepoint, at epoch.Point, now int64) (made []epoch.Savepoint, err error) {
	name := s.NameAt(now)
	for _, there := range all {
		if there.Name == name && there.Schedule == s.Label {
			return nil, nil
		}
	}
	savepoint, err := r.job.MakeSavepoint(ctx, epoch.Savepoint{Name: name, Point: at, By: "the schedule " + s.String(), Schedule: s.Label})
	if err != nil {
		return nil, err
	}
	r.o.Log.Info("savepoint made", "savepoint", name, "epoch", at.Tasks[epoch.FirstTask])
	return []epoch.Savepoint{savepoint}, nil
}
