package engine

import (
	"fmt"
	"slices"
)

// Change is what an epoch made of one entry of a table.
type Change[K comparable, S any] struct {
	// Key is the entry's key.
	Key K
	// Old is the value from before the epoch, zero if there was none.
	Old S
	// New is the value at the epoch's end, zero if there is none.
	New S
	// HadOld tells whether there was an entry before the epoch, and HasNew
	// whether there is one at its end.
	HadOld, HasNew bool
}

// emitChanges passes what the epoch has changed on to the table's consumers,
// in the order of slots and keys: the same whatever the number of shards.
func (t *Table[R, S]) emitChanges(table int) {
	if t.changed == nil || len(t.touched) == 0 {
		return
	}
	keys, starts := []byte(nil), make([]uint32, 0, len(t.touched)+1)
	for _, n := range t.touched {
		starts = append(starts, uint32(len(keys)))
		keys = t.spec.appendKey(keys, &t.at(n).row)
	}
	starts = append(starts, uint32(len(keys)))
	order := make([]int, len(t.touched))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := SlotOf(t.at(t.touched[a]).hash), SlotOf(t.at(t.touched[b]).hash)
		if x != y {
			return int(x) - int(y)
		}
		return t.spec.compareKeys(keys[starts[a]:starts[a+1]], keys[starts[b]:starts[b+1]])
	})
	in := t.in
	in.emitting = t.describeEmitting
	slot := -1
	for _, i := range order {
		e := t.at(t.touched[i])
		old := t.before[i]
		if !old.present && !e.present {
			continue
		}
		if s := int(SlotOf(e.hash)); s != slot {
			slot = s
			in.level, in.emitted = 0, 0
			in.base = Place{Hi: uint64(table)<<tableShift | uint64(s)<<slotShift}
		}
		c := Change[R, S]{Key: e.row, Old: old.value, HadOld: old.present, HasNew: e.present}
		if e.present {
			c.New = t.spec.own(e.value)
		}
		t.emitting = t.touched[i]
		t.changed(&c)
		if in.failed != nil {
			return
		}
	}
	in.emitting = nil
}

// describeEmitting names the entry whose change is being passed on.
func (t *Table[R, S]) describeEmitting() (state, row string) {
	return t.spec.Name, fmt.Sprint(t.at(t.emitting).row)
}
