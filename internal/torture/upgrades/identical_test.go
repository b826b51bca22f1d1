package upgrades

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
)

// TestIdenticalBuild has the very build follow that is live, over many short epochs that
// come in bursts and pauses, and while it is away from time to time: it puts out the same.
func TestIdenticalBuild(t *testing.T) {
	epochs, lives := 1_000, 4
	if torture() {
		epochs, lives = 10_000, 10
	}
	w := newWay(t, "rows")
	b := build{version: 1, rows: []string{"rows"}}
	o := sluice.Options{Epoch: 2 * time.Millisecond, KeepEpochs: -1}
	live := w.run("the build", first(w, b), o)
	w.feedEpochs(1, nil)
	branch := ""
	for n := range lives {
		compared := len(w.fed)
		if n > 0 { // what comes meanwhile is covered in larger steps
			w.bursts(50)
		}
		u := w.upgrade("the same build", first(w, b), o, sluice.Upgrade{})
		if begun := u.caughtUp().Branch; branch == "" {
			branch = begun
		} else if begun != branch {
			t.Fatalf("it goes on with branch %s, want %s", begun, branch)
		}
		w.bursts(epochs / lives)
		w.awaitTable("totals", recount(w.fed, nil))
		told := u.awaits("has compared all rows", func(p sluice.UpgradeProgress) bool {
			return p.Stage == "caught up" && p.Lag == 0 && sinkOf(p, "rows").Equal >= int64(len(w.fed)-compared)
		})
		checkCompared(t, told, "rows", len(w.fed)-compared, 0)
		if got := sinkOf(told, "totals"); got.Equal == 0 || got.Changed+got.OnlyOld+got.OnlyNew+got.NotCompared != 0 || len(got.Reasons) > 0 {
			t.Errorf("sink totals: %+v, want equal rows alone", got)
		}
		u.stops()
	}
	live.stops()
	w.sameOutboxes(branch, epochs)
}

// bursts writes inputs, at moments that are drawn, until the live branch has so many
// positions more.
func (w *way) bursts(positions int) {
	w.t.Helper()
	pause := func(most time.Duration) { <-time.After(time.Duration(w.rng.Int64N(int64(most)))) }
	end := w.head(epoch.MainBranch).Manifest.Position + epoch.Position(positions)
	for n := 1; n%20 != 0 || w.head(epoch.MainBranch).Manifest.Position < end; n++ {
		w.feed(1 + w.rng.IntN(4))
		switch w.rng.IntN(40) {
		case 0:
			w.feed(100 + w.rng.IntN(300))
		case 1:
			pause(40 * time.Millisecond)
		default:
			pause(5 * time.Millisecond)
		}
	}
}

// sameOutboxes holds what a branch that has followed has put out against what was live:
// byte for byte where it has covered one epoch, else by what it comes to.
func (w *way) sameOutboxes(branch string, least int) {
	t := w.t
	t.Helper()
	live := map[epoch.Position]epoch.Manifest{}
	for _, m := range w.data(epoch.MainBranch) {
		live[m.Position] = m
	}
	at := w.base(branch).Position
	covered, single, several := 0, 0, 0
	for _, m := range w.data(branch) {
		var of []epoch.Manifest
		for at < m.Covers[epoch.FirstTask] {
			at++
			of = append(of, live[at])
		}
		covered += len(of)
		if len(of) == 1 {
			single++
			w.sameBytes(of[0], m)
			continue
		}
		several++
		if got, want := w.rows("rows", m), w.rows("rows", of...); !slices.EqualFunc(got, want, sameRow) {
			t.Errorf("epoch %d, which covers positions %d to %d, has %d rows for sink rows, which are not the %d of the live branch", m.Epoch, of[0].Position, at, len(got), len(want))
		}
		if got, want := lastRows(w.rows("totals", m)), lastRows(w.rows("totals", of...)); !maps.EqualFunc(got, want, sameRow) {
			t.Errorf("epoch %d, which covers positions %d to %d, has other rows for sink totals in the end", m.Epoch, of[0].Position, at)
		}
		if t.Failed() {
			return
		}
	}
	if covered < least || single == 0 || several == 0 {
		t.Errorf("%d epochs were covered, want %d; %d by themselves and %d together with others, want some of each", covered, least, single, several)
	}
	t.Logf("%d epochs covered: %d by themselves, the others in %d steps", covered, single, several)
}

// data are the epochs of a branch that have read something.
func (w *way) data(branch string) (all []epoch.Manifest) {
	w.t.Helper()
	for m, err := range w.log().Manifests(w.t.Context(), branch, epoch.FirstTask, 0, w.head(branch).Manifest.Epoch) {
		if err != nil {
			w.t.Fatal(err)
		}
		if m.Kind == epoch.Data {
			all = append(all, m)
		}
	}
	return all
}

// sameBytes compares the outboxes of two epochs as they are stored.
func (w *way) sameBytes(want, got epoch.Manifest) {
	w.t.Helper()
	bytesOf := func(m epoch.Manifest, sink string) (all [][]byte) {
		for _, o := range m.Sinks[sink].Outbox {
			file, err := os.ReadFile(filepath.Join(w.folder, wayJob, o.Path))
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, file)
		}
		return all
	}
	for _, sink := range []string{"rows", "totals"} {
		if a, b := bytesOf(want, sink), bytesOf(got, sink); len(a) == 0 || !slices.EqualFunc(a, b, bytes.Equal) {
			w.t.Errorf("epoch %d has another outbox for sink %s than epoch %d of the live branch, at position %d: %d objects, want %d", got.Epoch, sink, want.Epoch, want.Position, len(b), len(a))
		}
	}
}

// rows are those that epochs have for a sink, in their order.
func (w *way) rows(sink string, of ...epoch.Manifest) (all []connector.Row) {
	w.t.Helper()
	for _, m := range of {
		box, err := outbox.Open(w.t.Context(), w.open(), wayJob, m.Sinks[sink].Outbox)
		if err != nil {
			w.t.Fatal(err)
		}
		for row, err := range box.Rows(w.t.Context()) {
			if err != nil {
				w.t.Fatal(err)
			}
			row.Key, row.Row, row.Wire = bytes.Clone(row.Key), bytes.Clone(row.Row), bytes.Clone(row.Wire)
			all = append(all, row)
		}
	}
	return all
}

func sameRow(a, b connector.Row) bool {
	return a.Op == b.Op && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Row, b.Row) && bytes.Equal(a.Wire, b.Wire)
}

// lastRows are the last ones of each key.
func lastRows(rows []connector.Row) map[string]connector.Row {
	last := map[string]connector.Row{}
	for _, r := range rows {
		last[string(r.Key)] = r
	}
	return last
}
