package faultenv

import (
	"sync"
	"time"
	"unsafe"

	"github.com/sluicestream/sluice/env"
)

// Hasty returns a clock whose time goes so many times faster than that of the
// one given: a pause of minutes is over in milliseconds.
func Hasty(clock env.Clock, times int64) env.Clock {
	return &hasty{clock, clock.Now(), times}
}

type hasty struct {
	clock env.Clock
	start time.Time
	times int64
}

// Now implements [env.Clock].
func (h *hasty) Now() time.Time {
	return h.start.Add(h.clock.Now().Sub(h.start) * time.Duration(h.times))
}

// NewTimer implements [env.Clock].
func (h *hasty) NewTimer(d time.Duration) env.Timer {
	return hastyTimer{h.clock.NewTimer(d / time.Duration(h.times)), h.times}
}

type hastyTimer struct {
	env.Timer
	times int64
}

// Reset implements [env.Timer].
func (t hastyTimer) Reset(d time.Duration) { t.Timer.Reset(d / time.Duration(t.times)) }

// Stepping returns a clock whose wall time jumps: before its n-th reading, from
// 1, by what jump(n) says. Its monotonic time and its timers go on as those of
// the clock given, which must have monotonic readings.
func Stepping(clock env.Clock, jump func(n int) time.Duration) env.Clock {
	return &stepping{Clock: clock, jump: jump}
}

type stepping struct {
	env.Clock
	jump func(int) time.Duration

	mu     sync.Mutex
	n      int
	offset time.Duration
}

// Now implements [env.Clock].
func (s *stepping) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.offset += s.jump(s.n)
	return shiftWall(s.Clock.Now(), s.offset)
}

// shiftWall moves a time's wall clock and leaves its monotonic reading, which
// package time has no call for: Add moves both, so the second is moved back in
// place. The test of this function holds it against the package's ways.
func shiftWall(t time.Time, by time.Duration) time.Time {
	t = t.Add(by)
	(*struct {
		wall      uint64
		monotonic int64
		location  uintptr
	})(unsafe.Pointer(&t)).monotonic -= int64(by)
	return t
}
