package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
)

// id is a partition's number in the run.
func (s *sequencer) id(name partName) int {
	id, ok := s.ids[name]
	if !ok {
		id = len(s.names)
		s.ids[name] = id
		s.names = append(s.names, name)
	}
	return id
}

// know has all partitions that an epoch has noted so far hold watermarks back from the
// next one on, and tells which ones these are that did not before.
func (s *sequencer) know() (found []string) {
	if !s.run.graph.Timed() {
		return nil
	}
	for _, source := range slices.Sorted(maps.Keys(s.offsets)) {
		for _, partition := range slices.Sorted(maps.Keys(s.offsets[source])) {
			if s.hold(partName{source, partition}) {
				found = append(found, epoch.PartitionName(source, partition))
			}
		}
	}
	return found
}

// holds has partitions that were found hold watermarks back.
func (s *sequencer) holds(found []string) {
	if !s.run.graph.Timed() {
		return
	}
	for _, name := range found {
		source, partition := epoch.SplitPartition(name)
		s.hold(partName{source, partition})
	}
}

// hold tells whether the partition did not hold watermarks back before. Who was told of
// the others before keeps their list.
func (s *sequencer) hold(name partName) bool {
	id := s.id(name)
	if id < len(s.known) && s.known[id] {
		return false
	}
	known := make([]bool, len(s.names))
	copy(known, s.known)
	known[id] = true
	s.known = known
	return true
}

// passTime tells every shard that an epoch, or a step of one, begins. It tells whether
// the run goes on.
func (s *sequencer) passTime() bool {
	if !s.run.graph.Timed() {
		return true
	}
	b := &batch{epoch: s.epoch, begin: &beginning{names: slices.Clip(s.names), known: s.known, idle: s.idleNumbers(), to: s.to}}
	s.epoch.batches = append(s.epoch.batches, b)
	s.expect(s.epoch)
	return s.tell(b)
}

// idleNumbers are the idle partitions by event time and number; nil: there is none.
func (s *sequencer) idleNumbers() [][]bool {
	if len(s.idle) == 0 {
		return nil
	}
	out := make([][]bool, len(s.run.graph.times))
	for i, spec := range s.run.graph.times {
		out[i] = make([]bool, len(s.known))
		for _, name := range s.idle[spec.Name] {
			source, partition := epoch.SplitPartition(name)
			if id, ok := s.ids[partName{source, partition}]; ok && id < len(out[i]) {
				out[i][id] = true
			}
		}
	}
	return out
}

// findIdle tells which partitions hold no watermark back in the epoch that is to be
// opened: those that were read to their ends, and of which nothing has come since then.
// A partition that merely is read slowly is not idle, nor is any just because the job
// was down.
func (s *sequencer) findIdle(now time.Time) map[string][]string {
	var out map[string][]string
	for _, spec := range s.run.graph.times {
		if spec.IdleAfter <= 0 {
			continue
		}
		for _, src := range s.run.input.sources {
			if !spec.comesOf(src.spec.name) {
				continue
			}
			for _, p := range src.open() {
				if p.idleFor(now) < time.Duration(spec.IdleAfter)*time.Microsecond {
					continue
				}
				if out == nil {
					out = map[string][]string{}
				}
				out[spec.Name] = append(out[spec.Name], epoch.PartitionName(src.spec.name, p.name))
			}
		}
		slices.Sort(out[spec.Name])
	}
	return out
}

// open are the source's partitions that are open.
func (s *openSource) open() []*openPartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.parts))
}

// idleFor is for how long the partition has been seen read to its end, with nothing new
// in it. Only the sequencer asks.
func (p *openPartition) idleFor(now time.Time) time.Duration {
	read := p.read.Load()
	if read < p.part.End() {
		p.quiet = time.Time{}
		return 0
	}
	if p.quiet.IsZero() || p.quietAt != read {
		p.quiet, p.quietAt = now, read
	}
	return now.Sub(p.quiet)
}

// due tells whether an epoch is due by the passing of time alone, without a record: a
// watermark moves because a partition has become idle, or the clock has come to what was
// to be done then. It is asked while no epoch is open, and prepares what the epoch begins
// with.
func (s *sequencer) due(now time.Time) bool {
	s.idle = s.findIdle(now)
	return s.run.ticks(s.closed, now.UnixMicro()) || s.run.wouldMove(s.closed, &beginning{names: s.names, known: s.known, idle: s.idleNumbers()})
}

// wakeEvery is the time between two looks whether an epoch is due, a fraction of the
// shortest time that makes a partition idle; 0: none is ever due.
func (g *Graph) wakeEvery() time.Duration {
	var least int64
	for _, t := range g.times {
		if t.IdleAfter > 0 && (least == 0 || t.IdleAfter < least) {
			least = t.IdleAfter
		}
	}
	switch {
	case g.ticks:
		return tickWake
	case least == 0:
		return 0
	}
	return min(max(time.Duration(least)*time.Microsecond/8, soonestWake), latestWake)
}

const (
	soonestWake = 10 * time.Millisecond
	latestWake  = time.Second
	tickWake    = 50 * time.Millisecond
)

// wake opens and closes an epoch without input if one is due and none is open, and
// tells whether the run goes on.
func (s *sequencer) wake() bool {
	clock := s.run.o.Env.Clock
	if s.epoch != nil || !s.due(clock.Now()) {
		return true
	}
	if !s.admit() {
		return false
	}
	now := clock.Now()
	if !s.due(now) {
		return true // a record has come while it waited; the next epoch is admitted already
	}
	if !s.openAt(now) {
		return false
	}
	s.close()
	return true
}

// ticks tells whether the clock makes a shard do something by now. As long as what the
// closed epochs come to is not known, it says no.
func (r *Run) ticks(closed int, now int64) bool {
	if !r.graph.ticks {
		return false
	}
	r.marksMu.Lock()
	known := r.marked == closed
	r.marksMu.Unlock()
	if !known {
		return false
	}
	for _, s := range r.stages {
		for _, sh := range s.shards {
			if sh.tick.Load() <= now {
				return true
			}
		}
	}
	return false
}

// wouldMove tells whether a watermark moves when an epoch begins so behind the epochs
// that were closed. As long as what these come to is not known, it says no.
func (r *Run) wouldMove(closed int, b *beginning) bool {
	if r.marks == nil {
		return false
	}
	r.marksMu.Lock()
	defer r.marksMu.Unlock()
	return r.marked == closed && r.marks.wouldMove(b)
}

// Watermarks is what an epoch's manifest keeps of the times of its records. It is to be
// called once for each epoch that is done, in their order.
func (r *Run) Watermarks(e *Epoch) map[string]epoch.EventTime {
	if r.marks == nil {
		return nil
	}
	r.marksMu.Lock()
	defer r.marksMu.Unlock()
	r.marked++
	for _, b := range e.batches {
		if b.begin != nil {
			r.marks.begin(b.begin)
		} else {
			r.marks.end(b)
		}
	}
	return r.marks.stands()
}
