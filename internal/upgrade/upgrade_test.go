package upgrade_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
	"github.com/sluicestream/sluice/internal/upgrade/upgradetest"
	"github.com/sluicestream/sluice/store"
)

// begun is a job of six positions, at which a branch begins, and four more.
func begun(t *testing.T) (w *upgradetest.World, next string) {
	w = upgradetest.New(t, env.Real(), store.NewMemory())
	w.Live(6)
	next = w.Begin("next", epoch.Upgrade, nil)
	w.Live(4)
	return w, next
}

// pairOf are a branch's outputs, and those that were live before it.
func pairOf(t *testing.T, w *upgradetest.World, branch string) upgrade.Pair {
	t.Helper()
	old, err := upgrade.LiveOutputs(t.Context(), w.Job(), epoch.FirstTask, branch)
	if err != nil {
		t.Fatal(err)
	}
	now, err := upgrade.OutputsOf(t.Context(), w.Job(), epoch.FirstTask, branch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := upgrade.NewPair(t.Context(), old, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantResult(t *testing.T, w *upgradetest.World, p upgrade.Pair, sink string, after, to epoch.Position, want compare.Counts) {
	t.Helper()
	r, err := p.Compare(t.Context(), upgradetest.Job, sink, compare.Options{})
	if err != nil {
		t.Fatalf("%s: %v", sink, err)
	}
	if r.After != after || r.To != to || r.Counts != want {
		t.Errorf("%s: positions %d to %d, %+v; want %d to %d, %+v", sink, r.After, r.To, r.Counts, after, to, want)
	}
}

func TestEqualOutputs(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 3, 1, 0)
	p := pairOf(t, w, next)
	if !p.Any || p.After != 6 || p.To() != 9 || p.Missing() != "" {
		t.Errorf("got %+v, missing %q", p, p.Missing())
	}
	wantResult(t, w, p, "log", 6, 9, compare.Counts{Equal: 3})
	wantResult(t, w, p, "totals", 6, 9, compare.Counts{Equal: 3})
}

// TestOtherOutputs: of positions 7 to 9 the branch has another amount at 8.
func TestOtherOutputs(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 3, 1, 1)
	p := pairOf(t, w, next)
	wantResult(t, w, p, "log", 6, 9, compare.Counts{Equal: 2, Changed: 1})
	wantResult(t, w, p, "totals", 6, 9, compare.Counts{Equal: 2, Changed: 1})
}

// TestCoarseStep: what was taken in one step is compared without an order, and the row
// that is left on each side is the same one, changed.
func TestCoarseStep(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 1, 3, 1)
	p := pairOf(t, w, next)
	wantResult(t, w, p, "log", 6, 9, compare.Counts{Equal: 2, Changed: 1})
	wantResult(t, w, p, "totals", 6, 9, compare.Counts{Equal: 2, Changed: 1})
}

// TestOverTheCut: a branch that is live is held against what it has followed, and the
// chain goes over the cut.
func TestOverTheCut(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 3, 1, 0)
	w.Cut(next, epoch.Upgrade)
	w.Live(2)
	p := pairOf(t, w, next)
	if p.After != 6 || p.To() != 10 {
		t.Errorf("positions %d to %d, want 6 to 10", p.After, p.To())
	}
	wantResult(t, w, p, "log", 6, 10, compare.Counts{Equal: 4})

	later := w.Begin("later", epoch.Upgrade, &epoch.Point{Branch: "main", Tasks: map[string]epoch.Epoch{epoch.FirstTask: 9}}) // position 8
	w.Cover(later, 10, 1, 1)
	p = pairOf(t, w, later)
	if p.Old.After != 0 || p.Old.To != 12 {
		t.Errorf("the chain has positions %d to %d, want 0 to 12", p.Old.After, p.Old.To)
	}
	wantResult(t, w, p, "log", 8, 12, compare.Counts{Equal: 2, Changed: 2})
	side := p.Old.Side(t.Context(), "log", 9, 11)
	var ends []epoch.Position
	for s, err := range side.Steps {
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, s.To)
	}
	if !slices.Equal(ends, []epoch.Position{10, 11}) {
		t.Errorf("the steps behind 9 up to 11 end at %v", ends)
	}
}

// TestCleanedAway: what clean-up has removed is told. Position p is epoch p+1 of main,
// and of three kept epochs the oldest has position 8.
func TestCleanedAway(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 3, 1, 0)
	w.Clean(3)
	p := pairOf(t, w, next)
	if !p.Any || p.After != 7 || !strings.Contains(p.Missing(), "positions up to 7: the epochs of branch main before 9 were cleaned away") {
		t.Errorf("from %d, missing %q", p.After, p.Missing())
	}
	wantResult(t, w, p, "log", 7, 9, compare.Counts{Equal: 2})
}

// TestNothingInCommon: the branch took in one step what is kept of the other only half.
func TestNothingInCommon(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 1, 3, 0)
	w.Clean(3)
	if p := pairOf(t, w, next); p.Any {
		t.Errorf("compared from %d to %d", p.After, p.To())
	}
	w.Live(2)
	w.Cover(next, 2, 1, 0)
	p := pairOf(t, w, next)
	wantResult(t, w, p, "log", 9, 11, compare.Counts{Equal: 2})
	if got := p.Missing(); !strings.Contains(got, "positions 7 to 9: the epochs of branch main before 9 were cleaned away") {
		t.Errorf("missing %q", got)
	}
}

// TestOvertaken: what clean-up removes while it is to be read is no damage, and what is
// gone without clean-up is.
func TestOvertaken(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 4, 1, 0)
	p := pairOf(t, w, next)
	w.Clean(1)
	_, err := p.Compare(t.Context(), upgradetest.Job, "log", compare.Options{})
	if passed, perr := p.Overtaken(t.Context(), err); err == nil || !passed || perr != nil {
		t.Errorf("after a clean-up: %v, overtaken %v, %v", err, passed, perr)
	}
	w.Live(2)
	w.Cover(next, 2, 1, 1)
	p = pairOf(t, w, next)
	head, err := w.Job().Head(t.Context(), next, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Job().Store().Delete(t.Context(), w.Job().Object(head.Manifest.Sinks["log"].Outbox[0].Path)); err != nil {
		t.Fatal(err)
	}
	_, err = p.Compare(t.Context(), upgradetest.Job, "log", compare.Options{})
	if passed, perr := p.Overtaken(t.Context(), err); err == nil || passed || perr != nil {
		t.Errorf("after a loss: %v, overtaken %v, %v", err, passed, perr)
	}
}

func TestStand(t *testing.T) {
	records := []epoch.LiveRecord{{N: 0, Branch: "main"}, {N: 1, Branch: "next"}}
	for _, c := range []struct {
		branch  string
		records []epoch.LiveRecord
		sealed  bool
		want    upgrade.Standing
		was     []epoch.Generation
	}{
		{"main", nil, false, upgrade.Live, nil},
		{"main", records, true, upgrade.Ended, []epoch.Generation{0}},
		{"main", records[:1], true, upgrade.Sealed, []epoch.Generation{0}},
		{"next", records[:1], false, upgrade.Follows, nil},
		{"next", records, false, upgrade.Live, []epoch.Generation{1}},
		{"next", records, true, upgrade.Sealed, []epoch.Generation{1}},
		{"other", records, true, upgrade.GivenUp, nil},
		{"other", nil, false, upgrade.Follows, nil},
	} {
		got, was := upgrade.Stand(c.branch, c.records, c.sealed)
		if got != c.want || !slices.Equal(was, c.was) {
			t.Errorf("%s, %d records, sealed %v: %s %v, want %s %v", c.branch, len(c.records), c.sealed, got, was, c.want, c.was)
		}
	}
}

func TestLook(t *testing.T) {
	w, next := begun(t)
	w.Cover(next, 3, 1, 0)
	dropped := w.Begin("dropped", epoch.Upgrade, nil)
	if err := w.Job().GiveUp(t.Context(), dropped, epoch.ThisProcess(), "a test"); err != nil {
		t.Fatal(err)
	}
	bs, err := upgrade.Look(t.Context(), w.Job(), epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range bs.All {
		got = append(got, b.Name+" "+string(b.Standing))
	}
	if want := []string{"main live", next + " follower", dropped + " given up"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	follower, _ := bs.Named(next)
	if behind, ok := bs.Behind(follower); !ok || behind != 1 || bs.Position != 10 {
		t.Errorf("behind by %d, %v; the live branch stands at %d", behind, ok, bs.Position)
	}
	if main, _ := bs.Named("main"); !main.Owned() {
		t.Error("main is this process's")
	}
	w.Beat(next, epoch.Heartbeat{Released: true})
	if bs, err = upgrade.Look(t.Context(), w.Job(), epoch.FirstTask); err != nil {
		t.Fatal(err)
	}
	if follower, _ = bs.Named(next); follower.Owned() {
		t.Error("the follower's owner has let go")
	}
}

// TestOnlyPinned: a branch of which there is nothing but a pin is seen, can be given up,
// and holds nothing then.
func TestOnlyPinned(t *testing.T) {
	w, next := begun(t)
	job := w.Job()
	at := epoch.Point{Branch: epoch.MainBranch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: 1}}
	if err := job.PutPin(t.Context(), "upgrade-lost-1", at, "a test"); err != nil {
		t.Fatal(err)
	}
	lost := func() upgrade.Branch {
		t.Helper()
		bs, err := upgrade.Look(t.Context(), job, epoch.FirstTask)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := bs.Named("upgrade-lost")
		if _, also := bs.Named(next); !ok || !also {
			t.Fatalf("the branches are %+v", bs.All)
		}
		return b
	}
	if b := lost(); b.Standing != upgrade.Follows || b.Begun || b.LastSign() != b.Pinned || b.Pinned == 0 {
		t.Errorf("pinned, it is %+v", b)
	}
	if err := job.GiveUp(t.Context(), "upgrade-lost", epoch.ThisProcess(), "a test"); err != nil {
		t.Fatal(err)
	}
	if b := lost(); b.Standing != upgrade.GivenUp || b.Pinned != 0 {
		t.Errorf("given up, it is %+v", b)
	}
	if pins, err := job.Pins(t.Context()); err != nil || len(pins) != 0 {
		t.Errorf("pins %v (%v) are left", pins, err)
	}
}

func TestGoBack(t *testing.T) {
	w, next := begun(t)
	keeps := epoch.Retention{Micros: 60e6, Epochs: 3}
	goBack := func(keeps epoch.Retention) (upgrade.GoingBack, bool) {
		t.Helper()
		bs, err := upgrade.Look(t.Context(), w.Job(), epoch.FirstTask)
		if err != nil {
			t.Fatal(err)
		}
		g, ok, err := upgrade.GoBack(t.Context(), w.Job(), bs, keeps)
		if err != nil {
			t.Fatal(err)
		}
		return g, ok
	}
	if _, ok := goBack(keeps); ok {
		t.Error("there is nothing to go back to")
	}
	w.Cover(next, 3, 1, 0)
	w.Cut(next, epoch.Upgrade)
	g, ok := goBack(keeps)
	if !ok || g.Branch != "main" || g.Final.Position != 10 || !g.Kept || !g.Timetable || g.Until != 0 {
		t.Errorf("at the cut: %+v", g)
	}
	w.Live(1)
	head, err := w.Job().Head(t.Context(), next, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	if g, _ = goBack(keeps); g.Until != head.Manifest.Time+60e6 || g.Epochs != 3 || !g.Timetable {
		t.Errorf("behind the cut: %+v", g)
	}
	if g, _ = goBack(epoch.Retention{}); g.Until != 0 || !g.Timetable {
		t.Errorf("where all is kept: %+v", g)
	}
	w.Live(6)
	w.Clean(1)
	if g, _ = goBack(keeps); !g.Kept || g.Timetable || g.Until != 0 {
		t.Errorf("after a clean-up: %+v", g)
	}
}
