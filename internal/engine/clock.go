package engine

// timed is a part of a shard that does something when time passes.
type timed interface {
	// pass does what is due, at the place that begin prepares for each slot.
	pass(in *Instance)
	// nextTick is when the epochs' clock makes it do something next, or never.
	nextTick() int64
}

// never is no tick of the clock.
const never = 1<<63 - 1

// noteTick notes when the clock makes the shard do something next, for whoever begins
// epochs without input.
func (s *shard) noteTick() {
	next := int64(never)
	for _, t := range s.in.timed {
		next = min(next, t.nextTick())
	}
	s.tick.Store(next)
}

// beginEpoch passes the epoch's clock on, or that of one that it covers, and does what
// is due before its first record.
func (s *shard) beginEpoch(b *batch) error {
	if s.marks != nil {
		s.marks.begin(b.begin)
		if err := s.guard(s.passTime); err != nil {
			return err
		}
	}
	if err := s.flush(b); err != nil {
		return err
	}
	b.epoch.finish()
	return s.encode(encodeSlice)
}

// passTime does what is due.
func (s *shard) passTime() {
	in := s.in
	in.mark = s.marks.least(s.stage.spec.times)
	in.firing, in.overdue = true, false
	for i, t := range in.timed {
		if in.failed != nil {
			return
		}
		in.firingPart = i
		t.pass(in)
	}
	in.firing = false
}

// fireAt readies the instance to put out what is due in a slot: behind all that the
// records of the batch have put out, and all that was due in the stages before.
func (in *Instance) fireAt(slot int, time int64) {
	record := uint64(len(in.batch.offsets)) + uint64(in.level)
	in.base, in.emitted = Place{Hi: record<<recordShift | uint64(in.firingPart)<<16 | uint64(slot)}, 0
	in.time = time
}
