package outbox

import (
	"cmp"
	"slices"
)

// Batch is a part of an epoch's rows: what came of one batch of input in one
// goroutine, in the order of its places; of a table, what one shard has.
type Batch struct {
	// Seq is the number of the batch.
	Seq  uint64
	Rows *Rows
}

// InOrder calls yield with each record of a stream's batches, in the order in
// which the inputs were read and of the places of what came of them. It stops
// at the first error.
func InOrder(batches []Batch, yield func(record []byte) error) error {
	slices.SortStableFunc(batches, func(a, b Batch) int { return cmp.Compare(a.Seq, b.Seq) })
	for len(batches) > 0 {
		n := 1
		for n < len(batches) && batches[n].Seq == batches[0].Seq {
			n++
		}
		if err := mergeByPlace(batches[:n], yield); err != nil {
			return err
		}
		batches = batches[n:]
	}
	return nil
}

// mergeByPlace merges the few parts of one batch, each in order.
func mergeByPlace(parts []Batch, yield func(record []byte) error) error {
	at := make([]int, len(parts))
	for {
		least := -1
		var first Ref
		for i, p := range parts {
			if at[i] == len(p.Rows.Refs) {
				continue
			}
			if r := p.Rows.Refs[at[i]]; least < 0 || r.Hi < first.Hi || r.Hi == first.Hi && r.Lo < first.Lo {
				least, first = i, r
			}
		}
		if least < 0 {
			return nil
		}
		at[least]++
		if err := yield(parts[least].Rows.Buf[first.Start:first.End]); err != nil {
			return err
		}
	}
}

// BySlot calls yield with each record of a table's batches, in the order of
// slots and keys.
func BySlot(batches []Batch, compare func(a, b []byte) int, yield func(record []byte) error) error {
	t := table{batches: batches, compare: compare}
	for rows := sortBySlot(t.rows()); len(rows) > 0; {
		n := wholeSlots(rows, warmRows)
		t.warm(rows[:n])
		for slot := rows[:n]; len(slot) > 0; {
			n := wholeSlots(slot, 1)
			if err := t.inOrder(slot[:n], yield); err != nil {
				return err
			}
			slot = slot[n:]
		}
		rows = rows[n:]
	}
	return nil
}

// table is what is sorted.
type table struct {
	batches []Batch
	compare func(a, b []byte) int
	warmth  byte
}

func (t *table) ref(r tableRow) (*Rows, *Ref) {
	in := t.batches[r.batch].Rows
	return in, &in.Refs[r.index]
}

// inOrder calls yield with the records of one slot, in the order of their keys.
func (t *table) inOrder(rows []tableRow, yield func(record []byte) error) error {
	key := func(r tableRow) []byte {
		in, at := t.ref(r)
		return in.Buf[at.Key:at.KeyEnd]
	}
	if len(rows) > 1 {
		slices.SortFunc(rows, func(a, b tableRow) int { return t.compare(key(a), key(b)) })
	}
	for _, r := range rows {
		in, at := t.ref(r)
		if err := yield(in.Buf[at.Start:at.End]); err != nil {
			return err
		}
	}
	return nil
}

// warmRows is how many rows are fetched ahead: some 30 KB, for the first cache.
const warmRows = 256

// warm fetches rows, which lie about in memory, into the processor's cache: the
// loads don't depend on each other, so that they run side by side.
func (t *table) warm(rows []tableRow) {
	for _, r := range rows {
		in, at := t.ref(r)
		t.warmth ^= in.Buf[at.Start] ^ in.Buf[at.End-1]
	}
}

// wholeSlots is the number of the first rows that are at least n, or all, and have
// the last of their slots with them.
func wholeSlots(rows []tableRow, n int) int {
	for n = min(n, len(rows)); n < len(rows) && rows[n].slot == rows[n-1].slot; {
		n++
	}
	return n
}

// tableRow is a table's row that is being sorted: the batch that it is in, and its
// number there.
type tableRow struct {
	slot         uint16
	batch, index uint32
}

func (t *table) rows() []tableRow {
	n := 0
	for _, b := range t.batches {
		n += len(b.Rows.Refs)
	}
	rows := make([]tableRow, 0, n)
	for i, b := range t.batches {
		for j := range b.Rows.Refs {
			rows = append(rows, tableRow{uint16(b.Rows.Refs[j].Hi), uint32(i), uint32(j)})
		}
	}
	return rows
}

// sortBySlot sorts by radix: two passes over a byte each beat any comparison.
func sortBySlot(rows []tableRow) []tableRow {
	var low, high [256]int
	for _, r := range rows {
		low[uint8(r.slot)]++
		high[r.slot>>8]++
	}
	spare := make([]tableRow, len(rows))
	distribute(spare, rows, &low, func(slot uint16) uint8 { return uint8(slot) })
	distribute(rows, spare, &high, func(slot uint16) uint8 { return uint8(slot >> 8) })
	return rows
}

func distribute(to, from []tableRow, counts *[256]int, digit func(slot uint16) uint8) {
	sum := 0
	for i, n := range counts {
		counts[i] = sum
		sum += n
	}
	for _, r := range from {
		at := &counts[digit(r.slot)]
		to[*at] = r
		*at++
	}
}
