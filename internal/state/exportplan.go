package state

import (
	"context"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
)

const (
	// copyBytes is how much is copied at once: it is still in the processor's cache
	// when it is hashed and written.
	copyBytes = 256 << 10
	// mergeBytes is about how much is merged at once, in bytes before compression.
	// At its ends each segment has a block that two pieces read.
	mergeBytes = 4 << 20
	// sparse is how many rows the other segments may have, for each block of the
	// largest one, for it to be worth finding out which blocks they touch. A key
	// that is changed all the time has a row in each of up to 12 segments.
	sparse = 16
	// small is what part of its bytes they may have for that: each worker reads them.
	small = 8
)

// piece is a part of the file that is made at once: blocks of the base that are
// copied, or slots that are merged.
type piece struct {
	copied   bool
	from, to int64 // of the base, in bytes
	records  int64 // that are copied

	slots      epoch.Slots
	begin, end int // of the base, no other blocks are merged
}

// largest is the segment with the most bytes, or nil.
func (s *Seeker) largest() (largest *seekable) {
	for _, one := range s.segments {
		if one.blocks.Len() > 0 && (largest == nil || one.told.Bytes > largest.told.Bytes) {
			largest = one
		}
	}
	return largest
}

// plan divides the export into pieces, in their order.
func (x *export) plan(ctx context.Context) ([]piece, error) {
	n := x.base.blocks.Len()
	if rows, size := x.others(); x.o.Plain || !x.base.live || rows > sparse*int64(n) || size > x.base.told.Bytes/small {
		return x.merged(nil, epoch.AllSlots, 0, n), nil
	}
	touched, err := x.touched(ctx)
	if err != nil {
		return nil, err
	}
	begins := make([]epoch.Slot, n)
	for i := range begins {
		if begins[i], err = x.base.beginsWith(ctx, i); err != nil {
			return nil, err
		}
		if i > 0 && begins[i] < begins[i-1] {
			return nil, (&window{seekable: x.base}).unordered(begins[i], begins[i-1], epoch.AllSlots.Last)
		}
		x.base.firsts[i].Store(int32(begins[i]) + 1)
	}
	begins[0] = epoch.AllSlots.First
	slots := func(i, end int) epoch.Slots {
		s := epoch.Slots{First: begins[i], Last: epoch.AllSlots.Last}
		if end < n {
			s.Last = begins[end]
		}
		return s
	}
	var pieces []piece
	for i, end := 0, 0; i < n; i = end {
		copied := !touched.any(slots(i, i+1))
		for end = i + 1; end < n && copied == !touched.any(slots(end, end+1)); {
			end++
		}
		if copied {
			pieces = x.copied(pieces, i, end)
		} else {
			pieces = x.merged(pieces, slots(i, end), i, end)
		}
	}
	return pieces, nil
}

// others is how many rows and bytes the segments have but the base.
func (x *export) others() (rows, size int64) {
	for _, one := range x.seeker.segments {
		if one != x.base {
			rows, size = rows+one.told.Rows, size+one.told.Bytes
		}
	}
	return rows, size
}

// copied adds pieces of blocks that are copied.
func (x *export) copied(pieces []piece, i, end int) []piece {
	x.copies = true
	for i < end {
		p := piece{copied: true}
		p.from, p.to = x.base.blocks.Span(i, i+1)
		for p.records = int64(x.base.blocks.At(i).Records); i+1 < end && p.to-p.from < copyBytes; i++ {
			_, p.to = x.base.blocks.Span(i+1, i+2)
			p.records += int64(x.base.blocks.At(i + 1).Records)
		}
		i++
		pieces = append(pieces, p)
	}
	return pieces
}

// merged adds pieces of slots that are merged. Hashes lie evenly in them, so that
// equal numbers of slots have about as many bytes.
func (x *export) merged(pieces []piece, slots epoch.Slots, begin, end int) []piece {
	all := int64(end-begin) * avrofile.DefaultBlockBytes
	for _, one := range x.seeker.segments {
		if one != x.base {
			all += int64(float64(one.blocks.Bytes()) * float64(int(slots.Last)-int(slots.First)+1) / float64(int(epoch.AllSlots.Last)+1))
		}
	}
	count := int(slots.Last) - int(slots.First) + 1
	parts := int(max(1, min(all/mergeBytes, int64(count))))
	for i := range parts {
		first, next := int(slots.First)+i*count/parts, int(slots.First)+(i+1)*count/parts
		pieces = append(pieces, piece{slots: epoch.Slots{First: epoch.Slot(first), Last: epoch.Slot(next - 1)}, begin: begin, end: end})
	}
	return pieces
}

// touched are the slots that segments other than the base have rows in.
func (x *export) touched(ctx context.Context) (*slotSet, error) {
	set := new(slotSet)
	split := newSplitter(x.seeker.form)
	var buf, scratch []byte
	for _, one := range x.seeker.segments {
		if one == x.base {
			continue
		}
		for i := range one.blocks.Len() {
			var err error
			if buf, err = one.read(ctx, i, buf, &scratch); err != nil {
				return nil, err
			}
			for src := buf; len(src) > 0; {
				at, err := split.split(src)
				if err != nil {
					return nil, one.unreadable(err)
				}
				set.add(at.slot)
				src = src[at.end:]
			}
		}
	}
	return set, nil
}

// slotSet is a set of slots, a bit for each.
type slotSet [(1 << 16) / 64]uint64

func (s *slotSet) add(slot epoch.Slot) { s[slot/64] |= 1 << (slot % 64) }

// any tells whether the set has one of a range.
func (s *slotSet) any(slots epoch.Slots) bool {
	first, last := slots.First/64, slots.Last/64
	for i := first; i <= last; i++ {
		word := s[i]
		if i == first {
			word &= ^uint64(0) << (slots.First % 64)
		}
		if i == last {
			word &= ^uint64(0) >> (63 - slots.Last%64)
		}
		if word != 0 {
			return true
		}
	}
	return false
}
