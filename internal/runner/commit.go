package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicestream/sluice/internal/deliver"
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

	tasks chan func() error // to be done between two commits

	rewriting *rewriting // nil: nothing is written anew

	unmet  []epoch.Unmet // of requests that no manifest calls done yet, in their order
	handed uint64        // the newest request to forget that the run has
}

func newCommitter(ctx context.Context, r *runner) *committer {
	return &committer{
		r: r, merging: newMerging(context.WithoutCancel(ctx), r),
		segments: map[string][]epoch.Segment{}, edited: map[string]epoch.Epoch{}, changed: make(chan struct{}),
		tasks: make(chan func() error),
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
	// watermarks are how far the times of records have come with it.
	watermarks map[string]epoch.EventTime
	err        error
}

// loop commits until the run ends, or ctx does.
func (c *committer) loop(ctx context.Context, run *engine.Run) error {
	hard := context.WithoutCancel(ctx)
	queue := make(chan chan written, epochsInFlight)
	c.writing.Go(func() { c.write(hard, run, queue) })
	defer func() {
		run.Close()
		c.writing.Wait()
		if c.rewriting != nil {
			c.rewriting.letGo()
		}
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
				select { // the run has told it before it ended, and that may not have been heard yet
				case told := <-c.r.drainingTo.answer():
					if err := c.drainTo(hard, told); err != nil {
						return err
					}
				default:
				}
				if c.closesWindows(ctx) {
					return cmp.Or(run.Close(), errClosing)
				}
				c.drainedTo()
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
		case do := <-c.tasks:
			if err := do(); err != nil {
				return err
			}
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
		case request := <-c.r.pulse.drainTo:
			if err := c.askDrainTo(hard, run, request); err != nil {
				return err
			}
		case told := <-c.r.drainingTo.answer():
			if err := c.drainTo(hard, told); err != nil {
				return err
			}
		case err := <-c.r.failed:
			return err
		case err := <-c.rewritingFailed():
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
		watermarks := run.Watermarks(e)
		c.writing.Go(func() {
			w := c.r.writeEpoch(ctx, e)
			w.watermarks = watermarks
			pending <- w
		})
		queue <- pending // has room for every epoch that may be open
	}
}

// commit makes an epoch's manifest, and what follows from it.
func (c *committer) commit(ctx context.Context, run *engine.Run, w written) error {
	before, _ := c.r.owner.Head()
	if covered := w.epoch.Covered; len(covered) > 0 && covered[0].Position != before.Covers[before.Task]+1 {
		return fmt.Errorf("%s: it is to cover position %d next, and covers %d: nothing was committed; run the same again",
			epoch.At{Job: c.r.o.Job, Branch: before.Branch, Task: before.Task, Epoch: before.Epoch + 1}, before.Covers[before.Task]+1, covered[0].Position)
	}
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
	live, _ := c.r.owner.Live()
	for _, s := range c.r.sinks {
		o, ok, err := c.r.owedBy(ctx, m, s.spec.Name)
		if err != nil {
			return err
		}
		if ok {
			s.deliver.Add(c.r.deliveryOf(o, hash, s.spec.Name, live))
		}
	}
	c.r.comparing.add(before.Position, w.epoch, m)
	c.groups.add(m)
	c.tell(run, m, w.epoch.Pause())
	wrote := w.epoch.Rewritten != nil
	if wrote {
		c.rewriting.prepared = false
	}
	run.Release(w.epoch)
	c.mu.Lock()
	c.ahead--
	c.startMerges()
	c.wake()
	c.mu.Unlock()
	if wrote {
		c.rewriteOn(ctx)
	}
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
		Late: m.CountsOf(epoch.LateCount), Untimed: m.CountsOf(epoch.UntimedCount), Ahead: m.CountsOf(epoch.AheadCount),
		EventTimes: timesOf(m, c.r.o.Version), Operators: operatorsOf(m, c.r.o.Version),
	})
	if c.r.o.Committed != nil {
		c.r.o.Committed(m, lag, pause)
	}
	c.drained()
}

// timesOf and operatorsOf are the watermarks of a version's event times, and of the
// operators that go by them.
func timesOf(m epoch.Manifest, v epoch.Version) (all []vitals.Watermark) {
	for _, t := range m.TimesOf(v) {
		all = append(all, watermarkOf(m, t.Name, t.Watermark))
	}
	return all
}

func operatorsOf(m epoch.Manifest, v epoch.Version) (all []vitals.Watermark) {
	marks := m.WatermarksOf(v)
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		all = append(all, watermarkOf(m, name, marks[name]))
	}
	return all
}

func watermarkOf(m epoch.Manifest, name string, at epoch.Moment) vitals.Watermark {
	if at.IsZero() {
		return vitals.Watermark{Name: name}
	}
	t := time.UnixMicro(int64(at))
	return vitals.Watermark{Name: name, At: t, Lag: time.UnixMicro(m.Now).Sub(t)}
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
	covered := w.epoch.Covered
	if at := w.epoch.Reached; at != nil {
		covered = []epoch.Manifest{*at}
		covered[0].Edits = nil // this state never had those entries
	}
	if len(covered) > 0 {
		f := epoch.Following(head, covered)
		m = carried(f)
		m.Covers, m.Position, m.Superseded, m.EditsOf = f.Covers, f.Position, f.Superseded, f.EditsOf
	} else if _, live := c.r.owner.Live(); !live {
		m.Covers, m.Position = head.Covers, head.Position
	} else {
		m.Request = c.r.pulse.forgets.noted(m.Request, w.epoch.Request, c.r.pulse.asked.Load())
	}
	m.Kind, m.Now, m.Runs, m.Steps = epoch.Data, w.epoch.Now, w.epoch.Runs, w.epoch.Steps
	m.Watermarks, m.Windows = w.watermarks, w.epoch.Windows(m.Windows, w.watermarks)
	m.Idle = nil
	if len(m.Steps) == 0 {
		m.Idle, m.Advanced = w.epoch.Idle, w.epoch.Advanced
	}
	for source, parts := range w.epoch.Offsets {
		m.Sources[source] = sourceState(parts)
	}
	m.Counts = map[string]int64{"records": w.epoch.Records.Load(), "dead_letters": w.epoch.DeadLetters.Load(), "bytes": w.epoch.Bytes.Load()}
	for prefix, counts := range map[string]map[string]int64{epoch.LateCount: w.epoch.Late(), epoch.UntimedCount: w.epoch.Untimed(), epoch.AheadCount: w.epoch.Ahead()} {
		for name, n := range counts {
			m.Counts[prefix+name] = n
		}
	}
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
		at.Outbox = w.outboxes[s.spec.Name]
		at.Parts = partsOf(at.Outbox)
		if s.deliver != nil {
			confirm(&at, s.deliver)
		}
		if c.r.fillsNow(s.spec.Name) && at.Fill != nil && at.Fill.Branch == head.Branch {
			f := *at.Fill
			f.Parts += at.PartsOf()
			at.Fill = &f
		}
		m.Sinks[s.spec.Name] = at
	}
	if part := w.epoch.Rewritten; part != nil {
		rewrote(&m, c.r.o.Graph.Sinks()[part.Sink].Name, part.Slots)
	}
	return m
}

// confirm notes how far a sink has been delivered, and tells whether that is news. Once
// it has got what comes behind what filled it, that is forgotten.
func confirm(at *epoch.SinkState, d *deliver.Deliverer) (news bool) {
	confirmed, span := d.Reached()
	switch delivered, through := d.Filled(); {
	case at.Fill == nil:
	case confirmed > at.Confirmed:
		at.Fill, at.Takes = nil, ""
	case delivered > at.Fill.Delivered:
		at.Fill, news = &epoch.Fill{Branch: at.Fill.Branch, Parts: at.Fill.Parts, Delivered: delivered, Through: through}, true
	}
	news = news || confirmed > at.Confirmed
	at.Confirmed, at.Span = confirmed, span
	return news
}

// stateCount is the name under which a manifest counts the entries of a state
// that its epoch has written.
func stateCount(state string) string { return "state." + state }

// note notes, by an opening, what has been delivered since the newest manifest.
func (c *committer) note(ctx context.Context) error {
	head, _ := c.r.owner.Head()
	m := carried(head)
	m.Kind = epoch.Open
	if _, live := c.r.owner.Live(); live {
		m.Request = c.r.pulse.forgets.noted(m.Request, 0, c.r.pulse.asked.Load())
	}
	c.mu.Lock()
	purged := c.purged(&m)
	c.mu.Unlock()
	news := purged || m.Request > head.Request
	for _, s := range c.r.sinks {
		at := m.Sinks[s.spec.Name]
		if s.deliver == nil {
			continue // it follows
		}
		news = confirm(&at, s.deliver) || news
		m.Sinks[s.spec.Name] = at
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
	if err := run.Wait(); err != nil { // the sources' groups are told of what is delivered yet
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
			if s.deliver != nil && s.deliver.Wait(waiting, 0) != nil {
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
	if d := c.r.drainingTo; d != nil {
		if err := c.notMet(hard, "the job was stopped before it had come there", d.requests()...); err != nil {
			return err
		}
	}
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
