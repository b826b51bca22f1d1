package upgrades

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// otherwise counts one key otherwise.
func otherwise(i input) int64 {
	if i.Key == odd {
		return i.Amount + 1
	}
	return i.Amount
}

// savepoint names the live branch's newest epoch.
func (w *way) savepoint(name string) {
	w.t.Helper()
	at := w.head(w.live().Branch).Manifest
	if _, err := w.log().PutSavepoint(w.t.Context(), name, epoch.Point{Branch: at.Branch, Tasks: map[string]epoch.Epoch{at.Task: at.Epoch}}, "a test"); err != nil {
		w.t.Fatal(err)
	}
}

// compared begins a job, and a savepoint behind which there are inputs of each key.
func compared(t *testing.T, b build, sinks ...string) (w *way, old *process) {
	t.Helper()
	w = newWay(t, sinks...)
	old = w.run("the old build", first(w, b), sluice.Options{})
	w.feedEpochs(1, nil)
	w.savepoint("before")
	w.feedAll()
	w.feedEpochs(2, nil)
	return w, old
}

// TestRehearsal compares, and delivers nothing.
func TestRehearsal(t *testing.T) {
	for name, weigh := range map[string]func(input) int64{"equal": nil, "different": otherwise} {
		t.Run(name, func(t *testing.T) {
			w, old := compared(t, build{version: 1, rows: []string{"rows"}}, "rows")
			since := w.fed[10:] // behind the savepoint
			u := w.upgrade("the rehearsal", second(w, build{version: 2, weigh: weigh, rows: []string{"rows"}}), sluice.Options{Epoch: time.Hour},
				sluice.Upgrade{From: "before", Rehearse: true, Columns: ownColumns("totals")})
			if err := u.ends(); err != nil {
				t.Fatal(err)
			}
			told := *u.last.Load()
			if told.Stage != "rehearsed" {
				t.Errorf("it has ended at the stage %q", told.Stage)
			}
			differ := 0
			if weigh != nil {
				differ = len(slices.DeleteFunc(slices.Clone(since), func(i placed) bool { return i.Key != odd }))
			}
			// All is covered in one step, so that a row of the table is a key.
			checkCompared(t, told, "totals", wayKeys, min(differ, 1))
			checkCompared(t, told, "rows", len(since), differ)
			if !w.head(told.Branch).Sealed() || w.live().N != 0 {
				t.Errorf("the branch is not given up, or live: %+v", w.live())
			}
			old.goesOn()
			w.feedEpochs(2, nil)
			if got := w.versions("totals"); got[1] != wayKeys {
				t.Errorf("rows by version: %v", got)
			}
			w.checkRows("rows", w.fed)
			old.stops()
		})
	}
}

// checkCompared holds what was compared for a sink against what there is, and how many of
// the rows differ.
func checkCompared(t *testing.T, told sluice.UpgradeProgress, sink string, all, differ int) {
	t.Helper()
	got := sinkOf(told, sink)
	if got.NotCompared != 0 || len(got.Reasons) > 0 || got.Equal != int64(all-differ) || got.Changed+max(got.OnlyOld, got.OnlyNew) != int64(differ) || got.OnlyOld != got.OnlyNew {
		t.Errorf("sink %s: %+v, want %d rows of which %d differ", sink, got, all, differ)
	}
}

// TestGuards keeps builds from going live by what guards say.
func TestGuards(t *testing.T) {
	share := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		weigh   func(input) int64
		upgrade sluice.Upgrade
		says    string // why it does not go live; empty: it does
	}{
		"all are equal":           {nil, sluice.Upgrade{RequireEqual: true}, ""},
		"all are to be equal":     {otherwise, sluice.Upgrade{RequireEqual: true}, "sink totals: expected equal rows"},
		"few differ":              {otherwise, sluice.Upgrade{MaxChanged: share(0.5)}, ""},
		"more differ than may":    {otherwise, sluice.Upgrade{MaxChanged: share(0.01)}, "sink totals: expected at most 1%"},
		"none may differ":         {otherwise, sluice.Upgrade{MaxChanged: share(0)}, "sink totals: expected at most 0%"},
		"what differs is ignored": {otherwise, sluice.Upgrade{RequireEqual: true, Columns: map[string]map[string]sluice.ColumnRule{"totals": {"Sum": {Ignore: true}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, old := compared(t, build{version: 1})
			c.upgrade.Auto, c.upgrade.From = true, "before"
			columns := ownColumns("totals")
			for column, rule := range c.upgrade.Columns["totals"] {
				columns["totals"][column] = rule
			}
			c.upgrade.Columns = columns
			u := w.upgrade("the new build", second(w, build{version: 2, weigh: c.weigh}), sluice.Options{}, c.upgrade)
			if c.says == "" {
				w.awaitLive(1, epoch.Upgrade)
				old.endsWith(12)
				u.stops()
				return
			}
			objects := func(p sluice.UpgradeProgress) bool {
				return len(p.Objections) > 0 && strings.Contains(p.Objections[0], c.says)
			}
			told := u.awaits("objects", objects)
			w.cut(told.Branch) // a person's word is no other than --auto
			at := told.Position
			w.feedEpochs(2, nil)
			u.awaits("objects still", func(p sluice.UpgradeProgress) bool { return objects(p) && p.Position > at })
			w.awaitObjections(told.Branch, 1, c.says)
			if n := w.live().N; n != 0 {
				t.Errorf("generation %d is live", n)
			}
			u.stops()
			old.stops()
		})
	}
}

// awaitObjections waits until the store tells of so many objections of a branch, which
// say this.
func (w *way) awaitObjections(branch string, n int, says ...string) {
	w.t.Helper()
	w.await("the store tells of objections", func() bool {
		beat, ok, err := w.log().Heartbeat(w.t.Context(), branch, epoch.FirstTask)
		if err != nil || !ok || len(beat.Objections) != n {
			return false
		}
		all := strings.Join(beat.Objections, "; ")
		return !slices.ContainsFunc(says, func(text string) bool { return !strings.Contains(all, text) })
	}, nil)
}

// TestCheck asks a function, until that agrees.
func TestCheck(t *testing.T) {
	w, old := compared(t, build{version: 1})
	var agrees atomic.Bool
	var asked atomic.Pointer[sluice.UpgradeProgress]
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{
		Auto: true, From: "before", Columns: ownColumns("totals"),
		Check: func(_ context.Context, p sluice.UpgradeProgress) error {
			asked.Store(&p)
			if !agrees.Load() {
				return errors.New("not on a Friday")
			}
			return nil
		},
	})
	told := u.awaits("objects", func(p sluice.UpgradeProgress) bool { return slices.Equal(p.Objections, []string{"not on a Friday"}) })
	w.awaitObjections(told.Branch, 1, "not on a Friday")
	old.goesOn()
	if got := sinkOf(*asked.Load(), "totals"); got.Equal < wayKeys || got.Changed+got.OnlyOld+got.OnlyNew+got.NotCompared != 0 {
		t.Errorf("the check was told of %+v", got)
	}
	agrees.Store(true)
	w.awaitLive(1, epoch.Upgrade)
	w.awaitObjections(told.Branch, 0)
	old.endsWith(12)
	u.stops()
}

// TestSoak waits, unless a person has the cut made.
func TestSoak(t *testing.T) {
	w, old := compared(t, build{version: 1})
	word := make(chan struct{}, 1)
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true, Soak: time.Hour, CutOver: word})
	at := u.caughtUp().Position
	w.feedEpochs(3, nil)
	u.awaits("follows on", func(p sluice.UpgradeProgress) bool { return p.Stage == "caught up" && p.Position > at })
	if n := w.live().N; n != 0 {
		t.Errorf("generation %d is live", n)
	}
	word <- struct{}{}
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	u.stops()

	third := w.upgrade("the third build", third(w, build{version: 3}), sluice.Options{Drop: []string{"totals.Since2"}}, sluice.Upgrade{Auto: true, Soak: time.Millisecond})
	w.awaitLive(2, epoch.Upgrade)
	third.stops()
}

// TestDrop gives a branch up on which a process follows.
func TestDrop(t *testing.T) {
	w, old := compared(t, build{version: 1})
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	branch := u.caughtUp().Branch
	if err := w.log().GiveUp(t.Context(), branch, epoch.ThisProcess(), "a test"); err != nil {
		t.Fatal(err)
	}
	u.endsWith(12, branch, "given up by a test")
	w.feedEpochs(2, nil)
	old.goesOn()
	var live *epoch.LiveBranchError
	if err := w.log().GiveUp(t.Context(), epoch.MainBranch, epoch.ThisProcess(), "a test"); !errors.As(err, &live) {
		t.Errorf("giving the live branch up: %v", err)
	}
	old.stops()
}

// TestAbandoned has the live branch's owner give up what nobody follows on.
func TestAbandoned(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{AbandonAfter: 3 * time.Second, KeepEpochs: 4})
	w.feedEpochs(1, nil)
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	branch := u.caughtUp().Branch
	u.kill()
	w.await("the branch is given up", func() bool {
		w.feed(1)
		return w.head(branch).Sealed()
	}, nil)
	if by := w.head(branch).Seal.By; !strings.Contains(by, "nobody has followed") {
		t.Errorf("it was given up by %q", by)
	}
	w.awaitTable("totals", recount(w.fed, nil))
	again := w.upgrade("the new build again", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	if record := w.awaitLive(1, epoch.Upgrade); record.Branch == branch {
		t.Errorf("branch %s is live although it was given up", branch)
	}
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	again.stops()
}

// TestOtherUpgrade: the second build that is to upgrade is told about the first, or takes
// its place.
func TestOtherUpgrade(t *testing.T) {
	w, old := compared(t, build{version: 1})
	one := w.upgrade("one build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	branch := one.caughtUp().Branch
	w.upgrade("another build", third(w, build{version: 3}), sluice.Options{}, sluice.Upgrade{Auto: true}).endsWith(13, branch, "--over")
	if names, err := w.log().Branches(t.Context()); err != nil || len(names) != 2 {
		t.Errorf("branches: %v, %v", names, err)
	}
	one.goesOn()
	old.goesOn()
	another := w.upgrade("another build, over the one", third(w, build{version: 3}), sluice.Options{}, sluice.Upgrade{Auto: true, Over: true})
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	if one.ends(); !w.head(branch).Sealed() {
		t.Error("the one build's branch was not given up")
	}
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	another.stops()
}
