package engine

import (
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

// placed is a thing's place in a list, and the slot of its hash.
type placed struct {
	slot epoch.Slot
	at   uint32
}

// slotOrder sorts a list by slots; things of one slot stay in their order. Its memory is
// used again for the next list.
type slotOrder struct{ items, spare []placed }

func (o *slotOrder) begin() { o.items = o.items[:0] }

// add adds the list's next thing.
func (o *slotOrder) add(hash uint64) {
	o.items = append(o.items, placed{SlotOf(hash), uint32(len(o.items))})
}

// fewPlaced is up to how many things are sorted by being put in one by one.
const fewPlaced = 32

// sorted is the list by slots: sorted by the low byte of these, then by the high one.
func (o *slotOrder) sorted() []placed {
	if len(o.items) <= fewPlaced {
		for i := 1; i < len(o.items); i++ {
			for j := i; j > 0 && o.items[j].slot < o.items[j-1].slot; j-- {
				o.items[j], o.items[j-1] = o.items[j-1], o.items[j]
			}
		}
		return o.items
	}
	o.spare = slices.Grow(o.spare[:0], len(o.items))[:len(o.items)]
	sortByByte(o.spare, o.items, 0)
	sortByByte(o.items, o.spare, 8)
	return o.items
}

// sortByByte sorts from into to by a byte of the slots.
func sortByByte(to, from []placed, shift uint) {
	var begins [256]uint32
	for _, p := range from {
		begins[uint8(p.slot>>shift)]++
	}
	sum := uint32(0)
	for i, n := range begins {
		begins[i] = sum
		sum += n
	}
	for _, p := range from {
		b := &begins[uint8(p.slot>>shift)]
		to[*b] = p
		*b++
	}
}

// firstSlot is the part of a list in order that has the first one's slot.
func firstSlot(order []placed) []placed {
	n := 1
	for n < len(order) && order[n].slot == order[0].slot {
		n++
	}
	return order[:n]
}

// keyPlaced is a thing of a list with its key and element, as bounds in a piece of
// memory.
type keyPlaced struct {
	placed
	key, element, end uint32
}

// rowOrder sorts entries of a table; its memory is used again.
type rowOrder struct {
	slots slotOrder
	same  []keyPlaced // those of one slot
	keys  []byte      // of these
}

// inOrder sorts entries by slots, keys and elements, and tells their places in numbers.
// What it returns is good until the next call.
func (t *Table[R, S]) inOrder(numbers []uint32) []placed {
	t.order.slots.begin()
	for _, n := range numbers {
		t.order.slots.add(t.at(n).hash)
	}
	order := t.order.slots.sorted()
	for rest := order; len(rest) > 0; {
		same := firstSlot(rest)
		if len(same) > 1 {
			t.sortRows(same, numbers)
		}
		rest = rest[len(same):]
	}
	return order
}

// sortRows sorts entries of one slot by keys and elements.
func (t *Table[R, S]) sortRows(list []placed, numbers []uint32) {
	keys, same := t.order.keys[:0], t.order.same[:0]
	for _, p := range list {
		row, k := &t.at(numbers[p.at]).row, keyPlaced{placed: p, key: uint32(len(keys))}
		keys = t.spec.appendKey(keys, row)
		k.element = uint32(len(keys))
		if t.spec.appendElement != nil {
			keys = t.spec.appendElement(keys, row)
		}
		k.end = uint32(len(keys))
		same = append(same, k)
	}
	slices.SortFunc(same, func(a, b keyPlaced) int {
		by := t.spec.compareKeys(keys[a.key:a.element], keys[b.key:b.element])
		if by == 0 && t.spec.compareElements != nil {
			by = t.spec.compareElements(keys[a.element:a.end], keys[b.element:b.end])
		}
		return by
	})
	for i, k := range same {
		list[i] = k.placed
	}
	t.order.keys, t.order.same = keys, same
}
