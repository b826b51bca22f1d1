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
	// piecesPerWorker bounds the pieces under way: one is made, one waits to be
	// hashed or written.
	piecesPerWorker = 2
	// sumBytes is how much of a segment is hashed at once.
	sumBytes = 256 << 10
)

// export is an Export under way: workers make pieces, one goroutine hashes those
// that were copied, in their order, one writes all, and one hashes the segments that
// nothing is copied of.
type export struct {
	seeker *Seeker
	base   *seekable // the largest segment; nil if there is none
	sync   string
	o      ExportOptions
	pieces []piece
	file   *avrofile.Writer
	copies bool // blocks of the base are copied
}

// made is a piece's bytes.
type made struct {
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
	room := (piecesPerWorker + 1) * workers
	free, work := make(chan *made, room), make(chan *made, room)
	order, hashed := make(chan *made, room), make(chan *made, room)
	for range room {
		free <- &made{done: make(chan struct{}, 1)}
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
				p.err = m.make(ctx, p)
				p.done <- struct{}{}
			}
		})
	}
	running.Go(func() { check(x.sumOthers(ctx)) })
	running.Go(func() {
		defer close(hashed)
		x.sumCopied(ctx, order, hashed, check)
	})
	running.Go(func() {
		for p := range hashed {
			if ctx.Err() == nil {
				check(x.write(p))
			}
			free <- p
		}
	})
	x.hand(ctx, free, work, order)
	running.Wait()
	return context.Cause(ctx)
}

// hand hands out the pieces.
func (x *export) hand(ctx context.Context, free <-chan *made, work, order chan<- *made) {
	defer close(work)
	defer close(order)
	for _, p := range x.pieces {
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

func (x *export) write(p *made) error {
	if p.records == 0 {
		return nil
	}
	if err := x.file.AppendBlocks(p.blocks, p.records); err != nil {
		return err
	}
	if x.o.Written != nil {
		so := x.file.Written()
		x.o.Written(so.Records, so.Bytes)
	}
	return nil
}

// sumCopied passes pieces on in their order and hashes the base along: the bytes
// that are copied themselves, and what lies between once more.
func (x *export) sumCopied(ctx context.Context, order <-chan *made, hashed chan<- *made, check func(error)) {
	s := newSumming(x.base)
	for p := range order {
		<-p.done
		if p.err == nil && p.piece.copied {
			if p.err = s.upTo(ctx, p.piece.from); p.err == nil {
				s.add(p.blocks)
			}
		}
		check(p.err)
		hashed <- p
	}
	if x.copies && ctx.Err() == nil {
		check(s.end(ctx))
	}
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

// maker makes pieces, in one goroutine.
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

func (m *maker) make(ctx context.Context, p *made) error {
	p.blocks, p.records = p.blocks[:0], 0
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.piece.copied {
		return m.copy(p)
	}
	return m.merge(ctx, p)
}

func (m *maker) copy(p *made) error {
	n := int(p.piece.to - p.piece.from)
	if cap(p.blocks) < n {
		p.blocks = make([]byte, n)
	}
	p.blocks, p.records = p.blocks[:n], p.piece.records
	if _, err := m.x.base.object.ReadAt(p.blocks, p.piece.from); err != nil && err != io.EOF {
		return failed("read", m.x.base.form, m.x.base.name, err)
	}
	return nil
}

// merge merges the entries of a piece, and packs them.
func (m *maker) merge(ctx context.Context, p *made) error {
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
		if m.records++; len(m.block) >= avrofile.DefaultBlockBytes {
			m.pack(p)
		}
	}
	m.pack(p)
	return nil
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
func (m *maker) pack(p *made) {
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
