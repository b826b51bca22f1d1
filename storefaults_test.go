package sluice_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// createsIn lists the numbers of the calls of an unharmed run that create
// something, and counts all.
func createsIn(t *testing.T, payments int) (creates []int, all int) {
	t.Helper()
	e := newErrand(t, payments)
	faulty := faultstore.New(store.NewMemory(), nil)
	if err := e.run(t.Context(), t, e.world(faultenv.Hooks{}), faulty); err != nil {
		t.Fatal(err)
	}
	calls := faulty.Calls()
	for _, c := range calls {
		if c.Operation == "create" || c.Operation == "commit" {
			creates = append(creates, c.N)
		}
	}
	return creates, len(calls)
}

// TestCreatesInDoubt lets each create in turn time out: it has succeeded, it has
// not, or it succeeds some calls later, also after the run's end. The run gets
// over it, or the next one does.
func TestCreatesInDoubt(t *testing.T) {
	t.Parallel()
	creates, _ := createsIn(t, 16)
	for _, c := range []struct {
		name  string
		fault faultstore.Fault
		lands int // after so many calls; 0: after the run's end
	}{
		{"it has succeeded", faultstore.LostReply, 0},
		{"it has not", faultstore.LostCall, 0},
		{"it lands before the next call", faultstore.Late, 1},
		{"it lands three calls later", faultstore.Late, 3},
		{"it lands after the end", faultstore.Late, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range creates {
				createInDoubt(t, n, c.fault, c.lands)
				if t.Failed() {
					t.Fatalf("by call %d", n)
				}
			}
		})
	}
}

func createInDoubt(t *testing.T, n int, fault faultstore.Fault, lands int) {
	t.Helper()
	e := newErrand(t, 16)
	s := store.NewMemory()
	var faulty *faultstore.Store
	faulty = faultstore.New(s, func(c faultstore.Call) faultstore.Fault {
		if c.N == n && (c.Operation == "create" || c.Operation == "commit") {
			return fault
		}
		if lands > 0 && c.N == n+lands {
			_ = faulty.Land(context.Background()) // it may meet what took its name
		}
		return faultstore.None
	})
	if err := e.run(t.Context(), t, e.world(faultenv.Hooks{}), faulty); err != nil {
		checkError(t, e, err)
	}
	_ = faulty.Land(context.Background())
	if err := e.run(t.Context(), t, e.world(faultenv.Hooks{}), s); err != nil {
		t.Fatalf("the run after the doubt: %v", err)
	}
	e.check(t)
}

// TestTheStoreFailsForMinutes lets all calls of the store fail for some minutes,
// from each of several calls on. A supervisor starts the job again until it is
// through.
func TestTheStoreFailsForMinutes(t *testing.T) {
	t.Parallel()
	_, all := createsIn(t, 16)
	for n := 1; n <= all; n += max(1, all/8) {
		e := newErrand(t, 16)
		s := store.NewMemory()
		world := e.world(faultenv.Hooks{})
		var begin time.Time
		faulty := faultstore.New(s, func(c faultstore.Call) faultstore.Fault {
			if c.N == n {
				begin = world.Clock.Now()
			}
			if c.N >= n && world.Clock.Now().Sub(begin) < 3*time.Minute {
				return faultstore.Fail
			}
			return faultstore.None
		})
		starts := 0
		for err := e.run(t.Context(), t, world, faulty); err != nil; err = e.run(t.Context(), t, world, faulty) {
			checkError(t, e, err)
			if starts++; starts > 1000 {
				t.Fatalf("still failing after %d starts: %v", starts, err)
			}
			pause := world.Clock.NewTimer(5 * time.Second)
			<-pause.C()
		}
		e.check(t)
	}
}

// fullDisk is a disk without room for what lies below a folder, from a call on
// until room is made.
type fullDisk struct {
	below string
	from  int // the how-manieth write
	room  atomic.Bool
	met   atomic.Int64 // how many calls found no room
	after int64        // so many calls find none, then there is room; 0: until room is set
	n     atomic.Int64
}

func (d *fullDisk) before(c faultenv.Call) faultenv.Fault {
	operation, _, _ := strings.Cut(c.Name, " ")
	if operation != "write" && operation != "create" && operation != "mkdir" || !strings.HasPrefix(c.Path, d.below) {
		return faultenv.Fault{}
	}
	if int(d.n.Add(1)) < d.from || d.room.Load() {
		return faultenv.Fault{}
	}
	if met := d.met.Add(1); d.after > 0 && met > d.after {
		return faultenv.Fault{}
	}
	return faultenv.Fault{Err: syscall.ENOSPC}
}

// TestTheDiskIsFull takes the room for the store away, from the n-th write on:
// the job stops and says so, nothing half-written is to be seen, and it goes on
// once there is room. Only a heartbeat may be left out.
func TestTheDiskIsFull(t *testing.T) {
	t.Parallel()
	const stride = 11 // of about 70 writes
	for n, stopped := 1, true; stopped; n += stride {
		e := newErrand(t, 30)
		disk := &fullDisk{below: e.path("store"), from: n}
		err := e.run(t.Context(), t, e.world(faultenv.Hooks{Before: disk.before}), nil)
		if stopped = disk.met.Load() > 0; err != nil {
			checkFull(t, e, err)
		} else {
			e.check(t)
		}
		wholeStore(t, e)
		disk.room.Store(true)
		e.finish(t)
		wholeStore(t, e)
	}
}

func checkFull(t *testing.T, e *errand, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("the job has ended well on a full disk")
	}
	checkError(t, e, err)
	if text := err.Error(); !strings.Contains(text, "full") && !strings.Contains(text, syscall.ENOSPC.Error()) {
		t.Errorf("the error does not say that the disk is full: %s", text)
	}
}

// A sink without room is tried again until it has some: the job goes on by
// itself.
func TestTheSinksDiskIsFullForAWhile(t *testing.T) {
	t.Parallel()
	for _, sink := range []string{"receipts", "balances"} {
		e := newErrand(t, 30)
		disk := &fullDisk{below: e.path(sink) + "/.sluice/tmp-", from: 4, after: 7}
		if err := e.run(t.Context(), t, e.world(faultenv.Hooks{Before: disk.before}), nil); err != nil {
			t.Fatal(err)
		}
		if disk.met.Load() <= disk.after {
			t.Errorf("the disk was met full %d times, expected more than %d", disk.met.Load(), disk.after)
		}
		e.check(t)
	}
}

// wholeStore makes sure that all that can be seen is whole: manifests can be
// read, and what they refer to has the bytes that they say. It counts what is
// referred to.
func wholeStore(t *testing.T, e *errand) (references int) {
	t.Helper()
	root := e.path("store/payments")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return nil // there may be no store yet
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var object any
		if err := json.Unmarshal(data, &object); err != nil {
			t.Errorf("%s is half-written: %v", path, err)
		}
		references += checkReferences(t, root, path, object)
		return nil
	})
	return references
}

// checkReferences looks for objects with a path and a hash, however deep.
func checkReferences(t *testing.T, root, in string, object any) (references int) {
	t.Helper()
	switch o := object.(type) {
	case []any:
		for _, part := range o {
			references += checkReferences(t, root, in, part)
		}
	case map[string]any:
		path, hasPath := o["path"].(string)
		hash, hasHash := o["sha256"].(string)
		if hasPath && hasHash {
			references++
			data, err := os.ReadFile(filepath.Join(root, path))
			if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != hash {
				t.Errorf("%s refers to %s, which is not whole (%v)", in, path, err)
			}
		}
		for _, part := range o {
			references += checkReferences(t, root, in, part)
		}
	}
	return references
}

// TestARealFullDisk does it on a small file system of its own.
func TestARealFullDisk(t *testing.T) {
	e := newErrand(t, 30)
	e.dir = smallDisk(t, 8<<20)
	e.payments = 0
	e.feed(t, 30)
	if err := e.run(t.Context(), t, e.world(faultenv.Hooks{}), nil); err != nil {
		t.Fatal(err)
	}
	e.feed(t, 30)
	fill(t, e.path("filler"))
	checkFull(t, e, e.run(t.Context(), t, e.world(faultenv.Hooks{}), nil))
	wholeStore(t, e)
	if err := os.Remove(e.path("filler")); err != nil {
		t.Fatal(err)
	}
	e.finish(t)
	if n := wholeStore(t, e); n == 0 {
		t.Error("no manifest refers to anything")
	}
}

// smallDisk mounts a file as a disk, where that can be done.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.WriteFile(image, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, bytes); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, mount}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no small disk can be made here, so a real full one was not tried: %v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return mount
}

// fill takes all the room that there is.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2 // down to the last byte
		}
	}
	if err := f.Sync(); err != nil {
		t.Logf("the filler: %v", fmt.Errorf("sync: %w", err))
	}
}
