package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/sluicestream/sluice/connector"
)

// copyRows is a delivery's rows in COPY's binary form, as a reader.
type copyRows struct {
	mode mode
	plan *deliveryPlan
	// puts and deletes count the rows, once they have been read.
	puts, deletes int64
	// none tells, after peek, that there are no rows.
	none bool

	mu   sync.Mutex // the driver may read for a moment after it has given up
	next func() ([]byte, error, bool)
	end  func()
	rest []byte
	err  error
	over bool

	buf      []byte
	lastKey  []byte
	lastFrom int // where the last row begins in buf
	lastGone bool
	held     bool // there is a last row
	number   int
}

// chunk is how many bytes are sent at a time.
const chunk = 64 << 10

// head and tail are what stands before and behind the rows.
const (
	head = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	tail = "\xff\xff"
)

func newCopyRows(m mode, d *connector.Delivery) *copyRows {
	r := &copyRows{mode: m}
	r.next, r.end = iter.Pull2(r.chunks(d))
	return r
}

// peek looks whether there are rows, before anything is done for them.
func (r *copyRows) peek() error {
	_, err, ok := r.next() // the first chunk is empty
	r.none = !ok
	return err
}

// stop ends the reading.
func (r *copyRows) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.end()
}

// fault is the error of the rows themselves.
func (r *copyRows) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Read implements [io.Reader].
func (r *copyRows) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.rest) == 0 {
		if r.over {
			return 0, io.ErrClosedPipe
		}
		part, err, ok := r.next()
		if err != nil {
			r.err = err
			return 0, errors.New("the rows end here")
		}
		if !ok {
			return 0, io.EOF
		}
		r.rest = part
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// chunks yields an empty chunk when it has the first row, and then the rows. The
// last row is held back till the next is known: of equal keys, which stand side
// by side, the last counts.
func (r *copyRows) chunks(d *connector.Delivery) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r.buf = append(make([]byte, 0, chunk+chunk/4), head...)
		for row, err := range d.Rows {
			if err != nil {
				yield(nil, err)
				return
			}
			if r.number == 0 && !yield(nil, nil) {
				return
			}
			again := r.mode == upsertMode && r.held && bytes.Equal(r.lastKey, row.Key)
			if len(r.buf) >= chunk && !again {
				if !yield(r.buf, nil) {
					return
				}
				r.buf = r.buf[:0]
			}
			if err := r.add(&row, again); err != nil {
				yield(nil, fmt.Errorf("row %d: %w", r.number, err))
				return
			}
			r.number++
		}
		if r.number > 0 {
			yield(append(r.buf, tail...), nil)
		}
	}
}

// add appends a row, in the place of the last if it is the same key's again.
func (r *copyRows) add(row *connector.Row, again bool) (err error) {
	if again {
		r.buf = r.buf[:r.lastFrom]
		r.count(r.lastGone, -1)
	}
	r.lastFrom, r.held = len(r.buf), true
	if r.mode != upsertMode {
		if row.Op != connector.Append {
			return fmt.Errorf("a stream's row says %s", opName(row.Op))
		}
		r.puts++
		r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(r.plan.values))
		r.buf, err = r.plan.rowCells.append(r.buf, row.Row)
		return err
	}
	if row.Op != connector.Put && row.Op != connector.Delete {
		return fmt.Errorf("a table's row says %s", opName(row.Op))
	}
	r.lastKey = append(r.lastKey[:0], row.Key...)
	r.lastGone = row.Op == connector.Delete
	r.count(r.lastGone, 1)
	return r.addKeyed(row)
}

func (r *copyRows) count(gone bool, n int64) {
	if gone {
		r.deletes += n
	} else {
		r.puts += n
	}
}

func (r *copyRows) addKeyed(row *connector.Row) (err error) {
	p := r.plan
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(1+len(p.keyCells)+p.values))
	r.buf = append(r.buf, 0, 0, 0, 1, 0)
	flag := len(r.buf) - 1
	if r.buf, err = p.keyCells.append(r.buf, row.Key); err != nil {
		if r.lastGone && isMisfit(err) {
			// What the column can't take can't stand in it, so there is nothing
			// to delete.
			r.buf = r.buf[:r.lastFrom]
			r.count(true, -1)
			r.held = false
			return nil
		}
		return err
	}
	if r.lastGone {
		r.buf[flag] = 1
		for range p.values {
			r.buf = appendNull(r.buf)
		}
		return nil
	}
	if p.row == nil {
		return errors.New("the delivery has no schema for its rows")
	}
	r.buf, err = p.rowCells.append(r.buf, row.Row)
	return err
}

func opName(op connector.Op) string {
	switch op {
	case connector.Append:
		return "append"
	case connector.Put:
		return "put"
	case connector.Delete:
		return "delete"
	}
	return fmt.Sprintf("operation %d", op)
}
