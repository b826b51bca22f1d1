package epoch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

const lease = 10 * time.Second

// TestDecideStandby is rule T5, case by case.
func TestDecideStandby(t *testing.T) {
	lease := lease.Microseconds()
	head := Head{Manifest: Manifest{Owner: "a"}}
	beat := func(owner string, released bool) *Heartbeat { return &Heartbeat{Owner: owner, Released: released} }
	for _, c := range []struct {
		name string
		view StandbyView
		take bool
	}{
		{"alive", StandbyView{Head: head, Beat: beat("a", false), Still: lease - 1, Lease: lease}, false},
		{"still for a lease", StandbyView{Head: head, Beat: beat("a", false), Still: lease, Lease: lease}, true},
		{"without a heartbeat", StandbyView{Head: head, Still: lease - 1, Lease: lease}, false},
		{"released", StandbyView{Head: head, Beat: beat("a", true), Lease: lease}, true},
		{"released by the owner before", StandbyView{Head: head, Beat: beat("b", true), Lease: lease}, false},
		{"gone", StandbyView{Head: head, Beat: beat("a", false), Gone: true, Lease: lease}, true},
		{"taken over", StandbyView{Head: head, Beat: beat("a", false), TakeOver: true, Lease: lease}, true},
		{"sealed", StandbyView{Head: Head{Manifest: head.Manifest, Seal: &Manifest{}}, Lease: lease}, true},
	} {
		if take := DecideStandby(c.view); take != c.take {
			t.Errorf("%s: take = %v", c.name, take)
		}
	}
	if l := LeaseOf(lease, &Heartbeat{Lease: 3 * lease}); l != 3*lease {
		t.Errorf("the owner's longer lease does not count: %v", l)
	}
	if l := LeaseOf(lease, &Heartbeat{Lease: 1}); l != lease {
		t.Errorf("the owner's shorter lease counts: %v", l)
	}
}

// pausing counts the pauses of whoever stands by, and does something in each.
type pausing struct {
	env.Clock
	total time.Duration
	at    func(total time.Duration)
}

func (p *pausing) NewTimer(d time.Duration) env.Timer {
	p.total += d
	if p.at != nil {
		p.at(p.total)
	}
	return (&quickClock{}).NewTimer(d)
}

// standsBy is a process whose pauses are counted.
func standsBy(t *testing.T, s store.Store, number int) (*process, *pausing) {
	t.Helper()
	p := newProcess(t, s, number)
	clock := &pausing{Clock: p.job.env.Clock}
	world := *p.job.env
	world.Clock = clock
	p.job.env = &world
	return p, clock
}

func (p *process) await(ctx context.Context) error {
	_, err := p.job.AwaitOwner(ctx, FirstTask, Standby{Lease: lease, Me: p.me})
	return err
}

// TestStandbyWaitsForALease: an owner that neither commits nor beats is taken
// for gone after a lease, one that does is not, whatever the wall clock says.
func TestStandbyWaitsForALease(t *testing.T) {
	s := store.NewMemory()
	o := newProcess(t, s, 1).take()
	p, clock := standsBy(t, s, 2)
	beats := 0
	clock.at = func(total time.Duration) {
		if beats < 10 && total >= time.Duration(beats+1)*lease/3 {
			beats++
			if err := o.Beat(t.Context(), Heartbeat{}); err != nil {
				t.Error(err)
			}
		}
	}
	if err := p.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The last beat came at 10 thirds of a lease, and was seen at the next look.
	if least, most := 10*lease/3+lease, 10*lease/3+lease+2*slowestLook; clock.total < least || clock.total > most {
		t.Errorf("it waited %v, expected %v to %v", clock.total, least, most)
	}
	// Commits show that an owner lives as beats do.
	commits, total := 0, clock.total
	clock.at = func(now time.Duration) {
		if commits < 5 && now-total >= time.Duration(commits+1)*lease/2 {
			commits++
			commit(t, o, int64(commits))
		}
	}
	if err := p.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if waited := clock.total - total; waited < 5*lease/2+lease {
		t.Errorf("it waited %v while the owner committed", waited)
	}
}

// TestStandbyNeedNotWait: for an owner that has let go, one that was never
// there, and one whose process is gone.
func TestStandbyNeedNotWait(t *testing.T) {
	s := store.NewMemory()
	p, clock := standsBy(t, s, 2)
	if err := p.await(t.Context()); err != nil || clock.total > 0 {
		t.Errorf("waited %v for nobody: %v", clock.total, err)
	}
	o := newProcess(t, s, 1).take()
	if err := o.Beat(t.Context(), Heartbeat{Released: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context()); err != nil || clock.total > 0 {
		t.Errorf("waited %v for an owner that has let go: %v", clock.total, err)
	}
	dead := newProcess(t, s, 3)
	dead.me.Writer = goneProcess(t)
	dead.take()
	if err := p.await(t.Context()); err != nil || clock.total > 0 {
		t.Errorf("waited %v for a process that is gone: %v", clock.total, err)
	}
}

// goneProcess is a process of this machine that has ended.
func goneProcess(t *testing.T) Writer {
	t.Helper()
	w := ThisProcess()
	if w.Boot == "" || w.PIDNamespace == "" {
		t.Skip("that a process is gone is not tried: this system does not tell one from those of another boot or namespace")
	}
	if w.Gone() {
		t.Error("this process is said to be gone")
	}
	child := exec.Command(os.Args[0], "-test.run=^$")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	w.PID, w.Started = child.Process.Pid, startTime(firstLine("/proc/"+strconv.Itoa(child.Process.Pid)+"/stat"))
	if w.Started == "" {
		t.Fatal("no start time of a process that runs or has just ended")
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if !w.Gone() {
		t.Error("a process that has ended is not said to be gone")
	}
	for what, other := range map[string]Writer{
		"of another boot":      {Machine: w.Machine, Boot: "x", PIDNamespace: w.PIDNamespace, PID: w.PID, Started: w.Started},
		"of another machine":   {Machine: w.Machine + "x", Boot: w.Boot, PIDNamespace: w.PIDNamespace, PID: w.PID, Started: w.Started},
		"of another namespace": {Machine: w.Machine, Boot: w.Boot, PIDNamespace: "x", PID: w.PID, Started: w.Started},
	} {
		if other.Gone() {
			t.Errorf("a process %s is said to be gone", what)
		}
	}
	reused := ThisProcess()
	reused.Started += "1"
	if !reused.Gone() {
		t.Error("a process whose number another one has now is not said to be gone")
	}
	return w
}

// TestStandbySeesTheEndOfAProcess: an owner of this machine that dies while it is
// stood by for is not waited for until the next look.
func TestStandbySeesTheEndOfAProcess(t *testing.T) {
	child := exec.Command("cat")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	owner := newProcess(t, s, 1)
	owner.me.Writer = ThisProcess()
	owner.me.Writer.PID, owner.me.Writer.Started = child.Process.Pid, startTime(firstLine("/proc/"+strconv.Itoa(child.Process.Pid)+"/stat"))
	if !owner.me.Writer.near() {
		t.Skip("that a process is gone is not tried: this system does not tell one from those of another boot or namespace")
	}
	owner.take()
	p, clock := standsBy(t, s, 2)
	clock.at = func(total time.Duration) {
		if total == 2*slowestLook+3*nearLook {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
			child.Wait() // it was killed
		}
	}
	if err := p.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := 2*slowestLook + 3*nearLook; clock.total != want {
		t.Errorf("it waited %v for a process that ended after %v", clock.total, want)
	}
}

// TestStandbyIsAsked: a request that came after the process ends its wait, one
// from before does not.
func TestStandbyIsAsked(t *testing.T) {
	s := store.NewMemory()
	newProcess(t, s, 1).take()
	p, clock := standsBy(t, s, 2)
	if _, err := p.job.Ask(t.Context(), StopRequest, "me"); err != nil {
		t.Fatal(err)
	}
	known, err := p.job.NewestRequest(t.Context(), 0)
	if err != nil || known != 1 {
		t.Fatalf("the newest request is %d, %v", known, err)
	}
	clock.at = func(total time.Duration) {
		if total > lease/2 {
			clock.at = nil
			if _, err := p.job.Ask(t.Context(), StopRequest, "them"); err != nil {
				t.Error(err)
			}
		}
	}
	_, err = p.job.AwaitOwner(t.Context(), FirstTask, Standby{Lease: lease, Me: p.me, Known: known})
	var asked *RequestedError
	if !errors.As(err, &asked) || asked.Request.N != 2 || asked.Request.By != "them" || asked.Request.Kind != StopRequest {
		t.Errorf("got %v, want to be asked by them", err)
	}
}

// TestStandbyOfAReplacedBuild does not wait for what it may never take.
func TestStandbyOfAReplacedBuild(t *testing.T) {
	s := store.NewMemory()
	old := newProcess(t, s, 1)
	head, _ := old.take().Head()
	old.me.Build.Version = head.Version
	next := newProcess(t, s, 2)
	next.me.Build.Executable = "next"
	next.take()
	wantError[*SupersededError](t, "the old build", old.await(t.Context()))
	old.me.Replace = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := old.await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with --replace: %v, want it to wait", err)
	}
}

// TestRequestsAreNumbered: two that ask at once get numbers of their own.
func TestRequestsAreNumbered(t *testing.T) {
	s := store.NewMemory()
	p, q := newProcess(t, s, 1), newProcess(t, s, 2)
	for i := range 20 {
		who := []*process{p, q}[i%2]
		r, err := who.job.Ask(t.Context(), DrainRequest, who.name)
		if err != nil || r.N != uint64(i+1) {
			t.Fatalf("request %d got number %d: %v", i+1, r.N, err)
		}
	}
	found, err := p.job.RequestsAfter(t.Context(), 17)
	if err != nil || len(found) != 3 || found[0].N != 18 || found[0].By != "p2" {
		t.Errorf("behind 17 there are %+v, %v", found, err)
	}
}

// TestRequestToCutOver: it names a branch, and stands in order with the others.
func TestRequestToCutOver(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	if r, err := p.job.AskCutover(t.Context(), "a/b", "p1"); err == nil {
		t.Errorf("a branch that can't be was asked for: %+v", r)
	}
	r, err := p.job.AskCutover(t.Context(), "next-1", "p1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.job.Ask(t.Context(), StopRequest, "p1"); err != nil {
		t.Fatal(err)
	}
	found, err := p.job.RequestsAfter(t.Context(), 0)
	if err != nil || len(found) != 2 || found[0].Kind != CutoverRequest || found[0].Branch != "next-1" || found[0].N != r.N || found[1].Kind != StopRequest {
		t.Errorf("got %+v, %v", found, err)
	}
}

// TestLostEndOfALog: the heartbeat knows of an epoch that is not there.
func TestLostEndOfALog(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	commit(t, o, 10)
	m := commit(t, o, 20)
	if err := o.Beat(t.Context(), Heartbeat{}); err != nil {
		t.Fatal(err)
	}
	lost := "spend/" + ManifestPath(MainBranch, FirstTask, m.Epoch)
	if err := s.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	wantLost(t, s, lost)
}

// TestLostRecords: what is made once, and is not there although later objects
// are, is named and not made anew.
func TestLostRecords(t *testing.T) {
	for _, path := range []string{JobPath, LayoutPath(0), BranchPath(MainBranch), LivePath(0)} {
		s := store.NewMemory()
		commit(t, newProcess(t, s, 1).take(), 10)
		if err := s.Delete(t.Context(), "spend/"+path); err != nil {
			t.Fatal(err)
		}
		wantLost(t, s, "spend/"+path)
		if there, err := s.Exists(t.Context(), "spend/"+path); err != nil || there {
			t.Errorf("%s was made anew", path)
		}
	}
}

func wantLost(t *testing.T, s store.Store, object string) {
	t.Helper()
	job, err := OpenJob(t.Context(), testEnv(9), s, "spend", "")
	if err == nil {
		_, err = job.TakeLive(t.Context(), FirstTask, Identity{Build: Build{Executable: "exe"}, Version: testVersion()})
	}
	var damaged *DamagedError
	if !errors.As(err, &damaged) || damaged.Object != object {
		t.Errorf("without %s: %v", object, err)
	}
}

// TestBeatsWhileACommitHangs: an owner whose create takes long lives, and says
// so.
func TestBeatsWhileACommitHangs(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	before, _ := o.Head()
	p.store.SetPlan(onManifest(o.NextEpoch(), func(int) faultstore.Fault {
		if err := o.Beat(t.Context(), Heartbeat{}); err != nil {
			t.Error(err)
		}
		if head, _ := o.Head(); head.Epoch != before.Epoch {
			t.Errorf("the head is %d while %d is being created", head.Epoch, before.Epoch+1)
		}
		return faultstore.None
	}))
	commit(t, o, 10)
	if beat, ok, err := p.job.Heartbeat(t.Context(), MainBranch, FirstTask); err != nil || !ok || beat.Epoch != before.Epoch {
		t.Errorf("the heartbeat is %+v, %v, %v", beat, ok, err)
	}
}

// TestTakesWhatWasAwaited: between the decision that an owner is gone and the
// opening another may begin; it lives, and is not taken from.
func TestTakesWhatWasAwaited(t *testing.T) {
	s := store.NewMemory()
	p, q := newProcess(t, s, 1), newProcess(t, s, 2)
	first, err := p.job.AwaitOwner(t.Context(), FirstTask, Standby{Lease: lease, Me: p.me})
	if err != nil {
		t.Fatal(err)
	}
	p.me.Awaited = &first
	o := p.take() // nobody was there
	before, _ := o.Head()
	if err := o.Beat(t.Context(), Heartbeat{Released: true}); err != nil {
		t.Fatal(err)
	}
	seen, err := q.job.AwaitOwner(t.Context(), FirstTask, Standby{Lease: lease, Me: q.me})
	if err != nil || seen.Manifest.Epoch != before.Epoch {
		t.Fatalf("epoch %d was awaited, want %d: %v", seen.Manifest.Epoch, before.Epoch, err)
	}
	p.me.Awaited = &seen
	other := p.take()
	q.me.Awaited = &seen
	if _, err := q.job.TakeLive(t.Context(), FirstTask, q.me); !errors.Is(err, ErrHeadMoved) {
		t.Errorf("taking what another has just taken: %v", err)
	}
	commit(t, other, 10)
	// Its next epoch, too, says that an owner lives that seemed to be dead.
	slow, _ := other.Head()
	q.me.Awaited = &Head{Manifest: slow, Hash: hashOf(t, slow)}
	q.store.SetPlan(onManifest(other.NextEpoch(), func(n int) faultstore.Fault {
		if n == 1 {
			commit(t, other, 20)
		}
		return faultstore.None
	}))
	if _, err := q.job.TakeLive(t.Context(), FirstTask, q.me); !errors.Is(err, ErrHeadMoved) {
		t.Errorf("taking from an owner that commits: %v", err)
	}
	commit(t, other, 30)
}

func hashOf(t *testing.T, m Manifest) string {
	t.Helper()
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return Hash(data)
}
