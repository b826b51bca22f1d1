package faultenv

import (
	"time"

	"github.com/sluicestream/sluice/env"
)

// clock is the clock of a world.
type clock struct{ w *world }

// Now implements [env.Clock].
func (c clock) Now() (now time.Time) {
	_ = c.w.do("now", "", func() error {
		now = c.w.env.Clock.Now()
		return nil
	})
	if now.IsZero() {
		return c.w.env.Clock.Now() // there is no error to answer with
	}
	return now
}

// NewTimer implements [env.Clock].
func (c clock) NewTimer(d time.Duration) (timer env.Timer) {
	_ = c.w.do("timer", "", func() error {
		timer = c.w.env.Clock.NewTimer(d)
		return nil
	})
	if timer == nil {
		return c.w.env.Clock.NewTimer(d)
	}
	return timer
}

// random is the randomness of a world.
type random struct{ w *world }

// Read implements [io.Reader].
func (r random) Read(b []byte) (n int, err error) {
	err = r.w.do("random", "", func() (err error) {
		n, err = r.w.env.Random.Read(b)
		return err
	})
	return n, err
}
