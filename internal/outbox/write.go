package outbox

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// Form is what all outboxes of a sink have in common.
type Form struct {
	// Sink is the sink's name, Contract the version of its connector's form.
	Sink     string
	Contract int
	// Key is the schema of a table's keys, nil for a stream; Row that of rows.
	Key, Row *schema.Schema
	// Compare orders keys; nil for a stream.
	Compare func(a, b []byte) int
	// MaxRows and MaxBytes bound the rows of one part, and their bytes. 0: no bound.
	MaxRows, MaxBytes int64
	// Meta is put into the file's header as it is.
	Meta map[string]string
}

// Write freezes rows for a job: a stream's in the order of the inputs, a table's in
// that of slots and keys. There is one object for each part of the delivery, under
// the name that path gives for it.
func Write(ctx context.Context, st store.Store, job string, f Form, batches []Batch, path func() (string, error)) ([]epoch.Object, error) {
	w := &writer{ctx: ctx, st: st, job: job, form: f, path: path, schema: Schema(f.Key, f.Row).String()}
	defer w.abort()
	var err error
	if f.Key == nil {
		err = InOrder(batches, w.append)
	} else {
		err = BySlot(batches, f.Compare, w.append)
	}
	if err == nil {
		err = w.close()
	}
	return w.objects, err
}

// writer writes one object after the other.
type writer struct {
	ctx     context.Context
	st      store.Store
	job     string
	form    Form
	path    func() (string, error)
	schema  string
	objects []epoch.Object

	name        string
	up          store.Upload // nil: no object is open
	out         *bufio.Writer
	file        *avrofile.Writer
	rows, bytes int64
}

func (w *writer) append(record []byte) error {
	full := w.form.MaxRows > 0 && w.rows >= w.form.MaxRows || w.form.MaxBytes > 0 && w.bytes+int64(len(record)) > w.form.MaxBytes
	if w.rows > 0 && full {
		if err := w.close(); err != nil {
			return err
		}
	}
	if w.up == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.rows++
	w.bytes += int64(len(record))
	return w.file.Append(record)
}

func (w *writer) open() (err error) {
	if w.name, err = w.path(); err != nil {
		return err
	}
	if w.up, err = w.st.Upload(w.ctx, w.job+"/"+w.name); err != nil {
		w.up = nil
		return err
	}
	meta := map[string]string{"sluice.sink": w.form.Sink, "sluice.contract": strconv.Itoa(w.form.Contract)}
	maps.Copy(meta, w.form.Meta)
	w.out = bufio.NewWriterSize(w.up, 1<<18)
	w.file = avrofile.New(w.out, avrofile.Options{Schema: w.schema, Meta: meta})
	w.rows, w.bytes = 0, 0
	return nil
}

// close makes the open object durable.
func (w *writer) close() error {
	if w.up == nil {
		return nil
	}
	sum, err := w.file.Close()
	if err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	if err := w.up.Commit(w.ctx); err != nil {
		return fmt.Errorf("create %s: %w", w.name, err)
	}
	w.up.Abort()
	w.up, w.rows = nil, 0
	w.objects = append(w.objects, epoch.Object{Path: w.name, Rows: sum.Records, Bytes: sum.Bytes, SHA256: sum.SHA256})
	return nil
}

func (w *writer) abort() {
	if w.up != nil {
		w.up.Abort()
	}
}
