package state

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Write creates the segment at a path below the job's folder from what the
// shards changed; a nil one counts as empty. Equal changes give equal bytes,
// however they are split among the shards. Two records of one row are an error.
// memory is what the entries take once they are loaded, in bytes.
func Write(ctx context.Context, st store.Store, job, path string, f Form, changes []*Changes, memory int64) (epoch.Segment, error) {
	size := int64(0)
	for _, c := range changes {
		if c != nil {
			size += int64(len(c.Buf))
		}
	}
	w, err := newSegment(ctx, st, job, path, f, size, live(changes))
	if err != nil {
		return epoch.Segment{}, err
	}
	defer w.up.abort()
	if err := inOrder(ctx, f, changes, w.append); err != nil {
		return epoch.Segment{}, err
	}
	return w.commit(ctx, func(int64) int64 { return memory })
}

// segmentWriter writes records that come in order.
type segmentWriter struct {
	form  Form
	path  string
	up    *upload
	file  *avrofile.Writer
	slots epoch.Slots // of the records so far
	begun bool        // there is a record
}

// newSegment begins a segment of about the given size, in bytes; live says that
// no deletes will come.
func newSegment(ctx context.Context, st store.Store, job, path string, f Form, size int64, live bool) (*segmentWriter, error) {
	name := objectName(job, path)
	up, err := newUpload(ctx, st, name, size)
	if err != nil {
		return nil, failed("write", f, name, err)
	}
	file := avrofile.New(up, avrofile.Options{Schema: f.Schema().String(), Meta: f.meta(live)})
	return &segmentWriter{form: f, path: path, up: up, file: file}, nil
}

func (w *segmentWriter) append(slot epoch.Slot, record []byte) error {
	if !w.begun {
		w.slots.First, w.begun = slot, true
	}
	w.slots.Last = slot
	if err := w.file.Append(record); err != nil {
		return failed("write", w.form, w.up.name, err)
	}
	return nil
}

// commit ends the segment; memory says what a number of its rows take.
func (w *segmentWriter) commit(ctx context.Context, memory func(rows int64) int64) (epoch.Segment, error) {
	sum, err := w.file.Close()
	if err == nil {
		err = w.up.commit(ctx, sum)
	}
	if err != nil {
		return epoch.Segment{}, failed("write", w.form, w.up.name, err)
	}
	return epoch.Segment{
		Path: w.path, Slots: w.slots, Rows: sum.Records, Bytes: sum.Bytes,
		Memory: memory(sum.Records), SHA256: sum.SHA256,
	}, nil
}

// Writer writes a segment of entries that come in order.
type Writer struct {
	segment *segmentWriter
	record  []byte
}

// NewWriter begins the segment at a path below the job's folder, of about the
// given size in bytes. Abort is to be called in the end.
func NewWriter(ctx context.Context, st store.Store, job, path string, f Form, size int64) (*Writer, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	w, err := newSegment(ctx, st, job, path, f, size, true)
	if err != nil {
		return nil, err
	}
	return &Writer{segment: w}, nil
}

// Name is the state's name.
func (w *Writer) Name() string { return w.segment.form.Name }

// Put appends an entry; they come in the order of slots, keys and elements.
func (w *Writer) Put(slot epoch.Slot, key, element, value []byte) error {
	w.record = binary.AppendVarint(w.record[:0], int64(slot))
	w.record = append(append(append(append(w.record, key...), element...), branchValue), value...)
	return w.segment.append(slot, w.record)
}

// Commit ends the segment and makes it durable; memory is what its entries take
// once they are loaded, in bytes.
func (w *Writer) Commit(ctx context.Context, memory int64) (epoch.Segment, error) {
	return w.segment.commit(ctx, func(int64) int64 { return memory })
}

// Abort drops what was written. After Commit it does nothing.
func (w *Writer) Abort() { w.segment.up.abort() }

// objectName is the name in the store of a path below a job's folder.
func objectName(job, path string) string { return job + "/" + path }

// failed says which segment of which state an error is about.
func failed(operation string, f Form, name string, err error) error {
	return fmt.Errorf("state %s: %s segment %s: %w", f.Name, operation, name, err)
}
