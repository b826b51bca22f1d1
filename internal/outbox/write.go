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
	// Meta is put into the file's header as it is.
	Meta map[string]string
}

// Write freezes rows as the object path of a job: a stream's in the order of
// the inputs, a table's in that of slots and keys.
func Write(ctx context.Context, st store.Store, job, path string, f Form, batches []Batch) (epoch.Object, error) {
	up, err := st.Upload(ctx, job+"/"+path)
	if err != nil {
		return epoch.Object{}, err
	}
	defer up.Abort()
	meta := map[string]string{"sluice.sink": f.Sink, "sluice.contract": strconv.Itoa(f.Contract)}
	maps.Copy(meta, f.Meta)
	out := bufio.NewWriterSize(up, 1<<18)
	w := avrofile.New(out, avrofile.Options{Schema: Schema(f.Key, f.Row).String(), Meta: meta})
	if f.Key == nil {
		err = InOrder(batches, w.Append)
	} else {
		err = BySlot(batches, f.Compare, w.Append)
	}
	if err != nil {
		return epoch.Object{}, err
	}
	sum, err := w.Close()
	if err != nil {
		return epoch.Object{}, err
	}
	if err := out.Flush(); err != nil {
		return epoch.Object{}, err
	}
	if err := up.Commit(ctx); err != nil {
		return epoch.Object{}, fmt.Errorf("create %s: %w", path, err)
	}
	return epoch.Object{Path: path, Rows: sum.Records, Bytes: sum.Bytes, SHA256: sum.SHA256}, nil
}
