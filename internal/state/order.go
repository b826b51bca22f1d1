package state

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

// item is a record that is being sorted: its slot in the top 16 bits, then 16
// bits for the number of its Changes and 32 for its own.
type item uint64

const (
	slotShift = 48
	partShift = 32
)

func (i item) slot() epoch.Slot { return epoch.Slot(i >> slotShift) }
func (i item) part() int        { return int(uint16(i >> partShift)) }
func (i item) index() uint32    { return uint32(i) }

// inOrder calls yield with the records of all changes in the order of slots and
// rows. Two of one row are an error: only one of them could be the truth.
func inOrder(ctx context.Context, f Form, changes []*Changes, yield func(slot epoch.Slot, record []byte) error) error {
	compare, err := f.Comparer()
	if err != nil {
		return err
	}
	items, err := collect(changes)
	if err != nil {
		return fmt.Errorf("state %s: %w", f.Name, err)
	}
	s := sorter{changes: changes}
	s.byRow = func(a, b item) int { return compare(s.row(a), s.row(b)) }
	for items = sortBySlot(items); len(items) > 0; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("state %s: sort: %w", f.Name, err)
		}
		n := wholeSlots(items, warmItems)
		s.warm(items[:n])
		if err := s.sortSlots(items[:n]); err != nil {
			return fmt.Errorf("state %s: %w", f.Name, err)
		}
		for _, it := range items[:n] {
			if err := yield(it.slot(), changes[it.part()].record(it.index())); err != nil {
				return err
			}
		}
		items = items[n:]
	}
	return nil
}

// sorter sorts the records of each slot.
type sorter struct {
	changes []*Changes
	byRow   func(a, b item) int
	warmth  byte
}

func (s *sorter) row(it item) []byte { return s.changes[it.part()].row(it.index()) }

// warmItems is how many records are fetched ahead: some 30 KB, for the first
// cache.
const warmItems = 256

// warm fetches records, which lie about in memory, into the processor's cache:
// the loads don't depend on each other, so that they run side by side.
func (s *sorter) warm(items []item) {
	for _, it := range items {
		record := s.changes[it.part()].record(it.index())
		s.warmth ^= record[0] ^ record[len(record)-1]
	}
}

// wholeSlots is the number of the first items that are at least n, or all, and
// have the last of their slots with them.
func wholeSlots(items []item, n int) int {
	for n = min(n, len(items)); n < len(items) && items[n].slot() == items[n-1].slot(); {
		n++
	}
	return n
}

func (s *sorter) sortSlots(items []item) error {
	for len(items) > 0 {
		n := wholeSlots(items, 1)
		if same := sortSlot(items[:n], s.byRow); same >= 0 {
			return fmt.Errorf("slot %d: two changes of one entry in one segment (key and element %x); an epoch must encode each entry once",
				items[same].slot(), s.row(items[same]))
		}
		items = items[n:]
	}
	return nil
}

func collect(changes []*Changes) ([]item, error) {
	if len(changes) > math.MaxUint16+1 {
		return nil, fmt.Errorf("changes of %d shards, the limit is %d", len(changes), math.MaxUint16+1)
	}
	n := 0
	for _, c := range changes {
		if c == nil {
			continue
		}
		if uint64(len(c.Index)) > math.MaxUint32 {
			return nil, fmt.Errorf("%d changes of one shard, the limit is %d: use more shards", len(c.Index), uint32(math.MaxUint32))
		}
		n += len(c.Index)
	}
	items := make([]item, 0, n)
	for part, c := range changes {
		if c == nil {
			continue
		}
		for i := range c.Index {
			items = append(items, item(c.Index[i].Slot)<<slotShift|item(part)<<partShift|item(i))
		}
	}
	return items, nil
}

// sortBySlot sorts by radix: two passes over a byte each beat any comparison.
func sortBySlot(items []item) []item {
	var low, high [256]int
	for _, it := range items {
		low[uint8(it>>slotShift)]++
		high[it>>(slotShift+8)]++
	}
	spare := make([]item, len(items))
	distribute(spare, items, &low, slotShift)
	distribute(items, spare, &high, slotShift+8)
	return items
}

func distribute(to, from []item, counts *[256]int, shift uint) {
	sum := 0
	for i, n := range counts {
		counts[i] = sum
		sum += n
	}
	for _, it := range from {
		at := &counts[uint8(it>>shift)]
		to[*at] = it
		*at++
	}
}

// insertionLimit is up to where a slot's records are sorted by insertion; the
// usual slot of an epoch has one or two.
const insertionLimit = 12

// sortSlot sorts the records of one slot. If two are the same row it returns
// the place of one of them, else -1.
func sortSlot(items []item, compare func(a, b item) int) int {
	if len(items) <= insertionLimit {
		return insert(items, compare)
	}
	slices.SortFunc(items, compare)
	for i := 1; i < len(items); i++ {
		if compare(items[i-1], items[i]) == 0 {
			return i
		}
	}
	return -1
}

func insert(items []item, compare func(a, b item) int) int {
	for i := 1; i < len(items); i++ {
		for j := i; j > 0; j-- {
			c := compare(items[j-1], items[j])
			if c == 0 {
				return j
			}
			if c < 0 {
				break
			}
			items[j-1], items[j] = items[j], items[j-1]
		}
	}
	return -1
}
