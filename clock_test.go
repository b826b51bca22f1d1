package sluice_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/faultenv"
)

const (
	hour = time.Hour
	year = 365 * 24 * time.Hour
)

// TestTheClockSteps lets the wall clock jump, by hours and by years, while the
// job runs and from one run to the next: no epoch's clock goes back, and what
// comes out is exact.
func TestTheClockSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps []time.Duration
	}{
		{"an hour ahead", []time.Duration{hour}},
		{"an hour back", []time.Duration{-hour}},
		{"a year ahead", []time.Duration{year}},
		{"a year back", []time.Duration{-year}},
		{"to and fro", []time.Duration{hour, -2 * hour, year, -year, hour, -year, 2 * year, -hour}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newErrand(t, 20)
			seed := rand.New(rand.NewPCG(uint64(len(c.steps)), uint64(c.steps[0])))
			for run := range 3 {
				e.feed(t, 20)
				// A run reads the clock some hundred times.
				at := map[int]time.Duration{}
				for _, step := range c.steps {
					at[1+seed.IntN(100)] += step
				}
				world := e.world(faultenv.Hooks{})
				world.Clock = faultenv.Stepping(world.Clock, func(n int) time.Duration { return at[n] })
				if err := e.run(t.Context(), t, world, nil); err != nil {
					t.Fatalf("run %d, with steps at the readings %v: %v", run, at, err)
				}
				e.check(t)
			}
			clocksAscend(t, e)
		})
	}
}

// clocksAscend looks at the epochs' clocks, in the order of the manifests.
func clocksAscend(t *testing.T, e *errand) {
	t.Helper()
	paths, err := filepath.Glob(e.path("store/payments/branches/main/0.0/*[0-9].json"))
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d manifests: %v", len(paths), err)
	}
	slices.Sort(paths)
	last := int64(0)
	for _, path := range paths {
		var m struct{ Now int64 }
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Now < last {
			t.Errorf("%s: its clock is %v, that of the one before was %v", filepath.Base(path), time.UnixMicro(m.Now), time.UnixMicro(last))
		}
		last = m.Now
	}
}

// TestTimersDontMindTheWall lets the clock jump at every reading: epochs end by
// time, and the job's pauses take what they take.
func TestTimersDontMindTheWall(t *testing.T) {
	t.Parallel()
	e := newErrand(t, 40)
	world := e.world(faultenv.Hooks{})
	world.Clock = faultenv.Stepping(world.Clock, func(n int) time.Duration {
		return []time.Duration{year, -year, -hour, hour}[n%4]
	})
	begin := world.Clock.Now()
	if err := e.run(t.Context(), t, world, nil); err != nil {
		t.Fatal(err)
	}
	if took := world.Clock.Now().Sub(begin); took < 0 || took > 100*time.Hour {
		t.Errorf("the run took %v by the monotonic clock", took)
	}
	e.check(t)
	clocksAscend(t, e)
}
