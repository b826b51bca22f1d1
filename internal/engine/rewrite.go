package engine

import (
	"iter"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
)

// Rewriting is a part of what a table's sink is written anew of: at an epoch's end, the
// rows of all keys in some slots, whether the epoch has touched them or not.
type Rewriting struct {
	// Sink is the sink's number.
	Sink int
	// Slots are those of the keys.
	Slots epoch.Slots
	// Ended are encoded keys in these slots that the sink may have rows of: those that
	// the table lacks are deleted. No key comes twice.
	Ended [][]byte
}

// rewriteQueue holds the part that no epoch has taken up yet.
type rewriteQueue struct {
	more     chan struct{} // has room for one
	mu       sync.Mutex
	next     *Rewriting
	underWay bool
}

func newRewriteQueue() *rewriteQueue { return &rewriteQueue{more: make(chan struct{}, 1)} }

// RewriteOn tells whether a sink is to be written anew: as long as one is, the run does
// not end with its input.
func (r *Run) RewriteOn(underWay bool) {
	r.rewrites.set(func(q *rewriteQueue) { q.underWay = underWay })
}

// Rewrite has the epoch that ends next write a part of a sink anew; if none is open,
// one is opened for that. There is one part at a time: another one may follow once the
// epoch is committed. It never waits.
func (r *Run) Rewrite(part Rewriting) {
	r.rewrites.set(func(q *rewriteQueue) { q.next = &part })
}

// RewriteWaits tells whether a part waits for an epoch.
func (r *Run) RewriteWaits() bool {
	part, _ := r.rewrites.waits()
	return part
}

func (q *rewriteQueue) set(change func(*rewriteQueue)) {
	q.mu.Lock()
	change(q)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take takes the part that waits; nil if none does.
func (q *rewriteQueue) take() *Rewriting {
	q.mu.Lock()
	defer q.mu.Unlock()
	part := q.next
	q.next = nil
	return part
}

// waits tells whether a part waits, and whether any is to come.
func (q *rewriteQueue) waits() (part, underWay bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next != nil, q.underWay
}

// rewrite has an epoch end with the part that waits, if there is one and nothing else
// will end an epoch. It tells whether the run goes on.
func (s *sequencer) rewrite() bool {
	part, _ := s.run.rewrites.waits()
	switch {
	case !part, s.epoch != nil && !s.inputEnded():
		return true
	case s.epoch == nil && !s.openEpoch():
		return false
	}
	s.close()
	return true
}

// rewrite has the table put rows out to a sink for the keys of some slots, with the
// epoch whose encoding has just begun. Rows of what the epoch has touched come anyway.
func (t *Table[R, S]) rewrite(w *Rewriting) {
	for i := range t.appends {
		if t.appends[i].sink == w.Sink {
			t.rewriting = i
			t.markSlots(w.Slots)
			t.deleteEnded(&t.appends[i], w.Ended)
		}
	}
	if w.Slots.Last == epoch.AllSlots.Last { // the pass is over
		t.members = slotMembers{}
	}
}

func (t *Table[R, S]) markSlots(slots epoch.Slots) {
	for n := range t.within(slots) {
		if e := t.at(n); e.present && e.mark == 0 {
			e.mark = markRewrite
			t.again = append(t.again, n)
		}
	}
}

// deleteEnded appends deletes of keys that the table lacks. What the epoch has removed
// is deleted anyway.
func (t *Table[R, S]) deleteEnded(a *rowAppender[R, S], keys [][]byte) {
	if t.spec.windowed {
		return // what a window has come to stays when its state goes
	}
	own := SlotsOf(t.in.shard, t.in.run.shards)
	for _, key := range keys {
		hash := xxhash.Sum64(key)
		if slot := SlotOf(hash); slot < own.First || slot > own.Last {
			continue
		}
		r, _, err := t.spec.decodeRow(&state.Entry{Key: key})
		if err != nil {
			t.fail(r, err)
			return
		}
		if n, ok := t.find(hash, r); ok {
			if e := t.at(n); e.present || e.stored {
				continue
			}
		}
		if err := t.appendTo(t.rewriting, &entry[R, S]{hash: hash, row: r}); err != nil {
			t.fail(r, err)
			return
		}
	}
}

// encodeAgain encodes up to n of the rows that are written anew, and tells whether
// these were the last.
func (t *Table[R, S]) encodeAgain(n int) (done bool) {
	to := min(len(t.again), t.rewritten+n)
	for ; t.rewritten < to; t.rewritten++ {
		if e := t.at(t.again[t.rewritten]); e.mark == markRewrite {
			t.encodeEntry(e, t.again[t.rewritten])
			e.mark = 0
		}
	}
	if to < len(t.again) {
		return false
	}
	t.again, t.rewritten = t.again[:0], 0
	return true
}

// appendTo appends an entry's row to what the epoch puts out by one of the appenders.
func (t *Table[R, S]) appendTo(i int, e *entry[R, S]) error {
	if len(t.rows[i].Buf) > outbox.MaxBytes {
		t.epoch.addRows(t.appends[i].sink, outputPiece{rows: t.rows[i]})
		t.rows[i] = newRows()
	}
	return t.appendRow(t.rows[i], &t.appends[i], e)
}

// groupBits is the size of the groups of slots whose entries are looked for at once: a
// table is gone through 64 times in a pass, however many epochs that takes, and the
// numbers of a 64th of its entries are held.
const groupBits = 10

// slotMembers are the numbers of the entries in a group of slots; some may have gone
// since, or come twice.
type slotMembers struct {
	known   bool
	group   epoch.Slot
	numbers []uint32
	most    int // beyond which they are looked for anew
}

// note notes an entry that has come.
func (m *slotMembers) note(slot epoch.Slot, n uint32) {
	if slot>>groupBits != m.group {
		return
	}
	if m.numbers = append(m.numbers, n); len(m.numbers) > m.most {
		*m = slotMembers{}
	}
}

// within goes through the entries in a range of slots.
func (t *Table[R, S]) within(slots epoch.Slots) iter.Seq[uint32] {
	in := func(n uint32) bool {
		e := t.at(n)
		slot := SlotOf(e.hash)
		return e.present && slot >= slots.First && slot <= slots.Last
	}
	all := func(yield func(uint32) bool) {
		for n := range t.made {
			if in(n) && !yield(n) {
				return
			}
		}
	}
	group := slots.First >> groupBits
	if group != slots.Last>>groupBits {
		return all
	}
	if !t.members.known || t.members.group != group {
		t.members = slotMembers{known: true, group: group, numbers: t.members.numbers[:0]}
		for n := range t.made {
			if e := t.at(n); e.present && SlotOf(e.hash)>>groupBits == group {
				t.members.numbers = append(t.members.numbers, n)
			}
		}
		t.members.most = 2*len(t.members.numbers) + 1024
	}
	return func(yield func(uint32) bool) {
		for _, n := range t.members.numbers {
			if in(n) && !yield(n) {
				return
			}
		}
	}
}
