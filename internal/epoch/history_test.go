package epoch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// The histories of the protocol that a log and its owner can meet, each with
// the ending that the rules give it.

// TestLateCreateLandsBeforeTheRetry is H7: the put times out, lands, and the
// retry finds the name taken, by its own bytes.
func TestLateCreateLandsBeforeTheRetry(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	p.store.SetPlan(onManifest(o.NextEpoch(), func(n int) faultstore.Fault {
		if n == 1 {
			return faultstore.Late
		}
		if n == 2 {
			if err := p.store.Land(t.Context()); err != nil {
				t.Errorf("the late create: %v", err)
			}
		}
		return faultstore.None
	}))
	m := commit(t, o, 10)
	p.store.SetPlan(nil)
	commit(t, o, 20)
	log := checkLog(t, p.job, MainBranch)
	if got := log[len(log)-2]; got.Epoch != m.Epoch || nextOf(got) != 10 || got.Attempt != m.Attempt {
		t.Errorf("epoch %d is %+v, want the one that was committed", m.Epoch, got)
	}
}

// TestLateCreateLandsAfterTheRetry is H7 in the other order.
func TestLateCreateLandsAfterTheRetry(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	p.store.SetPlan(onManifest(o.NextEpoch(), once(faultstore.Late)))
	m := commit(t, o, 10)
	if err := p.store.Land(t.Context()); !errors.Is(err, store.ErrExists) {
		t.Errorf("the late create met %v", err)
	}
	commit(t, o, 20)
	if log := checkLog(t, p.job, MainBranch); nextOf(log[m.Epoch]) != 10 || nextOf(log[m.Epoch+1]) != 20 {
		t.Errorf("the log is %+v", log)
	}
}

// TestOnlyTheSameBytesAreRetried is the heart of H7: whatever is put under a
// name by one owner is the same, however often, time stamps included.
func TestOnlyTheSameBytesAreRetried(t *testing.T) {
	inner := &recording{Store: store.NewMemory(), tried: map[string][][]byte{}}
	p := newProcess(t, inner, 1)
	o := p.take()
	e := o.NextEpoch()
	n := 0
	inner.fail = func(name string) error {
		if n++; n <= 5 {
			return store.ErrUnknown
		}
		return nil
	}
	commit(t, o, 10)
	tried := inner.tried["spend/"+ManifestPath(MainBranch, FirstTask, e)]
	if len(tried) != 6 {
		t.Fatalf("%d tries, want 6", len(tried))
	}
	for _, bytes := range tried {
		if !slices.Equal(bytes, tried[0]) {
			t.Errorf("one name was tried with\n%sand\n%s", tried[0], bytes)
		}
	}
}

// recording keeps what was tried under each name.
type recording struct {
	store.Store
	mu    sync.Mutex
	tried map[string][][]byte
	fail  func(name string) error
}

func (r *recording) Create(ctx context.Context, name string, data []byte) error {
	r.mu.Lock()
	r.tried[name] = append(r.tried[name], slices.Clone(data))
	fail := r.fail
	r.mu.Unlock()
	if fail != nil {
		if err := fail(name); err != nil {
			return err
		}
	}
	return r.Store.Create(ctx, name, data)
}

// TestRestartAfterALateCreate is H7 across a restart: what was collected anew
// finds the old put in its place and goes on behind it.
func TestRestartAfterALateCreate(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	e := o.NextEpoch()
	p.store.SetPlan(func(c faultstore.Call) faultstore.Fault { // the store is gone for good
		if c.Operation == "create" {
			return faultstore.Late
		}
		return faultstore.None
	})
	_, err := o.Commit(t.Context(), work(o, 10))
	if !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	// The next process looks for the head, and just then the old put lands.
	next := newProcess(t, s, 2)
	next.store.SetPlan(onManifest(e, func(n int) faultstore.Fault {
		if n == 1 {
			if err := p.store.Land(t.Context()); err != nil {
				t.Errorf("the late create: %v", err)
			}
		}
		return faultstore.None
	}))
	o2 := next.take()
	head, _ := o2.Head()
	if head.Epoch != e+1 || head.Kind != Open || nextOf(head) != 10 {
		t.Fatalf("the new owner begins at %+v, want an opening behind epoch %d that goes on from 10", head, e)
	}
	if m := commit(t, o2, 20); m.Position != 2 {
		t.Errorf("position %d, want 2", m.Position)
	}
	checkLog(t, next.job, MainBranch)
}

// TestNoManifestWhileOneIsInDoubt is H8: epoch e+1 is not tried before e is
// known to be mine, nor ever if it can't be known.
func TestNoManifestWhileOneIsInDoubt(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	e := o.NextEpoch()
	p.store.SetPlan(onManifest(e, func(int) faultstore.Fault { return faultstore.LostCall }))
	_, first := o.Commit(t.Context(), work(o, 10))
	if !errors.Is(first, store.ErrUnknown) {
		t.Fatalf("got %v, want an unknown outcome", first)
	}
	p.store.SetPlan(nil)
	if _, err := o.Commit(t.Context(), work(o, 20)); err != first {
		t.Errorf("the next commit: got %v, want the error of the one before", err)
	}
	tries := 0
	for _, c := range p.store.Calls() {
		switch {
		case c.Operation != "create":
		case c.Name == "spend/"+ManifestPath(MainBranch, FirstTask, e):
			tries++
		case c.Name == "spend/"+ManifestPath(MainBranch, FirstTask, e+1):
			t.Error("the epoch after was tried")
		}
	}
	if tries != createTries {
		t.Errorf("%d tries, want %d", tries, createTries)
	}
}

// TestCommitsAtOnceMakeOneChain is H8 with callers that don't wait.
func TestCommitsAtOnceMakeOneChain(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	lost := 0
	var mu sync.Mutex
	p.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if lost++; c.Operation == "create" && lost%3 == 0 {
			return faultstore.LostReply
		}
		return faultstore.None
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				if _, err := o.Commit(t.Context(), Manifest{Kind: Data, Now: 1 << 60}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if log := checkLog(t, p.job, MainBranch); len(log) != 2+40 || log[41].Position != 40 {
		t.Errorf("%d entries, the last at position %d", len(log), log[len(log)-1].Position)
	}
}

// TestFreedNameIsNotBelieved is H9: a writer that slept takes a name that
// clean-up has freed, and stops.
func TestFreedNameIsNotBelieved(t *testing.T) {
	s := store.NewMemory()
	p1, p0 := newProcess(t, s, 1), newProcess(t, s, 2)
	w1 := p1.take() // and it pauses
	w0 := p0.take()
	for next := int64(10); next <= 50; next += 10 {
		commit(t, w0, next)
	}
	clean(t, s, MainBranch, w0.NextEpoch()-2)

	void := wantError[*VoidError](t, "the writer that slept", lastErr(w1.Commit(t.Context(), work(w1, 99))))
	if void.ExitCode() != 11 || void.Epoch >= void.Floor {
		t.Errorf("got %+v", void)
	}
	if ok, err := s.Exists(t.Context(), "spend/"+ManifestPath(MainBranch, FirstTask, void.Epoch)); err != nil || !ok {
		t.Fatalf("the freed name was not taken: %v, %v", ok, err)
	}
	// Nobody else believes in it either.
	head, err := p1.job.Head(t.Context(), MainBranch, FirstTask)
	if err != nil || head.Manifest.Owner != w0.ID() || nextOf(head.Manifest) != 50 {
		t.Errorf("the head is %+v, %v", head, err)
	}
	if _, err := p1.job.Manifest(t.Context(), MainBranch, FirstTask, void.Epoch); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the void manifest reads: %v", err)
	}
	commit(t, w0, 60)
	for _, m := range checkLog(t, p0.job, MainBranch) {
		if m.Owner == w1.ID() {
			t.Errorf("the log has %+v", m)
		}
	}
}

func lastErr(_ Manifest, err error) error { return err }

// TestSealAtAFreedNameIsNotBelieved is H11a: neither a seal that lands at a
// freed name, nor an owner or a starter that meets it, thinks that the branch
// has ended.
func TestSealAtAFreedNameIsNotBelieved(t *testing.T) {
	s := store.NewMemory()
	p1, p0 := newProcess(t, s, 1), newProcess(t, s, 2)
	w1 := p1.take() // and it pauses, as the upgrader does that saw the same head
	freed := w1.NextEpoch()
	w0 := p0.take()
	commit(t, w0, 10)
	commit(t, w0, 20)
	clean(t, s, MainBranch, freed+2)
	seal(t, s, p0.job, MainBranch, freed, "whatever")

	wantError[*VoidError](t, "the owner that meets the void seal", lastErr(w1.Commit(t.Context(), work(w1, 99))))
	commit(t, w0, 30)
	if head, err := p1.job.Head(t.Context(), MainBranch, FirstTask); err != nil || head.Sealed() || nextOf(head.Manifest) != 30 {
		t.Errorf("the head is %+v, %v", head, err)
	}
	p1.take()
}

// TestFloorThatRisesDuringTheSearch: a name that was absent because it had just
// been cleaned away must not read as the log's end.
func TestFloorThatRisesDuringTheSearch(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	for next := range int64(20) {
		commit(t, o, next)
	}
	reader := newProcess(t, s, 2)
	for call := 1; call <= 8; call++ {
		at, floor := len(reader.store.Calls())+call, Epoch(call)
		reader.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
			if c.N == at {
				clean(t, s, MainBranch, floor)
			}
			return faultstore.None
		})
		head, err := reader.job.Head(t.Context(), MainBranch, FirstTask)
		if err != nil || head.Manifest.Epoch != o.NextEpoch()-1 {
			t.Fatalf("clean-up at call %d: head %d, %v; want %d", call, head.Manifest.Epoch, err, o.NextEpoch()-1)
		}
	}
}

// TestFollowersNamesAreConsecutive is H19: what a follower's coarse step covers
// is a field, so that two processes of one branch want the same next name.
func TestFollowersNamesAreConsecutive(t *testing.T) {
	s := store.NewMemory()
	newProcess(t, s, 1).take()
	p, q := newProcess(t, s, 2), newProcess(t, s, 3)
	base := Manifest{Format: Format, JobID: p.job.ID(), Branch: "next-1", Task: FirstTask, Kind: Base, Owner: "upgrade", Version: "v", Position: 1}
	makeBranch(t, p.job, base)
	follow := func(p *process) *Owner {
		o, err := p.job.Take(t.Context(), "next-1", FirstTask, p.me)
		if err != nil {
			t.Fatal(err)
		}
		if n, live := o.Live(); live {
			t.Fatalf("a follower thinks that it is live, as %d", n)
		}
		return o
	}
	first := follow(p)
	covering := func(o *Owner, position Position) Manifest {
		m := work(o, int64(position))
		m.Position, m.Covers = position, map[string]Position{FirstTask: position}
		return m
	}
	m, err := first.Commit(t.Context(), covering(first, 40)) // 39 live epochs in one step
	if err != nil || m.Epoch != 2 || m.Position != 40 || m.Live != nil {
		t.Fatalf("a coarse step: %+v, %v", m, err)
	}
	skipping := covering(first, 50)
	skipping.Epoch = first.NextEpoch() + 7
	if _, err := first.Commit(t.Context(), skipping); err == nil {
		t.Error("a number was skipped")
	}
	if _, err := first.Commit(t.Context(), covering(first, 39)); err == nil {
		t.Error("a position went back")
	}
	second := follow(q)
	if _, err := second.Commit(t.Context(), covering(second, 45)); err != nil {
		t.Fatal(err)
	}
	// The first one, with another step of its own in hand, wants the name that
	// the second opened with.
	wantError[*FencedError](t, "the first follower", lastErr(first.Commit(t.Context(), covering(first, 60))))
	checkLog(t, p.job, "next-1")
}

// makeBranch makes a branch's record, and its base.
func makeBranch(t *testing.T, j *Job, base Manifest) {
	t.Helper()
	file := BranchFile{Format: Format, JobID: j.ID(), Branch: base.Branch, Kind: Upgrade}
	err := errors.Join(j.makeRecord(t.Context(), BranchPath(base.Branch), file.encode),
		j.makeRecord(t.Context(), ManifestPath(base.Branch, base.Task, 0), base.Encode))
	if err != nil {
		t.Fatal(err)
	}
}

// TestFollowerThatBecomesLive: between a look at live and the opening the
// branch may have gone live; live is then known from the record (C5).
func TestFollowerThatBecomesLive(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	p := newProcess(t, s, 2)
	base := Manifest{Format: Format, JobID: p.job.ID(), Branch: "next-1", Task: FirstTask, Kind: Base, Owner: "upgrade", Version: "v"}
	makeBranch(t, p.job, base)
	p.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && c.Name == "spend/"+ManifestPath("next-1", FirstTask, 1) {
			head, hash := main.Head()
			seal(t, s, p.job, MainBranch, head.Epoch+1, hash)
			record := LiveRecord{Format: Format, JobID: p.job.ID(), N: 1, Kind: Upgrade, Branch: "next-1"}
			data, err := record.encode()
			if err == nil {
				err = s.Create(t.Context(), "spend/"+LivePath(1), data)
			}
			if err != nil {
				t.Error(err)
			}
		}
		return faultstore.None
	})
	o, err := p.job.Take(t.Context(), "next-1", FirstTask, p.me)
	if err != nil {
		t.Fatal(err)
	}
	if n, live := o.Live(); !live || n != 1 {
		t.Errorf("live = %d, %v; want 1", n, live)
	}
	if head, _ := o.Head(); head.Live != nil {
		t.Errorf("the opening was written as live: %+v", head)
	}
	if m := commit(t, o, 1); m.Live == nil || *m.Live != 1 {
		t.Errorf("the next epoch is %+v", m)
	}
	// And main's owner learns of its end.
	sealed := wantError[*SealedError](t, "main's owner", lastErr(main.Commit(t.Context(), work(main, 5))))
	if sealed.ExitCode() != 12 {
		t.Errorf("exit code %d", sealed.ExitCode())
	}
	_, err = p.job.Take(t.Context(), MainBranch, FirstTask, p.me)
	wantError[*SealedError](t, "taking main", err)
	next := newProcess(t, s, 3).take()
	if next.Branch() != "next-1" {
		t.Errorf("took %s, want next-1", next.Branch())
	}
}

func ExampleAt_String() {
	fmt.Println(At{Job: "spend", Branch: "main", Task: "0.0", Epoch: 1841})
	// Output: spend: branch main, task 0.0, epoch 1841
}
