package engine

import (
	"testing"
	"time"
)

// The first epoch behind a cut ends when the branch before would have ended it, and
// neither is empty for that nor longer than any other.
func TestFirstEpochKeepsThePace(t *testing.T) {
	const every = 100 * time.Millisecond
	for _, c := range []struct{ left, want time.Duration }{
		{40 * time.Millisecond, 40 * time.Millisecond},
		{100 * time.Millisecond, every},
		{time.Hour, every}, // a clock that went back
		{10 * time.Millisecond, 25 * time.Millisecond},
		{-time.Hour, 25 * time.Millisecond}, // the branch before had stood still
	} {
		if got := lengthOf(every, c.left); got != c.want {
			t.Errorf("with %v left of %v it lasts %v, expected %v", c.left, every, got, c.want)
		}
	}
}
