package runner

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/epoch"
)

// groups tells the sources' systems how far the job has read, for people and
// their tools: the offsets of the newest epoch that every sink has. Nothing is
// ever decided by them.
type groups struct {
	r       *runner
	readers map[string]connector.GroupReader // by source
	stop    context.CancelFunc
	ending  sync.WaitGroup

	telling sync.Mutex // held while the systems are told

	mu      sync.Mutex
	reached []reached // epochs that some sink lacks, or that were not told, oldest first
	told    map[string]epoch.Position
	failing string // the last try's error
}

// reached is how far the sources have been read up to a position.
type reached struct {
	position epoch.Position
	sources  map[string]epoch.SourceState
}

// tellAgain is the time after which what could not be told is tried again.
const tellAgain = time.Second

// newGroups decides who tells which system. Where the job's only sink is in a
// source's own, the sink does in its transactions.
func (r *runner) newGroups(readers map[string]connector.GroupReader) *groups {
	g := &groups{r: r, readers: readers, told: map[string]epoch.Position{}, stop: func() {}}
	r.told = map[string]string{}
	if len(r.sinks) == 1 {
		if target, ok := r.sinks[0].target.(connector.GroupTarget); ok {
			for source, reader := range readers {
				if reader.Cluster() == target.Cluster() {
					r.told[source] = reader.Group()
				}
			}
		}
	}
	maps.DeleteFunc(g.readers, func(source string, _ connector.GroupReader) bool { return r.told[source] != "" })
	return g
}

// start begins to tell.
func (g *groups) start(ctx context.Context) {
	if len(g.readers) == 0 {
		return
	}
	g.end() // what was told of a branch that followed
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	head, _ := g.r.owner.Head()
	g.mu.Lock()
	g.reached = nil
	g.mu.Unlock()
	g.add(head)
	g.ending.Go(func() { g.loop(ctx) })
}

// someDelivered wakes whoever tells the groups.
func (r *runner) someDelivered() {
	select {
	case r.delivered <- struct{}{}:
	default:
	}
}

// add notes an epoch that was committed. There are never more than may be owed to
// a sink.
func (g *groups) add(m epoch.Manifest) {
	if len(g.readers) == 0 || g.r.following.Load() {
		return
	}
	g.mu.Lock()
	g.reached = append(g.reached, reached{m.Position, m.Sources})
	g.mu.Unlock()
	g.r.someDelivered()
}

// follow begins to tell how far a branch that follows has read, about once a second,
// until it is live.
func (g *groups) follow(ctx context.Context, readers map[string]connector.GroupReader) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = cancel
	told := map[string]connector.BranchGroupReader{}
	for source, reader := range readers {
		if branch, ok := reader.(connector.BranchGroupReader); ok {
			told[source] = branch
		}
	}
	if len(told) == 0 {
		return
	}
	g.ending.Go(func() {
		var last epoch.Epoch
		for g.r.following.Load() && env.Pause(ctx, g.r.o.Env.Clock, tellAgain) == nil {
			head, _ := g.r.owner.Head()
			if head.Epoch == last {
				continue
			}
			last = head.Epoch
			for source, reader := range told {
				within, cancel := env.Within(ctx, g.r.o.Env.Clock, groupsWithin)
				err := reader.CommitBranchOffsets(within, head.Branch, deliver.Offsets(head.Sources[source]))
				if cancel(); err != nil && err.Error() != g.failing && ctx.Err() == nil {
					g.failing = err.Error()
					g.r.o.Log.Warn("the source's system could not be told how far the branch has read; it is tried again, and nothing depends on it",
						"source", source, "branch", head.Branch, "error", err)
				}
			}
		}
	})
}

// end stops telling.
func (g *groups) end() {
	g.stop()
	g.ending.Wait()
}

func (g *groups) loop(ctx context.Context) {
	again := g.r.o.Env.Clock.NewTimer(tellAgain)
	again.Stop()
	defer again.Stop()
	for {
		select {
		case <-g.r.delivered:
		case <-again.C():
		case <-ctx.Done():
			return
		}
		if !g.tell(ctx) {
			again.Reset(tellAgain)
		}
	}
}

// flush tells what can be told by now, before the job ends.
func (g *groups) flush(ctx context.Context) {
	if len(g.readers) > 0 {
		g.tell(ctx)
	}
}

// due is the newest epoch that every sink has; false if there is none to tell of.
func (g *groups) due() (reached, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for n < len(g.reached) && g.r.deliveredTo(g.reached[n].position) {
		n++
	}
	if n == 0 {
		return reached{}, false
	}
	at := g.reached[n-1]
	g.reached = g.reached[n-1:]
	return at, true
}

// deliveredTo tells whether every sink has what there is up to a position.
func (r *runner) deliveredTo(position epoch.Position) bool {
	for _, s := range r.sinks {
		if s.deliver == nil || s.deliver.Confirmed() < position {
			return false
		}
	}
	return true
}

// tell tells each system what is due, and whether that went well.
func (g *groups) tell(ctx context.Context) bool {
	g.telling.Lock()
	defer g.telling.Unlock()
	at, ok := g.due()
	if !ok {
		return true
	}
	all := true
	for source, reader := range g.readers {
		position, told := g.told[source]
		if told && position == at.position {
			continue
		}
		if err := g.tellOne(ctx, reader, at.sources[source]); err != nil {
			all = false
			if text := err.Error(); text != g.failing && ctx.Err() == nil {
				g.failing = text
				g.r.o.Log.Warn("the source's system could not be told how far the job has read; it is tried again, and nothing depends on it",
					"source", source, "group", reader.Group(), "error", err)
			}
			continue
		}
		g.told[source], g.failing = at.position, ""
	}
	return all
}

func (g *groups) tellOne(ctx context.Context, reader connector.GroupReader, s epoch.SourceState) error {
	ctx, cancel := env.Within(ctx, g.r.o.Env.Clock, groupsWithin)
	defer cancel()
	return reader.CommitOffsets(ctx, deliver.Offsets(s))
}
