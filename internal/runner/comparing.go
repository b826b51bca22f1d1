package runner

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// uncomparedAtMost bounds the followed epochs that wait for being compared: what a
// branch far behind takes in a few minutes. Beyond that they are counted as not
// compared.
const uncomparedAtMost = 100_000

// comparing compares the outputs of a branch that follows with those of the one that
// it follows, beside all else.
type comparing struct {
	r    *runner
	more chan struct{} // has room for one
	stop context.CancelFunc
	wait sync.WaitGroup

	mu      sync.Mutex
	pending []compared
	epochs  int // that the pending ones cover
	busy    bool
	added   int    // what was ever pending,
	looked  int    // what of it has been compared,
	caught  int    // and what of it came before the branch had caught up
	skipped string // why epochs were left out; empty if none were
	sinks   []*comparedSink
	failed  error
}

// compared is an epoch that covers others.
type compared struct {
	after   epoch.Position
	covered []epoch.Manifest
	own     epoch.Manifest
}

// comparedSink is the comparison of a sink that both have.
type comparedSink struct {
	name string
	c    *compare.Comparison
	past []compare.Result // of comparisons that ended at a gap
	last compare.Result
}

// startComparing begins to compare.
func (r *runner) startComparing(ctx context.Context) (*comparing, error) {
	g := &comparing{r: r, more: make(chan struct{}, 1)}
	for _, spec := range r.o.Graph.Sinks() {
		s := &comparedSink{name: spec.Name, last: compare.Result{Sink: spec.Name}}
		if err := g.renew(s); err != nil {
			return nil, err
		}
		g.sinks = append(g.sinks, s)
	}
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.wait.Go(func() { g.loop(ctx) })
	return g, nil
}

// renew begins a sink's comparison anew, behind a gap.
func (g *comparing) renew(s *comparedSink) (err error) {
	if s.c != nil {
		s.past = append(s.past, s.c.Result())
	}
	s.c, err = compare.New(g.r.o.Job, s.name, g.r.o.Follow.Compare[s.name])
	return err
}

// end stops comparing.
func (g *comparing) end() {
	if g != nil {
		g.stop()
		g.wait.Wait()
	}
}

// add adds an epoch that was committed. It never waits.
func (g *comparing) add(before epoch.Position, e *engine.Epoch, own epoch.Manifest) {
	if g == nil || len(e.Covered) == 0 {
		return
	}
	data := slices.DeleteFunc(slices.Clone(e.Covered), func(m epoch.Manifest) bool { return m.Kind != epoch.Data })
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(data, rewroteAny) { // of which this branch has nothing
		g.skipped = "epochs were left out with which a table was written anew"
		return
	}
	if g.epochs+len(data) > uncomparedAtMost {
		g.skipped = "the branch went on faster than its outputs could be compared"
		return
	}
	g.pending, g.epochs = append(g.pending, compared{before, data, own}), g.epochs+len(data)
	g.added++
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// rewroteAny tells whether an epoch has written a table's sink anew.
func rewroteAny(m epoch.Manifest) bool {
	for _, s := range m.Sinks {
		if s.Rewrote != nil {
			return true
		}
	}
	return false
}

func (g *comparing) loop(ctx context.Context) {
	for {
		select {
		case <-g.more:
		case <-ctx.Done():
			return
		}
		g.mu.Lock()
		pending := g.pending
		g.pending, g.epochs, g.busy = nil, 0, true
		g.mu.Unlock()
		err := g.compare(ctx, pending)
		g.mu.Lock()
		g.busy = false
		g.looked += len(pending)
		if err != nil && ctx.Err() == nil {
			g.failed = err
		}
		g.mu.Unlock()
	}
}

// compare compares a run of epochs.
func (g *comparing) compare(ctx context.Context, pending []compared) error {
	for _, s := range g.sinks {
		err := s.c.Run(ctx, g.side(pending, s.name, true), g.side(pending, s.name, false))
		var gap *compare.GapError
		switch {
		case err == nil:
		case errors.As(err, &gap), g.cleaned(ctx, pending, err):
			g.note("some epochs' outputs were cleaned up before they were compared")
			if err := g.renew(s); err != nil {
				return err
			}
		default:
			return err
		}
		result := s.c.Result()
		g.mu.Lock()
		s.last = result
		g.mu.Unlock()
	}
	return nil
}

func (g *comparing) note(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.skipped = why
}

// cleaned tells whether an outbox that can't be read was cleaned up (S4).
func (g *comparing) cleaned(ctx context.Context, pending []compared, err error) bool {
	var damaged *epoch.DamagedError
	if !errors.As(err, &damaged) && !errors.Is(err, store.ErrNotFound) {
		return false
	}
	for _, p := range pending {
		for _, m := range append(slices.Clone(p.covered[:1]), p.own) {
			if floor, err := g.r.job.Floor(ctx, m.Branch, m.Task); err == nil && floor > m.Epoch {
				return true
			}
		}
	}
	return false
}

// side is what one side has put out for a sink.
func (g *comparing) side(pending []compared, sink string, old bool) compare.Side {
	return compare.Side{Store: g.r.o.Store, Job: g.r.o.Job, Steps: steps(pending, sink, old)}
}

func steps(pending []compared, sink string, old bool) iter.Seq2[compare.Step, error] {
	return func(yield func(compare.Step, error) bool) {
		for _, p := range pending {
			if !old {
				if !yield(compare.Step{After: p.after, To: p.own.Position, Outbox: p.own.Sinks[sink].Outbox}, nil) {
					return
				}
				continue
			}
			at := p.after
			for _, m := range p.covered {
				if !yield(compare.Step{After: at, To: m.Position, Outbox: m.Sinks[sink].Outbox}, nil) {
					return
				}
				at = m.Position
			}
		}
	}
}

// results are what has been compared, of sinks that both have.
func (g *comparing) results(followed epoch.Manifest) (results []compare.Result, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sinks {
		if at, both := followed.Sinks[s.name]; !both || at.Dropped != "" {
			continue
		}
		r := s.last
		for _, past := range slices.Backward(s.past) {
			r = r.Behind(past)
		}
		if g.skipped != "" {
			r.Untold++
			r.Reasons = append(slices.Clone(r.Reasons), g.skipped)
		}
		results = append(results, r)
	}
	return results, g.failed
}

// caughtUp notes that the branch has covered all that there is.
func (g *comparing) caughtUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caught = g.added
}

// abreast tells whether all is compared that the branch had covered when it had caught up,
// as far as it can be.
func (g *comparing) abreast() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.looked >= g.caught || g.failed != nil
}

// await waits until all that was added is compared.
func (g *comparing) await(ctx context.Context) error {
	for {
		g.mu.Lock()
		idle, err := !g.busy && len(g.pending) == 0 && len(g.more) == 0, g.failed
		g.mu.Unlock()
		if idle || err != nil {
			return err
		}
		if err := env.Pause(ctx, g.r.o.Env.Clock, committedLook); err != nil {
			return err
		}
	}
}
