package forgetful_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/forgetful"
)

// world is a folder on a disk that forgets.
type world struct {
	t      *testing.T
	folder string
	disk   *forgetful.Disk
}

func newWorld(t *testing.T) *world {
	return &world{t, t.TempDir(), forgetful.New(env.OS())}
}

func (w *world) path(name string) string { return filepath.Join(w.folder, name) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string, sync bool) {
	w.t.Helper()
	f, err := w.disk.Create(w.path(name))
	w.must(err)
	_, err = f.Write([]byte(text))
	w.must(err)
	if sync {
		w.must(f.Sync())
	}
	w.must(f.Close())
}

// holds looks at the files themselves, after the loss.
func (w *world) holds(name, text string) {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil || string(data) != text {
		w.t.Errorf("%s holds %q (%v), want %q", name, data, err, text)
	}
}

func (w *world) lacks(name string) {
	w.t.Helper()
	if _, err := os.Stat(w.path(name)); !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("%s is there (%v), want it gone", name, err)
	}
}

func TestWhatIsSyncedStays(t *testing.T) {
	w := newWorld(t)
	w.write("kept", "bytes", true)
	w.must(w.disk.SyncDir(w.folder))
	w.must(w.disk.Link(w.path("kept"), w.path("linked")))
	w.must(w.disk.SyncDir(w.folder))
	w.write("nameless", "bytes", true)
	w.must(w.disk.Lose())
	w.holds("kept", "bytes")
	w.holds("linked", "bytes")
	w.lacks("nameless")
}

func TestUnsyncedBytesGoUnderEveryName(t *testing.T) {
	w := newWorld(t)
	w.write("first", "bytes", false)
	w.must(w.disk.Link(w.path("first"), w.path("second")))
	w.must(w.disk.SyncDir(w.folder))
	w.must(w.disk.Lose())
	w.holds("first", "")
	w.holds("second", "")
}

func TestAFolderGoesWithAllInIt(t *testing.T) {
	w := newWorld(t)
	w.must(w.disk.MkdirAll(w.path("a/b")))
	w.write("a/b/file", "bytes", true)
	w.must(w.disk.SyncDir(w.path("a/b")))
	w.must(w.disk.SyncDir(w.path("a"))) // the name a itself is not durable
	w.must(w.disk.Lose())
	w.lacks("a")
}

func TestALostRenameLeavesWhatWasThere(t *testing.T) {
	w := newWorld(t)
	w.write("target", "old", true)
	w.must(w.disk.SyncDir(w.folder))
	for _, text := range []string{"new", "newer"} {
		w.write("aside", text, true)
		w.must(w.disk.Rename(w.path("aside"), w.path("target")))
	}
	w.must(w.disk.Lose())
	w.holds("target", "old")
	w.lacks("aside")
}

func TestNothingWorksWithoutPower(t *testing.T) {
	w := newWorld(t)
	f, err := w.disk.Create(w.path("open"))
	w.must(err)
	defer f.Close()
	w.must(w.disk.Lose())
	_, writeErr := f.Write([]byte("late"))
	_, openErr := w.disk.Open(w.path("open"))
	_, statErr := w.disk.Stat(w.folder)
	for _, err := range []error{writeErr, openErr, statErr, f.Sync(), w.disk.MkdirAll(w.path("late")), w.disk.SyncDir(w.folder)} {
		if !errors.Is(err, forgetful.ErrPower) {
			t.Errorf("a call without power answers %v", err)
		}
	}
	w.must(w.disk.Lose()) // again: nothing more happens
}
