package state

import (
	"bytes"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Limit is how many entries a key of a sorted state has at most. The zero one is
// that of all other states: none.
type Limit struct {
	Entries int
	// Descending has the greatest come first, so that the smallest are dropped.
	Descending bool
}

// Limited passes entries on that come in the order of slots, keys and elements, but
// for those of a key that are behind the limit. End is to be called behind the last.
type Limited struct {
	limit   Limit
	put     func(slot epoch.Slot, key, element, value []byte) error
	dropped int64

	begun bool
	slot  epoch.Slot
	key   []byte // the one in hand
	count int    // of its entries
	held  []heldEntry
}

// heldEntry is one of the greatest entries of the key in hand so far. They stand in a
// ring.
type heldEntry struct {
	data  []byte // element and value
	value int    // where that begins
}

// NewLimited returns a [Limited] that passes on to put.
func NewLimited(limit Limit, put func(slot epoch.Slot, key, element, value []byte) error) *Limited {
	return &Limited{limit: limit, put: put}
}

// Put takes an entry.
func (l *Limited) Put(slot epoch.Slot, key, element, value []byte) error {
	if !l.begun || !bytes.Equal(l.key, key) {
		if err := l.End(); err != nil {
			return err
		}
		l.begun, l.slot, l.key = true, slot, append(l.key[:0], key...)
	}
	l.count++
	if !l.limit.Descending {
		if l.count > l.limit.Entries {
			l.dropped++
			return nil
		}
		return l.put(slot, key, element, value)
	}
	if l.count <= l.limit.Entries && l.count > len(l.held) {
		l.held = append(l.held, heldEntry{})
	}
	h := &l.held[(l.count-1)%l.limit.Entries]
	h.data, h.value = append(append(h.data[:0], element...), value...), len(element)
	return nil
}

// End passes on what is held.
func (l *Limited) End() error {
	if l.limit.Descending {
		first := max(0, l.count-l.limit.Entries)
		l.dropped += int64(first)
		for n := first; n < l.count; n++ {
			h := l.held[n%l.limit.Entries]
			if err := l.put(l.slot, l.key, h.data[:h.value], h.data[h.value:]); err != nil {
				return err
			}
		}
	}
	l.count = 0
	return nil
}

// Dropped counts the entries that were behind the limit.
func (l *Limited) Dropped() int64 { return l.dropped }
