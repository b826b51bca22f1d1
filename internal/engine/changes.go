package engine

import (
	"fmt"
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
	in := t.in
	in.emitting = t.describeEmitting
	slot := -1
	for _, p := range t.inOrder(touched) {
		e := t.at(touched[p.at])
		old := t.before[p.at]
		if !old.present && !e.present || e.parting&isDone != 0 && e.parting&lately == 0 {
			continue
		}
		if s := int(p.slot); s != slot {
			slot = s
			in.level, in.emitted = 0, 0
			in.base = Place{Hi: uint64(table)<<tableShift | uint64(s)<<slotShift}
		}
		t.emitting = touched[p.at]
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

// describeEmitting names the entry whose change is being passed on.
func (t *Table[R, S]) describeEmitting() (state, row string) {
	return t.spec.Name, fmt.Sprint(t.at(t.emitting).row)
}
