package upgrades

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// awaitFollower waits for a branch of a kind that has covered all there is, and returns
// its name.
func (w *way) awaitFollower(kind epoch.BranchKind) (branch string) {
	w.t.Helper()
	w.await(fmt.Sprintf("a branch of kind %s follows", kind), func() bool {
		names, err := w.log().Branches(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		at := w.head(w.live().Branch).Manifest.Position
		for _, name := range names {
			file, err := w.log().BranchFile(w.t.Context(), name)
			if errors.Is(err, store.ErrNotFound) || err == nil && file.Kind != kind || name == w.live().Branch {
				continue
			}
			head, err := w.log().Head(w.t.Context(), name, epoch.FirstTask)
			if err == nil && !head.Sealed() && head.Manifest.Covers[epoch.FirstTask] == at {
				branch = name
				return true
			}
		}
		return false
	}, nil)
	return branch
}

// isLive tells whether a process has gone live, as it says.
func (p *process) isLive() bool { return strings.Contains(p.said(), "msg=live ") }

// TestHotStandby lets the owner of a job be cut off from its store, and then the one that
// has stood in for it.
func TestHotStandby(t *testing.T) {
	w := newWay(t)
	b := build{version: 1}
	old := w.run("the owner", first(w, b), sluice.Options{})
	w.feedEpochs(2, nil)
	standbys := []*process{
		w.run("a standby", first(w, b), sluice.Options{Standby: true}),
		w.run("another standby", first(w, b), sluice.Options{Standby: true}),
	}
	branch := w.awaitFollower(epoch.Failover)
	w.feedEpochs(2, nil)
	w.feed(20)
	old.kill()
	w.feed(20)
	if record := w.awaitLive(1, epoch.Failover); record.Branch != branch {
		t.Errorf("branch %s is live, want %s", record.Branch, branch)
	}
	w.awaitTable("totals", recount(w.fed, nil))
	w.await("a standby says that it is live", func() bool { return standbys[0].isLive() || standbys[1].isLive() }, nil)
	if standbys[1].isLive() {
		standbys[0], standbys[1] = standbys[1], standbys[0]
	}
	if standbys[1].isLive() {
		t.Fatal("both standbys are live")
	}
	standbys[1].goesOn()
	w.feed(20)
	standbys[0].kill()
	w.feed(20)
	w.awaitTable("totals", recount(w.fed, nil))
	standbys[1].stops()
}

// TestResumeByItself lets an upgrade die between the seal and the live record: the old
// build goes on behind its end after a while, and the upgrade succeeds another time.
func TestResumeByItself(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{ResumeAfter: time.Second})
	w.feedEpochs(2, nil)
	w.diesBeforeLive()
	w.feed(20)
	w.awaitLive(1, epoch.Resume)
	old.goesOn()
	w.awaitTable("totals", recount(w.fed, nil))
	u := w.upgrade("the new build again", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(2, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	u.stops()
}

// diesBeforeLive upgrades to a build that seals the live branch, and is cut off where it
// would be live.
func (w *way) diesBeforeLive() {
	w.t.Helper()
	sealed := w.live().Branch
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	branch := u.caughtUp().Branch
	u.diesAt.Store("/live/1.json")
	w.feed(20)
	w.cut(branch)
	if u.ends() == nil {
		w.t.Error("it has ended well")
	}
	if !w.head(sealed).Sealed() {
		w.t.Fatal("the live branch is not sealed")
	}
}

// TestForwardAgain upgrades, goes back, and upgrades to the same build once more: by a
// person's word alone, and from where the older build has come to.
func TestForwardAgain(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feed(20)
	old = w.rollback("the old build again", first(w, build{version: 1}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(2, epoch.Rollback)
	u.endsWith(12)
	repeated := w.upgrade("the new build, by a supervisor", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	repeated.endsWith(12, "`upgrade --again`")
	w.feed(20)
	u = w.upgrade("the new build, by a person", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true, Again: true})
	record := w.awaitLive(3, epoch.Upgrade)
	old.endsWith(12)
	if base := w.branchFile(record.Branch).Base; base.Branch != record.Ends.Branch {
		t.Errorf("it began at branch %s, want %s", base.Branch, record.Ends.Branch)
	}
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	if got := w.versions("totals"); got[2] != wayKeys {
		t.Errorf("rows by version: %v", got)
	}
	u.stops()
	u = w.run("the new build, started again", second(w, build{version: 2}), sluice.Options{})
	w.feed(20)
	w.awaitTable("totals", recount(w.fed, nil))
	u.stops()
}

// TestResume has a person let the old build go on at once.
func TestResume(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{ResumeAfter: time.Hour})
	w.feedEpochs(2, nil)
	early := w.run("resumed too early", first(w, build{version: 1}), sluice.Options{Resume: true})
	early.endsWith(13, "the live branch goes on")
	w.diesBeforeLive()
	w.feed(20)
	resumed := w.run("the old build, resumed", first(w, build{version: 1}), sluice.Options{Resume: true, ResumeAfter: time.Hour})
	w.awaitLive(1, epoch.Resume)
	w.awaitTable("totals", recount(w.fed, nil))
	resumed.goesOn()
	old.goesOn() // it stands by
	resumed.kill()
	w.feed(20)
	w.awaitTable("totals", recount(w.fed, nil))
	old.stops()
}

// TestFollowAfterCut goes back to a build whose process has followed on.
func TestFollowAfterCut(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{FollowAfterCut: true})
	w.feedEpochs(2, nil)
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(1, epoch.Upgrade)
	w.feed(30)
	w.awaitTable("totals", recount(w.fed, nil))
	w.cut(w.awaitFollower(epoch.Rollback))
	w.awaitLive(2, epoch.Rollback)
	u.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	if got := w.versions("totals"); got[1] != wayKeys {
		t.Errorf("rows by version: %v", got)
	}
	old.stops()
}

// TestWaitSuperseded has a process stay that was replaced, as long as it is let.
func TestWaitSuperseded(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{WaitSuperseded: true})
	w.feedEpochs(1, nil)
	u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(1, epoch.Upgrade)
	w.await("the old build says that it was replaced", func() bool { return strings.Contains(old.said(), "this build was replaced") }, nil)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	old.goesOn()
	old.stop()
	old.endsWith(12, "superseded")
	u.stops()
}

// cuts splits what was fed where a branch has ended.
func (w *way) cuts(ended string) (before, since []placed) {
	w.t.Helper()
	return w.split(w.head(ended).Manifest)
}

// split are the inputs that an epoch has read, and those that it has not.
func (w *way) split(m epoch.Manifest) (before, since []placed) {
	parts := m.Sources["inputs"].Partitions
	for _, i := range w.fed {
		if i.offset < parts[fmt.Sprintf("inputs/%d", i.partition)].Next {
			before = append(before, i)
		} else {
			since = append(since, i)
		}
	}
	return before, since
}

// TestSinksOfBuilds has sinks that only some builds have: a new one begins at the cut, one
// that goes gets all that came before it, and one that is back leaves out what came
// between.
func TestSinksOfBuilds(t *testing.T) {
	w := newWay(t, "rows", "more")
	old := w.run("the first build", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{})
	w.feedEpochs(3, nil)
	u := w.upgrade("the second build", second(w, build{version: 2, rows: []string{"more"}}), sluice.Options{}, sluice.Upgrade{Auto: true})
	for range 5 {
		w.feed(9)
	}
	record := w.awaitLive(1, epoch.Upgrade)
	if record.Sinks["rows"].Dropped != epoch.ToDrain {
		t.Errorf("what becomes of the sinks: %+v", record.Sinks)
	}
	old.endsWith(12)
	if drained, err := w.log().Drained(t.Context(), 1, epoch.FirstTask, "rows"); err != nil || !drained {
		t.Errorf("the old build has not noted that it has delivered the rest (%v)", err)
	}
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	before, since := w.cuts(record.Ends.Branch)
	w.checkRows("rows", before)
	w.awaitRows("more", since)

	// Without consent it is refused, and ends nothing; a rollback before it begins a branch.
	one := record
	branches, err := w.log().Branches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.rollback("the first build again", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{}, sluice.Upgrade{Auto: true, Soak: time.Hour}).endsWith(13, "rows", "--gap rows")
	if now, err := w.log().Branches(t.Context()); err != nil || !slices.Equal(now, branches) {
		t.Errorf("the refused rollback leaves the branches %v (%v), want %v", now, err, branches)
	}
	back := func() *sluice.Job { return second(w, build{version: 3, rows: []string{"rows", "more"}}) }
	w.upgrade("the third build as it is", back(), sluice.Options{}, sluice.Upgrade{Auto: true}).endsWith(13, "rows", "--gap rows")
	if w.live().N != 1 || w.head(record.Branch).Sealed() {
		t.Error("the refused build has ended the live branch")
	}
	third := w.upgrade("the third build", back(), sluice.Options{Gap: []string{"rows"}}, sluice.Upgrade{Auto: true})
	for range 5 {
		w.feed(9)
	}
	record = w.awaitLive(2, epoch.Upgrade)
	u.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	_, since = w.cuts(one.Ends.Branch) // there are more since
	_, after := w.cuts(record.Ends.Branch)
	w.awaitRows("rows", append(before, after...))
	w.awaitRows("more", since)
	third.stops()
}

// awaitRows waits until a topic has as many rows as there are inputs, and holds them
// against these.
func (w *way) awaitRows(topic string, want []placed) {
	w.t.Helper()
	w.await("the rows of "+topic, func() bool { return len(w.cluster.Read(w.t, topic)) >= len(want) }, nil)
	w.checkRows(topic, want)
}

// TestDropDeliveries gives up what a sink is owed whose build is gone.
func TestDropDeliveries(t *testing.T) {
	w := newWay(t, "rows")
	old := w.run("the first build", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{})
	w.feedEpochs(2, nil)
	old.kill()
	u := w.upgrade("the second build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true, DropDeliveries: []string{"rows"}})
	record := w.awaitLive(1, epoch.Upgrade)
	if record.Sinks["rows"].Dropped != epoch.Consented {
		t.Errorf("what becomes of the sinks: %+v", record.Sinks)
	}
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	if drained, err := w.log().Drained(t.Context(), 1, epoch.FirstTask, "rows"); err != nil || drained {
		t.Errorf("it is noted that the rest was delivered (%v)", err)
	}
	if ended := w.ended("rows"); !ended.GivenUp && ended.Pending > 0 {
		t.Errorf("the sink has ended so: %+v", ended)
	}
	u.stops()
}

// TestTwoUpgrades lets two builds follow at once: one goes live, the other follows that,
// and takes its place later.
func TestTwoUpgrades(t *testing.T) {
	w := newWay(t)
	old := w.run("the first build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	w.upgradesMeet()
	a := w.upgrade("the second build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	b := w.upgrade("the third build", third(w, build{version: 3}), sluice.Options{}, sluice.Upgrade{})
	w.feed(20)
	branchA, branchB := a.caughtUp().Branch, b.caughtUp().Branch
	w.cut(branchA)
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	b.awaits("follows the second build", func(p sluice.UpgradeProgress) bool { return p.Followed == branchA && p.Stage == "caught up" })
	w.cut(branchB)
	if record := w.awaitLive(2, epoch.Upgrade); record.Branch != branchB || record.Ends.Branch != branchA {
		t.Errorf("live is %+v", record)
	}
	a.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	if got := w.versions("totals"); got[3] != wayKeys {
		t.Errorf("rows by version: %v", got)
	}
	b.stops()
}

// TestUpgradesRace has two builds go live by themselves, one after the other: each has a
// sink of its own, which gets what came while it was live.
func TestUpgradesRace(t *testing.T) {
	w := newWay(t, "rows", "more")
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	sinks := []string{"rows", "more"}
	w.upgradesMeet()
	var racers []*process
	for n, sink := range sinks {
		b := build{version: int64(2 + n), rows: []string{sink}}
		racers = append(racers, w.upgrade("the build with "+sink, first(w, b), sluice.Options{}, sluice.Upgrade{Auto: true}))
	}
	old.endsWith(12)
	w.awaitLive(2, epoch.Upgrade)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	winner := 0 // the last one
	if w.versions("totals")[3] == wayKeys {
		winner = 1
	}
	if got := w.versions("totals"); got[int64(2+winner)] != wayKeys {
		t.Errorf("rows by version: %v", got)
	}
	racers[1-winner].endsWith(12)
	records, err := w.log().LiveRecords(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := w.cuts(records[1].Ends.Branch)
	until, since := w.cuts(records[2].Ends.Branch)
	w.awaitRows(sinks[1-winner], slices.DeleteFunc(until, func(i placed) bool { return slices.Contains(before, i) }))
	w.awaitRows(sinks[winner], since)
	racers[winner].stops()
}

// TestUpgradeTwice starts one upgrade twice: the second waits for the first, and goes on
// where that is cut off.
func TestUpgradeTwice(t *testing.T) {
	w := newWay(t)
	old := w.run("the first build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	a := w.upgrade("the second build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	branch := a.caughtUp().Branch
	b := w.upgrade("the second build again", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{})
	w.await("the second one has found the branch", func() bool { return strings.Contains(b.said(), "found=true") }, nil)
	owner := w.head(branch).Manifest.Owner
	w.feedEpochs(2, nil)
	w.await("the first one follows on", func() bool { return w.head(branch).Manifest.Position == w.head(epoch.MainBranch).Manifest.Position }, nil)
	if now := w.head(branch).Manifest.Owner; now != owner {
		t.Errorf("owner %s has the branch, want %s: the second one did not wait", now, owner)
	}
	a.kill()
	if again := b.caughtUp().Branch; again != branch {
		t.Errorf("it goes on with branch %s, want %s", again, branch)
	}
	w.feed(20)
	w.cut(branch)
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	b.stops()
}
