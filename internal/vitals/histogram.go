package vitals

import (
	"slices"
	"time"
)

// Histogram counts durations by how long they were.
type Histogram struct {
	// Bounds are upper bounds, included, in rising order; Counts has one number
	// for each, of the durations above the bound before it, and one more for
	// those above the last.
	Bounds []time.Duration
	Counts []int64
	Sum    time.Duration
}

// Count is how many durations there are in all.
func (h Histogram) Count() (n int64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func newHistogram(bounds []time.Duration) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]int64, len(bounds)+1)}
}

func (h *Histogram) add(d time.Duration) {
	d = max(0, d)
	i, _ := slices.BinarySearch(h.Bounds, d)
	h.Counts[i]++
	h.Sum += d
}

// clone copies what changes.
func (h Histogram) clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// pauseBounds span what an epoch's end costs a shard: a swap of a list when all
// is well, the encoding of a whole table when it isn't.
func pauseBounds() []time.Duration {
	const µs, ms = time.Microsecond, time.Millisecond
	return []time.Duration{100 * µs, 250 * µs, 500 * µs, ms, 2500 * µs, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, time.Second, 5 * time.Second}
}

// callBounds span a store's call: a file in the page cache, a bucket that
// makes its callers try again.
func callBounds() []time.Duration {
	const ms, s = time.Millisecond, time.Second
	return []time.Duration{ms, 2500 * time.Microsecond, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, s, 2500 * ms, 5 * s, 10 * s, 30 * s, 60 * s}
}
