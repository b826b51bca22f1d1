package runner

import (
	"context"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

// merging folds states' small segments into larger ones, beside all else: no
// commit waits for it. One merge per state is under way at a time.
type merging struct {
	r      *runner
	done   chan merged
	active map[string]bool
	stop   context.CancelFunc
	ctx    context.Context
}

// merged is what came of a merge.
type merged struct {
	state  string
	inputs []epoch.Segment
	output epoch.Segment
	err    error
}

func newMerging(r *runner) *merging {
	return &merging{r: r, done: make(chan merged, len(r.o.Graph.States())), active: map[string]bool{}}
}

// startMerges begins the merges that are due; c.mu is held.
func (c *committer) startMerges(ctx context.Context) {
	g := c.merging
	if g.ctx == nil {
		g.ctx, g.stop = context.WithCancel(ctx)
	}
	for _, spec := range c.r.o.Graph.States() {
		segments := c.segments[spec.Name]
		if g.active[spec.Name] {
			continue
		}
		from, to, ok := state.PlanMerge(segments)
		if !ok {
			continue
		}
		g.active[spec.Name] = true
		inputs, oldest := slices.Clone(segments[from:to]), from == 0
		go func() {
			m := merged{state: spec.Name, inputs: inputs}
			path, err := c.r.dataName(spec.Name)
			if err == nil {
				m.output, err = state.Merge(g.ctx, c.r.o.Store, c.r.o.Job, path, spec.Form, inputs, oldest)
			}
			m.err = err
			g.done <- m
		}()
	}
}

// merged puts a merge's output in the place of its inputs; the next manifest
// refers to it.
func (c *committer) merged(m merged) error {
	if m.err != nil {
		return c.r.unwritten("a merge of state "+m.state, m.err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.merging.active[m.state] = false
	segments := c.segments[m.state]
	at := slices.IndexFunc(segments, func(s epoch.Segment) bool { return s.Path == m.inputs[0].Path })
	out := slices.Clone(segments[:at])
	if m.output.Rows > 0 {
		out = append(out, m.output)
	}
	c.segments[m.state] = append(out, segments[at+len(m.inputs):]...)
	c.startMerges(c.merging.ctx)
	c.wake()
	return nil
}

// close ends the merges under way: what they have written is a left-over.
func (g *merging) close() {
	if g.stop != nil {
		g.stop()
	}
	for range countTrue(g.active) {
		<-g.done
	}
}

func countTrue(m map[string]bool) (n int) {
	for _, v := range m {
		if v {
			n++
		}
	}
	return n
}
