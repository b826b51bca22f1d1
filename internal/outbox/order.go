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
	type row struct {
		rows *Rows
		ref  *Ref
	}
	n := 0
	for _, b := range batches {
		n += len(b.Rows.Refs)
	}
	rows := make([]row, 0, n)
	for _, b := range batches {
		for i := range b.Rows.Refs {
			rows = append(rows, row{b.Rows, &b.Rows.Refs[i]})
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		if a.ref.Hi != b.ref.Hi {
			return cmp.Compare(a.ref.Hi, b.ref.Hi)
		}
		return compare(a.rows.Buf[a.ref.Key:a.ref.KeyEnd], b.rows.Buf[b.ref.Key:b.ref.KeyEnd])
	})
	for _, r := range rows {
		if err := yield(r.rows.Buf[r.ref.Start:r.ref.End]); err != nil {
			return err
		}
	}
	return nil
}
