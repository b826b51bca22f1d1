package upgrades

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
)

func tenfold(i input) int64 { return 10 * i.Amount }

// feedEpochs writes inputs in so many epochs at the least, and waits until the table has
// them all.
func (w *way) feedEpochs(n int, weigh func(input) int64) {
	w.t.Helper()
	for range n {
		w.feed(10)
		w.awaitTable("totals", recount(w.fed, weigh))
	}
}

// cleanUp removes all epochs of the live branch but the newest ones.
func (w *way) cleanUp(keep int) {
	w.t.Helper()
	if _, err := clean.New(w.log(), clean.Options{Keep: time.Nanosecond, KeepEpochs: keep}).All(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// TestFromEarliest rebuilds a table by another fold from all inputs, although the epochs
// in which the first of them were read are not kept any more.
func TestFromEarliest(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(8, nil)
	w.cleanUp(3)
	if floor, err := w.log().Floor(t.Context(), epoch.MainBranch, epoch.FirstTask); err != nil || floor < 3 {
		t.Fatalf("the floor is %d (%v), nothing was cleaned away", floor, err)
	}
	changed := build{version: 2, meaning: 2, weigh: tenfold}
	refused := w.upgrade("the new build as it is", first(w, changed), sluice.Options{}, sluice.Upgrade{Auto: true})
	refused.endsWith(13, "totals")
	old.goesOn()

	u := w.upgrade("the new build", first(w, changed), sluice.Options{}, sluice.Upgrade{Auto: true, From: "earliest"})
	for range 5 {
		w.feed(7)
	}
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12, "superseded")
	w.feedAll() // the cut leaves what it does not touch
	w.awaitTable("totals", recount(w.fed, tenfold))
	if got := w.versions("totals"); got[2] != wayKeys {
		t.Errorf("rows by version: %v", got)
	}
	if partial := w.head(w.live().Branch).Manifest.Partial; len(partial) > 0 {
		t.Errorf("the state is told to be partial: %v", partial)
	}
	u.stops()
}

// TestFromAnEpoch begins at epochs that are kept: the state is that of there, and the
// field that only the new build counts says how much has come since.
func TestFromAnEpoch(t *testing.T) {
	for name, from := range map[string]func(w *way) string{
		"a savepoint": func(w *way) string {
			at := w.head(epoch.MainBranch).Manifest
			if _, err := w.log().PutSavepoint(t.Context(), "noon", epoch.Point{Branch: at.Branch, Tasks: map[string]epoch.Epoch{at.Task: at.Epoch}}, "a test"); err != nil {
				t.Fatal(err)
			}
			return "noon"
		},
		"an epoch": func(w *way) string {
			return fmt.Sprintf("%s:%d", epoch.MainBranch, w.head(epoch.MainBranch).Manifest.Epoch)
		},
		"a time": func(*way) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWay(t)
			old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
			w.feedEpochs(3, nil)
			text := from(w)
			before := len(w.fed)
			at := w.head(epoch.MainBranch).Manifest
			w.feedEpochs(3, nil)
			head := w.head(epoch.MainBranch).Manifest
			var d time.Duration
			if text == "" {
				d = time.Duration(head.Time-at.Time) * time.Microsecond
				text = "live-" + d.String()
			}
			u := w.upgrade("the new build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true, From: text})
			w.awaitLive(1, epoch.Upgrade)
			old.endsWith(12)
			base := w.base(w.live().Branch)
			if d == 0 {
				if base.Epoch != at.Epoch {
					t.Errorf("from %s: it begins at epoch %d, want %d", text, base.Epoch, at.Epoch)
				}
			} else {
				before = read(base) // the head may have moved on when it was looked at
				next, err := w.log().Manifest(t.Context(), base.Branch, base.Task, base.Epoch+1)
				ago := func(m epoch.Manifest) time.Duration { return time.Duration(head.Time-m.Time) * time.Microsecond }
				if err != nil || base.Epoch < at.Epoch || ago(next) >= d || before == len(w.fed) {
					t.Errorf("from %s: it begins at epoch %d, %v old, before one of %v (%v)", text, base.Epoch, ago(base), ago(next), err)
				}
			}
			w.feedAll()
			w.awaitTable("totals", recount(w.fed, nil))
			since := int64(0)
			for _, row := range w.table("totals") {
				since += row.Since
			}
			if since != int64(len(w.fed)-before) {
				t.Errorf("from %s: the new build has counted %d inputs, want %d", text, since, len(w.fed)-before)
			}
			u.stops()
		})
	}
}

// base is the epoch at which a branch begins.
func (w *way) base(branch string) epoch.Manifest {
	w.t.Helper()
	at := w.branchFile(branch).Base
	m, err := w.log().Manifest(w.t.Context(), at.Branch, epoch.FirstTask, at.Tasks[epoch.FirstTask])
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// read is the number of inputs that were read up to an epoch.
func read(m epoch.Manifest) (n int) {
	for _, at := range m.Sources["inputs"].Partitions {
		n += int(at.Next)
	}
	return n
}

// TestFromLatest begins with an empty state where the live branch stands.
func TestFromLatest(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(3, nil)
	before := len(w.fed)
	u := w.upgrade("the new build", first(w, build{version: 2, meaning: 2, weigh: tenfold}), sluice.Options{}, sluice.Upgrade{From: "latest"})
	branch := u.caughtUp().Branch
	w.feed(50)
	w.awaitTable("totals", recount(w.fed, nil))
	w.cut(branch)
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed[before:], tenfold))
	if why := w.head(branch).Manifest.Partial["totals"].Why; why == "" {
		t.Error("the state is not told to be partial")
	}
	u.stops()
}

// TestFromImportedState begins with a state that another system has counted, otherwise
// than the old build, at the offsets up to which it has.
func TestFromImportedState(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(3, nil)
	offsets := map[string]int64{}
	for n := range partitions {
		offsets[fmt.Sprintf("inputs:%d", n)] = 0
	}
	for _, in := range w.fed {
		offsets[fmt.Sprintf("inputs:%d", in.partition)] = in.offset + 1
	}
	file := filepath.Join(t.TempDir(), "totals.jsonl")
	var lines []byte
	for key, c := range recount(w.fed, tenfold) {
		lines = fmt.Appendf(lines, "{\"key\":%q,\"value\":{\"Count\":%d,\"Sum\":%d}}\n", key, c.Count, c.Sum)
	}
	if err := os.WriteFile(file, lines, 0o666); err != nil {
		t.Fatal(err)
	}
	w.feedEpochs(3, nil)
	im := &sluice.Import{Files: []sluice.ImportFile{{State: "totals", Path: file}}, Offsets: offsets}
	changed := build{version: 2, meaning: 2, weigh: tenfold}
	nowhere := w.upgrade("the new build, which doesn't know from where on", first(w, changed), sluice.Options{}, sluice.Upgrade{Auto: true, Import: &sluice.Import{Files: im.Files}})
	nowhere.endsWith(2, "--offsets")
	old.goesOn()

	u := w.upgrade("the new build", first(w, changed), sluice.Options{}, sluice.Upgrade{Auto: true, Import: im})
	for range 5 {
		w.feed(7)
	}
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12, "superseded")
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, tenfold))
	if partial := w.head(w.live().Branch).Manifest.Partial; len(partial) > 0 {
		t.Errorf("the state is told to be partial: %v", partial)
	}
	u.stops()
}

// TestFromAStateOfLater refuses a state that stands for inputs which the live branch has
// not read: they would be counted twice.
func TestFromAStateOfLater(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	old.stops()
	w.feedAll()
	offsets := map[string]int64{}
	for n := range partitions {
		offsets[fmt.Sprintf("inputs:%d", n)] = 0
	}
	for _, in := range w.fed {
		offsets[fmt.Sprintf("inputs:%d", in.partition)] = in.offset + 1
	}
	file := filepath.Join(t.TempDir(), "totals.jsonl")
	if err := os.WriteFile(file, []byte("{\"key\":\"key-0\",\"value\":{\"Count\":1,\"Sum\":1}}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	im := &sluice.Import{Files: []sluice.ImportFile{{State: "totals", Path: file}}, Offsets: offsets}
	u := w.upgrade("the new build", first(w, build{version: 2, meaning: 2, weigh: tenfold}), sluice.Options{}, sluice.Upgrade{Auto: true, Import: im})
	u.endsWith(2, "the live branch has read to")
	if n := w.live().N; n != 0 {
		t.Errorf("generation %d is live", n)
	}
	if all, err := w.log().Branches(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("branches %v (%v), want main alone", all, err)
	}
}

// cut asks for the cut, as the command cutover does.
func (w *way) cut(branch string) {
	w.t.Helper()
	if _, err := w.log().AskCutover(w.t.Context(), branch, "a test"); err != nil {
		w.t.Fatal(err)
	}
}

// TestFromNowhere says what there is instead of the place that was named.
func TestFromNowhere(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(1, nil)
	for text, says := range map[string]string{
		"evening": "no savepoint of that name", "live-soon": "10m", "live-1000h": "the oldest epoch", "main:x": "no number",
	} {
		u := w.upgrade("from "+text, second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true, From: text})
		u.endsWith(2, says)
	}
	if n := w.live().N; n != 0 {
		t.Errorf("generation %d is live", n)
	}
	if all, err := w.log().Branches(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("branches %v (%v), want main alone", all, err)
	}
	old.stops()
}

// TestFresh begins a job anew.
func TestFresh(t *testing.T) {
	w := newWay(t, "rows")
	old := w.run("the old build", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{})
	w.feedEpochs(4, nil)
	fresh := sluice.Options{Fresh: true, FreshFrom: "earliest"}
	b := build{version: 2, meaning: 2, weigh: tenfold, rows: []string{"rows"}}
	w.run("a build that repeats rows", first(w, b), fresh).endsWith(13, "sink rows", "--repeat-outputs rows")
	if w.head(epoch.MainBranch).Sealed() || w.live().N != 0 {
		t.Error("the refused build has ended the live branch")
	}
	w.feedEpochs(1, nil)
	old.goesOn()

	before := len(w.fed)
	fresh.RepeatOutputs = []string{"rows"}
	u := w.run("the new build", first(w, b), fresh)
	record := w.awaitLive(1, epoch.Fresh)
	old.endsWith(12)
	w.awaitTable("totals", recount(w.fed, tenfold))
	w.checkRows("rows", slices.Concat(w.fed[:before], w.fed))
	w.feedEpochs(2, tenfold)
	w.checkRows("rows", slices.Concat(w.fed[:before], w.fed))
	if kept := w.head(epoch.MainBranch); !kept.Sealed() || kept.Manifest.Epoch != record.Ends.Tasks[epoch.FirstTask].Epoch {
		t.Errorf("the old branch is not kept as it ended: %+v", kept.Manifest.Epoch)
	}
	u.stops()

	// A supervisor repeats the command.
	again := w.run("the new build again", first(w, b), fresh)
	w.feedEpochs(1, tenfold)
	if n := w.live().N; n != 1 {
		t.Errorf("generation %d is live: the repeated command has begun anew", n)
	}
	w.checkRows("rows", slices.Concat(w.fed[:before], w.fed))
	third := w.upgrade("a third build", second(w, build{version: 3, meaning: 2, weigh: tenfold, rows: []string{"rows"}}), sluice.Options{}, sluice.Upgrade{Auto: true})
	record = w.awaitLive(2, epoch.Upgrade)
	again.endsWith(12)
	w.run("the new build, replaced", first(w, b), fresh).endsWith(12, "superseded")
	if w.head(record.Branch).Sealed() || w.live().N != 2 {
		t.Error("a build that was replaced has ended the live branch")
	}
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, tenfold))
	third.stops()
}

// TestFreshRepeatsNothing begins a job anew where it stands, or behind that, without leave
// to repeat rows: none is missing, and none there twice.
func TestFreshRepeatsNothing(t *testing.T) {
	noon := time.Now().Truncate(time.Millisecond)
	at := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339Nano) }
	for name, c := range map[string]struct {
		from    string
		running bool
	}{"stopped": {"latest", false}, "running": {"latest", true}, "from a time": {at(0), false}} {
		t.Run(name, func(t *testing.T) {
			w := newWay(t, "rows")
			b := build{version: 1, rows: []string{"rows"}}
			old := w.run("the job", first(w, b), sluice.Options{})
			w.at = noon.Add(-time.Hour)
			w.feedEpochs(3, nil)
			if !c.running {
				old.stops()
			}
			w.run("from before what was read", first(w, b), sluice.Options{Fresh: true, FreshFrom: at(-2 * time.Hour)}).endsWith(13, "sink rows", "--repeat-outputs rows")
			before := len(w.fed)
			w.at = noon
			for range 3 { // which the stopped job has not read
				w.feedAll()
			}
			if c.running {
				w.awaitTable("totals", recount(w.fed, nil))
				before = len(w.fed)
			}
			fresh := w.run("the job, fresh", first(w, b), sluice.Options{Fresh: true, FreshFrom: c.from})
			w.awaitLive(1, epoch.Fresh)
			w.feedAll()
			w.awaitTable("totals", recount(w.fed[before:], nil))
			w.awaitRows("rows", w.fed)
			fresh.stops()
		})
	}
}

// TestFreshAgain lets a cold start die between the seal and the live record, and repeats
// it.
func TestFreshAgain(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{ResumeAfter: time.Hour})
	w.feedEpochs(3, nil)
	fresh := sluice.Options{Fresh: true, FreshFrom: "earliest"}
	b := build{version: 2, meaning: 2, weigh: tenfold}
	u := w.start("the new build", fresh, func(ctx context.Context, o sluice.Options, p *process) error {
		p.diesAt.Store("/live/1.json")
		return first(w, b).Run(ctx, o)
	})
	if u.ends() == nil || !w.head(epoch.MainBranch).Sealed() || w.live().N != 0 {
		t.Fatalf("it has not died between the seal and the live record: %v, %+v", u.err, w.live())
	}
	w.feed(20)
	old.goesOn()
	again := w.run("the new build again", first(w, b), fresh)
	w.awaitLive(1, epoch.Fresh)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, tenfold))
	again.stops()
}

// TestFromElsewhereLater lets a build follow from one place after the other, and each once
// more: it goes on where it was asked for the same, and begins anew where not.
func TestFromElsewhereLater(t *testing.T) {
	w := newWay(t)
	old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
	w.feedEpochs(2, nil)
	w.savepoint("noon")
	w.feedEpochs(2, nil)
	branches := map[string]string{}
	for _, from := range []string{"", "noon", "live-1us", "earliest", "live-1us", "noon", "live"} {
		u := w.upgrade("from "+from, second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{From: from})
		branch := u.caughtUp().Branch
		w.feed(3)
		u.stops()
		if from == "live" {
			from = ""
		}
		if was, ok := branches[from]; ok && was != branch {
			t.Errorf("from %q: it goes on with branch %s, want %s", from, branch, was)
		}
		branches[from] = branch
	}
	names := map[string]bool{}
	for _, branch := range branches {
		names[branch] = true
	}
	if len(names) != len(branches) {
		t.Errorf("branches that begin in different places are one: %v", branches)
	}
	u := w.upgrade("rebuilt", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{From: "earliest", Auto: true})
	w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	for key, row := range w.table("totals") {
		if row.Since != row.Count {
			t.Errorf("key %s: the new build has counted %d of %d inputs itself", key, row.Since, row.Count)
		}
	}
	u.stops()
}
