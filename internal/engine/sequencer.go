package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
)

// sequencer decides the order in which batches are processed, and where epochs
// end. All else follows from that.
type sequencer struct {
	run     *Run
	ctx     context.Context
	seq     uint64
	epoch   *Epoch // nil: none is open
	bytes   int64  // that the epoch has read
	last    int64  // the clock of the epoch before
	offsets map[string]map[string]connector.Offset
	ended   int // partitions
	timer   env.Timer
}

func (r *Run) newSequencer(ctx context.Context) *sequencer {
	s := &sequencer{run: r, ctx: ctx, last: r.o.Now, offsets: map[string]map[string]connector.Offset{}}
	for name, parts := range r.o.Offsets {
		s.offsets[name] = maps.Clone(parts)
	}
	return s
}

// sequence runs until the input has ended, or it is told to stop.
func (r *Run) sequence(ctx context.Context) error {
	defer close(r.epochs)
	s := r.newSequencer(ctx)
	s.timer = r.o.Env.Clock.NewTimer(r.o.EpochEvery)
	s.timer.Stop()
	defer s.timer.Stop()
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
		case a := <-r.input.arrivals:
			if a.err != nil {
				return a.err
			}
			switch {
			case a.found:
				s.found(a.part)
			case a.ended:
				s.ended++
			case !s.take(a):
				return nil
			}
		case <-s.timer.C():
			s.close()
		case <-r.stopping:
			s.close()
			return nil
		case <-r.quit:
			return nil
		}
	}
	s.close()
	return nil
}

// found notes a partition that has come up, in the epoch that is open or the next.
func (s *sequencer) found(p *openPartition) {
	if p.from != (connector.Offset{}) {
		s.note(p.source.spec.name, p.name, p.from)
	}
}

// finished tells whether nothing will come any more.
func (s *sequencer) finished() bool {
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
	if !s.dispatch(a.part.source.number, a.part.name, a.batch) {
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

func (s *sequencer) dispatch(source int, partition string, input *connector.Batch) bool {
	b := s.run.heads.get(func() *batch { return new(batch) })
	*b = batch{seq: s.seq, epoch: s.epoch, source: source, partition: partition, offsets: b.offsets[:0]}
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
	now := max(s.last, r.o.Env.Clock.Now().UnixMicro())
	s.begin(now)
	if r.o.EpochEvery > 0 {
		s.timer.Reset(r.o.EpochEvery)
	}
	return true
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

func (s *sequencer) begin(now int64) {
	s.last, s.bytes = now, 0
	s.epoch = s.run.newEpoch(now)
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
	end := &batch{seq: s.seq, epoch: e, end: true}
	s.seq++
	for _, stage := range s.run.stages {
		e.pending.Add(int64(len(stage.shards)))
	}
	s.run.epochs <- e // has room for every epoch that may be open
	for _, stage := range s.run.stages {
		for n := range stage.shards {
			if !stage.send(n, message{batch: end}) {
				return
			}
		}
	}
	e.finish()
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
		s.epoch.Edits, s.epoch.Request = asked.Edits, asked.Request
		if !s.delete(asked.Edits) {
			return false
		}
	}
}

// delete has every shard delete its entries of what the epoch's edits name. It tells
// whether the run goes on.
func (s *sequencer) delete(asked []epoch.Edit) bool {
	b := &batch{seq: s.seq, epoch: s.epoch, edits: editsOf(asked)}
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

// Stop ends the reading: the epoch that is open is closed where it stands.
func (r *Run) Stop() { r.stopOnce.Do(func() { close(r.stopping) }) }
