package state

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// blocksPerPart is how many blocks may be under way for each part: one that is
// read, one that waits and one that is applied.
const blocksPerPart = 3

// Restore reads a state's segments, the oldest first, and applies every record
// to the part that owns its slot, deletes included. apply is called for each
// part in a goroutine of its own and returns what the part's records are
// applied with, in that goroutine: segment by segment, in the order of slots,
// keys and elements. Records of slots that are nobody's are left out, and
// segments that have no others are not read.
//
// The first error ends all; what has been applied until then is of no use. A
// segment that is missing or not what the manifest says is a
// *[epoch.DamagedError].
func Restore(ctx context.Context, st store.Store, job string, f Form, segments []epoch.Segment, parts []epoch.Slots, apply func(part int) func(*Entry) error) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &restorer{form: f, parts: parts, queues: make([]chan *block, len(parts))}
	blocks := blocksPerPart*len(parts) + 1
	r.free = make(chan *block, blocks)
	for range blocks {
		r.free <- new(block)
	}
	var running sync.WaitGroup
	for part := range parts {
		r.queues[part] = make(chan *block, blocks) // room for all: sending never waits
		running.Go(func() {
			if err := r.applyAll(ctx, part, apply(part)); err != nil {
				cancel(err)
			}
		})
	}
	err := r.readAll(ctx, st, job, segments)
	if err != nil {
		cancel(err)
	}
	for _, queue := range r.queues {
		close(queue)
	}
	running.Wait()
	return context.Cause(ctx)
}

// block is a block of a segment on its way to the parts that own its slots.
type block struct {
	segment *segment
	data    []byte
	records int
	slots   epoch.Slots // none of its records lies outside
	users   atomic.Int32
}

type restorer struct {
	form   Form
	parts  []epoch.Slots
	queues []chan *block // of the parts
	free   chan *block
}

// readAll reads the segments one after the other: so each part gets a row's
// records in the order of their age.
func (r *restorer) readAll(ctx context.Context, st store.Store, job string, segments []epoch.Segment) error {
	for _, told := range segments {
		if !r.wanted(told.Slots) {
			continue
		}
		s, err := openSegment(ctx, st, job, r.form, told)
		if err != nil {
			return err
		}
		err = r.readSegment(ctx, s)
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) wanted(slots epoch.Slots) bool {
	for _, part := range r.parts {
		if overlap(part, slots) {
			return true
		}
	}
	return false
}

// readSegment hands out the blocks of a segment. A block's last slot is at most
// the next one's first, so each is held back until the next one is there.
func (r *restorer) readSegment(ctx context.Context, s *segment) error {
	var held *block
	for {
		b, err := r.fetch(ctx, s)
		if err != nil && err != io.EOF {
			return err
		}
		if held != nil {
			held.slots.Last = s.told.Slots.Last
			if b != nil {
				held.slots.Last = b.slots.First
			}
			r.send(held)
		}
		if err == io.EOF {
			return nil
		}
		held = b
	}
}

// fetch reads the next block that has records.
func (r *restorer) fetch(ctx context.Context, s *segment) (b *block, err error) {
	select {
	case b = <-r.free:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b.segment, b.records = s, 0
	for b.records == 0 {
		if b.data, b.records, err = s.next(ctx, b.data); err != nil {
			r.free <- b
			return nil, err
		}
	}
	b.slots.First, _, err = slotOf(b.data)
	if err != nil {
		return nil, s.unreadable(err)
	}
	return b, nil
}

// send gives a block to every part that owns some of its slots.
func (r *restorer) send(b *block) {
	b.users.Store(1) // this one, so that it isn't free before all have it
	for part, slots := range r.parts {
		if overlap(slots, b.slots) {
			b.users.Add(1)
			r.queues[part] <- b
		}
	}
	r.release(b)
}

func (r *restorer) release(b *block) {
	if b.users.Add(-1) == 0 {
		r.free <- b
	}
}

func (r *restorer) applyAll(ctx context.Context, part int, apply func(*Entry) error) error {
	split := newSplitter(r.form)
	for b := range r.queues[part] {
		if ctx.Err() == nil {
			if err := applyBlock(b, r.parts[part], &split, apply); err != nil {
				return failed("restore", r.form, b.segment.name, err)
			}
		}
		r.release(b)
	}
	return nil
}

// applyBlock applies those records of a block whose slots are in a range.
func applyBlock(b *block, slots epoch.Slots, split *splitter, apply func(*Entry) error) error {
	var e Entry
	src, before := b.data, b.slots.First
	for range b.records {
		at, err := split.split(src)
		if err != nil {
			return err
		}
		if at.slot < before || at.slot > b.slots.Last {
			return fmt.Errorf("expected a slot from %d to %d, for the records are in order; found %d", before, b.slots.Last, at.slot)
		}
		if at.slot > slots.Last {
			return nil // the rest is others'
		}
		if at.slot >= slots.First {
			split.entry(&e, src, at)
			if err := apply(&e); err != nil {
				return err
			}
		}
		src, before = src[at.end:], at.slot
	}
	if len(src) > 0 {
		return fmt.Errorf("%d bytes behind the last record of a block", len(src))
	}
	return nil
}
