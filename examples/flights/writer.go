package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// writer appends the flights to one file per airport. It knows nothing of the
// job, and goes on whatever becomes of it.
type writer struct {
	dir     string
	files   map[string]*os.File // by airport
	written atomic.Int64        // flights so far
	most    atomic.Int64        // that may be written by now
}

// newWriter makes an empty file for each airport.
func newWriter(dir string, week []event) (*writer, error) {
	w := &writer{dir: dir, files: map[string]*os.File{}}
	w.most.Store(int64(len(week)))
	for _, e := range week {
		if w.files[e.Origin] != nil {
			continue
		}
		f, err := os.Create(filepath.Join(dir, e.Origin+".jsonl"))
		if err != nil {
			w.close()
			return nil, err
		}
		w.files[e.Origin] = f
	}
	return w, nil
}

func (w *writer) close() {
	for _, f := range w.files {
		f.Close()
	}
}

// write writes the week at a steady rate, so that it takes as long as is said, or longer
// if what may be written by then is less.
func (w *writer) write(ctx context.Context, week []event, lasts time.Duration) error {
	const every = 20 * time.Millisecond
	rate := float64(len(week)) / float64(lasts)
	last, due := time.Now(), 0.0
	tick := time.NewTicker(every)
	defer tick.Stop()
	for done := 0; done < len(week); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now := time.Now()
		due = min(due+rate*float64(now.Sub(last)), float64(w.most.Load()))
		last = now
		for ; done < int(due); done++ {
			e := week[done]
			if _, err := w.files[e.Origin].Write(e.line); err != nil {
				return fmt.Errorf("the writer: %w", err)
			}
			w.written.Add(1)
		}
	}
	return nil
}
