package sluicetest

import (
	"time"

	"github.com/sluicestream/sluice/env"
)

// haste is how much faster than real time a test's timers run: a pause before
// another try is over at once, an epoch lasts until it is stepped.
const haste = 1000

// hastyClock tells the real time; its timers are hasty.
type hastyClock struct{ env.Clock }

func (c hastyClock) NewTimer(d time.Duration) env.Timer {
	return hastyTimer{c.Clock.NewTimer(d / haste)}
}

type hastyTimer struct{ env.Timer }

func (t hastyTimer) Reset(d time.Duration) { t.Timer.Reset(d / haste) }
