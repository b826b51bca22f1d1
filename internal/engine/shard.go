package engine

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// batch is the head of a batch on its way through the stages.
type batch struct {
	seq       uint64
	epoch     *Epoch
	now       int64      // the clock that its records see
	end       bool       // the epoch ends here; there are no records
	stepEnd   bool       // an epoch that is covered ends here, and the epoch goes on; there are no records
	edits     edits      // what is deleted by request; there are no records
	rewriting *Rewriting // what a sink is written anew of, with an end; nil: nothing
	source    int
	partition string
	offsets   []int64 // of the records

	// Of a graph with times.
	begin      *beginning // an epoch or a step begins here; there are no records
	part       int        // the partition's number
	sourceName string
	runEnds    bool    // with this batch
	seen       []int64 // by event time: the latest of the batch
}

// message is what a shard of a stage gets: one sender's part of a batch, on one of the
// stage's lanes. The sequencer's own word that an epoch ends has no piece.
type message struct {
	batch *batch
	lane  int
	piece pieceOf
}

// stageRun is a keyed stage in a run.
type stageRun struct {
	run    *Run
	spec   *stageSpec
	shards []*shard
	// The number of messages that make a batch, and an epoch's end, complete.
	ofBatch, ofEnd int
}

// send hands a message to a shard, and tells whether the run goes on.
func (s *stageRun) send(shard int, m message) bool {
	select {
	case s.shards[shard].inbox <- m:
		return true
	case <-s.run.quit:
		return false
	}
}

// shard is one goroutine of a stage, with the tables of its slots.
type shard struct {
	stage *stageRun
	in    *Instance
	inbox chan message
	lanes []func(pieces []pieceOf) // what applies each

	next    uint64 // the batch to be applied next
	waiting map[uint64]*assembly
	spare   []*assembly
	ended   *Epoch       // the epoch whose entries are being encoded
	marks   *watermarks  // nil: the graph has no times
	tick    atomic.Int64 // when the clock makes it do something next, as of the last epoch that has ended

	// What the guarded steps work on: a method's value would be allocated anew
	// with what it closes over, for each batch.
	pieces  [][]pieceOf
	slice   int
	encoded bool
}

// assembly is a batch of which some parts have come.
type assembly struct {
	batch  *batch
	pieces [][]pieceOf // by lane
	got    int
}

const (
	// inboxSize bounds the pieces that wait at a shard; the workers and the
	// shards before it wait when it is full.
	inboxSize = 16
	// encodeSlice is the number of entries that a shard encodes between two
	// batches: about a tenth of a millisecond.
	encodeSlice = 512
)

func (s *shard) loop() error {
	for {
		m, ok, err := s.receive()
		if err != nil || !ok {
			return err
		}
		s.add(m)
		for a := s.waiting[s.next]; a != nil && a.got == s.stage.expects(a.batch); a = s.waiting[s.next] {
			delete(s.waiting, s.next)
			s.next++
			if err := s.process(a); err != nil {
				return err
			}
			for lane := range a.pieces {
				a.pieces[lane] = a.pieces[lane][:0]
			}
			*a = assembly{pieces: a.pieces}
			s.spare = append(s.spare, a)
		}
	}
}

func (s *stageRun) expects(b *batch) int {
	switch {
	case b.end, b.stepEnd, b.begin != nil:
		return s.ofEnd
	case b.edits != nil:
		return 1 // the sequencer's
	}
	return s.ofBatch
}

// receive waits for a message; as long as there is none, it encodes.
func (s *shard) receive() (m message, ok bool, err error) {
	for s.ended != nil {
		select {
		case m := <-s.inbox:
			return m, true, nil
		case <-s.stage.run.quit:
			return m, false, nil
		default:
			if err := s.encode(encodeSlice); err != nil {
				return m, false, err
			}
		}
	}
	select {
	case m := <-s.inbox:
		return m, true, nil
	case <-s.stage.run.quit:
		return m, false, nil
	}
}

func (s *shard) add(m message) {
	a := s.waiting[m.batch.seq]
	if a == nil {
		if n := len(s.spare); n > 0 {
			a, s.spare = s.spare[n-1], s.spare[:n-1]
		} else {
			a = &assembly{pieces: make([][]pieceOf, len(s.lanes))}
		}
		a.batch = m.batch
		s.waiting[m.batch.seq] = a
	}
	a.got++
	if m.piece != nil {
		a.pieces[m.lane] = append(a.pieces[m.lane], m.piece)
	}
}

// process applies a batch that is complete.
func (s *shard) process(a *assembly) error {
	in := s.in
	in.batch, in.level, in.clock = a.batch, s.stage.spec.depth, a.batch.now
	if a.batch.edits != nil {
		return s.guard(s.deleteEntries)
	}
	s.pieces = a.pieces
	if err := s.guard(s.applyPieces); err != nil {
		return err
	}
	switch {
	case a.batch.end:
		return s.endEpoch(a.batch)
	case a.batch.stepEnd:
		return s.endStep(a.batch)
	case a.batch.begin != nil:
		return s.beginEpoch(a.batch)
	}
	if s.marks != nil && (s.marks.end(a.batch) || in.overdue && a.batch.runEnds) {
		if err := s.guard(s.passTime); err != nil {
			return err
		}
	}
	if err := s.flush(a.batch); err != nil {
		return err
	}
	return s.encode(encodeSlice)
}

func (s *shard) applyPieces() {
	for lane, apply := range s.lanes {
		if s.in.failed == nil {
			apply(s.pieces[lane])
		}
	}
}

// flush hands on what the shard has put out of a batch.
func (s *shard) flush(b *batch) error {
	if err := s.guard(s.settle); err != nil {
		return err
	}
	s.in.flush(b)
	return nil
}

func (s *shard) settle() { s.in.settle() }

// endEpoch passes on what the tables have changed, and begins to encode it.
func (s *shard) endEpoch(b *batch) error {
	defer b.epoch.paused(s.stage.run.o.Env.Clock.Now())
	if err := s.encode(1 << 62); err != nil { // what is left of the epoch before
		return err
	}
	if err := s.guard(s.emitChanges); err != nil {
		return err
	}
	if err := s.flush(b); err != nil {
		return err
	}
	s.noteTick()
	b.epoch.lost(s.in.losses)
	s.ended = b.epoch
	for _, t := range s.in.tables {
		t.begin(b.epoch)
		if b.rewriting != nil {
			t.rewrite(b.rewriting)
		}
	}
	return nil
}

// endStep passes on what the tables have changed since the step before: an epoch that
// is covered ends here, and what it has touched is encoded with the epoch that
// covers it.
func (s *shard) endStep(b *batch) error {
	if err := s.encode(1 << 62); err != nil { // what is left of the epoch before
		return err
	}
	if err := s.guard(s.emitChanges); err != nil {
		return err
	}
	if err := s.flush(b); err != nil {
		return err
	}
	for _, t := range s.in.tables {
		t.endStep()
	}
	b.epoch.finish()
	return nil
}

func (s *shard) emitChanges() {
	for _, t := range s.in.tables {
		if s.in.failed == nil {
			t.emitChanges(t.number())
		}
	}
}

// encode encodes up to n entries of each table for the epoch that has ended.
func (s *shard) encode(n int) error {
	if s.ended == nil {
		return nil
	}
	s.slice = n
	defer s.ended.paused(s.stage.run.o.Env.Clock.Now())
	if err := s.guard(s.encodeTables); err != nil {
		return err
	}
	if s.encoded {
		s.ended.finish()
		s.ended = nil
	}
	return nil
}

func (s *shard) encodeTables() {
	s.encoded = true
	for _, t := range s.in.tables {
		done, err := t.encode(s.slice)
		if err != nil {
			s.in.Fail("", err)
			return
		}
		s.encoded = s.encoded && done
	}
}

// guard calls step, which runs functions of the job, and returns what went wrong
// there with the record or entry in hand.
func (s *shard) guard(step func()) (err error) {
	in := s.in
	defer func() {
		if p := recover(); p != nil {
			err = in.describe("", &PanicError{Value: fmt.Sprint(p), Stack: string(debug.Stack())})
		}
	}()
	step()
	if in.failed != nil {
		return in.describe(in.blame, in.failed)
	}
	return nil
}

// describe names the record, or behind a table the entry, that the instance has
// in hand.
func (in *Instance) describe(operator string, cause error) error {
	if state, isState := cause.(*StateError); isState {
		return state
	}
	if in.folding != nil {
		return in.describeFolding(cause)
	}
	if in.emitting != nil {
		state, row := in.emitting()
		return &StateError{State: state, Key: row, Cause: cause}
	}
	if in.batch == nil || in.batch.end || in.batch.stepEnd || in.batch.begin != nil || in.batch.edits != nil || in.firing || in.merging {
		e := &StateError{State: in.operator, Cause: cause}
		if in.keyInHand != nil {
			e.Key = in.keyInHand()
		}
		return e
	}
	e := &RecordError{Source: in.run.graph.sources[in.batch.source].name, Partition: in.batch.partition, Operator: operator, Cause: cause}
	if i := in.base.record(); i < uint64(len(in.batch.offsets)) {
		e.Offset = in.batch.offsets[i]
	}
	if in.keyInHand != nil {
		e.Key = in.keyInHand()
		if operator == "" {
			e.Operator = in.operator
		}
	}
	return e
}

// describeFolding names the record, or behind a table the key, that is being folded before
// it is sent.
func (in *Instance) describeFolding(cause error) error {
	operator, key, place := in.folding.blamed()
	b, i := in.batch, place.record()
	if i >= uint64(len(b.offsets)) {
		return &StateError{State: operator, Key: key, Cause: cause}
	}
	return &RecordError{Source: in.run.graph.sources[b.source].name, Partition: b.partition, Offset: b.offsets[i], Operator: operator, Key: key, Cause: cause}
}
