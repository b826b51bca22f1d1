package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// failing is a file system some of whose calls are replaced.
type failing struct {
	env.FS
	link    func(old, new string) error
	write   error
	sync    error
	syncDir error
}

func (f *failing) Link(old, new string) error {
	if f.link != nil {
		return f.link(old, new)
	}
	return f.FS.Link(old, new)
}

func (f *failing) SyncDir(name string) error {
	if f.syncDir != nil {
		return f.syncDir
	}
	return f.FS.SyncDir(name)
}

func (f *failing) Create(name string) (env.File, error) {
	file, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return failingFile{file, f}, nil
}

type failingFile struct {
	env.File
	fs *failing
}

func (f failingFile) Write(p []byte) (int, error) {
	if f.fs.write != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, f.fs.write
	}
	return f.File.Write(p)
}

func (f failingFile) Sync() error {
	if f.fs.sync != nil {
		return f.fs.sync
	}
	return f.File.Sync()
}

func openFailing(t *testing.T) (store.Store, *failing, string) {
	t.Helper()
	files := &failing{FS: env.OS()}
	e := env.Real()
	e.Files = files
	folder := t.TempDir()
	return openFolder(t, e, folder), files, folder
}

// wantNothing checks that no object is there and no temporary file is left.
func wantNothing(t *testing.T, s store.Store, folder string) {
	t.Helper()
	if listed, err := s.List(t.Context(), "", "", 10); err != nil || len(listed) != 0 {
		t.Errorf("listed %v, %v; want nothing", listed, err)
	}
	if left, err := os.ReadDir(filepath.Join(folder, ".tmp")); err != nil || len(left) != 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestFolderDiskFull(t *testing.T) {
	s, files, folder := openFailing(t)
	for _, full := range []struct{ write, sync error }{{write: syscall.ENOSPC}, {sync: syscall.EDQUOT}} {
		files.write, files.sync = full.write, full.sync
		err := s.Create(t.Context(), "job/1.json", []byte("0123456789"))
		if err == nil || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "is full") {
			t.Errorf("got %v, want an error that says that the disk is full", err)
		}
		wantNothing(t, s, folder)
	}
	files.write, files.sync = nil, nil
	if err := s.Create(t.Context(), "job/1.json", nil); err != nil {
		t.Fatal(err)
	}
}

// TestFolderThatMayNotBeWritten names permissions as what they are, and hard links where
// these may be what is missing.
func TestFolderThatMayNotBeWritten(t *testing.T) {
	link := func(err error) func(old, new string) error {
		return func(old, new string) error { return &os.LinkError{Op: "link", Old: old, New: new, Err: err} }
	}
	for name, c := range map[string]struct {
		fails       failing
		leave, link bool // what the error speaks of
	}{
		"an immutable file":        {failing{write: syscall.EPERM}, true, false},
		"another's folder":         {failing{link: link(syscall.EACCES)}, true, false},
		"a disk that is read-only": {failing{sync: syscall.EROFS}, true, false},
		"a link that is refused":   {failing{link: link(syscall.EPERM)}, true, true},
		"another file system":      {failing{link: link(syscall.EXDEV)}, false, true},
	} {
		s, files, folder := openFailing(t)
		files.write, files.sync, files.link = c.fails.write, c.fails.sync, c.fails.link
		err := s.Create(t.Context(), "job/1.json", []byte("0123456789"))
		if err == nil || strings.Contains(err.Error(), "may not be written to") != c.leave || strings.Contains(err.Error(), "hard links") != c.link {
			t.Errorf("%s: got %v", name, err)
		}
		wantNothing(t, s, folder)
	}
}

// TestFolderLostReplyOfLink plays what NFS does: the server made the link, and
// the client hears of something else.
func TestFolderLostReplyOfLink(t *testing.T) {
	s, files, _ := openFailing(t)
	for _, heard := range []error{syscall.EEXIST, syscall.EIO, syscall.ETIMEDOUT} {
		files.link = func(old, new string) error {
			if err := os.Link(old, new); err != nil {
				return err
			}
			return &os.LinkError{Op: "link", Old: old, New: new, Err: heard}
		}
		name := fmt.Sprintf("job/%d.json", int(heard.(syscall.Errno)))
		if err := s.Create(t.Context(), name, []byte("mine")); err != nil {
			t.Errorf("%v heard, though the link was made: %v", heard, err)
		}
		// And the same when another's object is there: it is not ours.
		if err := s.Create(t.Context(), name, []byte("mine")); !errors.Is(err, store.ErrExists) {
			t.Errorf("the name is taken: got %v", err)
		}
	}
}

func TestFolderDoubtfulLink(t *testing.T) {
	s, files, folder := openFailing(t)
	for heard, unknown := range map[syscall.Errno]bool{
		syscall.EIO: true, syscall.ESTALE: true, syscall.ETIMEDOUT: true,
		syscall.EACCES: false, syscall.EROFS: false, syscall.ENOSPC: false, syscall.EXDEV: false, syscall.EPERM: false,
	} {
		files.link = func(old, new string) error { return &os.LinkError{Op: "link", Old: old, New: new, Err: heard} }
		err := s.Create(t.Context(), "job/1.json", nil)
		if err == nil || errors.Is(err, store.ErrUnknown) != unknown {
			t.Errorf("%v heard: got %v, want unknown = %v", heard, err, unknown)
		}
		wantNothing(t, s, folder)
	}
}

func TestFolderThatCannotBeSynced(t *testing.T) {
	s, files, _ := openFailing(t)
	if err := s.Create(t.Context(), "job/1.json", []byte("x")); err != nil {
		t.Fatal(err)
	}
	files.syncDir = syscall.EIO
	if err := s.Create(t.Context(), "job/2.json", []byte("x")); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("a name that may not last: got %v, want unknown", err)
	}
	if err := s.Create(t.Context(), "job/1.json", []byte("x")); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("another's name that may not last: got %v, want unknown", err)
	}
}

func TestFolderRemovedMeanwhile(t *testing.T) {
	folder := t.TempDir()
	s := openFolder(t, env.Real(), folder)
	for range 2 {
		if err := s.Create(t.Context(), "job/a/b/1.json", nil); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(folder, "job")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderObjectInTheWay(t *testing.T) {
	s := openFolder(t, env.Real(), t.TempDir())
	if err := s.Create(t.Context(), "job/a", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"job", "job/a/b"} {
		if err := s.Create(t.Context(), name, nil); !errors.Is(err, store.ErrName) {
			t.Errorf("create %s: got %v, want ErrName", name, err)
		}
	}
}

func TestFolderStaleTemporaryFiles(t *testing.T) {
	folder := t.TempDir()
	openFolder(t, env.Real(), folder)
	temp := filepath.Join(folder, ".tmp")
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": time.Hour} {
		path := filepath.Join(temp, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	openFolder(t, env.Real(), folder)
	if _, err := os.Stat(filepath.Join(temp, "old")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(temp, "young")); err != nil {
		t.Errorf("the young file, perhaps another process's, is gone: %v", err)
	}
}

func TestOpenFolderRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", file, filepath.Join(file, "below")} {
		if s, err := store.OpenFolder(env.Real(), path); err == nil {
			t.Errorf("%q was opened as %s", path, s)
		}
	}
}

// countingFS counts the folders that are read.
type countingFS struct {
	env.FS
	read int
}

func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	c.read++
	return c.FS.ReadDir(name)
}

func TestFolderListReadsOnlyWhatItNeeds(t *testing.T) {
	files := &countingFS{FS: env.OS()}
	e := env.Real()
	e.Files = files
	s := openFolder(t, e, t.TempDir())
	for i := range 20 {
		for j := range 3 {
			if err := s.Create(t.Context(), fmt.Sprintf("job/%02d/%d", i, j), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          int // folders read, the one of the prefix included
	}{
		{"job/07/", "", 10, 1},
		{"job/0", "", 4, 3}, // job, 00 and 01
		{"job/1", "job/18/2", 10, 3},
		{"job/", "job/18/1", 3, 3},
		{"nothing/", "", 10, 1},
	} {
		files.read = 0
		if _, err := s.List(t.Context(), c.prefix, c.after, c.limit); err != nil {
			t.Fatal(err)
		}
		if files.read != c.want {
			t.Errorf("list %q after %q, %d: %d folders were read, want %d", c.prefix, c.after, c.limit, files.read, c.want)
		}
	}
}

func BenchmarkFolderCreate(b *testing.B) {
	s, err := store.OpenFolder(env.Real(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		if err := s.Create(b.Context(), fmt.Sprintf("job/log/%020d.json", i), data); err != nil {
			b.Fatal(err)
		}
	}
}
