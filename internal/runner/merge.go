package runner

import (
	"context"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

// merging folds states' small segments into larger ones, beside all else: no
// commit waits for it. A state has one merge under way at a time, and while that
// takes long a second one, of what has come since.
type merging struct {
	r       *runner
	done    chan merged
	running map[string]*underWay // by state
	stop    context.CancelFunc
	ctx     context.Context
}

// underWay are the merges of one state: what they read, nil if there is none.
type underWay struct{ main, beside []epoch.Segment }

// merged is what came of a merge.
type merged struct {
	state  string
	beside bool
	inputs []epoch.Segment
	output epoch.Segment
	edited epoch.Epoch // it takes away what was deleted by request up to this epoch; 0: nothing
	err    error
}

func newMerging(ctx context.Context, r *runner) *merging {
	g := &merging{r: r, done: make(chan merged, 2*len(r.o.Graph.States())), running: map[string]*underWay{}}
	g.ctx, g.stop = context.WithCancel(ctx)
	for _, s := range r.o.Graph.States() {
		g.running[s.Name] = &underWay{}
	}
	return g
}

// startMerges begins the merges that are due; c.mu is held.
func (c *committer) startMerges() {
	for _, spec := range c.r.o.Graph.States() {
		segments, running, edited := c.segments[spec.Name], c.merging.running[spec.Name], c.edited[spec.Name]
		if len(segments) == 0 {
			delete(c.edited, spec.Name)
			continue
		}
		switch {
		case running.main == nil && running.beside == nil && edited != 0:
			// Only a merge of all takes away what was deleted, and the record that it is.
			running.main = slices.Clone(segments)
			go c.merging.merge(spec.Form, merged{state: spec.Name, inputs: running.main, edited: edited}, true)
		case running.main == nil && running.beside == nil:
			if from, to, ok := state.PlanMerge(segments); ok {
				running.main = slices.Clone(segments[from:to])
				go c.merging.merge(spec.Form, merged{state: spec.Name, inputs: running.main}, from == 0)
			}
		case running.main != nil && running.beside == nil:
			if from, to, ok := state.PlanBeside(segments, indexOf(segments, running.main)+len(running.main)); ok {
				running.beside = slices.Clone(segments[from:to])
				go c.merging.merge(spec.Form, merged{state: spec.Name, beside: true, inputs: running.beside}, from == 0)
			}
		}
	}
}

// indexOf is where the inputs of a merge begin.
func indexOf(segments, inputs []epoch.Segment) int {
	return slices.IndexFunc(segments, func(s epoch.Segment) bool { return s.Path == inputs[0].Path })
}

// merge makes the merge that m describes; oldest says that no segment is older than
// its inputs.
func (g *merging) merge(form state.Form, m merged, oldest bool) {
	m.err = g.r.retry(g.ctx, "a merge of state "+m.state, m.state, func(path string) (err error) {
		m.output, err = state.Merge(g.ctx, g.r.o.Store, g.r.o.Job, path, form, m.inputs, oldest)
		return err
	})
	g.done <- m
}

// merged puts a merge's output in the place of its inputs; the next manifest
// refers to it.
func (c *committer) merged(m merged) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := c.merging.running[m.state]
	if m.beside {
		running.beside = nil
	} else {
		running.main = nil
	}
	if m.err != nil {
		return m.err
	}
	segments := c.segments[m.state]
	at := indexOf(segments, m.inputs)
	out := slices.Clone(segments[:at])
	if m.output.Rows > 0 {
		out = append(out, m.output)
	}
	c.segments[m.state] = append(out, segments[at+len(m.inputs):]...)
	c.r.left.replaced(m.inputs)
	if m.edited != 0 && c.edited[m.state] == m.edited {
		delete(c.edited, m.state) // nothing was deleted since it began
	}
	c.startMerges()
	c.wake()
	return nil
}

// close ends the merges under way: what they have written is a left-over.
func (g *merging) close() {
	g.stop()
	for _, running := range g.running {
		for _, inputs := range [][]epoch.Segment{running.main, running.beside} {
			if inputs != nil {
				<-g.done
			}
		}
	}
}
