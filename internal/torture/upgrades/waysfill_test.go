package upgrades

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// since are the inputs that an epoch has not read.
func (w *way) since(m epoch.Manifest) []placed {
	_, since := w.split(m)
	return since
}

// otherSinks is what a build is made of whose sinks the first does not have.
func otherSinks(version int64) build {
	return build{version: version, tables: []string{"totals2"}, rows: []string{"lines2"}}
}

// TestBackfill fills two sinks before the cut, while inputs come and while none do, and
// the next build goes on with them.
func TestBackfill(t *testing.T) {
	w := newWay(t, "totals2", "lines", "lines2")
	old := w.run("the old build", first(w, build{version: 1, rows: []string{"lines"}}), sluice.Options{})
	w.feedEpochs(3, nil)
	u := w.upgrade("the new build", second(w, otherSinks(2)), sluice.Options{}, sluice.Upgrade{Backfill: true})
	branch := u.caughtUp().Branch
	w.awaitTable("totals2", recount(w.fed, nil)) // of keys that nothing has touched since
	base := w.base(branch)
	for range 5 {
		w.feed(7)
		w.awaitTable("totals2", recount(w.fed, nil))
	}
	w.await("lines2 has the lines since the base", func() bool { return len(w.cluster.Read(t, "lines2")) == len(w.since(base)) }, nil)
	if w.live().N != 0 {
		t.Fatal("it has cut over")
	}
	w.cut(branch)
	live := w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	for _, sink := range []string{"totals2", "lines2"} {
		if live.Sinks[sink].Start != epoch.StartBase {
			t.Errorf("the live record says of sink %s: %+v", sink, live.Sinks[sink])
		}
	}
	w.feed(30)
	w.awaitTable("totals2", recount(w.fed, nil))
	next := w.upgrade("the next build", third(w, otherSinks(3)), sluice.Options{Drop: []string{"totals.Since2"}}, sluice.Upgrade{Auto: true})
	w.feed(30)
	w.awaitLive(2, epoch.Upgrade)
	u.endsWith(12)
	w.feedAll()
	w.awaitTable("totals2", recount(w.fed, nil))
	next.stops()
	w.checkRows("lines2", w.since(base))
	before, _ := w.cuts(epoch.MainBranch)
	w.checkRows("lines", before)
	for name, s := range w.head(w.live().Branch).Manifest.Sinks {
		if s.Fill != nil {
			t.Errorf("sink %s is told to be filled still: %+v", name, s.Fill)
		}
	}
}

// TestBackfillFromEarliest fills new sinks with all that there ever was, of epochs that
// are not kept any more as well.
func TestBackfillFromEarliest(t *testing.T) {
	w := newWay(t, "totals2", "lines2")
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(8, nil)
	w.cleanUp(3)
	b := otherSinks(2)
	b.meaning, b.weigh = 2, tenfold
	u := w.upgrade("the new build", first(w, b), sluice.Options{}, sluice.Upgrade{Backfill: true, From: "earliest"})
	w.awaitTable("totals2", recount(w.fed, tenfold))
	if w.live().N != 0 {
		t.Fatal("it has cut over")
	}
	w.cut(u.caughtUp().Branch)
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals2", recount(w.fed, tenfold))
	u.stops()
	w.checkRows("lines2", w.fed)
}

// TestBackfillKilled kills the process that fills again and again, and the one that is
// live by then; half of what it has filled is left, and gone on with.
func TestBackfillKilled(t *testing.T) {
	w := newWay(t, "totals2", "lines2")
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(3, nil)
	b := otherSinks(2)
	last := 0 // the epoch at which the process before was killed
	for n := range 12 {
		last += 1 + w.rng.IntN(4)
		u := w.upgrade("the new build", second(w, b), sluice.Options{}, sluice.Upgrade{Backfill: true, Auto: n >= 6})
		u.diesAt.Store(fmt.Sprintf("/%020d.json", last))
		w.await(fmt.Sprintf("it makes epoch %d", last), func() bool {
			w.feed(1)
			return u.cutOff.Load()
		}, nil)
		u.kill()
	}
	u := w.upgrade("the new build", second(w, b), sluice.Options{}, sluice.Upgrade{Backfill: true, Auto: true})
	base := w.base(w.awaitLive(1, epoch.Upgrade).Branch)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals2", recount(w.fed, nil))
	u.stops()
	w.checkRows("lines2", w.since(base))
}

// TestBackfillGivenUp begins to fill anew with another build, where a branch that was
// given up has left half of it.
func TestBackfillGivenUp(t *testing.T) {
	w := newWay(t, "totals2", "lines2")
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(3, nil)
	u := w.upgrade("the build that is given up", second(w, otherSinks(2)), sluice.Options{}, sluice.Upgrade{Backfill: true})
	branch := u.caughtUp().Branch
	w.feed(30)
	w.awaitTable("totals2", recount(w.fed, nil))

	u.kill() // nobody is at work on it, and it may go on
	w.leaseOver(w.head(branch).Manifest)
	early := w.upgrade("another build, while that goes on", third(w, otherSinks(3)), sluice.Options{}, sluice.Upgrade{Backfill: true, Auto: true})
	early.endsWith(13, "branch drop", branch)
	names, err := w.log().Branches(t.Context())
	if err != nil || len(names) != 3 {
		t.Fatalf("branches: %v, %v", names, err)
	}
	for _, name := range names {
		if name == epoch.MainBranch {
			continue
		}
		if err := w.log().GiveUp(t.Context(), name, epoch.ThisProcess(), "a test"); err != nil {
			t.Fatal(err)
		}
	}
	next := w.upgrade("another build", third(w, otherSinks(3)), sluice.Options{}, sluice.Upgrade{Backfill: true, Auto: true})
	w.feed(30)
	live := w.awaitLive(1, epoch.Upgrade)
	base := w.base(live.Branch)
	old.endsWith(12)
	if at, err := w.log().Manifest(t.Context(), live.Branch, epoch.FirstTask, live.Covers[epoch.FirstTask]); err != nil || at.Sinks["totals2"].Rewrite != nil {
		t.Errorf("it has cut over before the table was filled: %+v, %v", at.Sinks["totals2"].Rewrite, err)
	}
	w.feedAll()
	w.awaitTable("totals2", recount(w.fed, nil))
	next.stops()
	w.checkRows("lines2", w.since(base))
	if got := w.versions("totals2"); !maps.Equal(got, map[int64]int{3: wayKeys}) {
		t.Errorf("rows by version: %v", got)
	}
}

// leaseOver waits until nobody takes a branch's process for one at work, which was killed
// with that epoch as its newest.
func (w *way) leaseOver(newest epoch.Manifest) {
	w.t.Helper()
	w.await("the lease is over", func() bool { return w.log().Now()-newest.Time > 3*wayLease.Microseconds() }, nil)
}

// TestBackfillNeedsAnEmptySink: what fills a sink can't be told from what others have
// put there.
func TestBackfillNeedsAnEmptySink(t *testing.T) {
	w := newWay(t, "totals2", "lines2")
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(1, nil)
	if err := w.cluster.Client.ProduceSync(t.Context(), &kgo.Record{Topic: "lines2", Value: []byte("{}")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	u := w.upgrade("the new build", second(w, otherSinks(2)), sluice.Options{}, sluice.Upgrade{Backfill: true, Auto: true})
	u.endsWith(13, "lines2", "empty")
	if names, err := w.log().Branches(t.Context()); err != nil || !slices.Equal(names, []string{epoch.MainBranch}) {
		t.Errorf("branches: %v, %v", names, err)
	}
	old.goesOn()
	w.feedEpochs(1, nil)
}
