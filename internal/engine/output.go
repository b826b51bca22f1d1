package engine

import (
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/outbox"
)

// outputPiece is what one instance puts out to one sink: a stream's rows of one
// batch in the order of their places, or a table's of one epoch.
type outputPiece struct {
	seq  uint64 // of the batch
	rows *outbox.Rows
}

// streamWriter freezes a stream's records for a sink in one instance.
type streamWriter[T any] struct {
	in   *Instance
	spec *SinkSpec
	row  func(dst []byte, v *T) ([]byte, error)
	wire func(dst []byte, v *T) ([]byte, error)
	rows *outbox.Rows
}

func newStreamWriter[T any](in *Instance, spec *SinkSpec, rows connector.Rows[T]) *streamWriter[T] {
	return sharedPart(in, spec, "writer", func() *streamWriter[T] {
		w := &streamWriter[T]{in: in, spec: spec, row: rows.NewAppend(), rows: newRows()}
		if rows.NewWire != nil {
			w.wire = rows.NewWire()
		}
		in.writers = append(in.writers, w)
		return w
	})
}

func (w *streamWriter[T]) take(v *T) {
	if len(w.rows.Buf) > outbox.MaxBytes {
		w.in.Fail(w.spec.Name, fmt.Errorf("what comes of one batch is more than %d bytes", outbox.MaxBytes))
		return
	}
	p := w.in.next()
	w.rows.Begin(p.Hi, p.Lo, connector.Append, 0)
	w.rows.Row(true)
	var err error
	if w.rows.Buf, err = w.row(w.rows.Buf, v); err == nil {
		w.rows.Wire(w.wire != nil)
		if w.wire != nil {
			w.rows.Buf, err = w.wire(w.rows.Buf, v)
		}
	}
	if err != nil {
		w.rows.Abandon()
		w.in.Fail(w.spec.Name, err)
		return
	}
	w.rows.End()
}

func (w *streamWriter[T]) drop(record uint64) {
	for n := len(w.rows.Refs); n > 0; n-- {
		if (Place{Hi: w.rows.Refs[n-1].Hi}).record() != record {
			return
		}
		w.rows.DropLast()
	}
}

func (w *streamWriter[T]) flush(b *batch) {
	if len(w.rows.Refs) == 0 {
		return
	}
	b.epoch.addRows(w.spec.index, outputPiece{b.seq, w.rows})
	w.rows = w.in.run.rows.get(newRows)
}
