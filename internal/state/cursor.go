package state

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// blocks are those of a segment, or some of them, one after the other.
type blocks interface {
	// next returns the records of the next block and their number, in buf's memory
	// if that is enough; after the last the error is [io.EOF].
	next(ctx context.Context, buf []byte) ([]byte, int, error)
	// unreadable says why what next returned can't be read.
	unreadable(cause error) error
}

// cursor stands at one record of a segment.
type cursor struct {
	segment blocks
	age     int // the number of the segment: higher ones are newer
	at      span
	record  []byte // and what is behind it in the block
	left    int    // records of the block from this one on
	buf     []byte // the block's memory
}

func (c *cursor) row() []byte { return c.record[c.at.key:c.at.branch] }

// merger walks the rows of several segments in the order of slots and rows. Of
// a row that several have it shows the newest.
type merger struct {
	heap    []*cursor // the first in the order is at 0
	split   splitter
	compare func(a, b []byte) int
	open    []*segment
	begun   bool
	stands  bool // at a row that next is still to return
}

// newMerger returns a merger of no segments.
func newMerger(f Form) (*merger, error) {
	compare, err := f.Comparer()
	if err != nil {
		return nil, err
	}
	return &merger{split: newSplitter(f), compare: compare}, nil
}

// openMerger opens segments, the oldest first. It is to be closed.
func openMerger(ctx context.Context, st store.Store, job string, f Form, segments []epoch.Segment) (*merger, error) {
	m, err := newMerger(f)
	if err != nil {
		return nil, err
	}
	for age, told := range segments {
		s, err := openSegment(ctx, st, job, f, told)
		if err != nil {
			m.close()
			return nil, err
		}
		m.open = append(m.open, s)
		m.heap = append(m.heap, &cursor{segment: s, age: age})
	}
	return m, nil
}

// live tells whether all segments say that they have no deletes.
func (m *merger) live() bool {
	return !slices.ContainsFunc(m.open, func(s *segment) bool { return s.file.Meta(deletesKey) != noDeletes })
}

func (m *merger) close() {
	for _, s := range m.open {
		s.close()
	}
}

// next goes to the next row and returns the newest record of it, which holds
// until the next call, or nil at the end.
func (m *merger) next(ctx context.Context) (*cursor, error) {
	if !m.begun {
		m.begun = true
		if err := m.begin(ctx); err != nil {
			return nil, err
		}
	} else if m.stands {
		m.stands = false
	} else if err := m.leaveRow(ctx); err != nil {
		return nil, err
	}
	if len(m.heap) == 0 {
		return nil, nil
	}
	return m.heap[0], nil
}

func (m *merger) begin(ctx context.Context) error {
	for i := len(m.heap) - 1; i >= 0; i-- { // from the leaves up
		if err := m.advance(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// stand puts cursors in order that each stand at a record. The first of them is the
// next row.
func (m *merger) stand() {
	for i := len(m.heap) - 1; i >= 0; i-- {
		m.sink(i)
	}
	m.begun, m.stands = true, true
}

// leaveRow moves every cursor off the row of the first: older ones before the
// first itself, whose bytes they are compared with.
func (m *merger) leaveRow(ctx context.Context) error {
	for {
		i := m.sameRow()
		if err := m.advance(ctx, i); err != nil || i == 0 {
			return err
		}
	}
}

// sameRow finds another cursor at the row of the first, or returns 0. In a heap
// one of these is always right under the top. Equal keys have equal encodings, which
// is seen faster than their order.
func (m *merger) sameRow() int {
	first := m.heap[0]
	for i := 1; i < min(3, len(m.heap)); i++ {
		if c := m.heap[i]; c.at.slot == first.at.slot && bytes.Equal(c.row(), first.row()) {
			return i
		}
	}
	return 0
}

// advance moves the i-th cursor to its next record and puts it in its place.
func (m *merger) advance(ctx context.Context, i int) error {
	err := m.load(ctx, m.heap[i])
	if err == io.EOF {
		last := len(m.heap) - 1
		m.heap[i], m.heap[last] = m.heap[last], nil
		m.heap = m.heap[:last]
	} else if err != nil {
		return err
	}
	m.sink(i)
	return nil
}

// run walks the first cursor, whose record has been seen, on over those records of its
// block that come before every other cursor's by their slots alone, up to a slot and
// a number of bytes. It stops before a delete, and returns what it has passed. If the
// block is known to have no deletes, and to end with a slot, all of it may be passed
// without being looked at, and a record more than the bytes.
func (m *merger) run(last epoch.Slot, most int, ends epoch.Slot, known bool) (records []byte, n int, err error) {
	for _, other := range m.heap[1:min(3, len(m.heap))] { // one of these is the next
		if other.at.slot <= last {
			if other.at.slot == epoch.AllSlots.First {
				return nil, 0, nil
			}
			last = other.at.slot - 1
		}
	}
	c, size := m.heap[0], 0
	passed := c.record[c.at.end:]
	if known && ends <= last && len(passed) <= most+c.at.end {
		n = c.left - 1
		c.record, c.left, c.at = nil, 1, span{slot: c.at.slot}
		return passed, n, nil
	}
	for c.left > 1 {
		next := c.record[c.at.end:]
		at, err := m.split.split(next)
		if err != nil {
			return nil, 0, c.segment.unreadable(err)
		}
		if at.slot > last || size+at.end > most || next[at.branch] == branchDeleted {
			break
		}
		c.record, c.at = next, at
		c.left--
		n++
		size += at.end
	}
	return passed[:size], n, nil
}

func (m *merger) load(ctx context.Context, c *cursor) (err error) {
	if c.left > 0 {
		c.record = c.record[c.at.end:]
		c.left--
	}
	for c.left == 0 {
		if len(c.record) > 0 {
			return c.segment.unreadable(fmt.Errorf("%d bytes behind the last record of a block", len(c.record)))
		}
		if c.record, c.left, err = c.segment.next(ctx, c.buf); err != nil {
			return err
		}
		c.buf = c.record[:0]
	}
	if c.at, err = m.split.split(c.record); err != nil {
		return c.segment.unreadable(err)
	}
	return nil
}

func (m *merger) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= min(2*i+2, len(m.heap)-1); child++ {
			if m.before(m.heap[child], m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// before orders records by slot and row, the newest of a row first.
func (m *merger) before(a, b *cursor) bool {
	if a.at.slot != b.at.slot {
		return a.at.slot < b.at.slot
	}
	if c := m.compare(a.row(), b.row()); c != 0 {
		return c < 0
	}
	return a.age > b.age
}
