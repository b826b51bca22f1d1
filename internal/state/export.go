package state

import (
	"context"
	"encoding/binary"
	"io"
	"sync"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// ExportOptions say how a state is exported.
type ExportOptions struct {
	// Plain leaves the file's blocks uncompressed.
	Plain bool
	// Workers is the number of goroutines that read and merge. Defaults to 1.
	Workers int
	// Written, if not nil, is told from time to time how many entries and bytes have
	// been written so far, by one goroutine.
	Written func(entries, bytes int64)
	// Sync, if not nil, makes what was written durable. It is called beside the rest
	// now and then, so that less is left to wait for when the caller does it last.
	Sync func() error
}

// Export writes what a state's segments, the oldest first, hold to one Avro object
// container file, and returns the number of entries. Its records are those of a
// segment, in the order of slots, keys and elements, without deletes.
//
// Blocks of the largest segment that no other segment touches are copied as they
// are; the others are merged. All segments' hashes are held against the manifest's:
// a segment that is missing or not what that says gives a *[epoch.DamagedError].
// The first error ends it; what was written until then is of no use.
func Export(ctx context.Context, st store.Store, job string, f Form, segments []epoch.Segment, w io.Writer, o ExportOptions) (entries int64, err error) {
	seeker, err := OpenSeeker(ctx, st, job, f, segments)
	if err != nil {
		return 0, err
	}
	defer seeker.Close()
	x := &export{seeker: seeker, o: o, base: seeker.largest()}
	file := avrofile.Options{Schema: f.Schema().String(), Meta: map[string]string{stateKey: f.Name}, Unsummed: true}
	if o.Plain {
		file.Codec = avrofile.Null
	}
	if x.base != nil {
		x.sync = x.base.sync
		file.Sync = x.sync
		if x.pieces, err = x.plan(ctx); err != nil {
			return 0, err
		}
	}
	x.file = avrofile.New(w, file)
	if err := x.run(ctx); err != nil {
		return 0, err
	}
	sum, err := x.file.Close()
	return sum.Records, err
}

const (
	// aheadPerWorker bounds the merged pieces that wait to be written: enough that
	// neither side waits when the other's goroutine gets no processor for a while.
	aheadPerWorker = 8
	// syncBytes is how much is written between two calls of Sync.
	syncBytes = 32 << 20
	// sumBytes is how much of a segment is hashed at once.
	sumBytes = 256 << 10
)

// export is an Export under way: workers merge pieces ahead, one goroutine writes all
// in their order, and reads and hashes those that are copied itself, so that their
// bytes stay in its processor's cache. One hashes the segments that nothing is copied
// of.
type export struct {
	seeker *Seeker
	base   *seekable // the largest segment; nil if there is none
	sync   string
	o      ExportOptions
	pieces []piece
	file   *avrofile.Writer
	copies bool // blocks of the base are copied
	synced int64
}

// merged is a piece that is merged.
type merged struct {
	piece   piece
	blocks  []byte
	records int64
	err     error
	done    chan struct{} // has room for one
}

func (x *export) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := max(x.o.Workers, 1)
	room := aheadPerWorker * workers
	free, work, order := make(chan *merged, room), make(chan *merged, room), make(chan *merged, room)
	for range room {
		free <- &merged{done: make(chan struct{}, 1)}
	}
	check := func(err error) {
		if err != nil {
			cancel(err)
		}
	}
	var running sync.WaitGroup
	for range workers {
		m := x.maker()
		running.Go(func() {
			for p := range work {
				p.err = m.merge(ctx, p)
				p.done <- struct{}{}
			}
		})
	}
	running.Go(func() { check(x.sumOthers(ctx)) })
	due := make(chan struct{}, 1)
	running.Go(func() {
		for range due {
			if ctx.Err() == nil {
				check(x.o.Sync())
			}
		}
	})
	running.Go(func() {
		defer close(due)
		check(x.put(ctx, order, free, due))
	})
	x.hand(ctx, free, work, order)
	running.Wait()
	return context.Cause(ctx)
}

// hand hands out the pieces that are merged.
func (x *export) hand(ctx context.Context, free <-chan *merged, work, order chan<- *merged) {
	defer close(work)
	defer close(order)
	for _, p := range x.pieces {
		if p.copied {
			continue
		}
		select {
		case m := <-free:
			m.piece = p
			work <- m // there is room for all
			order <- m
		case <-ctx.Done():
			return
		}
	}
}

// put writes all pieces in their order, and hashes the base along: the bytes that are
// copied themselves, and what lies between once more.
func (x *export) put(ctx context.Context, order <-chan *merged, free chan<- *merged, due chan<- struct{}) error {
	var sum *summing
	if x.copies {
		sum = newSumming(x.base)
	}
	var buf []byte
	for _, p := range x.pieces {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.copied {
			var err error
			if buf, err = sum.through(ctx, p.from, p.to, buf); err != nil {
				return err
			}
			if err := x.write(buf, p.records, due); err != nil {
				return err
			}
			continue
		}
		m, ok := <-order
		if !ok {
			return context.Cause(ctx)
		}
		if <-m.done; m.err != nil {
			return m.err
		}
		if err := x.write(m.blocks, m.records, due); err != nil {
			return err
		}
		free <- m
	}
	if sum == nil {
		return nil
	}
	return sum.end(ctx)
}

// write writes a piece, and says when a Sync is due.
func (x *export) write(blocks []byte, records int64, due chan<- struct{}) error {
	if records == 0 {
		return nil
	}
	if err := x.file.AppendBlocks(blocks, records); err != nil {
		return err
	}
	so := x.file.Written()
	if x.o.Written != nil {
		x.o.Written(so.Records, so.Bytes)
	}
	if x.o.Sync != nil && so.Bytes >= x.synced+syncBytes {
		select {
		case due <- struct{}{}:
			x.synced = so.Bytes
		default: // one is under way, and the next waits
		}
	}
	return nil
}

// sumOthers hashes the segments that nothing is copied of.
func (x *export) sumOthers(ctx context.Context) error {
	for _, one := range x.seeker.segments {
		if x.copies && one == x.base {
			continue
		}
		if err := newSumming(one).end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// maker merges pieces, in one goroutine.
type maker struct {
	x       *export
	reader  *SlotReader
	base    *window
	packer  avrofile.Packer
	block   []byte
	records int
}

func (x *export) maker() *maker {
	m := &maker{x: x, reader: x.seeker.Reader()}
	if x.o.Plain {
		m.packer.Codec = avrofile.Null
	}
	for _, w := range m.reader.windows {
		if w.seekable == x.base {
			m.base = w
		}
	}
	return m
}

// merge merges the entries of a piece, and packs them.
func (m *maker) merge(ctx context.Context, p *merged) error {
	p.blocks, p.records = p.blocks[:0], 0
	if err := ctx.Err(); err != nil {
		return err
	}
	m.base.begin, m.base.end = p.piece.begin, p.piece.end
	if err := m.seek(ctx, p.piece.slots); err != nil {
		return err
	}
	m.block, m.records = m.block[:0], 0
	for {
		c, err := m.reader.merger.nextEntry(ctx, p.piece.slots)
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		if size := len(m.block) + c.at.end; size > avrofile.MaxBlockBytes {
			m.pack(p)
		}
		m.block = append(m.block, c.record[:c.at.end]...)
		m.records++
		if room := avrofile.DefaultBlockBytes - len(m.block); room > 0 && m.x.copies { // else runs are short
			ends, known := m.ends(c)
			run, n, err := m.reader.merger.run(p.piece.slots.Last, room, ends, known)
			if err != nil {
				return err
			}
			m.block, m.records = append(m.block, run...), m.records+n
		}
		if len(m.block) >= avrofile.DefaultBlockBytes {
			m.pack(p)
		}
	}
	m.pack(p)
	return nil
}

// ends is the last slot that the block of a cursor may have, if it is known to have
// no deletes: one of the base where blocks are copied.
func (m *maker) ends(c *cursor) (slot epoch.Slot, known bool) {
	if !m.x.copies || c.segment != blocks(m.base) || m.base.at == m.base.blocks.Len() {
		return 0, false
	}
	first := m.base.firsts[m.base.at].Load()
	return epoch.Slot(first - 1), first > 0
}

// seek goes to the slots of a piece. Between copies there is little to merge, and the
// next piece is not far: then the other segments are read on.
func (m *maker) seek(ctx context.Context, slots epoch.Slots) error {
	if !m.x.copies {
		return m.reader.seek(ctx, slots)
	}
	if !m.reader.merger.begun {
		return m.reader.seek(ctx, epoch.Slots{First: slots.First, Last: epoch.AllSlots.Last})
	}
	return m.reader.onward(ctx, m.base, slots)
}

// pack adds the block in hand to a piece.
func (m *maker) pack(p *merged) {
	if m.records == 0 {
		return
	}
	p.blocks = append(m.packer.Pack(p.blocks, m.block, m.records), m.x.sync...)
	p.records += int64(m.records)
	m.block, m.records = m.block[:0], 0
}

// beginsWith is the slot that a block begins with, as its head shows it; else the
// block is read.
func (s *seekable) beginsWith(ctx context.Context, i int) (epoch.Slot, error) {
	b := s.blocks.At(i)
	v, n := binary.Varint(b.Begin())
	if n > 0 && v >= int64(epoch.AllSlots.First) && v <= int64(epoch.AllSlots.Last) {
		return epoch.Slot(v), nil
	}
	return s.first(ctx, i)
}
