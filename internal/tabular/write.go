package tabular

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
)

// WriteOptions say how rows are written.
type WriteOptions struct {
	// Workers is the number of goroutines that render rows, at least 1.
	Workers int
	// Written, if not nil, is told from time to time how many rows and bytes have
	// been written so far, by one goroutine.
	Written func(rows, bytes int64)
}

const (
	// chunkBytes is how much of rows is rendered at once: what one block of an Avro
	// file holds.
	chunkBytes = 64 << 10
	// chunksPerWorker bounds the chunks under way: one is rendered, one waits for
	// that, one waits for being written.
	chunksPerWorker = 3
)

// chunk is a number of rows on their way.
type chunk struct {
	rows  []byte // one behind the other
	count int
	out   []byte // rendered
	sheet shreds // rendered for Parquet
	err   error  // of the rendering
	done  chan struct{}
}

// sink is a format's writer.
type sink interface {
	// renderer returns what renders chunks, for one goroutine.
	renderer() func(c *chunk) error
	// append writes a rendered chunk. The chunks come in their order.
	append(c *chunk) error
	// close writes what ends the file.
	close() error
}

// Write writes rows to w, in their order, and returns how many there were. A row
// holds until the next is asked for. The first error ends it; what was written
// until then is of no use.
func Write(ctx context.Context, w io.Writer, f Format, l Layout, o WriteOptions, rows iter.Seq2[[]byte, error]) (n int64, err error) {
	out := &counted{w: w}
	to, err := newSink(out, f, l)
	if err != nil {
		return 0, err
	}
	p := &writing{sink: to, out: out, told: o.Written}
	if err := p.run(ctx, max(o.Workers, 1), rows); err != nil {
		return p.written, err
	}
	return p.written, to.close()
}

func newSink(w io.Writer, f Format, l Layout) (sink, error) {
	switch f {
	case Avro:
		return newAvroSink(w, l), nil
	case CSV:
		return newCSVSink(w, l)
	case Parquet:
		return newParquetSink(w, l)
	case JSONL:
		return newJSONSink(w, l), nil
	}
	return nil, fmt.Errorf("format %q: use avro, jsonl, csv or parquet", f)
}

// counted counts what goes through.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// writing is a Write under way: the caller's goroutine fills chunks, workers
// render them, and one more puts them out in their order.
type writing struct {
	sink    sink
	out     *counted
	told    func(rows, bytes int64)
	written int64
	free    chan *chunk
	work    chan *chunk
	order   chan *chunk
}

func (p *writing) run(ctx context.Context, workers int, rows iter.Seq2[[]byte, error]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	chunks := chunksPerWorker*workers + 1
	p.free, p.work, p.order = make(chan *chunk, chunks), make(chan *chunk, chunks), make(chan *chunk, chunks)
	for range chunks {
		p.free <- &chunk{done: make(chan struct{}, 1)}
	}
	var rendering, writing sync.WaitGroup
	for range workers {
		render := p.sink.renderer()
		rendering.Go(func() {
			for c := range p.work {
				c.err = render(c)
				c.done <- struct{}{}
			}
		})
	}
	writing.Go(func() {
		for c := range p.order {
			<-c.done
			if ctx.Err() == nil {
				if err := p.put(c); err != nil {
					cancel(err)
				}
			}
			p.free <- c
		}
	})
	if err := p.fill(ctx, rows); err != nil {
		cancel(err)
	}
	close(p.work)
	close(p.order)
	rendering.Wait()
	writing.Wait()
	return context.Cause(ctx)
}

// put writes a chunk.
func (p *writing) put(c *chunk) error {
	if c.err != nil {
		return c.err
	}
	if err := p.sink.append(c); err != nil {
		return err
	}
	p.written += int64(c.count)
	if p.told != nil {
		p.told(p.written, p.out.n)
	}
	return nil
}

// fill makes chunks of rows.
func (p *writing) fill(ctx context.Context, rows iter.Seq2[[]byte, error]) error {
	var c *chunk
	send := func() {
		p.work <- c // there is room for all
		p.order <- c
		c = nil
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		if c == nil {
			select {
			case c = <-p.free:
				c.rows, c.count = c.rows[:0], 0
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		c.rows = append(c.rows, row...)
		c.count++
		if len(c.rows) >= chunkBytes {
			send()
		}
	}
	if c != nil {
		send()
	}
	return nil
}
