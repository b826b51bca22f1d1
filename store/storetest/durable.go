package storetest

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// RunDurable watches the calls that a store on a file system makes: an object's
// bytes are synced before they can be seen under its name, and the name, with
// every folder above it, is durable before the create is answered. The store
// is to be in the folder, which doesn't exist, and to use e's files.
func RunDurable(t *testing.T, open func(t *testing.T, e *env.Env, folder string) store.Store) {
	t.Helper()
	explain(t, "an epoch that others have seen and acted upon must not be gone after a power cut")
	w := &watcher{FS: env.OS(), dirty: map[string]bool{}, pending: map[string]bool{}}
	e := env.Real()
	e.Files = w
	folder := filepath.Join(t.TempDir(), "made", "for", "it")
	s := open(t, e, folder)

	mustCreate(t, s, "top", "x")
	w.check(t, "create in the root")
	mustCreate(t, s, "job/a/b/1", "x")
	w.check(t, "create in new folders")
	mustCreate(t, s, "job/a/b/2", "x")
	w.check(t, "create in a folder that is known")

	// A folder that another process has just made may not be durable yet.
	if err := w.MkdirAll(filepath.Join(folder, "job", "c", "d")); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, "job/c/d/1", "x")
	w.check(t, "create in another's new folder")

	u, err := s.Upload(t.Context(), "job/e/1")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := u.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.check(t, "upload")
	if err := s.Replace(t.Context(), "job/heartbeat.json", []byte("x")); err != nil {
		t.Fatal(err)
	}
	w.check(t, "replace")

	// "Exists" is an answer that is acted upon as well: it too must last.
	if err := w.FS.Remove(filepath.Join(folder, "top")); err != nil {
		t.Fatal(err)
	}
	if err := w.plant(filepath.Join(folder, "top")); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "create", s.Create(t.Context(), "top", nil), store.ErrExists)
	w.check(t, "a create that found the name taken")
}

// watcher is a file system that knows what a power cut would take.
type watcher struct {
	env.FS

	mu      sync.Mutex
	dirty   map[string]bool // files with bytes that aren't synced
	pending map[string]bool // names that their folder hasn't been synced for
	objects []string        // files that got a name by a link
	faults  []string
}

// check reports what would be lost, although the store said that it is done.
func (w *watcher) check(t *testing.T, after string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		t.Errorf("%s: %s", after, fault)
	}
	for _, object := range w.objects {
		for path := object; path != filepath.Dir(path); path = filepath.Dir(path) {
			if w.pending[path] {
				t.Errorf("%s: answered before the folder %s was synced: a power cut would take %s", after, filepath.Dir(path), path)
			}
		}
	}
	w.faults = nil
}

// plant makes a file as another process would that has not synced its folder.
func (w *watcher) plant(name string) error {
	f, err := w.FS.Create(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[name] = true
	return f.Close()
}

func (w *watcher) Create(name string) (env.File, error) {
	f, err := w.FS.Create(name)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty[name] = true
	return &watchedFile{f, w, name}, nil
}

type watchedFile struct {
	env.File
	watcher *watcher
	name    string
}

func (f *watchedFile) Write(p []byte) (int, error) {
	f.watcher.mu.Lock()
	defer f.watcher.mu.Unlock()
	f.watcher.dirty[f.name] = true
	return f.File.Write(p)
}

func (f *watchedFile) Sync() error {
	f.watcher.mu.Lock()
	defer f.watcher.mu.Unlock()
	delete(f.watcher.dirty, f.name)
	return f.File.Sync()
}

func (w *watcher) Link(old, new string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen(old, new)
	err := w.FS.Link(old, new)
	if err == nil {
		w.pending[new] = true
		w.objects = append(w.objects, new)
	}
	return err
}

func (w *watcher) Rename(old, new string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen(old, new)
	return w.FS.Rename(old, new)
}

func (w *watcher) seen(old, new string) {
	if w.dirty[old] {
		w.faults = append(w.faults, fmt.Sprintf("%s could be seen before its bytes were synced", new))
	}
}

func (w *watcher) MkdirAll(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path := name; path != filepath.Dir(path); path = filepath.Dir(path) {
		if _, err := w.FS.Stat(path); err == nil {
			break
		}
		w.pending[path] = true
	}
	return w.FS.MkdirAll(name)
}

func (w *watcher) SyncDir(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path := range w.pending {
		if filepath.Dir(path) == name {
			delete(w.pending, path)
		}
	}
	return w.FS.SyncDir(name)
}
