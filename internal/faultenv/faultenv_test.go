package faultenv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/store"
)

const manifest = "shop/branches/main/0.0/00000000000000000001.json"

// names lists the calls of a use of a store.
func names(t *testing.T, use func(s *store.Folder) error) (calls []faultenv.Call) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "store")
	world := faultenv.Wrap(env.Real(), faultenv.Places{Store: root}, faultenv.Hooks{After: func(c faultenv.Call) { calls = append(calls, c) }})
	s, err := store.OpenFolder(world, root)
	if err != nil {
		t.Fatal(err)
	}
	calls = nil
	if err := use(s); err != nil {
		t.Fatal(err)
	}
	return calls
}

func TestCallsHaveNames(t *testing.T) {
	var got []string
	for _, c := range names(t, func(s *store.Folder) error { return s.Create(context.Background(), manifest, []byte("{}")) }) {
		got = append(got, c.Name)
	}
	// In this order they must come: the bytes are durable before the name is, and
	// what was made aside goes last.
	at := 0
	for _, want := range []string{
		"random", "create scratch", "write scratch", "sync scratch", "close scratch", "mkdir log folder", "sync job folder", "sync branch folder",
		"link manifest", "sync log folder", "remove scratch of manifest",
	} {
		found := slices.Index(got, want)
		if found < 0 {
			t.Errorf("no call %q in %q", want, got)
		} else if found < at && !strings.Contains(want, "folder") {
			t.Errorf("%q comes too early in %q", want, got)
		}
		at = found
	}
}

func TestCallsAreCounted(t *testing.T) {
	calls := names(t, func(s *store.Folder) error {
		for _, text := range []string{"a", "b", "c"} {
			if err := s.Create(context.Background(), "shop/pins/"+text+".json", []byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
	links := 0
	for i, c := range calls {
		if c.N != calls[0].N+i {
			t.Errorf("call %d has number %d", i, c.N)
		}
		if c.Name == "link pin" {
			if links++; c.Nth != links {
				t.Errorf("the %d-th link of a pin is counted as %d", links, c.Nth)
			}
		}
	}
	if links != 3 {
		t.Errorf("%d links of pins, want 3", links)
	}
}

// failing is an environment in which one call, by its name, fails.
func failing(t *testing.T, name string, f faultenv.Fault) (*env.Env, string) {
	t.Helper()
	root := t.TempDir()
	return faultenv.Wrap(env.Real(), faultenv.Places{Store: root}, faultenv.Hooks{Before: func(c faultenv.Call) faultenv.Fault {
		if c.Name == name {
			return f
		}
		return faultenv.Fault{}
	}}), root
}

func TestAFaultIsTheSystems(t *testing.T) {
	world, root := failing(t, "create job", faultenv.Fault{Err: syscall.ENOSPC})
	path := filepath.Join(root, "shop", "job.json")
	_, err := world.Files.Create(path)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("the create's error is %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a create that failed has made the file")
	}
}

func TestALostReplyIsOfACallThatWasDone(t *testing.T) {
	world, root := failing(t, "link job", faultenv.Fault{Err: syscall.EIO, Done: true})
	old, path := filepath.Join(root, "old"), filepath.Join(root, "shop", "job.json")
	if err := errors.Join(os.Mkdir(filepath.Join(root, "shop"), 0o755), os.WriteFile(old, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := world.Files.Link(old, path); !errors.Is(err, syscall.EIO) {
		t.Errorf("the link's error is %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the link was not made")
	}
}

func TestAFailedWriteLeavesHalf(t *testing.T) {
	world, root := failing(t, "write job", faultenv.Fault{Err: syscall.EIO})
	path := filepath.Join(root, "shop", "job.json")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := world.Files.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write([]byte("abcdef")); n != 3 || !errors.Is(err, syscall.EIO) {
		t.Errorf("the write answers %d, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "abc" {
		t.Errorf("the file holds %q", data)
	}
}

// The wall jumps, the monotonic reading goes on: ages don't notice.
func TestASteppingClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	clock := faultenv.Stepping(env.Real().Clock, func(n int) time.Duration {
		return map[int]time.Duration{2: time.Hour, 3: -2 * time.Hour, 4: year, 5: -2 * year}[n]
	})
	begin := time.Now()
	first := clock.Now()
	for i, want := range []time.Duration{time.Hour, -time.Hour, year - time.Hour, -year - time.Hour} {
		now, real := clock.Now(), time.Now()
		if wall := now.Round(0).Sub(real.Round(0)); (wall - want).Abs() > time.Minute {
			t.Errorf("reading %d: the wall is off by %v, want %v", i+2, wall, want)
		}
		if age := now.Sub(first); age < 0 || age > real.Sub(begin) {
			t.Errorf("reading %d: %v have gone by, by the real clock at most %v", i+2, age, real.Sub(begin))
		}
	}
}

// On a hasty clock hours go by in no time, and its timers agree with it.
func TestAHastyClock(t *testing.T) {
	clock := faultenv.Hasty(env.Real().Clock, 3_600_000)
	before := clock.Now()
	timer := clock.NewTimer(time.Hour)
	defer timer.Stop()
	<-timer.C()
	if passed := clock.Now().Sub(before); passed < time.Hour {
		t.Errorf("a timer of an hour has fired after %v", passed)
	}
}
