package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// ReadSlots is [Read] for some ranges of slots, one after the other, that reads of
// each segment only the heads of its blocks and those blocks that it needs. It
// relies on the blocks' check sums.
func ReadSlots(ctx context.Context, st store.Store, job string, f Form, segments []epoch.Segment, ranges []epoch.Slots) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var within []epoch.Segment
		for _, s := range segments {
			if slices.ContainsFunc(ranges, func(r epoch.Slots) bool { return overlap(r, s.Slots) }) {
				within = append(within, s)
			}
		}
		s, err := OpenSeeker(ctx, st, job, f, within)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.Close()
		r := s.Reader()
		for _, slots := range ranges {
			if !r.read(ctx, slots, yield) {
				return
			}
		}
	}
}

// Seeker finds slots in a state's segments without reading all of them. It may be
// used by many goroutines.
type Seeker struct {
	form     Form
	segments []*seekable // the oldest first
}

// OpenSeeker opens segments, the oldest first, and reads the heads of their
// blocks. It is to be closed. A segment that is missing or not what the manifest
// says, as far as that is seen, gives a *[epoch.DamagedError], here and later.
func OpenSeeker(ctx context.Context, st store.Store, job string, f Form, segments []epoch.Segment) (*Seeker, error) {
	if _, err := f.Comparer(); err != nil {
		return nil, err
	}
	s := &Seeker{form: f}
	for _, told := range segments {
		opened, err := openSegment(ctx, st, job, f, told)
		if err != nil {
			s.Close()
			return nil, err
		}
		one := &seekable{segment: opened}
		s.segments = append(s.segments, one)
		if err := one.list(); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close closes the segments.
func (s *Seeker) Close() {
	for _, one := range s.segments {
		one.close()
	}
}

// Largest returns the slots of those n blocks that have the most bytes for each
// record, in order and without overlaps.
func (s *Seeker) Largest(ctx context.Context, n int) ([]epoch.Slots, error) {
	type place struct {
		segment *seekable
		block   int
		size    float64 // of a record, in bytes
	}
	var top []place // the largest first
	for _, one := range s.segments {
		for i := range one.blocks.Len() {
			b := one.blocks.At(i)
			p := place{one, i, float64(b.Bytes) / float64(b.Records)}
			at := slices.IndexFunc(top, func(t place) bool { return t.size < p.size })
			if at < 0 {
				at = len(top)
			}
			if at < n {
				top = slices.Insert(top, at, p)
				top = top[:min(n, len(top))]
			}
		}
	}
	var ranges []epoch.Slots
	for _, p := range top {
		slots, err := p.segment.slots(ctx, p.block)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, slots)
	}
	return union(ranges), nil
}

// Spread returns the slots of n records, or of all there are, that lie evenly in
// the segment of a number, in order and without overlaps.
func (s *Seeker) Spread(ctx context.Context, segment, n int) ([]epoch.Slots, error) {
	one := s.segments[segment]
	n = int(min(int64(n), one.told.Rows))
	split := newSplitter(s.form)
	var ranges []epoch.Slots
	var buf, scratch []byte
	before := int64(0) // records before the block
	for i := 0; i < one.blocks.Len() && len(ranges) < n; i++ {
		records := int64(one.blocks.At(i).Records)
		next := func() int64 { return int64(len(ranges))*one.told.Rows/int64(n) - before }
		if next() < records {
			var err error
			if buf, err = one.read(ctx, i, buf, &scratch); err != nil {
				return nil, err
			}
			src := buf
			for k := int64(0); len(ranges) < n && next() < records; k++ {
				at, err := split.split(src)
				if err != nil {
					return nil, one.unreadable(err)
				}
				if k == next() {
					ranges = append(ranges, epoch.Slots{First: at.slot, Last: at.slot})
				}
				src = src[at.end:]
			}
		}
		before += records
	}
	return union(ranges), nil
}

// union puts ranges in order, and those that overlap together.
func union(ranges []epoch.Slots) (out []epoch.Slots) {
	slices.SortFunc(ranges, func(a, b epoch.Slots) int { return cmp.Compare(a.First, b.First) })
	for _, r := range ranges {
		if last := len(out) - 1; last >= 0 && r.First <= out[last].Last {
			out[last].Last = max(out[last].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// SlotReader reads ranges of slots, in one goroutine.
type SlotReader struct {
	seeker  *Seeker
	merger  *merger
	windows []*window // for each segment
	cursors []cursor
}

// Reader returns a reader, which is of use until the seeker is closed.
func (s *Seeker) Reader() *SlotReader {
	m, err := newMerger(s.form)
	if err != nil {
		panic(err) // OpenSeeker has tried
	}
	r := &SlotReader{seeker: s, merger: m, cursors: make([]cursor, len(s.segments))}
	for _, one := range s.segments {
		r.windows = append(r.windows, &window{seekable: one, end: one.blocks.Len()})
	}
	return r
}

// Read iterates over the entries in a range of slots, as the function [Read] does.
func (r *SlotReader) Read(ctx context.Context, slots epoch.Slots) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) { r.read(ctx, slots, yield) }
}

// Segment is the number of the segment that the entry which Read is at stands in;
// 0 is the oldest.
func (r *SlotReader) Segment() int { return r.merger.heap[0].age }

func (r *SlotReader) read(ctx context.Context, slots epoch.Slots, yield func(*Entry, error) bool) bool {
	if err := r.seek(ctx, slots); err != nil {
		yield(nil, err)
		return false
	}
	return r.merger.entries(ctx, slots, yield)
}

// seek puts the merger before a range of slots, or further ahead.
func (r *SlotReader) seek(ctx context.Context, slots epoch.Slots) error {
	r.merger.heap, r.merger.begun, r.merger.stands = r.merger.heap[:0], false, false
	for age, w := range r.windows {
		if !overlap(w.told.Slots, slots) {
			continue
		}
		if err := w.seek(ctx, slots); err != nil {
			return err
		}
		c := &r.cursors[age]
		*c = cursor{segment: w, age: age, buf: c.buf}
		r.merger.heap = append(r.merger.heap, c)
	}
	return nil
}

// onward goes to a range of slots behind the last one, after a seek that reached to the
// end of all slots: it looks for them in one segment, and reads on in the others.
func (r *SlotReader) onward(ctx context.Context, in *window, slots epoch.Slots) error {
	m := r.merger
	m.heap = slices.DeleteFunc(m.heap, func(c *cursor) bool { return c.segment == blocks(in) })
	if err := in.seek(ctx, slots); err != nil {
		return err
	}
	age := slices.Index(r.windows, in)
	c := &r.cursors[age]
	*c = cursor{segment: in, age: age, buf: c.buf}
	if err := m.load(ctx, c); err == nil {
		m.heap = append(m.heap, c)
	} else if err != io.EOF {
		return err
	}
	m.stand()
	return nil
}

// seekable is a segment whose blocks can be read in any order.
type seekable struct {
	*segment
	blocks *avrofile.Blocks
	sync   string         // its sync marker
	live   bool           // it says that it has no deletes
	firsts []atomic.Int32 // one more than the slot that each block begins with; 0: not known yet
	broken sync.Mutex     // for unreadable, which reads on
}

// list lists the blocks, which must hold as many rows as the manifest says.
func (s *seekable) list() (err error) {
	if s.blocks, err = s.file.Blocks(s.object, s.object.Size()); err != nil {
		return s.unreadable(err)
	}
	if !s.blocks.Checked() {
		return s.unreadable(errors.New("expected blocks with check sums"))
	}
	s.sync, s.live = s.file.Sync(), s.file.Meta(deletesKey) == noDeletes
	s.file = nil // and its buffer
	s.firsts = make([]atomic.Int32, s.blocks.Len())
	rows := int64(0)
	for i := range s.blocks.Len() {
		rows += int64(s.blocks.At(i).Records)
	}
	if rows != s.told.Rows {
		return s.damaged(fmt.Sprintf("%d rows", s.told.Rows), strconv.FormatInt(rows, 10))
	}
	return nil
}

// unreadable is that of a segment, for many goroutines.
func (s *seekable) unreadable(cause error) error {
	s.broken.Lock()
	defer s.broken.Unlock()
	return s.segment.unreadable(cause)
}

// read reads the block of a number.
func (s *seekable) read(ctx context.Context, i int, buf []byte, scratch *[]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("read", s.form, s.name, err)
	}
	block, err := s.blocks.Read(i, buf, scratch)
	if err != nil {
		return nil, s.unreadable(err)
	}
	slot, _, err := slotOf(block)
	if err != nil {
		return nil, s.unreadable(err)
	}
	s.firsts[i].Store(int32(slot) + 1)
	return block, nil
}

// first is the slot that a block begins with.
func (s *seekable) first(ctx context.Context, i int) (epoch.Slot, error) {
	return s.firstOf(ctx, i, new([]byte), new([]byte))
}

func (s *seekable) firstOf(ctx context.Context, i int, buf, scratch *[]byte) (epoch.Slot, error) {
	if known := s.firsts[i].Load(); known > 0 {
		return epoch.Slot(known - 1), nil
	}
	block, err := s.read(ctx, i, *buf, scratch)
	if err != nil {
		return 0, err
	}
	*buf = block
	return epoch.Slot(s.firsts[i].Load() - 1), nil
}

// slots are those that a block has records of, at most.
func (s *seekable) slots(ctx context.Context, i int) (slots epoch.Slots, err error) {
	if slots.First, err = s.first(ctx, i); err != nil {
		return slots, err
	}
	if i+1 == s.blocks.Len() {
		slots.Last = s.told.Slots.Last
		return slots, nil
	}
	slots.Last, err = s.first(ctx, i+1)
	return slots, err
}

// window goes through those blocks of a segment that a range of slots lies in.
type window struct {
	*seekable
	slots   epoch.Slots
	begin   int // no block before it is looked at
	end     int // nor one from it on
	at      int // the next block
	probe   []byte
	scratch []byte
}

// guesses is how often a block's place is guessed before the rest is halved: hashes
// lie so evenly that the second guess is mostly right, and the third shows it.
const guesses = 6

// seek goes to the last block that begins before the range, or to the first one.
func (w *window) seek(ctx context.Context, slots epoch.Slots) error {
	w.slots = slots
	from, to := w.begin, w.end // it is from or behind it, and before to
	least, most := w.told.Slots.First, w.told.Slots.Last
	for try := 0; to-from > 1; try++ {
		middle := from + (to-from)/2
		if try < guesses {
			share := float64(int(slots.First)-int(least)) / float64(int(most)-int(least)+1)
			middle = max(from+1, min(to-1, from+int(share*float64(to-from))))
		}
		first, err := w.firstOf(ctx, middle, &w.probe, &w.scratch)
		if err != nil {
			return err
		}
		if first < least || first > most {
			return w.unordered(first, least, most)
		}
		if first < slots.First {
			from, least = middle, first
		} else {
			to, most = middle, first
		}
	}
	w.at = from
	return nil
}

func (w *window) unordered(found, least, most epoch.Slot) error {
	return w.unreadable(fmt.Errorf("expected a block that begins with a slot from %d to %d, for the records are in order; found %d", least, most, found))
}

// next implements [blocks].
func (w *window) next(ctx context.Context, buf []byte) ([]byte, int, error) {
	if w.at == w.end {
		return nil, 0, io.EOF
	}
	if known := w.firsts[w.at].Load(); known > 0 && epoch.Slot(known-1) > w.slots.Last {
		return nil, 0, io.EOF
	}
	block, err := w.read(ctx, w.at, buf, &w.scratch)
	if err != nil {
		return nil, 0, err
	}
	records := int(w.blocks.At(w.at).Records)
	w.at++
	return block, records, nil
}
