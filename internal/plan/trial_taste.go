package plan

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

// tally is what was found.
type tally struct {
	tried, failed, dropped int64
	before, after          int64 // bytes
	failures               []Failure
}

func (t *tally) add(o *tally) {
	t.tried += o.tried
	t.failed += o.failed
	t.dropped += o.dropped
	t.before += o.before
	t.after += o.after
	t.failures = append(t.failures, o.failures...)
	t.failures = t.failures[:min(mostFailures, len(t.failures))]
}

// taster tries entries, in one goroutine.
type taster struct {
	reader  *state.SlotReader
	clock   env.Clock
	convert func(e *state.Entry, put func(carry.Row) error) error
	put     func(carry.Row) error // keep, made once
	met     *meeting
	pace    *pace

	tally *tally // of the task in hand
	// Of the entry in hand:
	rows   int
	bytes  int64
	record []byte // its rows, as they are written
	keys   []byte // of its rows, each with its element
	ends   []keyEnd
}

// keyEnd is where a row's key and its element end.
type keyEnd struct{ key, element int }

func newTaster(clock env.Clock, way *carry.Way, source int, reader *state.SlotReader, met *meeting) *taster {
	w := &taster{
		reader: reader, clock: clock, convert: way.Converter(source), met: met, pace: newPace(way.Form)}
	w.put = w.keep
	return w
}

// try tries an entry. The error is none of the entry's.
func (w *taster) try(e *state.Entry) error {
	w.rows, w.bytes = 0, 0
	w.record, w.keys, w.ends = w.record[:0], w.keys[:0], w.ends[:0]
	w.tally.tried++
	timed := w.pace.wanted()
	var began time.Time
	if timed {
		began = w.clock.Now()
	}
	err := w.convert(e, w.put)
	if timed && err == nil {
		if err := w.pace.time(w.clock, began, w.record); err != nil {
			return err
		}
	}
	if err != nil {
		return w.fail(err)
	}
	w.tally.before += int64(len(e.Key) + len(e.Element) + len(e.Value))
	w.tally.after += w.bytes
	if w.rows == 0 {
		w.tally.dropped++
	}
	if len(w.ends) > 0 {
		w.met.meet(w.keys, w.ends)
	}
	return nil
}

// keep is called with each row that comes of the entry in hand.
func (w *taster) keep(r carry.Row) error {
	w.rows++
	w.bytes += int64(len(r.Key) + len(r.Element) + len(r.Value))
	if w.met.looks() {
		w.keys = append(w.keys, r.Key...)
		end := keyEnd{key: len(w.keys)}
		w.keys = append(w.keys, r.Element...)
		end.element = len(w.keys)
		w.ends = append(w.ends, end)
	}
	if w.pace.wanted() {
		w.record = append(append(append(w.record, r.Key...), r.Element...), r.Value...)
	}
	return nil
}

// fail counts an entry that can't be carried over; another error is returned.
func (w *taster) fail(err error) error {
	var failed *carry.EntryError
	if !errors.As(err, &failed) {
		return err
	}
	w.tally.failed++
	if len(w.tally.failures) < mostFailures {
		why := failed.Cause.Error()
		if failed.Function != "" {
			why = failed.Function + ": " + why
		}
		w.tally.failures = append(w.tally.failures, Failure{Key: failed.Key, Why: why})
	}
	return nil
}

// readAll goes through the entries of several ranges of slots.
func (w *taster) readAll(ctx context.Context, ranges []epoch.Slots) iter.Seq2[*state.Entry, error] {
	return func(yield func(*state.Entry, error) bool) {
		for _, slots := range ranges {
			for e, err := range w.reader.Read(ctx, slots) {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}
