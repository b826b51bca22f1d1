package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// watch is what a reader of the folder sees: when each output appeared.
type watch struct {
	mu    sync.Mutex
	names []string
	seen  []time.Time
}

// lookEvery is how often the reader looks.
const lookEvery = 10 * time.Millisecond

// look looks at the folder until ctx ends.
func (w *watch) look(ctx context.Context, dir string) error {
	last := ""
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		names, err := filesBehind(dir, last)
		if err != nil {
			return err
		}
		for _, name := range names {
			w.mu.Lock()
			w.names, w.seen, last = append(w.names, name), append(w.seen, time.Now()), name
			w.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// around is how many gaps on either side of a change belong to it: what goes on in the
// time of an epoch or two may hold others up.
const around = 2

// gaps are the longest time between two outputs around each change, which is known by
// the name of the first output behind it, and the usual time between two: the median of
// those that are around no change.
func (w *watch) gaps(changes []string) (longest []time.Duration, usual time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var others []time.Duration
	longest = make([]time.Duration, len(changes))
	for i := 1; i < len(w.seen); i++ {
		gap, apart := w.seen[i].Sub(w.seen[i-1]), true
		for c, first := range changes {
			at, _ := slices.BinarySearch(w.names, first)
			if i >= at-around && i <= at+around {
				longest[c], apart = max(longest[c], gap), false
			}
		}
		if apart {
			others = append(others, gap)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		usual = others[len(others)/2]
	}
	return longest, usual
}
