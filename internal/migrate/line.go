package migrate

import (
	"context"
	"iter"
	"sync"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

const (
	batchEntries = 1024
	batchBytes   = 1 << 20
	// batchesPerWorker is how many batches may be under way for each worker.
	batchesPerWorker = 3
)

// batch is a number of entries and what comes of them. What they are made of
// stands in one piece of memory each, which is used again.
type batch struct {
	data    []byte
	entries []placed
	made    []byte
	rows    []placed

	failures []failure
	dropped  int64
	err      error // of the reading; nothing follows
	done     chan struct{}
}

// placed is where an entry's or a row's parts stand: key, element and value, one
// behind the other.
type placed struct {
	slot                       epoch.Slot
	hasElement                 bool
	start, element, value, end int
}

// failure is an entry that could not be converted.
type failure struct {
	entry int
	err   error
}

func (b *batch) reset() {
	b.data, b.entries, b.made, b.rows = b.data[:0], b.entries[:0], b.made[:0], b.rows[:0]
	b.failures, b.dropped, b.err = b.failures[:0], 0, nil
	b.done = make(chan struct{})
}

func (b *batch) full() bool { return len(b.entries) == batchEntries || len(b.data) >= batchBytes }

func (b *batch) addEntry(e *state.Entry) {
	var p placed
	b.data, p = place(b.data, e.Slot, e.Key, e.Element, e.Value)
	b.entries = append(b.entries, p)
}

func (b *batch) addRow(r carry.Row) {
	var p placed
	b.made, p = place(b.made, r.Slot, r.Key, r.Element, r.Value)
	b.rows = append(b.rows, p)
}

func (b *batch) dropRows(from int) { b.rows = b.rows[:from] }

func place(dst []byte, slot epoch.Slot, key, element, value []byte) ([]byte, placed) {
	p := placed{slot: slot, hasElement: element != nil, start: len(dst)}
	dst = append(dst, key...)
	p.element = len(dst)
	dst = append(dst, element...)
	p.value = len(dst)
	dst = append(dst, value...)
	p.end = len(dst)
	return dst, p
}

func (p placed) in(data []byte) (key, element, value []byte) {
	if p.hasElement {
		element = data[p.element:p.value:p.value]
	}
	return data[p.start:p.element:p.element], element, data[p.value:p.end:p.end]
}

func (b *batch) entry(i int) (e state.Entry) {
	e.Slot = b.entries[i].slot
	e.Key, e.Element, e.Value = b.entries[i].in(b.data)
	return e
}

func (b *batch) row(i int) (r carry.Row) {
	r.Slot = b.rows[i].slot
	r.Key, r.Element, r.Value = b.rows[i].in(b.made)
	return r
}

// line reads entries, has them converted by several workers, and gives the
// batches back in the order in which they were read.
type line struct {
	ctx     context.Context
	cancel  context.CancelFunc
	free    chan *batch
	work    chan *batch
	queue   chan *batch // in order
	running sync.WaitGroup
}

func newLine(ctx context.Context, workers int, converting func() func(*batch)) *line {
	n := batchesPerWorker*workers + 1
	l := &line{free: make(chan *batch, n), work: make(chan *batch, n), queue: make(chan *batch, n)}
	l.ctx, l.cancel = context.WithCancel(ctx)
	for range n {
		l.free <- new(batch)
	}
	for range workers {
		convert := converting()
		l.running.Go(func() {
			for b := range l.work {
				if l.ctx.Err() == nil {
					convert(b)
				}
				close(b.done)
			}
		})
	}
	l.running.Add(1) // the reading
	return l
}

// read reads all entries; it is to be run in a goroutine of its own.
func (l *line) read(entries iter.Seq2[*state.Entry, error]) {
	defer l.running.Done()
	defer close(l.work)
	defer close(l.queue)
	b := l.take()
	if b == nil {
		return
	}
	for e, err := range entries {
		if err != nil {
			b.err = err
			break
		}
		b.addEntry(e)
		if !b.full() {
			continue
		}
		l.send(b)
		if b = l.take(); b == nil {
			return
		}
	}
	l.send(b)
}

// take takes a free batch, or nil if the line has ended.
func (l *line) take() *batch {
	select {
	case b := <-l.free:
		b.reset()
		return b
	case <-l.ctx.Done():
		return nil
	}
}

// send sends a batch on its way; both queues have room for all there are.
func (l *line) send(b *batch) {
	l.queue <- b
	l.work <- b
}

// converted gives the batches in their order. Each is to be released.
func (l *line) converted() iter.Seq2[*batch, error] {
	return func(yield func(*batch, error) bool) {
		for b := range l.queue {
			<-b.done
			if err := l.ctx.Err(); err != nil {
				yield(nil, context.Cause(l.ctx))
				return
			}
			failed := b.err // read before the batch is released
			if !yield(b, nil) {
				return
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
		}
		if l.ctx.Err() != nil {
			yield(nil, context.Cause(l.ctx))
		}
	}
}

func (l *line) release(b *batch) { l.free <- b }

// end ends the line and waits for all that belongs to it.
func (l *line) end() {
	l.cancel()
	l.running.Wait()
}
