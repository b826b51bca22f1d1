package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
)

// sequencer decides the order in which batches are processed, and where epochs
// end. All else follows from that.
type sequencer struct {
	run      *Run
	ctx      context.Context
	seq      uint64
	epoch    *Epoch // nil: none is open
	bytes    int64  // that the epoch has read
	last     int64  // the clock of the epoch before
	offsets  map[string]map[string]connector.Offset
	ended    int        // partitions
	until    Until      // nil: it reads on
	left     int        // partitions that are read up to there
	replayed *Rewriting // of a replay, what the open epoch has written anew
	timer    env.Timer
	paceAt   time.Time // when the next epoch is to end already; zero: after its whole length
	waking   env.Timer
	admitted bool // the epoch that is opened next
	closed   int  // epochs

	// Of a graph with times.
	ids   map[partName]int
	names []partName
	known []bool
	idle  map[string][]string     // of the epoch or step that begins next
	to    map[string]epoch.Moment // to where that moves watermarks
}

func (r *Run) newSequencer(ctx context.Context) *sequencer {
	s := &sequencer{run: r, ctx: ctx, last: r.o.Now, offsets: map[string]map[string]connector.Offset{}, ids: map[partName]int{}}
	for name, parts := range r.o.Offsets {
		s.offsets[name] = maps.Clone(parts)
	}
	s.know()
	return s
}

// sequence runs until the input has ended, or it is told to stop.
func (r *Run) sequence(ctx context.Context) error {
	defer close(r.epochs)
	return r.newSequencer(ctx).readOn()
}

// readOn decides by itself what comes next.
func (s *sequencer) readOn() error {
	r := s.run
	if r.o.Until == nil {
		r.input.start()
	} else if err := s.readOnUntil(s.ctx, r.o.Until); err != nil {
		return err
	}
	s.timer = r.o.Env.Clock.NewTimer(r.o.EpochEvery)
	s.timer.Stop()
	defer s.timer.Stop()
	var wakes <-chan time.Time // nil: never
	if every := r.graph.wakeEvery(); every > 0 {
		s.waking = r.o.Env.Clock.NewTimer(every)
		defer s.waking.Stop()
		wakes = s.waking.C()
	}
	defer r.input.stop()
	if !s.forget() { // what was asked before the run: before it reads anything
		return nil
	}
	for !s.finished() {
		select {
		case <-r.forgets.more:
			if !s.forget() {
				return nil
			}
		case <-r.rewrites.more:
			if !s.rewrite() {
				return nil
			}
		case asked := <-r.untils:
			if err := s.readUntil(asked); err != nil {
				return err
			}
		case a := <-r.input.arrivals:
			if a.err != nil {
				return a.err
			}
			switch {
			case a.found:
				s.found(a.part)
			case a.ended:
				if s.ended++; !s.rewrite() {
					return nil
				}
			case !s.take(a):
				return nil
			}
		case <-s.timer.C():
			s.close()
		case <-wakes:
			if !s.wake() {
				return nil
			}
			s.waking.Reset(r.graph.wakeEvery())
		case <-r.stopping:
			s.close()
			return nil
		case <-r.quit:
			return nil
		}
	}
	s.close()
	s.advance()
	return nil
}

// advance moves the watermarks as the run was told to, in an epoch without input.
func (s *sequencer) advance() {
	if s.run.o.Advance == nil {
		return
	}
	s.to = s.run.o.Advance
	if s.openEpoch() {
		s.close()
	}
}

// found notes a partition that has come up, in the epoch that is open or the next.
func (s *sequencer) found(p *openPartition) {
	if p.from != (connector.Offset{}) || s.run.graph.Timed() {
		s.note(p.source.spec.name, p.name, p.from)
	}
}

// finished tells whether nothing will come any more.
func (s *sequencer) finished() bool {
	_, rewriting := s.run.rewrites.waits()
	return (s.until != nil || !rewriting) && s.inputEnded() // what a stop leaves the next run writes
}

// inputEnded tells whether no record will come any more.
func (s *sequencer) inputEnded() bool {
	if s.until != nil {
		return s.ended == s.left
	}
	parts := 0
	for _, src := range s.run.input.sources {
		if !src.bounded {
			return false
		}
		parts += len(src.parts)
	}
	return s.ended == parts
}

// take gives a batch its number, and hands it to the workers. It tells whether
// the run goes on.
func (s *sequencer) take(a arrival) bool {
	if s.epoch == nil && !s.openEpoch() {
		return false
	}
	source := a.part.source.spec.name
	s.record(source, a.part.name, a.batch.To, true)
	a.part.read.Store(a.batch.To.Next)
	if !s.dispatch(a.part, a.batch, true) {
		return false
	}
	s.bytes += a.bytes
	if limit := s.run.o.EpochBytes; s.bytes >= limit || s.epoch.frozen.Load() >= limit {
		s.close()
	}
	return true
}

// record notes how far a partition has been read.
func (s *sequencer) record(source, partition string, to connector.Offset, runEnds bool) {
	s.note(source, partition, to)
	if runEnds {
		s.epoch.Runs = append(s.epoch.Runs, epoch.Run{Source: source, Partition: partition, Next: to.Next})
	}
}

func (s *sequencer) note(source, partition string, at connector.Offset) {
	if s.offsets[source] == nil {
		s.offsets[source] = map[string]connector.Offset{}
	}
	s.offsets[source][partition] = at
}

func (s *sequencer) dispatch(p *openPartition, input *connector.Batch, runEnds bool) bool {
	b := s.run.heads.get(func() *batch { return new(batch) })
	*b = batch{
		seq: s.seq, epoch: s.epoch, now: s.last, source: p.source.number, partition: p.name, offsets: b.offsets[:0],
		sourceName: p.source.spec.name, runEnds: runEnds, seen: b.seen,
	}
	if times := len(s.run.graph.times); times > 0 {
		b.part = s.id(partName{b.sourceName, b.partition})
		b.seen = slices.Grow(b.seen[:0], times)[:times]
	}
	s.epoch.batches = append(s.epoch.batches, b)
	if len(s.run.stages) > 0 {
		b.offsets = slices.Grow(b.offsets, len(input.Records))
		for i := range input.Records {
			b.offsets = append(b.offsets, input.Records[i].Offset)
		}
	}
	s.seq++
	s.epoch.pending.Add(1)
	select {
	case s.run.work <- job{b, input}:
		return true
	case <-s.run.quit:
		return false
	}
}

// openEpoch waits until another epoch may be open, and opens it.
func (s *sequencer) openEpoch() bool {
	if !s.admit() {
		return false
	}
	now := s.run.o.Env.Clock.Now()
	s.idle = s.findIdle(now)
	return s.openAt(now)
}

// admit waits until another epoch may be open. It tells whether the run goes on.
func (s *sequencer) admit() bool {
	if s.admitted {
		return true
	}
	r := s.run
	select {
	case r.open <- struct{}{}:
	case <-r.stopping:
		return false
	case <-r.quit:
		return false
	}
	if r.o.Admit != nil {
		ctx, cancel := r.whileReading(s.ctx)
		defer cancel()
		if err := r.o.Admit(ctx); err != nil {
			<-r.open
			if ctx.Err() == nil {
				r.abort(err)
			}
			return false
		}
	}
	s.admitted = true
	return true
}

// openAt opens the epoch that was admitted. It tells whether the run goes on.
func (s *sequencer) openAt(now time.Time) bool {
	s.admitted = false
	if !s.begin(max(s.last, now.UnixMicro())) {
		return false
	}
	if s.run.o.EpochEvery > 0 {
		s.timer.Reset(s.length())
	}
	return true
}

// leastLength is the part of an epoch's length that one has at the least.
const leastLength = 4

// length is how long the epoch that is opened may last.
func (s *sequencer) length() time.Duration {
	every := s.run.o.EpochEvery
	if s.paceAt.IsZero() {
		return every
	}
	left := s.paceAt.Sub(s.run.o.Env.Clock.Now())
	s.paceAt = time.Time{}
	return lengthOf(every, left)
}

// lengthOf is how long an epoch may last that is to end once the time has passed that is
// left: what waits to be read meanwhile is read at once, so that a part is enough.
func lengthOf(every, left time.Duration) time.Duration {
	return min(max(left, every/leastLength), every)
}

// whileReading returns a context that ends when the run is to stop.
func (r *Run) whileReading(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-r.stopping:
		case <-r.quit:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// begin opens an epoch, and tells whether the run goes on.
func (s *sequencer) begin(now int64) bool {
	s.last, s.bytes = now, 0
	s.epoch = s.run.newEpoch(now)
	s.epoch.Idle, s.epoch.Advanced = s.idle, s.to
	return s.passTime()
}

// close ends the epoch, if one is open.
func (s *sequencer) close() {
	e := s.epoch
	if e == nil {
		return
	}
	s.epoch = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	e.Offsets = make(map[string]map[string]connector.Offset, len(s.offsets))
	for name, parts := range s.offsets {
		e.Offsets[name] = maps.Clone(parts)
	}
	if s.replayed != nil {
		e.Rewritten = s.replayed
	} else {
		e.Rewritten = s.run.rewrites.take()
	}
	s.know()
	s.closed++
	s.expect(e)
	s.run.epochs <- e // has room for every epoch that may be open
	if s.tell(&batch{epoch: e, end: true, rewriting: e.Rewritten}) {
		e.finish()
	}
}

// expect has the open epoch wait for every shard.
func (s *sequencer) expect(e *Epoch) {
	for _, stage := range s.run.stages {
		e.pending.Add(int64(len(stage.shards)))
	}
}

// tell gives every shard a numbered batch without records, and tells whether the run
// goes on.
func (s *sequencer) tell(b *batch) bool {
	b.seq, b.now = s.seq, s.last
	s.seq++
	for _, stage := range s.run.stages {
		for n := range stage.shards {
			if !stage.send(n, message{batch: b}) {
				return false
			}
		}
	}
	return true
}

// forget carries out what has been asked, each part before the first record of an
// epoch of its own, and tells whether the run goes on.
func (s *sequencer) forget() bool {
	for {
		asked, ok := s.run.forgets.take()
		if !ok {
			return true
		}
		s.close()
		if !s.openEpoch() {
			return false
		}
		s.epoch.Edits, s.epoch.Request, s.epoch.EditsOf = asked.edits, asked.upTo, asked.partOf
		if !s.delete(asked.edits) {
			return false
		}
	}
}

// delete has every shard delete its entries of what the epoch's edits name. It tells
// whether the run goes on.
func (s *sequencer) delete(asked []epoch.Edit) bool {
	return s.tell(&batch{epoch: s.epoch, edits: editsOf(asked)})
}

// Stop ends the reading: the epoch that is open is closed where it stands.
func (r *Run) Stop() { r.stopOnce.Do(func() { close(r.stopping) }) }
