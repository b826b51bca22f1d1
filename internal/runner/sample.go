package runner

import (
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/vitals"
)

// hotKeysTold is how many of an operator's hottest keys are told.
const hotKeysTold = 10

// sample notes how the job is, about once a second.
func (c *committer) sample(run *engine.Run) {
	board := c.r.o.Board
	board.Alive()
	board.SetPartitions(partitionsOf(run.Lag()))
	var keys []vitals.HotKey
	for _, k := range run.HotKeys(hotKeysTold) {
		keys = append(keys, vitals.HotKey(k))
	}
	board.SetHotKeys(keys)
	board.SetStates(c.states(run))
	c.r.sampleSinks()
	board.SetMemory(memory.InUse(), c.r.o.Limit.Bytes)
	if w, passed := c.r.guard.Sample(); passed {
		c.r.o.Log.Warn("memory runs short", "percent", w.Percent, "needed", w.Needed, "limit", w.Limit.Bytes, "warning", w.String())
	}
}

func (r *runner) sampleSinks() {
	var sinks []vitals.Sink
	for _, s := range r.sinks {
		if s.deliver != nil {
			sinks = append(sinks, vitals.Sink{
				Name: s.spec.Name, Confirmed: uint64(s.deliver.Confirmed()), Pending: s.deliver.Pending(), Failing: s.deliver.Failing(),
			})
		}
	}
	r.o.Board.SetSinks(sinks)
}

func partitionsOf(lag []engine.PartitionLag) []vitals.Partition {
	out := make([]vitals.Partition, len(lag))
	for i, l := range lag {
		out[i] = vitals.Partition(l)
	}
	return out
}

// states tells how much there is of each state, in memory and stored.
func (c *committer) states(run *engine.Run) []vitals.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []vitals.State
	for i, spec := range c.r.o.Graph.States() {
		s := vitals.State{Name: spec.Name, Entries: run.Entries(i), Segments: len(c.segments[spec.Name])}
		for _, segment := range c.segments[spec.Name] {
			s.Rows, s.Bytes, s.Memory = s.Rows+segment.Rows, s.Bytes+segment.Bytes, s.Memory+segment.Memory
		}
		running := c.merging.running[spec.Name]
		for _, inputs := range [][]epoch.Segment{running.main, running.beside} {
			for _, segment := range inputs {
				s.MergeDebt += segment.Bytes
			}
		}
		out = append(out, s)
	}
	return out
}

// needs is what a manifest's states take once they are loaded.
func needs(m epoch.Manifest) []memory.Need {
	var out []memory.Need
	for name, entry := range m.State {
		n := memory.Need{State: name}
		for _, s := range entry.Segments {
			n.Rows, n.Bytes, n.AtLeast = n.Rows+s.Rows, n.Bytes+s.Memory, max(n.AtLeast, s.Memory)
		}
		out = append(out, n)
	}
	return out
}
