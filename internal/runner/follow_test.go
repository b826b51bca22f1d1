package runner

import (
	"testing"
	"time"
)

// TestWaitedFor sees that a standby which was stopped, or whose clock has stepped, takes
// nobody's place because of that.
func TestWaitedFor(t *testing.T) {
	const lease = 10 * time.Second
	for passed, want := range map[time.Duration]time.Duration{
		12 * time.Millisecond:  12 * time.Millisecond, // the look itself takes time as well
		500 * time.Millisecond: 500 * time.Millisecond,
		time.Hour:              500 * time.Millisecond,
		-time.Hour:             0,
	} {
		if got := waitedFor(lease, passed); got != want {
			t.Errorf("of %v count %v, want %v", passed, got, want)
		}
	}
}
