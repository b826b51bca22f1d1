package cli

import (
	"context"
	"time"

	"github.com/sluicestream/sluice/env"
)

// lookEvery is the time between two looks at what is waited for.
const lookEvery = 100 * time.Millisecond

// await looks until what is waited for has come, for at most a time: ok is false if it
// has not by then.
func await(ctx context.Context, clock env.Clock, most time.Duration, look func() (come bool, err error)) (ok bool, err error) {
	late := clock.NewTimer(most)
	defer late.Stop()
	again := clock.NewTimer(0)
	defer again.Stop()
	for {
		last := false
		select {
		case <-again.C():
			again.Reset(lookEvery)
		case <-late.C():
			last = true
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if come, err := look(); err != nil || come || last {
			return come, err
		}
	}
}
