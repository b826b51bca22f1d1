package state

import (
	"encoding/binary"
	"fmt"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// Entry is an entry of a state, encoded. Its slices hold until the function
// that was called with it returns, or the iteration goes on.
type Entry struct {
	Slot epoch.Slot
	Key  []byte
	// Element is nil in a state that is not stored by element.
	Element []byte
	// Value is nil if the entry was deleted.
	Value   []byte
	Deleted bool
}

// span is where the parts of a record stand, as offsets from its begin. The
// key ends where the element begins, and the element where the branch stands.
type span struct {
	slot                      epoch.Slot
	key, element, branch, end int
}

// splitter takes records apart.
type splitter struct {
	key, element, value func(src []byte) (int, error) // lengths; element may be nil
}

func newSplitter(f Form) splitter {
	s := splitter{key: schema.Skipper(f.Key), value: schema.Skipper(f.Value)}
	if f.Element != nil {
		s.element = schema.Skipper(f.Element)
	}
	return s
}

// The branches of a record's value, as encoded.
const (
	branchDeleted = 0
	branchValue   = 2
)

// split finds the parts of the record that src begins with.
func (s *splitter) split(src []byte) (at span, err error) {
	var n int
	if at.slot, at.key, err = slotOf(src); err != nil {
		return at, err
	}
	if n, err = s.key(src[at.key:]); err != nil {
		return at, fmt.Errorf("key: %w", err)
	}
	at.element = at.key + n
	at.branch = at.element
	if s.element != nil {
		if n, err = s.element(src[at.element:]); err != nil {
			return at, fmt.Errorf("element: %w", err)
		}
		at.branch += n
	}
	if at.branch >= len(src) {
		return at, fmt.Errorf("expected a value, found the end of the block")
	}
	at.end = at.branch + 1
	switch src[at.branch] {
	case branchDeleted:
	case branchValue:
		if n, err = s.value(src[at.end:]); err != nil {
			return at, fmt.Errorf("value: %w", err)
		}
		at.end += n
	default:
		return at, fmt.Errorf("expected a value's branch, 00 or 02, found %02x", src[at.branch])
	}
	return at, nil
}

// slotOf reads the slot that a record begins with, and its length.
func slotOf(src []byte) (slot epoch.Slot, n int, err error) {
	v, n := binary.Varint(src)
	if n <= 0 || v < int64(epoch.AllSlots.First) || v > int64(epoch.AllSlots.Last) {
		return 0, 0, fmt.Errorf("expected a slot from 0 to 65535, found % x", src[:min(len(src), binary.MaxVarintLen64)])
	}
	return epoch.Slot(v), n, nil
}

// entry fills in e from the record that src begins with.
func (s *splitter) entry(e *Entry, src []byte, at span) {
	*e = Entry{Slot: at.slot, Key: src[at.key:at.element:at.element]}
	if s.element != nil {
		e.Element = src[at.element:at.branch:at.branch]
	}
	if src[at.branch] == branchDeleted {
		e.Deleted = true
	} else {
		e.Value = src[at.branch+1 : at.end : at.end]
	}
}
