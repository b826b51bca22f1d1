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
}

// newWriter makes an empty file for each airport.
func newWriter(dir string, week []event) (*writer, error) {
	w := &writer{dir: dir, files: map[string]*os.File{}}
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

// write writes the week at a steady rate, so that it takes as long as is said.
func (w *writer) write(ctx context.Context, week []event, lasts time.Duration) error {
	begun := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for done := 0; done < len(week); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		due := int(float64(len(week)) * min(1, time.Since(begun).Seconds()/lasts.Seconds()))
		for ; done < due; done++ {
			e := week[done]
			if _, err := w.files[e.Origin].Write(e.line); err != nil {
				return fmt.Errorf("the writer: %w", err)
			}
			w.written.Add(1)
		}
	}
	return nil
}
