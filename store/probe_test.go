package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// bent is a file system some of whose calls do something else.
type bent struct {
	env.FS
	open    func(name string) (env.File, error)
	link    func(old, new string) error
	rename  func(old, new string) error
	remove  func(name string) error
	readDir func(name string) ([]fs.DirEntry, error)
	syncDir error
}

func (b *bent) Open(name string) (env.File, error) {
	if b.open != nil {
		return b.open(name)
	}
	return b.FS.Open(name)
}

func (b *bent) Link(old, new string) error {
	if b.link != nil {
		return b.link(old, new)
	}
	return b.FS.Link(old, new)
}

func (b *bent) Rename(old, new string) error {
	if b.rename != nil {
		return b.rename(old, new)
	}
	return b.FS.Rename(old, new)
}

func (b *bent) Remove(name string) error {
	if b.remove != nil {
		return b.remove(name)
	}
	return b.FS.Remove(name)
}

func (b *bent) ReadDir(name string) ([]fs.DirEntry, error) {
	if b.readDir != nil {
		return b.readDir(name)
	}
	return b.FS.ReadDir(name)
}

func (b *bent) SyncDir(name string) error {
	if b.syncDir != nil {
		return b.syncDir
	}
	return b.FS.SyncDir(name)
}

// probeOn probes a new folder on a file system, as if it lay on ext4.
func probeOn(t *testing.T, files env.FS) (string, error) {
	t.Helper()
	e := env.Real()
	e.Files = files
	folder := t.TempDir()
	_, err := store.Probe(t.Context(), e, folder, store.ProbeOptions{Volatile: true})
	return folder, err
}

// wantTidy checks that a probe has left nothing in a store's folder.
func wantTidy(t *testing.T, folder string) {
	t.Helper()
	for path, want := range map[string]int{folder: 1, filepath.Join(folder, ".tmp"): 0} { // the scratch folder itself
		left, err := os.ReadDir(path)
		if err != nil || len(left) != want {
			t.Errorf("in %s are left: %v, %v", path, left, err)
		}
	}
}

func TestProbeOfAGoodStore(t *testing.T) {
	folder, err := probeOn(t, env.OS())
	if err != nil {
		t.Error(err)
	}
	wantTidy(t, folder)
}

func TestProbeFindsBrokenPromises(t *testing.T) {
	disk := env.OS()
	overwrite := func(old, new string) error {
		os.Remove(new)
		return os.Link(old, new)
	}
	var shown []fs.DirEntry
	for name, c := range map[string]struct {
		files *bent
		want  store.Fault
	}{
		"a link overwrites":            {&bent{FS: disk, link: overwrite}, store.TwoWinners},
		"a link does nothing":          {&bent{FS: disk, link: func(_, _ string) error { return nil }}, store.TwoWinners},
		"there are no hard links":      {&bent{FS: disk, link: func(_, _ string) error { return syscall.EPERM }}, store.NoLink},
		"a link to a taken name works": {&bent{FS: disk, link: linkOnce(overwrite)}, store.TwoWinners},
		"a rename is lost":             {&bent{FS: disk, rename: func(_, _ string) error { return nil }}, store.RenameFails},
		"a rename doesn't replace":     {&bent{FS: disk, rename: renameIfAbsent}, store.RenameFails},
		"a listing lags by one": {&bent{FS: disk, readDir: func(name string) ([]fs.DirEntry, error) {
			before := shown
			var err error
			shown, err = disk.ReadDir(name)
			return before, err
		}}, store.ListingLags},
		"a reader sees an empty file": {&bent{FS: disk, open: func(string) (env.File, error) { return disk.Open(os.DevNull) }}, store.Unreadable},
		"folders can't be synced":     {&bent{FS: disk, syncDir: syscall.EINVAL}, store.NoSync},
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := probeOn(t, c.files)
			unfit, ok := errors.AsType[*store.UnfitError](err)
			if !ok || unfit.Fault != c.want || unfit.Store != folder {
				t.Errorf("got %v, want the fault %q", err, c.want)
			}
			c.files.readDir = nil
			wantTidy(t, folder)
		})
	}
}

// linkOnce links properly at the first of each name, and by itself afterwards
// only if the name was asked for twice before: the two racers see a good store.
func linkOnce(later func(old, new string) error) func(old, new string) error {
	var mu sync.Mutex
	asked := map[string]int{}
	return func(old, new string) error {
		mu.Lock()
		defer mu.Unlock()
		if asked[new]++; asked[new] > 2 {
			return later(old, new)
		}
		return os.Link(old, new)
	}
}

func renameIfAbsent(old, new string) error {
	if _, err := os.Stat(new); err == nil {
		return nil
	}
	return os.Rename(old, new)
}

// TestProbeSurvivesLostReplies plays NFS: the server has made the link, and the
// client hears of an error, or the client's repeated request meets its own work.
func TestProbeSurvivesLostReplies(t *testing.T) {
	for _, heard := range []error{syscall.EIO, syscall.EEXIST, syscall.ETIMEDOUT, syscall.ESTALE} {
		folder, err := probeOn(t, &bent{FS: env.OS(), link: func(old, new string) error {
			if err := os.Link(old, new); err != nil {
				return err
			}
			return &os.LinkError{Op: "link", Old: old, New: new, Err: heard}
		}})
		if err != nil {
			t.Errorf("%v heard: %v", heard, err)
		}
		wantTidy(t, folder)
	}
}

// later is a clock that is ahead.
type later struct {
	env.Clock
	by time.Duration
}

func (c later) Now() time.Time { return c.Clock.Now().Add(c.by) }

func TestProbeThatWasKilled(t *testing.T) {
	e := env.Real()
	e.Files = &bent{FS: env.OS(), remove: func(string) error { return nil }} // it never came to tidy up
	folder := t.TempDir()
	if _, err := store.Probe(t.Context(), e, folder, store.ProbeOptions{Volatile: true}); err != nil {
		t.Fatal(err)
	}
	s := openFolder(t, env.Real(), folder)
	if left, err := os.ReadDir(folder); err != nil || len(left) < 2 {
		t.Errorf("a probe that is perhaps under way was disturbed: %v, %v", left, err)
	}
	if listed, err := s.List(t.Context(), "", "", 10); err != nil || len(listed) != 0 {
		t.Errorf("its files are seen as objects: %v, %v", listed, err)
	}
	e = env.Real()
	e.Clock = later{e.Clock, 2 * time.Minute}
	openFolder(t, e, folder)
	wantTidy(t, folder)
}

// TestProbeThatIsDisturbed removes a probe's files in its middle, as the start of
// another process with a clock far ahead would.
func TestProbeThatIsDisturbed(t *testing.T) {
	for _, times := range []int{1, 100} {
		ahead := env.Real()
		ahead.Clock = later{ahead.Clock, time.Hour}
		files := &bent{FS: env.OS()}
		var listings int
		files.readDir = func(name string) ([]fs.DirEntry, error) {
			if _, err := os.ReadDir(filepath.Join(name, ".tmp")); err == nil {
				if listings++; listings%3 == 0 && listings/3 <= times {
					openFolder(t, ahead, name)
				}
			}
			return env.OS().ReadDir(name)
		}
		_, err := probeOn(t, files)
		if _, unfit := errors.AsType[*store.UnfitError](err); unfit || (err == nil) != (times == 1) {
			t.Errorf("disturbed %d times: %v", times, err)
		}
	}
}

// onMount is the disk with a mount table that has another kind of file system
// for it.
func onMount(t *testing.T, folder, kind, source, options string) env.FS {
	info, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	table := filepath.Join(t.TempDir(), "mountinfo")
	device := uint64(stat.Dev)
	major, minor := device>>8&0xfff, device&0xff|device>>12&0xffffff00
	text := fmt.Sprintf("22 27 0:999 / /proc rw - proc proc rw\n27 1 %d:%d / / rw,relatime shared:1 - %s %s %s\n", major, minor, kind, source, options)
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return &bent{FS: env.OS(), open: func(name string) (env.File, error) {
		if name == "/proc/self/mountinfo" {
			name = table
		}
		return env.OS().Open(name)
	}}
}

func TestProbeRefusesByName(t *testing.T) {
	if _, err := os.Stat("/proc/self/mountinfo"); err != nil {
		t.Skip("only Linux tells file systems' names")
	}
	for _, c := range []struct {
		kind, source, options string
		want, volatile        store.Fault // "": it is taken
	}{
		{"ext4", "/dev/sda1", "rw", "", ""},
		{"nfs4", "server:/jobs", "rw", "", ""},
		{"overlay", "overlay", "rw,lowerdir=/a", "", ""},
		{"overlay", "overlay", "rw,volatile", store.Forgets, ""},
		{"tmpfs", "tmpfs", "rw", store.Forgets, ""},
		{"ramfs", "none", "rw", store.Forgets, ""},
		{"9p", "share", "rw", store.Forgets, ""},
		{"vfat", "/dev/sda1", "rw", store.NoLink, store.NoLink},
		{"exfat", "/dev/sda1", "rw", store.NoLink, store.NoLink},
		{"vboxsf", "share", "rw", store.NoLink, store.NoLink},
		{"fuse.s3fs", "s3fs", "rw", store.TwoWinners, store.TwoWinners},
		{"fuse.gcsfuse", "bucket", "rw", store.TwoWinners, store.TwoWinners},
		{"fuse.rclone", "remote:bucket", "rw", store.TwoWinners, store.TwoWinners},
		{"fuse", "mountpoint-s3", "rw", store.TwoWinners, store.TwoWinners},
		{"fuse.mergerfs", "a:b", "rw", "", ""},
	} {
		folder := t.TempDir()
		e := env.Real()
		e.Files = onMount(t, folder, c.kind, c.source, c.options)
		for volatile, want := range map[bool]store.Fault{false: c.want, true: c.volatile} {
			report, err := store.Probe(t.Context(), e, folder, store.ProbeOptions{Volatile: volatile})
			var found store.Fault
			if unfit, ok := errors.AsType[*store.UnfitError](err); ok {
				found = unfit.Fault
				if !strings.Contains(err.Error(), c.kind) || strings.Contains(err.Error(), "--volatile") != (want == store.Forgets) {
					t.Errorf("%s: the error is %q", c.kind, err)
				}
			} else if err != nil {
				t.Error(err)
			}
			if found != want || report.FileSystem != c.kind {
				t.Errorf("%s, volatile %t: found the fault %q, want %q; it is called %s", c.kind, volatile, found, want, report.FileSystem)
			}
		}
		wantTidy(t, folder)
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	folder := t.TempDir()
	if _, err := store.Probe(ctx, env.Real(), folder, store.ProbeOptions{Volatile: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantTidy(t, folder)
}

// TestFolderOnNFS lets several openers create the same names while replies of
// links are lost: each name has one winner at most who knows of it, none where
// the winner was told nothing certain, and the bytes are whole in any case.
func TestFolderOnNFS(t *testing.T) {
	const openers = 3
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.Int64Range(1, 4).Draw(t, "every n-th reply is lost")
		heard := rapid.SampledFrom([]syscall.Errno{syscall.EIO, syscall.EEXIST, syscall.ETIMEDOUT}).Draw(t, "heard")
		twice := rapid.Bool().Draw(t, "the request is repeated")
		folder, err := os.MkdirTemp("", "nfs")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		var links atomic.Int64
		e := env.Real()
		e.Files = &bent{FS: env.OS(), link: func(old, new string) error {
			err := os.Link(old, new)
			if links.Add(1)%every != 0 {
				return err
			}
			if twice {
				err = os.Link(old, new)
			} else if err == nil {
				err = &os.LinkError{Op: "link", Old: old, New: new, Err: heard}
			}
			return err
		}}
		const names = 4
		var won [names]atomic.Int64
		var running sync.WaitGroup
		for opener := range openers {
			s, err := store.OpenFolder(e, folder)
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				for name := range names {
					err := s.Create(context.Background(), fmt.Sprintf("job/%d", name), fmt.Append(nil, "by ", opener))
					if err == nil {
						won[name].Add(1)
					} else if !errors.Is(err, store.ErrExists) {
						t.Errorf("opener %d, name %d: %v", opener, name, err)
					}
				}
			})
		}
		running.Wait()
		for name := range names {
			data, err := os.ReadFile(filepath.Join(folder, "job", fmt.Sprint(name)))
			if err != nil || !strings.HasPrefix(string(data), "by ") || won[name].Load() != 1 {
				t.Errorf("name %d has %d winners; it holds %q, %v", name, won[name].Load(), data, err)
			}
		}
	})
}

func BenchmarkProbe(b *testing.B) {
	folder := b.TempDir()
	for b.Loop() {
		if _, err := store.Probe(b.Context(), env.Real(), folder, store.ProbeOptions{Volatile: true}); err != nil {
			b.Fatal(err)
		}
	}
}
