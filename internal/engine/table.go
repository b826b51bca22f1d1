package engine

import (
	"fmt"
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
)

// Table holds a state's entries that one shard owns, decoded. Operators change
// them in place. The table remembers which ones an epoch has touched; once the
// epoch has ended it encodes these bit by bit, between the batches of the next
// epoch, and an entry that the next epoch touches first is encoded just before.
//
// R identifies an entry: the key, or key and element.
type Table[R comparable, S any] struct {
	in   *Instance
	spec *TableSpec[R, S]

	// The index is open addressing with linear probing: the low half of the
	// hash above the entry's number plus one.
	index  []uint64
	used   int // entries in the index
	chunks []*[chunkEntries]entry[R, S]
	made   uint32   // entries handed out so far, free ones included
	free   []uint32 // entries that may be used again

	mark    uint8    // of entries touched in this epoch, since its last step
	touched []uint32 // in this epoch, in the order of their first touch in a step
	stepped int      // how many of these belong to steps that have ended
	before  []former[R, S]

	ended   []uint32 // touched in the epoch that is being encoded
	encoded int      // how many of these are done
	epoch   *Epoch   // the one that is being encoded; nil: none

	// A sink's rows that the ended epoch puts out again, untouched as they are.
	again     []uint32
	rewritten int // how many of these are done
	rewriting int // the number of the sink's appender
	members   slotMembers

	order      rowOrder
	changes    *state.Changes
	rows       []*outbox.Rows // by the table's sinks
	appends    []rowAppender[R, S]
	changed    func(*Change[R, S])
	observer   func(r R, hash uint64, added bool) // told of rows that come and go
	whenLoaded func()
	meets      func(key uint64, time int64) uint64 // the hash of the entry that a key's record is likely to meet; nil: the key's
	decode     func(src []byte, v *S) ([]byte, error)
	emitting   uint32       // the entry whose change is being passed on
	moved      map[uint32]R // rows as which entries are stored that have been moved since
	err        error
	strings    bool // keys are strings
	count      atomic.Int64
}

const (
	chunkBits    = 10
	chunkEntries = 1 << chunkBits
)

type entry[R comparable, S any] struct {
	hash    uint64
	row     R
	value   S
	mark    uint8 // 0: not touched since it was last encoded; [stepBefore], [markRewrite]
	present bool
	stored  bool // as of the last epoch that was encoded
	parting parting
}

// parting is how an entry that is done goes: it is no longer stored, and who has got
// its row keeps that.
type parting uint8

const (
	isDone      parting = 1 << iota // nothing changes it any more
	changed                         // the epoch had changed it before that
	lately                          // and so had the step of it that has not ended
	wasMoved                        // it was stored as another row, which is in Table.moved
	isOut                           // what it has come to is being put out
	changedLate                     // records of this run have changed it behind its end
)

// stepBefore marks an entry that its epoch touched, but not since the last step of it ended.
const stepBefore = 3

// markRewrite marks an entry that the ended epoch did not touch, and whose row it puts
// out to the sink that is being written anew.
const markRewrite = 4

// former is an entry as it was before the epoch.
type former[R comparable, S any] struct {
	row     R
	value   S
	present bool
}

type rowAppender[R comparable, S any] struct {
	sink int
	row  func(dst []byte, r R, s *S) ([]byte, error)
	wire func(dst []byte, r R, s *S) ([]byte, error)
}

func newTable[R comparable, S any](in *Instance, spec *TableSpec[R, S]) *Table[R, S] {
	t := &Table[R, S]{in: in, spec: spec, mark: 1, decode: spec.value.Decode, strings: isString[R]()}
	for _, s := range spec.sinks {
		t.appends = append(t.appends, rowAppender[R, S]{s.sink, s.rows.NewAppend(), newWire(s.rows)})
	}
	in.tables = append(in.tables, t)
	if spec.Changes.Consumed() {
		t.changed = behindTable(in, spec.Changes.instantiate)
	}
	return t
}

// behindTable instantiates what takes a table's changes: their places begin
// anew, whatever the stage's level.
func behindTable[V any](in *Instance, instantiate func(*Instance) func(*V)) func(*V) {
	if in.build != nil {
		defer func(level uint8) { in.build.level = level }(in.build.level)
		in.build.level = 0
	}
	return instantiate(in)
}

func newWire[R comparable, S any](rows connector.TableRows[R, S]) func([]byte, R, *S) ([]byte, error) {
	if rows.NewWire == nil {
		return nil
	}
	return rows.NewWire()
}

func (t *Table[R, S]) at(n uint32) *entry[R, S] {
	return &t.chunks[n>>chunkBits][n&(chunkEntries-1)]
}

// find returns the number of a row's entry.
func (t *Table[R, S]) find(hash uint64, r R) (uint32, bool) {
	if len(t.index) == 0 {
		return 0, false
	}
	mask := uint32(len(t.index) - 1)
	for pos := uint32(hash) & mask; ; pos = (pos + 1) & mask {
		w := t.index[pos]
		if w == 0 {
			return 0, false
		}
		if uint32(w>>32) == uint32(hash) {
			n := uint32(w) - 1
			if e := t.at(n); e.hash == hash && e.row == r {
				return n, true
			}
		}
	}
}

// warm fetches the entries of the hashes into the processor's cache: first the
// index, then the entries, then what their keys point to. Within each round the
// loads don't depend on each other, so that the memory answers them side by side.
func (t *Table[R, S]) warm(hashes []uint64, times []int64) {
	if len(t.index) == 0 || t.spec.byElement && t.meets == nil {
		return
	}
	var found [2 * ahead]uint32
	n, mask := 0, uint32(len(t.index)-1)
	for i, h := range hashes {
		if t.meets != nil {
			at := int64(connector.NoTime)
			if times != nil {
				at = times[i]
			}
			h = t.meets(h, at)
		}
		for pos := uint32(h) & mask; t.index[pos] != 0 && n < len(found); pos = (pos + 1) & mask {
			if w := t.index[pos]; uint32(w>>32) == uint32(h) {
				found[n] = uint32(w) - 1
				n++
				if !t.spec.sessions {
					break
				}
			}
		}
	}
	t.fetch(found[:n])
}

// fetch loads entries, then what their keys point to.
func (t *Table[R, S]) fetch(numbers []uint32) {
	var sum byte
	for _, n := range numbers {
		sum ^= t.at(n).mark ^ byte(t.at(n).hash)
	}
	if t.strings {
		for _, n := range numbers {
			sum ^= firstByte(&t.at(n).row)
		}
	}
	t.in.warmth ^= sum
}

// fetchDue loads entries that are due.
func (t *Table[R, S]) fetchDue(dues []due) {
	var sum byte
	for _, d := range dues {
		e := t.at(d.number)
		sum ^= e.mark ^ byte(e.hash)
	}
	t.in.warmth ^= sum
}

// get returns the row's value for reading, or nil if it has none.
func (t *Table[R, S]) get(hash uint64, r R) *S {
	n, ok := t.find(hash, r)
	if !ok {
		return nil
	}
	if e := t.at(n); e.present {
		return &e.value
	}
	return nil
}

// update returns the row's entry for changing it; a new one is absent and zero.
func (t *Table[R, S]) update(hash uint64, r R) *entry[R, S] {
	_, e := t.enterRow(hash, r)
	return e
}

// enterRow is update, and tells the entry's number.
func (t *Table[R, S]) enterRow(hash uint64, r R) (uint32, *entry[R, S]) {
	n, ok := t.find(hash, r)
	return t.enterFound(n, ok, hash, r)
}

// enterFound is enterRow, with what find has said.
func (t *Table[R, S]) enterFound(n uint32, found bool, hash uint64, r R) (uint32, *entry[R, S]) {
	if !found {
		n = t.add(hash, r)
	}
	e := t.at(n)
	if e.mark != t.mark {
		t.touch(e, n)
	}
	return n, e
}

// change is to be called before an entry is changed.
func (t *Table[R, S]) change(e *entry[R, S], n uint32) {
	if e.mark != t.mark {
		t.touch(e, n)
	}
}

// all goes through the entries of a hash. Meanwhile none may be added.
func (t *Table[R, S]) all(hash uint64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if len(t.index) == 0 {
			return
		}
		mask := uint32(len(t.index) - 1)
		for pos := uint32(hash) & mask; t.index[pos] != 0; pos = (pos + 1) & mask {
			if w := t.index[pos]; uint32(w>>32) == uint32(hash) {
				if n := uint32(w) - 1; t.at(n).hash == hash && !yield(n) {
					return
				}
			}
		}
	}
}

// touch notes that the epoch is about to change the entry.
func (t *Table[R, S]) touch(e *entry[R, S], n uint32) {
	if e.mark != 0 && t.epoch != nil { // it is the ended epoch's
		t.encodeEntry(e, n)
	}
	e.mark = t.mark
	t.touched = append(t.touched, n)
	if t.changed != nil {
		f := former[R, S]{row: e.row, present: e.present}
		if e.present {
			f.value = t.spec.own(e.value)
		}
		t.before = append(t.before, f)
	}
}

// put makes the entry present.
func (t *Table[R, S]) put(e *entry[R, S]) {
	if !e.present {
		e.present = true
		if t.observer != nil {
			t.observer(e.row, e.hash, true)
		}
	}
}

// remove makes the entry absent.
func (t *Table[R, S]) remove(e *entry[R, S]) {
	var zero S
	e.value = zero
	if e.present {
		e.present = false
		if t.observer != nil {
			t.observer(e.row, e.hash, false)
		}
	}
}

// forgo gives an entry up at once that was removed, if it has come within the epoch as
// well: the next one takes its place, which is in the cache still. The number stays among
// those that were touched, where it may stand again.
func (t *Table[R, S]) forgo(e *entry[R, S], n uint32) {
	if !e.present && !e.stored && e.parting == 0 && t.changed == nil {
		t.discard(n)
	}
}

// add makes an entry for a row that has none.
func (t *Table[R, S]) add(hash uint64, r R) uint32 {
	if 3*(t.used+1) > 2*len(t.index) {
		t.grow(2 * (t.used + 1))
	}
	n := t.made
	if last := len(t.free) - 1; last >= 0 {
		n = t.free[last]
		t.free = t.free[:last]
	} else {
		if int(n>>chunkBits) == len(t.chunks) {
			t.chunks = append(t.chunks, new([chunkEntries]entry[R, S]))
		}
		t.made++
	}
	e := t.at(n)
	e.hash, e.row = hash, r
	t.enter(hash, n)
	t.used++
	if t.members.known {
		t.members.note(SlotOf(hash), n)
	}
	return n
}

func (t *Table[R, S]) enter(hash uint64, n uint32) {
	mask := uint32(len(t.index) - 1)
	pos := uint32(hash) & mask
	for t.index[pos] != 0 {
		pos = (pos + 1) & mask
	}
	t.index[pos] = hash<<32 | uint64(n+1)
}

// grow makes room in the index for n entries.
func (t *Table[R, S]) grow(n int) {
	size := max(16, 1<<bits.Len(uint(n)*3/2))
	if size <= len(t.index) {
		return
	}
	old := t.index
	t.index = make([]uint64, size)
	for _, w := range old {
		if w != 0 {
			t.enter(w>>32, uint32(w)-1)
		}
	}
}

// discard gives up an entry that is absent here and in the store.
func (t *Table[R, S]) discard(n uint32) {
	e := t.at(n)
	mask := uint32(len(t.index) - 1)
	pos := uint32(e.hash) & mask
	for uint32(t.index[pos])-1 != n {
		pos = (pos + 1) & mask
	}
	// Close the gap: an entry behind it moves up unless that would put it
	// before its own place.
	for next := (pos + 1) & mask; t.index[next] != 0; next = (next + 1) & mask {
		home := uint32(t.index[next]>>32) & mask
		if (next-home)&mask >= (next-pos)&mask {
			t.index[pos] = t.index[next]
			pos = next
		}
	}
	t.index[pos] = 0
	*e = entry[R, S]{}
	t.free = append(t.free, n)
	t.used--
}

// held is the number of entries, as of the last epoch's end.
func (t *Table[R, S]) held() int64 { return t.count.Load() }

// begin ends the epoch for the table: what it has touched is to be encoded.
func (t *Table[R, S]) begin(e *Epoch) {
	t.epoch = e
	t.count.Store(int64(t.used))
	t.ended, t.touched = t.touched, t.ended[:0]
	t.before, t.stepped = t.before[:0], 0
	t.encoded = 0
	t.mark = 3 - t.mark
	t.changes = e.run.changes.get(newChanges)
	t.rows = make([]*outbox.Rows, len(t.appends))
	for i := range t.rows {
		t.rows[i] = e.run.rows.get(newRows)
	}
}

// endStep begins another of the epochs that this one covers: who sees the changes
// sees from now on what comes behind it. Nothing is being encoded meanwhile.
func (t *Table[R, S]) endStep() {
	if t.changed == nil {
		return
	}
	for _, n := range t.touched[t.stepped:] {
		e := t.at(n)
		e.mark, e.parting = stepBefore, e.parting&^lately
	}
	t.before, t.stepped = t.before[:0], len(t.touched)
}

func newChanges() *state.Changes { return new(state.Changes) }
func newRows() *outbox.Rows      { return new(outbox.Rows) }

// encode encodes up to n entries of the ended epoch and tells whether that was
// the last; then the epoch has them.
func (t *Table[R, S]) encode(n int) (done bool, err error) {
	if t.epoch == nil {
		return true, nil
	}
	ended := 3 - t.mark
	to := min(len(t.ended), t.encoded+n)
	for t.encoded < to {
		next := t.ended[t.encoded:min(to, t.encoded+ahead)]
		t.fetch(next)
		for _, number := range next {
			e := t.at(number)
			if e.mark == ended || e.mark == stepBefore {
				t.encodeEntry(e, number)
				e.mark = 0
				if !e.present {
					t.discard(number)
				}
			}
		}
		t.encoded += len(next)
	}
	if to == len(t.ended) && !t.encodeAgain(n) || to < len(t.ended) {
		return false, t.err
	}
	if t.err != nil {
		return false, t.err
	}
	t.epoch.addChanges(t.spec.index, t.in.shard, t.changes)
	for i, a := range t.appends {
		t.epoch.addRows(a.sink, outputPiece{rows: t.rows[i]})
	}
	t.epoch, t.changes, t.rows = nil, nil, nil
	return true, nil
}

// encodeEntry encodes an entry as the ended epoch left it.
func (t *Table[R, S]) encodeEntry(e *entry[R, S], n uint32) {
	if e.parting != 0 {
		t.encodeParting(e, n)
	}
	if !e.present && !e.stored {
		return // came and went within the epoch
	}
	if e.mark == markRewrite {
		if err := t.appendTo(t.rewriting, e); err != nil {
			t.fail(e.row, err)
		}
		return
	}
	err := t.appendEntry(e)
	for i := 0; i < len(t.appends) && err == nil; i++ {
		err = t.appendTo(i, e)
	}
	if err != nil {
		t.fail(e.row, err)
	}
	e.stored = e.present
}

// fail keeps the first error of the encoding.
func (t *Table[R, S]) fail(r R, err error) {
	if t.err == nil {
		t.err = &StateError{State: t.spec.Name, Key: fmt.Sprint(r), Cause: err}
	}
}

// appendEntry appends an entry's record to the changes.
func (t *Table[R, S]) appendEntry(e *entry[R, S]) (err error) {
	c := t.changes
	c.Begin(SlotOf(e.hash))
	c.Buf = t.spec.appendKey(c.Buf, &e.row)
	c.Element()
	if t.spec.appendElement != nil {
		c.Buf = t.spec.appendElement(c.Buf, &e.row)
	}
	c.Value()
	if e.present {
		c.Buf = append(c.Buf, 2)
		c.Buf, err = t.spec.value.Append(c.Buf, &e.value)
	} else {
		c.Buf = append(c.Buf, 0)
	}
	c.End()
	return err
}

func (t *Table[R, S]) appendRow(rows *outbox.Rows, a *rowAppender[R, S], e *entry[R, S]) (err error) {
	op := connector.Put
	if !e.present {
		op = connector.Delete
	}
	slot := SlotOf(e.hash)
	rows.Begin(uint64(slot), 0, op, uint16(slot))
	rows.Buf = t.spec.appendKey(rows.Buf, &e.row)
	if t.spec.appendElement != nil {
		rows.Buf = t.spec.appendElement(rows.Buf, &e.row)
	}
	rows.Row(e.present)
	if e.present {
		if rows.Buf, err = a.row(rows.Buf, e.row, &e.value); err != nil {
			return err
		}
	}
	rows.Wire(a.wire != nil)
	if a.wire != nil {
		value := &e.value
		if !e.present {
			value = nil
		}
		if rows.Buf, err = a.wire(rows.Buf, e.row, value); err != nil {
			return err
		}
	}
	rows.End()
	return nil
}

// load puts in an entry of the store; later ones replace earlier ones. Who
// observes the rows is told of them by loaded, when all are there: what comes
// and goes on the way there is nobody's history.
func (t *Table[R, S]) load(se *state.Entry) error {
	r, hash, err := t.spec.decodeRow(se)
	if err != nil {
		return err
	}
	n, ok := t.find(hash, r)
	if se.Deleted {
		if ok {
			t.discard(n)
		}
		return nil
	}
	if !ok {
		n = t.add(hash, r)
	}
	e := t.at(n)
	if _, err := t.decode(se.Value, &e.value); err != nil {
		return &StateError{State: t.spec.Name, Key: fmt.Sprint(r), Cause: err}
	}
	e.present, e.stored = true, true
	return nil
}
