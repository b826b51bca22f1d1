package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
)

// errValue says that a row is no value of its schema, which reading it rules out.
var errValue = errors.New("a row is no value of its schema")

// row is a frozen row on its way through a comparison.
type row struct {
	connector.Row
	form *form // of Row; nil if there are no rows in the outbox
	// first is what was done first with the key in the span.
	first connector.Op
}

// source gives rows one by one.
type source interface {
	// next returns the next row, which holds until the next call, or nil at the end.
	next() (*row, error)
	close()
}

// chunk is a number of rows with the memory that they lie in: to switch between two
// outboxes costs more than to copy a row.
type chunk struct {
	buf  []byte
	rows []connector.Row
}

const (
	chunkBytes = 64 << 10
	chunkRows  = 512
)

// add copies a row, and tells whether there was room for it.
func (c *chunk) add(r connector.Row) bool {
	need := len(r.Key) + len(r.Row) + len(r.Wire)
	if len(c.rows) > 0 && (len(c.rows) == chunkRows || need > cap(c.buf)-len(c.buf)) {
		return false
	}
	if need > cap(c.buf)-len(c.buf) {
		c.buf = make([]byte, 0, max(need, chunkBytes))
	}
	r.Key, r.Row, r.Wire = c.copy(r.Key), c.copy(r.Row), c.copy(r.Wire)
	c.rows = append(c.rows, r)
	return true
}

func (c *chunk) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	at := len(c.buf)
	c.buf = append(c.buf, b...)
	return c.buf[at:len(c.buf):len(c.buf)]
}

// maxSpare bounds the chunks that are kept to be used again.
const maxSpare = 2

// chunk returns an empty chunk.
func (c *Comparison) chunk() *chunk {
	last := len(c.spare) - 1
	if last < 0 {
		return &chunk{}
	}
	out := c.spare[last]
	c.spare = c.spare[:last]
	return out
}

// giveBack takes a chunk that is needed no more.
func (c *Comparison) giveBack(k *chunk) {
	if len(c.spare) < maxSpare && cap(k.buf) <= chunkBytes {
		k.buf, k.rows = k.buf[:0], k.rows[:0]
		c.spare = append(c.spare, k)
	}
}

// chunks gives rows by chunks, all in the memory of c; one holds until the next.
func chunks(ctx context.Context, rows iter.Seq2[connector.Row, error], c *chunk) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		for r, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			if c.add(r) {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(c, nil) {
				return
			}
			c.buf, c.rows = c.buf[:0], c.rows[:0]
			c.add(r)
		}
		if len(c.rows) > 0 {
			yield(c, nil)
		}
	}
}

// reading is an outbox being read.
type reading struct {
	pull  func() (*chunk, error, bool)
	stop  func() // called once
	chunk *chunk
	at    int
	row   row

	// Of a table: what orders keys, and what is to be said of one that is out of order.
	compare func(a, b []byte) int
	damaged func(found string) error
	last    []byte // the key before
	slot    uint16
	begun   bool
}

// read begins to read an outbox.
func (c *Comparison) read(ctx context.Context, o opened) *reading {
	r := &reading{row: row{form: o.form}}
	k := c.chunk()
	pull, stop := iter.Pull2(chunks(ctx, o.box.Rows(ctx), k))
	r.pull = pull
	r.stop = func() {
		stop()
		c.giveBack(k)
	}
	return r
}

func (r *reading) next() (*row, error) {
	if r.chunk == nil || r.at == len(r.chunk.rows) {
		c, err, ok := r.pull()
		if !ok || err != nil {
			return nil, err
		}
		r.chunk, r.at = c, 0
	}
	r.row.Row = r.chunk.rows[r.at]
	r.row.first = r.row.Op
	r.at++
	if r.compare != nil {
		return &r.row, r.inOrder()
	}
	return &r.row, nil
}

// inOrder sees to it that a table's rows come by slot and key, each key once: what
// merges them would be wrong otherwise.
func (r *reading) inOrder() error {
	order := -1
	if r.begun {
		if order = int(r.slot) - int(r.row.Slot); order == 0 {
			order = r.compare(r.last, r.row.Key)
		}
	}
	if order >= 0 {
		return r.damaged("one that isn't")
	}
	r.begun, r.slot, r.last = true, r.row.Slot, append(r.last[:0], r.row.Key...)
	return nil
}

func (r *reading) close() { r.stop() }

// opened is an outbox with its schemas, compiled.
type opened struct {
	path string // of its first object
	box  *outbox.Box
	form *form
}

// open looks at the head of an outbox of a side.
func (c *Comparison) open(ctx context.Context, sides [2]Side, side int, step Step) (opened, error) {
	path := step.Outbox[0].Path
	if o := c.opened[side]; o.path == path {
		return o, nil
	}
	box, err := outbox.Open(ctx, sides[side].Store, sides[side].Job, step.Outbox)
	if err != nil {
		return opened{}, err
	}
	c.opened[side] = opened{path, box, c.form(box.Row)}
	return c.opened[side], nil
}

// disordered is the damage of an outbox whose keys are out of order.
func disordered(job string, objects []epoch.Object) func(found string) error {
	return func(found string) error {
		return &epoch.DamagedError{At: epoch.At{Job: job}, Object: job + "/" + objects[0].Path, Expected: "keys in the order of slots and keys, each once", Found: found}
	}
}

// sameWire tells whether the connector delivers the same for two rows: it delivers the
// row itself where it has no other form.
func sameWire(a, b *connector.Row) bool {
	if a.Wire == nil && b.Wire == nil {
		return true
	}
	return a.Wire != nil && b.Wire != nil && bytes.Equal(a.Wire, b.Wire)
}

// unreadable says of a row that it can't be read.
func unreadable(job, sink string, err error) error {
	return fmt.Errorf("%s: sink %s: a frozen row can't be read: %w", job, sink, err)
}
