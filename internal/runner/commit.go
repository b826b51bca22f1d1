package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/vitals"
)

// committer turns the engine's epochs into manifests: what an epoch holds is
// written side by side, the manifests one behind the other.
type committer struct {
	r       *runner
	merging *merging
	groups  *groups

	mu       sync.Mutex
	writing  sync.WaitGroup
	segments map[string][]epoch.Segment // by state, with merges that no manifest has yet
	edited   map[string]epoch.Epoch     // by state whose segments may still hold what was deleted by request: since when
	ahead    int                        // epochs that are open or being written
	changed  chan struct{}              // closed and replaced when admit may look again

	unmet  []epoch.Unmet // of requests that no manifest calls done yet, in their order
	handed uint64        // the newest request to forget that the run has
}

func newCommitter(ctx context.Context, r *runner) *committer {
	return &committer{
		r: r, merging: newMerging(context.WithoutCancel(ctx), r),
		segments: map[string][]epoch.Segment{}, edited: map[string]epoch.Epoch{}, changed: make(chan struct{}),
	}
}

// begin takes over what the head holds.
func (c *committer) begin() {
	head, _ := c.r.owner.Head()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range head.State {
		c.segments[name] = s.Segments
		if s.Edited != 0 {
			c.edited[name] = s.Edited
		}
	}
	c.startMerges() // an owner that died early may have left many
}

// written is an epoch whose objects are durable, or the reason why not.
type written struct {
	epoch    *engine.Epoch
	segments map[string]epoch.Segment
	outboxes map[string][]epoch.Object
	err      error
}

// loop commits until the run ends, or ctx does.
func (c *committer) loop(ctx context.Context, run *engine.Run) error {
	hard := context.WithoutCancel(ctx)
	queue := make(chan chan written, epochsInFlight)
	c.writing.Go(func() { c.write(hard, run, queue) })
	defer func() {
		run.Close()
		c.writing.Wait()
	}()
	note := c.r.o.Env.Clock.NewTimer(notedAfter)
	defer note.Stop()
	look := c.r.o.Env.Clock.NewTimer(sampleEvery)
	defer look.Stop()
	c.sample(run)
	c.drained() // what a run that was given up had to reach may be reached by now
	done := ctx.Done()
	next, pending := (<-chan chan written)(queue), (chan written)(nil)
	for {
		select {
		case first, ok := <-next:
			if !ok {
				return c.finish(ctx, run)
			}
			next, pending = nil, first // one at a time
		case w := <-pending:
			next, pending = queue, nil
			if w.err != nil {
				return w.err
			}
			if err := c.commit(hard, run, w); err != nil {
				return err
			}
			note.Reset(notedAfter)
		case m := <-c.merging.done:
			if err := c.merged(m); err != nil {
				return err
			}
		case <-note.C():
			if err := c.note(hard); err != nil {
				return err
			}
			note.Reset(notedAfter)
		case <-look.C():
			c.sample(run)
			if pending != nil {
				c.r.o.Board.Wait("an epoch's objects are being written to the store")
			}
			look.Reset(sampleEvery)
		case <-c.r.pulse.forgets.more:
			if err := c.forget(hard, run); err != nil {
				return err
			}
		case <-c.r.pulse.drain:
			ends, err := run.Ends(hard)
			if err != nil {
				return err
			}
			c.r.goal = append([]engine.PartitionLag{}, ends...) // not nil, even without partitions
			c.drained()
		case err := <-c.r.failed:
			return err
		case err := <-c.r.pulse.lost:
			return err
		case <-done:
			c.r.o.Board.SetRole(vitals.Stopping)
			run.Stop()
			done = nil
		}
	}
}

// write writes the objects of the epochs, several at once, and queues them in
// their order. It ends when the run does.
func (c *committer) write(ctx context.Context, run *engine.Run, queue chan<- chan written) {
	defer close(queue)
	for e := range run.Epochs() {
		select {
		case <-e.Done:
		case <-run.Quit():
			return
		}
		pending := make(chan written, 1)
		c.writing.Go(func() { pending <- c.r.writeEpoch(ctx, e) })
		queue <- pending // has room for every epoch that may be open
	}
}

// commit makes an epoch's manifest, and what follows from it.
func (c *committer) commit(ctx context.Context, run *engine.Run, w written) error {
	c.mu.Lock()
	m := c.manifest(w)
	c.mu.Unlock()
	m, err := c.r.commit(ctx, m)
	if err != nil {
		return err
	}
	c.r.cleaning.committed(c.r.o.KeepEpochs)
	c.r.saving.committed(m)
	_, hash := c.r.owner.Head()
	for _, s := range c.r.sinks {
		if o, ok := epoch.OwedBy(m, s.spec.Name); ok {
			s.deliver.Add(deliveryOf(o, hash, s.spec.Name))
		}
	}
	c.groups.add(m)
	c.tell(run, m, w.epoch.Pause())
	run.Release(w.epoch)
	c.mu.Lock()
	c.ahead--
	c.startMerges()
	c.wake()
	c.mu.Unlock()
	return nil
}

// tell tells those who watch that an epoch is committed.
func (c *committer) tell(run *engine.Run, m epoch.Manifest, pause time.Duration) {
	lag := run.Lag()
	outputs := map[string]int64{}
	for name, s := range m.Sinks {
		for _, o := range s.Outbox {
			outputs[name] += o.Rows
		}
	}
	c.r.o.Board.SetPartitions(partitionsOf(lag))
	c.r.o.Board.Committed(vitals.Commit{
		Epoch: uint64(m.Epoch), Position: uint64(m.Position), Records: m.Counts["records"], DeadLetters: m.Counts["dead_letters"],
		Bytes: m.Counts["bytes"], Outputs: outputs, Pause: pause,
	})
	if c.r.o.Committed != nil {
		c.r.o.Committed(m, lag, pause)
	}
	c.drained()
}

// drained stops the run once it has read what there was when it was asked to
// stop with that.
func (c *committer) drained() {
	if c.r.goal == nil {
		return
	}
	head, _ := c.r.owner.Head()
	for _, g := range c.r.goal {
		if head.Sources[g.Source].Partitions[g.Partition].Next < g.End {
			return
		}
	}
	c.r.goal = nil
	c.r.halt()
}

// manifest is an epoch's manifest; c.mu is held.
func (c *committer) manifest(w written) epoch.Manifest {
	head, _ := c.r.owner.Head()
	m := carried(head)
	m.Kind, m.Now, m.Runs = epoch.Data, w.epoch.Now, w.epoch.Runs
	m.Request = c.r.pulse.forgets.noted(m.Request, w.epoch.Request, c.r.pulse.asked.Load())
	for source, parts := range w.epoch.Offsets {
		m.Sources[source] = sourceState(parts)
	}
	m.Counts = map[string]int64{"records": w.epoch.Records.Load(), "dead_letters": w.epoch.DeadLetters.Load(), "bytes": w.epoch.Bytes.Load()}
	for _, spec := range c.r.o.Graph.States() {
		if s, ok := w.segments[spec.Name]; ok {
			m.Counts[stateCount(spec.Name)] = s.Rows
			c.segments[spec.Name] = append(c.segments[spec.Name][:len(c.segments[spec.Name]):len(c.segments[spec.Name])], s)
		}
		entry := entryOf(spec)
		entry.Segments = c.segments[spec.Name]
		m.State[spec.Name] = entry
	}
	c.edits(&m, w.epoch)
	for _, spec := range c.r.o.Graph.States() {
		entry := m.State[spec.Name]
		entry.Edited = c.edited[spec.Name]
		m.State[spec.Name] = entry
	}
	for _, s := range c.r.sinks {
		at := m.Sinks[s.spec.Name]
		at.Outbox, at.Confirmed = w.outboxes[s.spec.Name], s.deliver.Confirmed()
		at.Parts = partsOf(at.Outbox)
		m.Sinks[s.spec.Name] = at
	}
	return m
}

// stateCount is the name under which a manifest counts the entries of a state
// that its epoch has written.
func stateCount(state string) string { return "state." + state }

// note notes, by an opening, what has been delivered since the newest manifest.
func (c *committer) note(ctx context.Context) error {
	head, _ := c.r.owner.Head()
	m := carried(head)
	m.Kind = epoch.Open
	m.Request = c.r.pulse.forgets.noted(m.Request, 0, c.r.pulse.asked.Load())
	c.mu.Lock()
	purged := c.purged(&m)
	c.mu.Unlock()
	news := purged || m.Request > head.Request
	for _, s := range c.r.sinks {
		at := m.Sinks[s.spec.Name]
		if confirmed := s.deliver.Confirmed(); confirmed > at.Confirmed {
			at.Confirmed, news = confirmed, true
			m.Sinks[s.spec.Name] = at
		}
	}
	if !news {
		return nil
	}
	_, err := c.r.commit(ctx, m)
	return err
}

// finish ends a run whose input has ended: it waits for the deliveries, for at
// most the grace if the job was told to stop.
func (c *committer) finish(ctx context.Context, run *engine.Run) error {
	if err := run.Close(); err != nil {
		return err
	}
	c.r.o.Board.SetRole(vitals.Stopping)
	hard := context.WithoutCancel(ctx)
	waiting, cancel := context.WithCancel(hard)
	defer cancel()
	timer := c.r.o.Env.Clock.NewTimer(c.r.o.Grace)
	timer.Stop()
	defer timer.Stop()
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		for _, s := range c.r.sinks {
			if s.deliver.Wait(waiting, 0) != nil {
				return
			}
		}
	}()
	look := c.r.o.Env.Clock.NewTimer(sampleEvery)
	defer look.Stop()
	all, ended := delivered, false
	for stop := ctx.Done(); ; {
		if ended && (stop == nil || !c.purging()) { // what a stop leaves is the next owner's
			break
		}
		select {
		case <-all:
			all, ended = nil, true
		case m := <-c.merging.done:
			if err := c.merged(m); err != nil {
				cancel()
				<-delivered
				return err
			}
		case <-look.C():
			c.r.o.Board.Alive()
			c.r.sampleSinks()
			look.Reset(sampleEvery)
		case <-stop:
			stop = nil
			timer.Reset(c.r.o.Grace)
		case <-timer.C():
			cancel()
		case err := <-c.r.failed:
			cancel()
			<-delivered
			return err
		case err := <-c.r.pulse.lost:
			cancel()
			<-delivered
			return err
		}
	}
	c.r.sampleSinks()
	if err := c.note(hard); err != nil {
		return err
	}
	c.groups.flush(hard)
	return nil
}

// unwritten names an object that could not be written.
func (r *runner) unwritten(what string, err error) error {
	head, _ := r.owner.Head()
	return fmt.Errorf("%s: %s could not be written to %s: %w. Nothing of this epoch was kept; run the job again when the store can be written to",
		epoch.At{Job: r.o.Job, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch + 1}, what, r.o.Store, err)
}
