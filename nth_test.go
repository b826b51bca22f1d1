package sluice_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/internal/forgetful"
)

// trouble is a way in which the n-th call of the environment goes wrong.
type trouble struct {
	name  string
	fault faultenv.Fault
	// lasts tells that all calls that follow go wrong as well. The job is told to
	// stop then: a sink that can't be reached is tried for ever.
	lasts bool
	// power tells that the disk forgets at this call what was not synced.
	power bool
}

func troubles() []trouble {
	return []trouble{
		{name: "EIO", fault: faultenv.Fault{Err: syscall.EIO}},
		{name: "ENOSPC", fault: faultenv.Fault{Err: syscall.ENOSPC}},
		{name: "EACCES", fault: faultenv.Fault{Err: syscall.EACCES}},
		{name: "lost reply", fault: faultenv.Fault{Err: syscall.EIO, Done: true}},
		{name: "EIO from then on", fault: faultenv.Fault{Err: syscall.EIO}, lasts: true},
		{name: "power loss", fault: faultenv.Fault{Err: forgetful.ErrPower}, lasts: true, power: true},
	}
}

// run runs an errand in which the n-th call goes wrong.
func (tr trouble) run(t *testing.T, e *errand, n int) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	disk := forgetful.New(env.OS())
	w := env.Real()
	w.Clock = faultenv.Hasty(w.Clock, haste)
	w.Files = disk
	var calls atomic.Int64
	return e.run(ctx, t, e.wrap(w, faultenv.Hooks{Before: func(c faultenv.Call) faultenv.Fault {
		if !canFail(c) {
			return faultenv.Fault{}
		}
		if at := int(calls.Add(1)); at < n || at > n && !tr.lasts {
			return faultenv.Fault{}
		}
		if tr.lasts {
			stop()
		}
		if tr.power {
			if err := disk.Lose(); err != nil {
				t.Error(err)
			}
		}
		return tr.fault
	}}), nil)
}

// canFail tells whether a call has an error: the clock's have none.
func canFail(c faultenv.Call) bool { return c.Name != "now" && c.Name != "timer" }

// calls is how many calls that can fail an unharmed run makes, about.
func calls(t *testing.T) int {
	t.Helper()
	e := newErrand(t, nthPayments)
	var n atomic.Int64
	if err := e.run(t.Context(), t, e.world(faultenv.Hooks{After: func(c faultenv.Call) {
		if canFail(c) {
			n.Add(1)
		}
	}}), nil); err != nil {
		t.Fatal(err)
	}
	e.check(t)
	return int(n.Load())
}

const (
	// nthPayments are enough for a few epochs.
	nthPayments = 40
	// nthTries is how many of a trouble's calls are tried in a short run. They are
	// spread over all, for each trouble others.
	nthTries = 8
)

// TestTheNthCallFails lets the n-th call of the environment go wrong, for n from
// the first to the last: the run gets over it, or ends with an error that says
// what failed, and another one that goes on has the right outputs.
func TestTheNthCallFails(t *testing.T) {
	t.Parallel()
	all := calls(t)
	stride := max(1, all/nthTries)
	if os.Getenv("SLUICE_TORTURE") != "" {
		stride = 1
	}
	t.Logf("an unharmed run makes %d calls; one of %d is tried", all, stride)
	for i, trouble := range troubles() {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			for n := 1 + i*stride/len(troubles()); n <= all; n += stride {
				t.Run(fmt.Sprint(n), func(t *testing.T) { trouble.try(t, n) })
			}
		})
	}
}

func (tr trouble) try(t *testing.T, n int) {
	e := newErrand(t, nthPayments)
	if err := tr.run(t, e, n); err != nil {
		checkError(t, e, err)
	} else if !tr.lasts { // one that was told to stop has stopped well
		e.check(t)
	}
	e.finish(t)
}

// checkError holds an error against the form that a person can use: one line,
// with the name of the job or of what could not be reached.
func checkError(t *testing.T, e *errand, err error) {
	t.Helper()
	text := err.Error()
	if strings.Contains(strings.TrimSpace(text), "\n") {
		t.Errorf("the error has more than one line: %q", text)
	}
	if !strings.Contains(text, "payments") && !strings.Contains(text, e.dir) && !strings.Contains(text, "randomness") {
		t.Errorf("the error names neither the job nor a file: %q", text)
	}
}
