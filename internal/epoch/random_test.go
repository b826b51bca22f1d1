package epoch

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
	"pgregory.net/rapid"
)

// world is a store with any number of processes that take one branch from each
// other, over a network that loses and delays what it likes, while clean-up
// runs. Each data epoch reads exactly one record: the one after its parent's.
type world struct {
	t     *rapid.T
	bare  *store.Memory
	procs []*faultstore.Store
	// owners are all that a take returned, the newest last; those before it are
	// processes that sleep and think that they own the branch.
	owners []*Owner
	// done holds the hash of every epoch that a commit said is done.
	done  map[Epoch]string
	floor Epoch
}

func (w *world) start() {
	number := len(w.procs) + 1
	s := faultstore.New(w.bare, nil)
	w.procs = append(w.procs, s)
	s.SetPlan(w.plan())
	me := Identity{Build: Build{Executable: "exe"}, Version: testVersion(), Writer: Writer{PID: number}}
	o, err := openAndTake(context.Background(), testEnv(uint64(number)), s, me)
	if err != nil {
		w.allow(err)
		return
	}
	w.owners = append(w.owners, o)
	w.record(o)
}

// plan has faults for the first few creates of a call.
func (w *world) plan() func(faultstore.Call) faultstore.Fault {
	faults := rapid.SliceOfN(rapid.SampledFrom([]faultstore.Fault{
		faultstore.None, faultstore.None, faultstore.None, faultstore.LostCall, faultstore.LostReply, faultstore.Late, faultstore.Fail,
	}), 0, 4).Draw(w.t, "faults")
	return func(c faultstore.Call) faultstore.Fault {
		if c.Operation != "create" || len(faults) == 0 {
			return faultstore.None
		}
		next := faults[0]
		faults = faults[1:]
		return next
	}
}

func (w *world) commit() {
	i := rapid.IntRange(0, len(w.owners)-1).Draw(w.t, "owner")
	o := w.owners[i]
	for _, s := range w.procs {
		s.SetPlan(nil)
	}
	o.job.store.(*faultstore.Store).SetPlan(w.plan())
	head, _ := o.Head()
	m, err := o.Commit(context.Background(), work(o, nextOf(head)+1))
	if err != nil {
		w.allow(err)
		return
	}
	if i != len(w.owners)-1 {
		w.t.Fatalf("owner %s committed epoch %d after %s had taken the branch", o.id, m.Epoch, w.owners[len(w.owners)-1].id)
	}
	w.record(o)
}

// allow stops at errors that no history should end in.
func (w *world) allow(err error) {
	var fenced *FencedError
	var void *VoidError
	if !errors.As(err, &fenced) && !errors.As(err, &void) && !errors.Is(err, faultstore.ErrInjected) {
		w.t.Fatalf("unexpected: %v", err)
	}
}

func (w *world) record(o *Owner) {
	head, hash := o.Head()
	if before, ok := w.done[head.Epoch]; ok {
		w.t.Fatalf("epoch %d was done twice: %s, and %s by %s", head.Epoch, before, hash, o.id)
	}
	w.done[head.Epoch] = hash
}

func (w *world) land() {
	s := rapid.SampledFrom(w.procs).Draw(w.t, "process")
	_ = s.Land(context.Background()) // it may meet whatever is there
}

// clean raises the floor to near the head and frees the names under it.
func (w *world) clean(t *testing.T) {
	j, err := FindJob(context.Background(), testEnv(0), w.bare, "spend")
	if err != nil {
		return
	}
	head, err := j.Head(context.Background(), MainBranch, FirstTask)
	if err != nil {
		w.t.Fatalf("clean-up: %v", err)
	}
	keep := Epoch(rapid.IntRange(0, 3).Draw(w.t, "keep"))
	if floor := head.Manifest.Epoch - min(keep, head.Manifest.Epoch); floor > w.floor {
		w.floor = floor
		clean(t, w.bare, MainBranch, floor)
	}
}

// check holds what is stored against what commits were told.
func (w *world) check() {
	j, err := FindJob(context.Background(), testEnv(0), w.bare, "spend")
	if missing := (*NoJobError)(nil); errors.As(err, &missing) {
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var before *Manifest
	last := w.floor
	for m, err := range j.Manifests(context.Background(), MainBranch, FirstTask, 0, AllEpochs) {
		if err != nil {
			w.t.Fatal(err)
		}
		if before != nil && m.Kind == Data && (nextOf(m) != nextOf(*before)+1 || m.Position != before.Position+1) {
			w.t.Fatalf("epoch %d reads record %d after record %d", m.Epoch, nextOf(m), nextOf(*before))
		}
		if before != nil && m.Kind == Open && (nextOf(m) != nextOf(*before) || m.Position != before.Position) {
			w.t.Fatalf("opening %d stands at record %d, its parent at %d", m.Epoch, nextOf(m), nextOf(*before))
		}
		data, err := m.Encode()
		if want, ok := w.done[m.Epoch]; err != nil || ok && Hash(data) != want {
			w.t.Fatalf("epoch %d is another than its owner was told, %v", m.Epoch, err)
		}
		before, last = &m, m.Epoch
	}
	for e := range w.done {
		if e > last {
			w.t.Fatalf("epoch %d was done and is gone; the log ends at %d", e, last)
		}
	}
}

func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt, bare: store.NewMemory(), done: map[Epoch]string{}}
		w.start()
		rt.Repeat(map[string]func(*rapid.T){
			"start": func(rt *rapid.T) { w.t = rt; w.start() },
			"commit": func(rt *rapid.T) {
				if w.t = rt; len(w.owners) == 0 {
					rt.Skip("nobody owns the branch yet: the history draws another step")
				}
				w.commit()
			},
			"land":  func(rt *rapid.T) { w.t = rt; w.land() },
			"clean": func(rt *rapid.T) { w.t = rt; w.cleanIfOwned(t) },
			"":      func(rt *rapid.T) { w.t = rt; w.check() },
		})
	})
}

// cleanIfOwned waits until the log has begun.
func (w *world) cleanIfOwned(t *testing.T) {
	if len(w.owners) > 0 {
		w.clean(t)
	}
}
