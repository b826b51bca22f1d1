package main

import (
	"testing"
	"time"
)

// moments are times in milliseconds.
func moments(ms ...int64) (all []time.Time) {
	for _, m := range ms {
		all = append(all, time.UnixMilli(m))
	}
	return all
}

func between(from, to int64) span { return span{time.UnixMilli(from), time.UnixMilli(to)} }

func TestGaps(t *testing.T) {
	// Epochs of 100 ms whose outputs come in two parts, and one that is late by 80.
	arrivals := moments(0, 3, 100, 103, 200, 205, 385, 388, 480, 483, 580)
	for _, c := range []struct {
		within span
		want   span
	}{
		{between(190, 300), between(205, 385)},
		{between(300, 310), between(205, 385)}, // it lies in the middle of it
		{between(0, 120), between(3, 100)},     // of two that are as long the first
		{between(385, 387), between(205, 385)}, // its end is in it
		{between(386, 500), between(483, 580)},
		{between(600, 700), span{}},
	} {
		if got := longestGap(arrivals, c.within); got != c.want {
			t.Errorf("the longest gap in %v to %v is %v to %v, want %v to %v", c.within.from.UnixMilli(), c.within.to.UnixMilli(), got.from.UnixMilli(), got.to.UnixMilli(), c.want.from.UnixMilli(), c.want.to.UnixMilli())
		}
	}
	// Between epochs: 97, 97, 180, 92, 97; the late one is left out as a cut's.
	if got := usualGap(arrivals, 25*time.Millisecond, []span{between(300, 310)}); got != 97*time.Millisecond {
		t.Errorf("the usual gap is %v, want 97ms", got)
	}
	if got := usualGap(arrivals, 0, nil); got != 92*time.Millisecond {
		t.Errorf("the usual gap of all is %v, want 92ms", got)
	}
	if got := usualGap(arrivals[:1], 0, nil); got != 0 {
		t.Errorf("one output has a usual gap of %v", got)
	}
}
