package runner

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// writeEpoch writes an epoch's segments and outboxes, side by side.
func (r *runner) writeEpoch(ctx context.Context, e *engine.Epoch) written {
	w := written{epoch: e, segments: map[string]epoch.Segment{}, outboxes: map[string][]epoch.Object{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, spec := range r.o.Graph.States() {
		all.Go(func() {
			segment, err := r.writeState(ctx, spec, e.Changes(i))
			mu.Lock()
			defer mu.Unlock()
			w.err = cmp.Or(w.err, err)
			if segment.Rows > 0 {
				w.segments[spec.Name] = segment
			}
		})
	}
	for i, spec := range r.o.Graph.Sinks() {
		all.Go(func() {
			objects, err := r.writeOutbox(ctx, spec, e.Rows(i))
			mu.Lock()
			defer mu.Unlock()
			w.err = cmp.Or(w.err, err)
			w.outboxes[spec.Name] = objects
		})
	}
	all.Wait()
	return w
}

// writeState writes what changed in a state as one segment; one without rows is
// not written.
func (r *runner) writeState(ctx context.Context, spec *engine.StateSpec, changes []*state.Changes) (segment epoch.Segment, err error) {
	n := rows(changes)
	if n == 0 {
		return segment, nil
	}
	memory := int64(n) * int64(spec.EntrySize())
	for _, c := range changes {
		memory += int64(len(c.Buf))
	}
	err = r.retry(ctx, "state "+spec.Name, spec.Name, func(path string) error {
		segment, err = state.Write(ctx, r.o.Store, r.o.Job, path, spec.Form, changes, memory)
		return err
	})
	return segment, err
}

// writeOutbox freezes what an epoch puts out to a sink; nothing is written if
// that is nothing.
func (r *runner) writeOutbox(ctx context.Context, spec *engine.SinkSpec, batches []outbox.Batch) (objects []epoch.Object, err error) {
	if len(batches) == 0 {
		return nil, nil
	}
	form, err := r.outboxForm(spec)
	if err != nil {
		return nil, err
	}
	name := "outbox." + spec.Name
	err = r.retry(ctx, "the outbox of sink "+spec.Name, name, func(path string) error {
		next := func() (string, error) {
			first := path
			if path = ""; first != "" {
				return first, nil
			}
			return r.newName(name)
		}
		objects, err = outbox.Write(ctx, r.o.Store, r.o.Job, form, batches, next)
		return err
	})
	return objects, err
}

// partsOf are the ends of a delivery's parts, in rows; nil if it has but one.
func partsOf(objects []epoch.Object) (ends []int64) {
	if len(objects) < 2 {
		return nil
	}
	var rows int64
	for _, o := range objects {
		rows += o.Rows
		ends = append(ends, rows)
	}
	return ends
}

// outboxForm is what all outboxes of a sink have in common.
func (r *runner) outboxForm(spec *engine.SinkSpec) (f outbox.Form, err error) {
	d := spec.Sink.Describe()
	f = outbox.Form{
		Sink: spec.Name, Contract: d.Contract, Key: spec.Key, Row: spec.Row,
		Meta: map[string]string{"sluice.connector": d.Connector, "sluice.target": d.Target},
	}
	if parted, ok := spec.Sink.(connector.PartedSink); ok {
		f.MaxRows, f.MaxBytes = parted.PartLimits()
	}
	if spec.Key != nil {
		f.Compare, err = schema.Comparer(spec.Key)
	}
	return f, err
}

// newName is a new name for an object of the next epoch, which is a left-over
// unless a manifest refers to it.
func (r *runner) newName(name string) (string, error) {
	path, err := r.owner.DataName(r.owner.NextEpoch(), name)
	if err == nil {
		r.left.tried(path)
	}
	return path, err
}

// retry tries to write an object, each time under a new name, since a try whose
// outcome is unknown may still come to something.
func (r *runner) retry(ctx context.Context, what, name string, write func(path string) error) error {
	pause := firstPause
	for try := 1; ; try++ {
		path, err := r.newName(name)
		if err != nil {
			return err
		}
		if err = write(path); err == nil {
			return nil
		}
		var damaged *epoch.DamagedError
		var failed *carry.EntryError
		var local *setAsideError
		var large *memory.TooLargeError
		switch {
		case errors.As(err, &damaged), errors.As(err, &failed), errors.As(err, &local), errors.As(err, &large):
			return err // the store is not to blame
		case try == storeTries || errors.Is(err, store.ErrName) || ctx.Err() != nil:
			return r.unwritten(what, err)
		}
		r.o.Log.Warn("writing failed, trying again", "what", what, "try", try, "of", storeTries, "pause", pause, "error", err)
		if err := env.Pause(ctx, r.o.Env.Clock, pause); err != nil {
			return err
		}
		pause *= 2
	}
}
