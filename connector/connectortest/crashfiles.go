package connectortest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/internal/forgetful"
)

// errCrashed is what calls get from the crash on.
var errCrashed = errors.New("the process has crashed")

// CrashFiles is a [Faults.Crash] for sinks that write files. A crash in the middle
// of a write leaves half of it.
func CrashFiles(o connector.Opening, call int, how Crash) (_ connector.Opening, crashed func() bool) {
	disk := forgetful.New(o.Env.Files)
	world := *o.Env
	world.Files = disk
	var over atomic.Bool
	o.Env = faultenv.Wrap(&world, faultenv.Places{}, faultenv.Hooks{Before: func(c faultenv.Call) faultenv.Fault {
		if c.N < call {
			return faultenv.Fault{}
		}
		over.Store(true)
		f := faultenv.Fault{Err: errCrashed}
		switch {
		case c.N > call:
		case how == After:
			f.Done = true
		case how == PowerLoss:
			if err := disk.Lose(); err != nil {
				f.Err = fmt.Errorf("%w, and the disk with it: %w", errCrashed, err)
			}
		}
		return f
	}})
	return o, over.Load
}

// errBroken is what a broken call gets.
var errBroken = errors.New("the disk is away for a moment")

// BreakFiles gives a [Faults.Break] for sinks that write files its opening. Where
// a write fails before it takes effect, half of it is written.
func BreakFiles(o connector.Opening, call int, how Crash) (_ connector.Opening, broken func() bool) {
	world := *o.Env
	var over atomic.Bool
	o.Env = faultenv.Wrap(&world, faultenv.Places{}, faultenv.Hooks{Before: func(c faultenv.Call) faultenv.Fault {
		if c.N != call {
			return faultenv.Fault{}
		}
		over.Store(true)
		return faultenv.Fault{Err: errBroken, Done: how == After}
	}})
	return o, over.Load
}
