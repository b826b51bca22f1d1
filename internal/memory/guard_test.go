package memory

import (
	"errors"
	"testing"
)

// process is a process whose use a test sets.
type process struct {
	use
	collections int
	left        use // what a collection leaves
}

func (p *process) guard(limit int64) *Guard {
	g := NewGuard(Limit{limit, FromCgroup})
	g.measure = func() use { return p.use }
	g.collect = func() { p.collections++; p.use = p.left }
	return g
}

func TestWarnings(t *testing.T) {
	p := &process{}
	g := p.guard(1000)
	for i, step := range []struct{ needed, level int64 }{
		{0, 0}, {799, 0}, {800, 80}, {801, 0}, {790, 0}, {800, 0}, // hovers
		{900, 90}, {860, 0}, {900, 0}, {849, 0}, {900, 90}, // clearly below 90, and back
		{749, 0}, {800, 80}, {1200, 90}, // below both
		{0, 0}, {950, 90}, // both at once: the higher
		{1000, 0},
	} {
		p.needed = step.needed
		w, passed := g.Sample()
		if passed != (step.level > 0) || w.Percent != step.level {
			t.Errorf("step %d, %d needed: %v %+v, want %d", i, step.needed, passed, w, step.level)
		}
		if passed && (w.Needed != step.needed || w.Limit != (Limit{1000, FromCgroup})) {
			t.Errorf("step %d: the warning has %+v", i, w)
		}
	}
}

func TestGarbageIsNoReasonToWarn(t *testing.T) {
	p := &process{use: use{mapped: 999, needed: 200}}
	if w, passed := p.guard(1000).Sample(); passed {
		t.Errorf("%v", w)
	}
}

func TestWhatAWarningSays(t *testing.T) {
	got := Warning{80, 410 * mib, Limit{512 * mib, FromCgroup}}.String()
	want := "memory is over 80% of its limit: 410.0 MiB are needed, the limit is 512.0 MiB (cgroup memory.max); past it the process would be killed: raise the memory limit of its container or unit before that"
	if got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}

func TestLoading(t *testing.T) {
	for _, test := range []struct {
		name        string
		now, left   use
		limit       int64
		collections int
		fits        bool
	}{
		{name: "far below", now: use{100, 50}, limit: 1000, fits: true},
		{name: "garbage only", now: use{960, 200}, left: use{300, 210}, limit: 1000, collections: 1, fits: true},
		{name: "the last figure was old", now: use{960, 200}, left: use{960, 955}, limit: 1000, collections: 1},
		{name: "needed, as is known", now: use{960, 950}, limit: 1000},
		{name: "no limit", now: use{1 << 50, 1 << 50}, fits: true},
	} {
		p := &process{use: test.now, left: test.left}
		err := p.guard(test.limit).Loading(at(), "spend", 300, 1000)
		if (err == nil) != test.fits || p.collections != test.collections {
			t.Errorf("%s: %v, %d collections", test.name, err, p.collections)
		}
	}
}

func TestCollectionsWhileLoadingAreFew(t *testing.T) {
	p := &process{use: use{9500, 100}}
	g := p.guard(10_000)
	for mapped := int64(9500); mapped < 10_000; mapped++ {
		p.use, p.left = use{mapped, 100}, use{mapped, 100}
		if err := g.Loading(at(), "spend", 1, 2); err != nil {
			t.Fatal(err)
		}
	}
	if p.collections != 5 { // one for each percent
		t.Errorf("%d collections", p.collections)
	}
}

func TestWhatLoadingSays(t *testing.T) {
	p := &process{use: use{mapped: 510 * mib, needed: 500 * mib}}
	err := p.guard(512*mib).Loading(at(), "spend", 300_000, 1_000_000)
	var large *TooLargeError
	if !errors.As(err, &large) || large.ExitCode() != 17 {
		t.Fatalf("%v", err)
	}
	want := "spend: branch main, task 0.0, epoch 1841: the state does not fit in memory: at 300000 of the 1000000 rows of state spend the process needs 500.0 MiB, the limit is 512.0 MiB (cgroup memory.max). " +
		"Nothing was changed. To run it, raise the memory limit of its container or unit; a state that the job can do without is dropped by a build without it and `job run --drop STATE`."
	if err.Error() != want {
		t.Errorf("it says\n%s\nwant\n%s", err, want)
	}
}

func TestWhatThisProcessUses(t *testing.T) {
	held := make([]byte, 64*mib)
	for i := range held {
		held[i] = byte(i)
	}
	NewGuard(Limit{}).collect()
	with := measure()
	if with.needed < 64*mib || with.mapped < with.needed-mib {
		t.Errorf("with 64 MiB held: %+v", with)
	}
	if held[77] != 77 {
		t.Fatal("it was not held")
	}
	held = nil
	NewGuard(Limit{}).collect()
	if without := measure(); without.needed > with.needed-60*mib {
		t.Errorf("%+v with 64 MiB, %+v without", with, without)
	}
	if InUse() <= 0 {
		t.Error("nothing in use")
	}
}
