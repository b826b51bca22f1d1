package vitals

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/sluicestream/sluice/env"
)

// clock is set by the test. Its wall time may step while its monotonic reading
// goes on, as the system's does.
type clock struct {
	mu   sync.Mutex
	now  time.Time // with a monotonic reading
	step time.Duration
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return stepped(c.now, c.step)
}

func (c *clock) NewTimer(time.Duration) env.Timer { panic("vitals wait for nothing") }

// stepped shifts the wall time of t, by whole seconds, and leaves its monotonic
// reading: package time has no function for what a time server does. The
// seconds stand above the 30 bits of nanoseconds.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30
	return t
}

// The test's clock does what it says.
func TestStepped(t *testing.T) {
	now := time.Now()
	later := stepped(now.Add(time.Second), -time.Hour)
	if later.Sub(now) != time.Second {
		t.Errorf("the monotonic reading moved by %v", later.Sub(now))
	}
	if wall := later.Round(0).Sub(now.Round(0)); wall != time.Second-time.Hour {
		t.Errorf("the wall time moved by %v", wall)
	}
}
