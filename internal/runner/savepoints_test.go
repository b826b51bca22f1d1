package runner_test

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/sluicetest"
)

// setClock tells the time that it is set to, and a little more with each look.
type setClock struct {
	env.Clock
	now atomic.Int64 // microseconds
}

func (c *setClock) Now() time.Time { return time.UnixMicro(c.now.Add(1)) }

func (c *setClock) set(text string) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	c.now.Store(at.UnixMicro())
}

// namesOf are the savepoints of a job with their epochs.
func namesOf(t *testing.T, job *epoch.Job) map[string]epoch.Epoch {
	t.Helper()
	all, err := job.Savepoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]epoch.Epoch{}
	for _, s := range all {
		if _, twice := names[s.Name]; twice {
			t.Errorf("savepoint %s is there twice", s.Name)
		}
		names[s.Name] = s.Tasks[epoch.FirstTask]
	}
	return names
}

// A schedule makes one savepoint in each hour and day in which there are epochs, of
// the first of them, however often the job is started again; it drops its own that
// are too many, and no others, and what they kept goes then.
func TestScheduledSavepoints(t *testing.T) {
	test := sluicetest.New(t, visitsJob(t.TempDir()))
	clock := &setClock{}
	test.Options(func(o *sluice.Options) {
		world := *o.Env
		clock.Clock, world.Clock = world.Clock, clock
		o.Env, o.Savepoints = &world, "hourly=2,daily=3"
	})
	var job func() *epoch.Job
	epochs := map[string]epoch.Epoch{} // data epochs by what was their time
	step := func(at string) {
		t.Helper()
		clock.set(at)
		sluicetest.Feed(test, "visits", visit{"ann", at, 1})
		test.Step()
		_, job = theStore(t, test)
		for m, err := range job().Manifests(t.Context(), epoch.MainBranch, epoch.FirstTask, 0, head(t, job()).Epoch) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Kind == epoch.Data {
				epochs[at] = m.Epoch // in the end the newest
			}
		}
	}
	want := func(when string, want map[string]epoch.Epoch) {
		t.Helper()
		if got := namesOf(t, job()); !maps.Equal(got, want) {
			t.Fatalf("%s: the savepoints are %v, want %v", when, got, want)
		}
	}
	step("2026-11-29T22:10:00Z")
	step("2026-11-29T22:50:00Z")
	first := epochs["2026-11-29T22:10:00Z"]
	want("in one hour", map[string]epoch.Epoch{"hourly-20261129T22Z": first, "daily-20261129": first})

	point := epoch.Point{Branch: epoch.MainBranch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: first}}
	if _, err := job().MakeSavepoint(t.Context(), epoch.Savepoint{Name: "hourly-20200101T00Z", Point: point}); err != nil {
		t.Fatal(err)
	}
	step("2026-11-29T23:00:00Z")
	step("2026-11-30T04:59:59Z")
	step("2026-11-30T05:00:00Z")
	want("after the third hour with epochs", map[string]epoch.Epoch{
		"hourly-20200101T00Z": first,
		"hourly-20261130T04Z": epochs["2026-11-30T04:59:59Z"], "hourly-20261130T05Z": epochs["2026-11-30T05:00:00Z"],
		"daily-20261129": first, "daily-20261130": epochs["2026-11-30T04:59:59Z"],
	})

	sweep := func() {
		t.Helper()
		if _, err := clean.New(job(), clean.Options{Keep: -1, KeepEpochs: 1}).All(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// readable are the pages that ann had seen by an epoch, which are times.
	readable := func(e epoch.Epoch) (n int) {
		t.Helper()
		m, err := job().ManifestBelow(t.Context(), epoch.MainBranch, epoch.FirstTask, e)
		if err != nil {
			return 0
		}
		form, err := state.FormOf("pages", m.State["pages"])
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range state.Read(t.Context(), job().Store(), "visits", form, m.State["pages"].Segments, epoch.AllSlots) {
			if err != nil {
				t.Fatalf("epoch %d: %v", e, err)
			}
			n++
		}
		return n
	}
	sweep()
	pinned := slices.Sorted(maps.Values(namesOf(t, job())))
	for i, e := range slices.Compact(pinned) {
		if got, want := readable(e), []int{1, 4, 5}[i]; got != want {
			t.Errorf("after a clean-up, epoch %d has %d pages, want %d", e, got, want)
		}
	}
	if n := readable(epochs["2026-11-29T23:00:00Z"]); n != 0 {
		t.Errorf("an epoch whose savepoint the schedule dropped still has %d pages", n)
	}
	all, err := job().Savepoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Tasks[epoch.FirstTask] == first {
			if err := job().DropSavepoint(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	sweep()
	if n := readable(first); n != 0 {
		t.Errorf("an epoch whose savepoints were dropped still has %d pages", n)
	}
}
