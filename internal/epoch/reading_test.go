package epoch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

func never(error) bool { return false }

func pinsOf(t testing.TB, j *Job) map[string]Pin {
	t.Helper()
	pins, err := j.Pins(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return pins
}

// later lets the process's clock stand so much later.
func (p *process) later(d time.Duration) {
	p.job.env.Clock.(*quickClock).now.Add(d.Milliseconds())
}

func TestReadingPins(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	before, after := commit(t, o, 1), commit(t, o, 2)
	seen := map[Epoch]bool{}
	err := p.job.Reading(t.Context(), []Manifest{before, after}, "a test", never, func(context.Context) error {
		// The clock of the test renews the pins without a pause: one look may come
		// between a pin and the next.
		for range 1000 {
			for _, pin := range pinsOf(t, p.job) {
				if !pin.Reader || pin.Branch != MainBranch || pin.By != "a test" {
					t.Errorf("pin %+v", pin)
				}
				seen[pin.Tasks[FirstTask]] = true
			}
			if len(seen) == 2 {
				break
			}
		}
		return nil
	})
	if err != nil || !seen[before.Epoch] || !seen[after.Epoch] {
		t.Errorf("pinned while it was read: %v; %v", seen, err)
	}
	if left := pinsOf(t, p.job); len(left) > 0 {
		t.Errorf("pins are left behind: %v", left)
	}
	failure := errors.New("what the reader met")
	if err := p.job.Reading(t.Context(), []Manifest{before}, "a test", never, func(context.Context) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("the reader's error became %v", err)
	}
	if left := pinsOf(t, p.job); len(left) > 0 {
		t.Errorf("pins are left behind by a failure: %v", left)
	}
}

// TestReadingPinsLate is H11: clean-up has passed the epoch before it was pinned.
func TestReadingPinsLate(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	old := commit(t, o, 1)
	commit(t, o, 2)
	if err := p.job.PutFloor(t.Context(), MainBranch, FirstTask, old.Epoch+1); err != nil {
		t.Fatal(err)
	}
	read := func(context.Context) error {
		t.Error("what is gone was read")
		return nil
	}
	cleaned := wantError[*CleanedError](t, "an epoch that is gone", p.job.Reading(t.Context(), []Manifest{old}, "a test", never, read))
	if cleaned.Floor != old.Epoch+1 || cleaned.Epoch != old.Epoch {
		t.Errorf("%+v", cleaned)
	}
	if left := pinsOf(t, p.job); len(left) > 0 {
		t.Errorf("pins are left behind: %v", left)
	}
	// A savepoint keeps it all the same.
	if _, err := p.job.PutSavepoint(t.Context(), "kept", Point{MainBranch, map[string]Epoch{FirstTask: old.Epoch}}, "a test"); err != nil {
		t.Fatal(err)
	}
	called := false
	if err := p.job.Reading(t.Context(), []Manifest{old}, "a test", never, func(context.Context) error { called = true; return nil }); err != nil || !called {
		t.Errorf("an epoch with a savepoint: read %v, %v", called, err)
	}
}

func TestReadingUnpinned(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	m := commit(t, p.take(), 1)
	deaf := newProcess(t, s, 2)
	deaf.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" {
			return faultstore.Fail
		}
		return faultstore.None
	})
	called := false
	read := func(context.Context) error { called = true; return nil }
	if err := deaf.job.Reading(t.Context(), []Manifest{m}, "a test", never, read); err == nil || called {
		t.Errorf("without a pin: read %v, %v", called, err)
	}
	if err := deaf.job.Reading(t.Context(), []Manifest{m}, "a test", func(error) bool { return true }, read); err != nil || !called {
		t.Errorf("where none is needed: read %v, %v", called, err)
	}
}

// TestReadersPinsGo sees that pins of readers that have died go when they are old,
// and no others.
func TestReadersPinsGo(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	m := commit(t, p.take(), 1)
	died := &reading{job: p.job, epochs: []Manifest{m}, by: "one that died"}
	if err := died.pin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.job.PutPin(t.Context(), "side-1", Point{MainBranch, map[string]Epoch{FirstTask: 1}}, "an upgrade"); err != nil {
		t.Fatal(err)
	}
	drop := func() int {
		t.Helper()
		if err := p.job.DropReadersPins(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(pinsOf(t, p.job))
	}
	p.later(readersPinHolds - time.Minute)
	if n := drop(); n != 2 {
		t.Errorf("%d pins are left before the time", n)
	}
	p.later(2 * time.Minute)
	if n := drop(); n != 1 || pinsOf(t, p.job)["side-1"].By == "" {
		t.Errorf("%d pins are left after the time", n)
	}
	// A reader that takes long makes new ones: the test's timers fire at once.
	err := p.job.Reading(t.Context(), []Manifest{m}, "a slow one", never, func(ctx context.Context) error {
		for first := map[string]bool{}; len(first) < 4; {
			for id, pin := range pinsOf(t, p.job) {
				if pin.Reader {
					first[id] = true
				}
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if left := pinsOf(t, p.job); len(left) != 1 {
		t.Errorf("pins are left behind: %v", left)
	}
}
