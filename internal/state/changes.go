package state

import (
	"encoding/binary"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Changes are what one shard changed in one state, encoded as the records of a
// segment, in any order. A record is written by
//
//	c.Begin(slot)
//	c.Buf = … // append the key
//	c.Element()
//	c.Buf = … // append the element, in a state that is stored by element
//	c.Value()
//	c.Buf = … // append 0 for a delete, or 2 and the value
//	c.End()
//
// The zero value is ready for use.
type Changes struct {
	// Buf holds the records, one behind the other.
	Buf []byte
	// Index has one entry for each record.
	Index []Ref
}

// Ref is where a record stands in Changes.Buf. It ends where the next begins.
type Ref struct {
	Start uint64
	// Rest is where, from the record's begin, the value's branch stands.
	Rest uint32
	// Key is where, from the record's begin, the key stands.
	Key  uint8
	Slot epoch.Slot
}

// Begin begins a record; the key is to be appended to Buf next.
func (c *Changes) Begin(slot epoch.Slot) {
	start := len(c.Buf)
	c.Buf = binary.AppendVarint(c.Buf, int64(slot))
	c.Index = append(c.Index, Ref{Start: uint64(start), Key: uint8(len(c.Buf) - start), Slot: slot})
}

// Element ends the key; the element, if the state has any, is to be appended to
// Buf next. (Avro needs no mark there, nor at a record's end: Element and End
// take no time.)
func (c *Changes) Element() {}

// Value ends the key and the element; the value's branch (0: deleted, 2: there
// is a value) and the value are to be appended to Buf next.
func (c *Changes) Value() {
	r := &c.Index[len(c.Index)-1]
	r.Rest = uint32(uint64(len(c.Buf)) - r.Start)
}

// End ends the record.
func (c *Changes) End() {}

// Reset forgets the records and keeps the memory.
func (c *Changes) Reset() { c.Buf, c.Index = c.Buf[:0], c.Index[:0] }

// row is the encoded key and element of the i-th record.
func (c *Changes) row(i uint32) []byte {
	r := &c.Index[i]
	return c.Buf[r.Start+uint64(r.Key) : r.Start+uint64(r.Rest)]
}

// record is the i-th record.
func (c *Changes) record(i uint32) []byte {
	end := uint64(len(c.Buf))
	if next := int(i) + 1; next < len(c.Index) {
		end = c.Index[next].Start
	}
	return c.Buf[c.Index[i].Start:end]
}

// live tells whether none of the changes is a delete.
func live(changes []*Changes) bool {
	for _, c := range changes {
		if c == nil {
			continue
		}
		for i := range c.Index {
			if r := &c.Index[i]; c.Buf[r.Start+uint64(r.Rest)] == branchDeleted {
				return false
			}
		}
	}
	return true
}
