package epoch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// quickClock moves a millisecond at each look, and its timers fire at once.
type quickClock struct{ now atomic.Int64 }

func (c *quickClock) Now() time.Time { return time.UnixMilli(1_764_435_600_000 + c.now.Add(1)) }

func (c *quickClock) NewTimer(time.Duration) env.Timer {
	t := firedTimer{make(chan time.Time, 1)}
	t.c <- c.Now()
	return t
}

type firedTimer struct{ c chan time.Time }

func (t firedTimer) C() <-chan time.Time { return t.c }
func (t firedTimer) Reset(time.Duration) {}
func (t firedTimer) Stop()               {}

func testEnv(seed uint64) *env.Env {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	return &env.Env{Clock: &quickClock{}, Random: rand.NewChaCha8(key)}
}

// process plays one process: its own environment, and a store that can fail.
type process struct {
	t     testing.TB
	name  string
	store *faultstore.Store
	job   *Job
	me    Identity
}

func newProcess(t testing.TB, s store.Store, number int) *process {
	t.Helper()
	p := &process{t: t, name: fmt.Sprintf("p%d", number), store: faultstore.New(s, nil)}
	p.me = Identity{Build: Build{Executable: "exe"}, Version: testVersion(), Writer: Writer{Host: p.name, PID: number}}
	job, err := OpenJob(t.Context(), testEnv(uint64(number)), p.store, "spend", "")
	if err != nil {
		t.Fatal(err)
	}
	p.job = job
	return p
}

func (p *process) take() *Owner {
	p.t.Helper()
	o, err := p.job.TakeLive(p.t.Context(), FirstTask, p.me)
	if err != nil {
		p.t.Fatalf("%s takes: %v", p.name, err)
	}
	return o
}

// work is the payload of a data epoch that has read up to an offset.
func work(o *Owner, next int64) Manifest {
	head, _ := o.Head()
	return Manifest{
		Kind: Data, Now: head.Now + 1, Runs: []Run{{"orders", "0", next}},
		Sources: map[string]SourceState{"orders": {Partitions: map[string]Offset{"0": {Next: next}}}},
		Sinks:   head.Sinks,
	}
}

func commit(t testing.TB, o *Owner, next int64) Manifest {
	t.Helper()
	m, err := o.Commit(t.Context(), work(o, next))
	if err != nil {
		t.Fatalf("commit up to %d: %v", next, err)
	}
	return m
}

func nextOf(m Manifest) int64 { return m.Sources["orders"].Partitions["0"].Next }

// onManifest is a plan with a fault at creates of one epoch's manifest of main.
func onManifest(e Epoch, fault func(n int) faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	n := 0
	return func(c faultstore.Call) faultstore.Fault {
		if c.Operation != "create" || c.Name != "spend/"+ManifestPath(MainBranch, FirstTask, e) {
			return faultstore.None
		}
		n++
		return fault(n)
	}
}

func once(f faultstore.Fault) func(int) faultstore.Fault {
	return func(n int) faultstore.Fault {
		if n == 1 {
			return f
		}
		return faultstore.None
	}
}

// clean plays clean-up: the floor record, then the manifests under it go.
func clean(t testing.TB, s store.Store, branch string, floor Epoch) {
	t.Helper()
	data, err := encode(Floor{Format: Format, Branch: branch, Task: FirstTask, Epoch: floor})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "spend/"+FloorPath(branch, FirstTask, floor), data); err != nil {
		t.Fatal(err)
	}
	prefix := "spend/" + LogPath(branch, FirstTask)
	listed, err := s.List(t.Context(), prefix, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		if n, ok := ParsePath(strings.TrimPrefix(l.Name, "spend/")); ok && n.Kind == ManifestObject && n.Epoch < floor {
			if err := s.Delete(t.Context(), l.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// seal plays an upgrader's U6 at one name.
func seal(t testing.TB, s store.Store, j *Job, branch string, e Epoch, parent string) {
	t.Helper()
	data, err := Manifest{Format: Format, JobID: j.ID(), Branch: branch, Task: FirstTask, Epoch: e, Kind: Seal, Parent: parent, Owner: "upgrader", By: "an upgrade"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "spend/"+ManifestPath(branch, FirstTask, e), data); err != nil {
		t.Fatal(err)
	}
}

func wantError[E error](t testing.TB, what string, err error) E {
	t.Helper()
	var typed E
	if !errors.As(err, &typed) {
		t.Fatalf("%s: got %v, want a %T", what, err, typed)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: more than one line: %q", what, err)
	}
	return typed
}

// checkLog reads the whole log, with the parents' hashes, and returns it.
func checkLog(t testing.TB, j *Job, branch string) []Manifest {
	t.Helper()
	var log []Manifest
	for m, err := range j.Manifests(context.Background(), branch, FirstTask, 0, AllEpochs) {
		if err != nil {
			t.Fatalf("the log of %s: %v", branch, err)
		}
		if n := len(log); n > 0 {
			before := log[n-1]
			if m.Epoch != before.Epoch+1 {
				t.Fatalf("epoch %d comes after %d", m.Epoch, before.Epoch)
			}
			if want := NextPosition(m.Kind, m.Live != nil, before.Position, m.Position); m.Position != want {
				t.Fatalf("epoch %d has position %d, want %d", m.Epoch, m.Position, want)
			}
		}
		log = append(log, m)
	}
	return log
}
