package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluicestream/sluice/connector"
)

// copyRows is a delivery's rows in COPY's binary form, as a reader. They are
// made by a goroutine of their own while those before are sent.
type copyRows struct {
	mode mode
	// none tells, after peek, that there are no rows.
	none bool

	first chan bool          // whether there is a row
	plans chan *deliveryPlan // the plan for them
	from  *io.PipeReader
	to    *io.PipeWriter
	maker sync.WaitGroup

	// What follows belongs to the goroutine until it has ended.

	plan *deliveryPlan
	// puts and deletes count the rows.
	puts, deletes int64
	err           error
	buf           []byte
	lastKey       []byte
	lastFrom      int // where the last row begins in buf
	lastGone      bool
	held          bool // there is a last row
	number        int
}

// chunk is how many bytes are sent at a time.
const chunk = 64 << 10

// head and tail are what stands before and behind the rows.
const (
	head = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	tail = "\xff\xff"
)

// startRows begins to read a delivery's rows. stop has to be called.
func startRows(m mode, d *connector.Delivery) *copyRows {
	r := &copyRows{mode: m, first: make(chan bool, 1), plans: make(chan *deliveryPlan, 1)}
	r.from, r.to = io.Pipe()
	r.maker.Go(func() {
		r.err = r.make(d)
		close(r.first)
		if r.err != nil {
			_ = r.to.CloseWithError(errRowsEnd) // the server is told this, and nothing else
			return
		}
		_ = r.to.Close()
	})
	return r
}

var (
	errRowsEnd = errors.New("the rows end here")
	errStopped = errors.New("the server takes no more rows")
)

// peek looks whether there are rows, before anything is done for them.
func (r *copyRows) peek() error {
	if r.none = !<-r.first; r.none {
		return r.stop()
	}
	return nil
}

// begin lets the rows be made by a plan.
func (r *copyRows) begin(p *deliveryPlan) { r.plans <- p }

// Read implements [io.Reader].
func (r *copyRows) Read(p []byte) (int, error) { return r.from.Read(p) }

// stop ends the reading, and returns the error of the rows themselves. It may be
// called again.
func (r *copyRows) stop() error {
	_ = r.from.CloseWithError(errStopped)
	select {
	case r.plans <- nil: // unless there is one
	default:
	}
	r.maker.Wait()
	if errors.Is(r.err, errStopped) {
		return nil
	}
	return r.err
}

// make writes the rows to the pipe. The last row is held back till the next is
// known: of equal keys, which stand side by side, the last counts.
func (r *copyRows) make(d *connector.Delivery) error {
	r.buf = append(make([]byte, 0, chunk+chunk/4), head...)
	for row, err := range d.Rows {
		if err != nil {
			return err
		}
		if r.number == 0 {
			r.first <- true
			if r.plan = <-r.plans; r.plan == nil {
				return errStopped
			}
		}
		again := r.mode == upsertMode && r.held && bytes.Equal(r.lastKey, row.Key)
		if len(r.buf) >= chunk && !again {
			if _, err := r.to.Write(r.buf); err != nil {
				return err
			}
			r.buf = r.buf[:0]
		}
		if err := r.add(&row, again); err != nil {
			return r.located(&row, err)
		}
		r.number++
	}
	if r.number == 0 {
		return nil
	}
	_, err := r.to.Write(append(r.buf, tail...))
	return err
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
			return fmt.Errorf("a stream's row says %s", row.Op)
		}
		r.puts++
		r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(r.plan.values))
		r.buf, err = r.plan.rowCells.append(r.buf, row.Row)
		return err
	}
	if row.Op != connector.Put && row.Op != connector.Delete {
		return fmt.Errorf("a table's row says %s", row.Op)
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
