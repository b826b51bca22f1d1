package clean_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// farm writes a log of many epochs into a folder, past the store: what counts
// here is to remove them. Each has a manifest, a segment and an outbox; twelve
// segments are in the state at a time.
func farm(t testing.TB, w *world, dir string, epochs int) {
	l := w.logs[epoch.MainBranch]
	o := l.owner()
	m, hash := o.Head()
	var segments []epoch.Segment
	write := func(path string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, job, path), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, job, epoch.LogPath(m.Branch, m.Task), "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range epochs {
		m.Epoch, m.Position, m.Kind, m.Parent, m.Time = m.Epoch+1, m.Position+1, epoch.Data, hash, m.Time+1_000_000
		data := func(name string) string {
			path, err := o.DataName(m.Epoch, name)
			if err != nil {
				t.Fatal(err)
			}
			write(path, []byte("some bytes"))
			return path
		}
		segments = append(segments, epoch.Segment{Path: data("spend"), Bytes: 10, SHA256: hash})
		segments = segments[max(len(segments)-12, 0):]
		m.State = map[string]epoch.StateEntry{"spend": {Key: `"string"`, Value: `"long"`, Segments: segments}}
		m.Sinks = map[string]epoch.SinkState{"a": {Record: "r", Confirmed: m.Position - 1, Outbox: []epoch.Object{{Path: data("a"), Bytes: 10, SHA256: hash}}}}
		bytes, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(epoch.ManifestPath(m.Branch, m.Task, m.Epoch), bytes)
		hash = epoch.Hash(bytes)
	}
}

func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestManyEpochs removes a log's long past: a thousand epochs, or a hundred
// thousand where there is time. Then nothing is left to do, and doing it costs
// little.
func TestManyEpochs(t *testing.T) {
	epochs := 1000
	if stride(0) == 1 {
		epochs = 100_000
	}
	dir := t.TempDir()
	s, err := store.OpenFolder(env.Real(), dir)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, s)
	farm(t, w, dir, epochs)
	cleaner := clean.New(w.open(s), clean.Options{})
	for _, round := range []string{"first", "second"} {
		before := cpu(t)
		r, err := cleaner.Log(ctx, epoch.MainBranch, epoch.FirstTask)
		if err != nil {
			t.Fatal(err)
		}
		took, removed := cpu(t)-before, r.Manifests+r.Objects
		t.Logf("%s clean-up of %d epochs: %d objects removed, %v of CPU, %v for each", round, epochs, removed, took, took/time.Duration(max(removed, 1)))
		if round == "second" {
			if removed != 0 {
				t.Errorf("the second clean-up removed %d objects", removed)
			}
			continue
		}
		// Ten minutes at an epoch a second are kept, the base and the opening go.
		if r.Left.Kept != 601 || r.Manifests != int64(epochs)+2-601 || r.Objects < 2*(r.Manifests-20) {
			t.Errorf("got %+v", r)
		}
	}
	if names := len(w.names("branches/")); names > 3*601+30 {
		t.Errorf("%d objects are left", names)
	}
}
