// Package outbox is the form in which an epoch's outputs are frozen: Avro
// object container files of rows, each with what is to be done with it, so
// that any build of the job can deliver them and anyone can read them.
package outbox

import (
	"encoding/binary"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// Schema returns the schema of an outbox's records. key is nil for a stream's.
func Schema(key, row *schema.Schema) *schema.Schema {
	if key == nil {
		key = schema.Null()
	}
	return schema.Record("sluice.outbox",
		schema.Field{Name: "op", Type: schema.Enum("sluice.op", "append", "put", "delete")},
		schema.Field{Name: "slot", Type: schema.Int()},
		schema.Field{Name: "key", Type: key},
		schema.Field{Name: "row", Type: schema.Nullable(row)},
		schema.Field{Name: "wire", Type: schema.Nullable(schema.Bytes())},
	)
}

// MaxBytes is the size beyond which no row is to be added to a [Rows]: places in
// it are 32 bits, and the last row may be as large as Go allows a value here.
const MaxBytes = 1 << 30

// Rows are encoded outbox records with what they are ordered by. A row is
// written by Begin, appending the key to Buf, Row, appending the row to Buf,
// Wire, appending the wire form to Buf, and End.
type Rows struct {
	// Buf holds the records, one behind the other.
	Buf []byte
	// Refs has one entry for each record.
	Refs []Ref

	wire int // where the wire form in hand begins; 0: there is none
}

// Ref is where a record stands in Rows.Buf, and its place in the order.
type Ref struct {
	// Hi and Lo order a stream's records within their batch; of a table's, Hi is
	// the slot.
	Hi, Lo uint64
	// The record's beginning, its key's, the end of its key, and its own.
	Start, Key, KeyEnd, End uint32
}

// Begin starts a record.
func (r *Rows) Begin(hi, lo uint64, op connector.Op, slot uint16) {
	start := uint32(len(r.Buf))
	r.Buf = append(r.Buf, byte(op)<<1)
	r.Buf = binary.AppendVarint(r.Buf, int64(slot))
	r.Refs = append(r.Refs, Ref{Hi: hi, Lo: lo, Start: start, Key: uint32(len(r.Buf))})
}

// Row ends the key; if has, the row is to be appended to Buf next.
func (r *Rows) Row(has bool) {
	r.Refs[len(r.Refs)-1].KeyEnd = uint32(len(r.Buf))
	r.branch(has)
}

// Wire ends the row; if has, the wire form is to be appended to Buf next.
func (r *Rows) Wire(has bool) {
	r.branch(has)
	r.wire = 0
	if has {
		r.wire = len(r.Buf)
	}
}

func (r *Rows) branch(has bool) {
	if has {
		r.Buf = append(r.Buf, 2)
	} else {
		r.Buf = append(r.Buf, 0)
	}
}

// End ends the record.
func (r *Rows) End() {
	if r.wire > 0 {
		r.insertLength(r.wire)
		r.wire = 0
	}
	r.Refs[len(r.Refs)-1].End = uint32(len(r.Buf))
}

// insertLength puts the length of what stands behind at in front of it.
func (r *Rows) insertLength(at int) {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutVarint(length[:], int64(len(r.Buf)-at))
	r.Buf = append(r.Buf, length[:n]...)
	copy(r.Buf[at+n:], r.Buf[at:len(r.Buf)-n])
	copy(r.Buf[at:], length[:n])
}

// DropLast takes back the last record.
func (r *Rows) DropLast() {
	last := r.Refs[len(r.Refs)-1]
	r.Buf = r.Buf[:last.Start]
	r.Refs = r.Refs[:len(r.Refs)-1]
}

// Abandon takes back the record that has been begun and not ended.
func (r *Rows) Abandon() {
	r.wire = 0
	r.DropLast()
}

// Reset forgets the records and keeps the memory.
func (r *Rows) Reset() {
	r.Buf, r.Refs, r.wire = r.Buf[:0], r.Refs[:0], 0
}
