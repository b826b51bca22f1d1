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

// emitChanges passes what the epoch has changed, since its last step, on to the table's consumers,
// in the order of slots and keys: the same whatever the number of shards.
func (t *Table[R, S]) emitChanges(table int) {
	touched := t.touched[t.stepped:]
	if t.changed == nil || len(touched) == 0 {
		return
	}
	order := t.inOrder(touched)
	in := t.in
	in.emitting = t.describeEmitting
	slot := -1
	for _, i := range order {
		e := t.at(touched[i])
		old := t.before[i]
		if !old.present && !e.present || e.parting&isDone != 0 && e.parting&lately == 0 {
			continue
		}
		if s := int(SlotOf(e.hash)); s != slot {
			slot = s
			in.level, in.emitted = 0, 0
			in.base = Place{Hi: uint64(table)<<tableShift | uint64(s)<<slotShift}
		}
		t.emitting = touched[i]
		if old.present && e.present && old.row != e.row { // it was moved
			t.changed(&Change[R, S]{Key: old.row, Old: old.value, HadOld: true})
			if in.failed != nil {
				return
			}
			var none S
			old.value, old.present = none, false
		}
		c := Change[R, S]{Key: e.row, Old: old.value, HadOld: old.present, HasNew: e.present}
		if e.present {
			c.New = t.spec.own(e.value)
		}
		t.changed(&c)
		if in.failed != nil {
			return
		}
	}
	in.emitting = nil
}

// inOrder sorts entries by slots, keys and elements, and tells their places in numbers.
func (t *Table[R, S]) inOrder(numbers []uint32) []int {
	var keys []byte
	type bounds struct{ key, element, end uint32 }
	at := make([]bounds, len(numbers))
	order := make([]int, len(numbers))
	for i, n := range numbers {
		order[i] = i
		at[i].key = uint32(len(keys))
		keys = t.spec.appendKey(keys, &t.at(n).row)
		at[i].element = uint32(len(keys))
		if t.spec.appendElement != nil {
			keys = t.spec.appendElement(keys, &t.at(n).row)
		}
		at[i].end = uint32(len(keys))
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := SlotOf(t.at(numbers[a]).hash), SlotOf(t.at(numbers[b]).hash)
		if x != y {
			return int(x) - int(y)
		}
		by := t.spec.compareKeys(keys[at[a].key:at[a].element], keys[at[b].key:at[b].element])
		if by == 0 && t.spec.compareElements != nil {
			by = t.spec.compareElements(keys[at[a].element:at[a].end], keys[at[b].element:at[b].end])
		}
		return by
	})
	return order
}

// describeEmitting names the entry whose change is being passed on.
func (t *Table[R, S]) describeEmitting() (state, row string) {
	return t.spec.Name, fmt.Sprint(t.at(t.emitting).row)
}
