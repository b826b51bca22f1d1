package fsck_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// A small job with a past: many starts, merged segments, epochs that were cleaned
// away, a savepoint of one of them, a pin, requests.

type order struct {
	User  string
	Cents int64
}

type spending struct{ Orders, Cents int64 }

func (s *spending) add(o order) { s.Orders++; s.Cents += o.Cents }

// life is a folder with the job's store, input and outputs.
type life struct{ folder string }

func (l life) store(t testing.TB) store.Store {
	t.Helper()
	s, err := store.OpenFolder(env.Real(), filepath.Join(l.folder, "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (l life) job() *sluice.Job {
	job := sluice.NewJob("spend")
	orders := job.From("orders", file.JSONLines[order](filepath.Join(l.folder, "in", "*.jsonl")))
	orders.To("all", file.Append[order](filepath.Join(l.folder, "out", "all")))
	orders.KeyBy(func(o order) string { return o.User }).
		Fold(sluice.NewState[string, spending]("spend"), (*spending).add).
		To("by_user", file.Upsert(filepath.Join(l.folder, "out", "by_user"), func(_ string, s spending) spending { return s }))
	return job
}

// run runs the job with one more file of input, of a number of records.
func (l life) run(t testing.TB, input string, records int) error {
	t.Helper()
	var lines strings.Builder
	for i := range records {
		fmt.Fprintf(&lines, `{"User":"%s","Cents":%d}`+"\n", []string{"ann", input, input + "b"}[i%3], i)
	}
	if err := os.WriteFile(filepath.Join(l.folder, "in", input+".jsonl"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return l.job().Run(context.Background(), sluice.Options{
		Store: l.store(t), Volatile: true, Shards: 2, Workers: 1, Log: slog.New(slog.DiscardHandler),
		BatchRecords: 1, EpochBytes: 1, // an epoch for each record
		Lease: 100 * time.Millisecond, // it is waited for if the heartbeat is damaged
	})
}

const (
	starts      = 2
	lifeFloor   = 12
	savedEpoch  = 8
	pinnedEpoch = 16
)

// newLife makes such a job.
func newLife(t testing.TB) life {
	t.Helper()
	l := life{t.TempDir()}
	if err := os.Mkdir(filepath.Join(l.folder, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range starts {
		if err := l.run(t, string(rune('a'+i)), 8); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	job, err := epoch.FindJob(ctx, env.Real(), l.store(t), "spend")
	if err != nil {
		t.Fatal(err)
	}
	at := func(e epoch.Epoch) epoch.Point {
		return epoch.Point{Branch: epoch.MainBranch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: e}}
	}
	_, saved := job.PutSavepoint(ctx, "before", at(savedEpoch), "test")
	_, asked := job.Ask(ctx, epoch.StopRequest, "test")
	for _, err := range []error{
		saved, asked, job.PutPin(ctx, "side-1", at(pinnedEpoch), "test"),
		job.PutFloor(ctx, epoch.MainBranch, epoch.FirstTask, lifeFloor),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for e := range epoch.Epoch(lifeFloor) {
		if e != savedEpoch {
			if err := job.Store().Delete(ctx, job.Object(epoch.ManifestPath(epoch.MainBranch, epoch.FirstTask, e))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func (l life) check(t testing.TB, o fsck.Options) fsck.Report {
	t.Helper()
	report, err := fsck.Check(context.Background(), l.store(t), "spend", o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// objects are the names of the store's objects.
func (l life) objects(t testing.TB) []string {
	t.Helper()
	listed, err := l.store(t).List(context.Background(), "spend/", "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range listed {
		names = append(names, o.Name)
	}
	return names
}

func (l life) path(object string) string {
	return filepath.Join(l.folder, "store", filepath.FromSlash(object))
}

// outcome is what a job has made of its input: its outputs, file by file, and
// its state.
type outcome struct {
	files map[string]string
	state map[string]string
	epoch epoch.Epoch
}

func (l life) outcome(t testing.TB) outcome {
	t.Helper()
	o := outcome{map[string]string{}, map[string]string{}, 0}
	out := filepath.Join(l.folder, "out")
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/.sluice/") {
			return err
		}
		data, err := os.ReadFile(path)
		o.files[strings.TrimPrefix(path, out)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	job, err := epoch.FindJob(ctx, env.Real(), l.store(t), "spend")
	if err != nil {
		t.Fatal(err)
	}
	head, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	o.epoch = head.Manifest.Epoch
	entry := head.Manifest.State["spend"]
	form, err := state.FormOf("spend", entry)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range state.Read(ctx, job.Store(), "spend", form, entry.Segments, epoch.AllSlots) {
		if err != nil {
			t.Fatal(err)
		}
		o.state[string(e.Key)] = string(e.Value)
	}
	return o
}

// same tells how an outcome differs from another; "" if it doesn't.
func (o outcome) same(other outcome) string {
	switch {
	case !maps.Equal(o.files, other.files):
		return fmt.Sprintf("the outputs %q, not %q", o.files, other.files)
	case !maps.Equal(o.state, other.state):
		return fmt.Sprintf("the state %q, not %q", o.state, other.state)
	case o.epoch < other.epoch:
		return fmt.Sprintf("the head %d, not %d", o.epoch, other.epoch)
	}
	return ""
}

// snapshot holds the files of a life, to go back to.
type snapshot map[string][]byte

func (l life) snapshot(t testing.TB) snapshot {
	t.Helper()
	s := snapshot{}
	err := filepath.WalkDir(l.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		s[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// restore goes back to a snapshot: it writes only what differs.
func (l life) restore(t testing.TB, s snapshot) {
	t.Helper()
	now := l.snapshot(t)
	for path := range now {
		if _, ok := s[path]; !ok {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if found, ok := now[path]; !ok || !bytes.Equal(found, s[path]) {
			if err := os.WriteFile(path, s[path], 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
