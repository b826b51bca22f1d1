package upgrades

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/faultenv"
)

const (
	// fewEpochs are those that the jobs here keep. A clean-up comes after half as many,
	// so that a log has mostManifests at the most, and some while it is under way; each of
	// them has an outbox for each of three sinks, and a segment, besides those of the state.
	fewEpochs     = 4
	mostManifests = 4 * fewEpochs
	mostObjects   = 4*mostManifests + 12
	// abandonAfter is what it is if nobody says otherwise.
	abandonAfter = 7 * 24 * time.Hour
)

// feedPositions has the live branch go on by so many epochs that each read something.
func (w *way) feedPositions(n int) {
	w.t.Helper()
	for range n {
		at := w.head(w.live().Branch).Manifest.Position
		w.feed(3)
		w.await("the live branch goes on", func() bool { return w.head(w.live().Branch).Manifest.Position > at }, nil)
	}
}

// room counts what the store has of a branch: manifests, and all else.
func (w *way) room(branch string) (manifests, objects int) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.folder, wayJob, "branches", branch), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case strings.HasPrefix(d.Name(), "0") && strings.HasSuffix(path, ".json"):
			manifests++
		default:
			objects++
		}
		return nil // what goes meanwhile is gone
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return manifests, objects
}

// awaitRoom waits until clean-up has left no more of a branch than is to be kept.
func (w *way) awaitRoom(branch string) {
	w.t.Helper()
	w.await("clean-up of branch "+branch, func() bool {
		manifests, objects := w.room(branch)
		return manifests <= mostManifests && objects <= mostObjects
	}, func() string {
		manifests, objects := w.room(branch)
		return fmt.Sprintf("%d manifests, %d objects", manifests, objects)
	})
}

// TestLeftAlone leaves a branch alone for days, while the live one goes on: what it has
// yet to follow is kept, and no longer once it was given up, which is told.
func TestLeftAlone(t *testing.T) {
	buildAll(t)
	w := newWay(t)
	world, passed := *env.Real(), atomic.Int64{}
	world.Clock = faultenv.Stepping(world.Clock, func(int) time.Duration { return time.Duration(passed.Swap(0)) })
	o := sluice.Options{Env: &world, Epoch: 5 * time.Millisecond, Keep: time.Millisecond, KeepEpochs: fewEpochs}
	old := w.run("the old build", first(w, build{version: 1}), o)
	w.feedEpochs(1, nil)
	follow := func() (branch string) {
		u := w.upgrade("the new build", second(w, build{version: 2}), o, sluice.Upgrade{Columns: ownColumns("totals")})
		told := u.awaits("has compared all there is", func(p sluice.UpgradeProgress) bool { return p.Stage == "caught up" && p.Lag == 0 })
		if got := sinkOf(told, "totals"); got.Changed+got.OnlyOld+got.OnlyNew+got.NotCompared != 0 {
			t.Errorf("compared: %+v", got)
		}
		u.kill()
		return told.Branch
	}
	branch := follow()
	const step = 12 * time.Hour
	days := func(d time.Duration) {
		for range d / step {
			passed.Store(int64(step))
			w.feedPositions(2)
		}
	}

	// For nearly as long as it may be alone, all is kept that it needs.
	days(abandonAfter - 2*step)
	covers := w.head(branch).Manifest.Covers[epoch.FirstTask]
	next := covers + 1
	for m, err := range w.log().Manifests(t.Context(), epoch.MainBranch, epoch.FirstTask, 0, w.head(epoch.MainBranch).Manifest.Epoch) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == epoch.Data && m.Position == next {
			next++
		}
	}
	if at := w.head(epoch.MainBranch).Manifest.Position; next != at+1 {
		t.Fatalf("the live branch has position %d, the epochs that are kept go from %d to %d", at, covers+1, next-1)
	}
	if again := follow(); again != branch {
		t.Fatalf("it goes on with branch %s, want %s", again, branch)
	}

	// Then it is given up, and nothing is kept for it.
	days(abandonAfter - 2*step)
	if w.head(branch).Sealed() {
		t.Fatal("the branch was given up before its time")
	}
	before, _ := w.room(epoch.MainBranch)
	days(4 * step)
	w.await("the branch is given up", func() bool {
		w.feedPositions(1)
		return w.head(branch).Sealed()
	}, nil)
	if said := old.said(); !strings.Contains(said, "a branch was given up on which nobody has followed for a long time") || !strings.Contains(said, "branch="+branch) || !strings.Contains(said, "after=168h0m0s") {
		t.Errorf("the log does not tell that branch %s was given up", branch)
	}
	status := exec.Command(executable(1), "status", "--store", w.folder)
	status.Env = append(os.Environ(), "TIDE_NAME="+wayJob) // it looks at the store alone
	if out, err := status.CombinedOutput(); err != nil || !tellsOf(string(out), branch, "given up") {
		t.Errorf("status does not tell that branch %s was given up (%v):\n%s", branch, err, out)
	}
	for range 3 {
		w.feedPositions(10 * fewEpochs)
		w.awaitRoom(epoch.MainBranch)
	}
	if least := 2 * int(abandonAfter/step-4); before < least {
		t.Errorf("%d manifests were kept for the branch, want %d at the least", before, least)
	}
	w.await("what the branch had goes", func() bool {
		w.feedPositions(1)
		manifests, _ := w.room(branch)
		return manifests == 0
	}, nil)
	w.awaitTable("totals", recount(w.fed, nil))
	old.stops()
}

// tellsOf tells whether a line of a text names something and says something of it.
func tellsOf(text, name, says string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, name) && strings.Contains(line, says) {
			return true
		}
	}
	return false
}

// TestFollowerRoom has a build follow for long: neither branch keeps more than it is to,
// whichever of the two has a sink of its own.
func TestFollowerRoom(t *testing.T) {
	epochs := 60
	if torture() {
		epochs = 3_000
	}
	for name, c := range map[string]struct{ old, now []string }{
		"the same sinks":          {[]string{"rows"}, []string{"rows"}},
		"a sink of the new build": {nil, []string{"rows"}},
		"a sink of the old build": {[]string{"rows"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWay(t, "rows")
			o := sluice.Options{Epoch: 5 * time.Millisecond, Keep: time.Millisecond, KeepEpochs: fewEpochs}
			old := w.run("the old build", first(w, build{version: 1, rows: c.old}), o)
			w.feedEpochs(1, nil)
			u := w.upgrade("the new build", second(w, build{version: 2, rows: c.now}), o, sluice.Upgrade{})
			branch := u.caughtUp().Branch
			for range 3 {
				w.feedPositions(epochs)
				w.await("it follows", func() bool {
					return w.head(branch).Manifest.Covers[epoch.FirstTask] == w.head(epoch.MainBranch).Manifest.Position
				}, nil)
				w.feedPositions(2 * fewEpochs) // a clean-up comes with epochs
				w.awaitRoom(epoch.MainBranch)
				w.awaitRoom(branch)
			}
			w.cut(branch)
			record := w.awaitLive(1, epoch.Upgrade)
			old.endsWith(12)
			w.feedAll()
			w.awaitTable("totals", recount(w.fed, nil))
			before, since := w.cuts(record.Ends.Branch)
			if len(c.old) == 0 {
				before = nil
			}
			if len(c.now) == 0 {
				since = nil
			}
			w.awaitRows("rows", append(before, since...))
			u.stops()
		})
	}
}
