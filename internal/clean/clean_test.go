package clean_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// history is a job with all that clean-up has to do with: merges, left-overs of
// a dead owner, a savepoint, an ended branch, a given-up one, a follower.
func history(t *testing.T, s store.Store) *world {
	w := newWorld(t, s)
	for i := range 6 {
		w.commit("main", true)
		if i == 2 {
			w.merge("main")
		}
	}
	w.pin("before", "main", 4)
	w.merge("main") // nobody will refer to it
	w.take("main")
	for range 4 {
		w.commit("main", true)
	}
	w.branch("given-up")
	w.commit("given-up", false)
	w.seal("given-up")
	w.branch("next")
	w.commit("main", true)
	w.commit("next", false)
	w.cut("next")
	for range 5 {
		w.commit("next", true)
	}
	w.branch("later")
	w.commit("next", true)
	w.commit("later", false)
	return w
}

func TestCleanUp(t *testing.T) {
	folder, err := store.OpenFolder(env.Real(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]store.Store{"memory": store.NewMemory(), "folder": folder} {
		t.Run(name, func(t *testing.T) {
			w := history(t, s)
			before := w.names("")
			r := w.cleanAll()
			w.checkWhole()
			w.checkGone()
			after := w.names("")
			if gone := int64(len(before) - len(after)); r.Manifests+r.Objects-3 != gone { // three floor records came
				t.Errorf("%d objects went, the result says %+v", gone, r)
			}
			if r.Manifests < 10 || r.Objects < 20 || r.Left.Pinned != 1 {
				t.Errorf("got %+v", r)
			}
			if again := w.cleanAll(); again.Manifests+again.Objects != 0 || !slices.Equal(w.names(""), after) {
				t.Errorf("a second clean-up: %+v", again)
			}
			w.unpin("before")
			w.cleanAll()
			w.checkGone()
			for _, path := range w.names("branches/given-up/") {
				if n, _ := epoch.ParsePath(path); n.Kind != epoch.BranchObject && n.Kind != epoch.FloorObject {
					t.Errorf("of the branch that was given up there is still %s", path)
				}
			}
		})
	}
}

// stride is 1 where there is time for all, and otherwise what it is told.
func stride(n int) int {
	if os.Getenv("SLUICE_TORTURE") == "1" {
		return 1
	}
	return n
}

// TestCutOff stops a clean-up at each of its calls of the store, in each way,
// and lets another one finish it.
func TestCutOff(t *testing.T) {
	whole := history(t, store.NewMemory())
	start := whole.store
	whole.store = copyStore(t, start)
	calls, err := whole.cleanOver(func(faultstore.Call) faultstore.Fault { return faultstore.None })
	if err != nil {
		t.Fatal(err)
	}
	want := whole.names("branches/")
	for i, fault := range []faultstore.Fault{faultstore.Fail, faultstore.LostReply, faultstore.Late} {
		for n := 1 + i; n <= calls; n += stride(23) {
			w := *whole
			w.store = copyStore(t, start)
			if _, err := w.cleanOver(func(c faultstore.Call) faultstore.Fault {
				if c.N < n {
					return faultstore.None
				}
				return fault
			}); err == nil && fault == faultstore.Fail {
				t.Fatalf("call %d failed, and the clean-up says nothing", n)
			}
			w.checkWhole()
			w.cleanAll()
			w.checkWhole()
			w.checkGone()
			if got := w.names("branches/"); !slices.Equal(got, want) {
				t.Fatalf("cut off at call %d of %d: got\n%v\nwant\n%v", n, calls, got, want)
			}
		}
	}
}

// TestPaused stops a clean-up at each of its calls, lets others act, and goes on.
func TestPaused(t *testing.T) {
	for name, act := range map[string]func(w *world){
		"another clean-up": func(w *world) { w.cleanAll() },
		"commits":          func(w *world) { w.merge("next"); w.commit("next", true); w.commit("next", true) },
		"a new owner":      func(w *world) { w.take("next"); w.commit("next", true); w.commit("next", true); w.wake("next", 0) },
		"a new owner, clean": func(w *world) {
			w.take("next")
			for range 4 {
				w.commit("next", true)
			}
			w.cleanAll()
			w.wake("next", 0)
		},
		"a savepoint": func(w *world) {
			// It may come too late; then it is taken away again.
			e := w.logs["next"].head.Epoch - 3
			w.pin("late", "next", e)
			floor, err := w.open(w.store).Floor(ctx, "next", epoch.FirstTask)
			if w.must("floor", err); floor > e {
				w.unpin("late")
			}
		},
		"a branch": func(w *world) { w.branch("another") },
		"a cut":    func(w *world) { w.commit("later", false); w.cut("later"); w.commit("later", true) },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n += stride(61) {
				w := history(t, store.NewMemory())
				calls, err := w.cleanOver(func(c faultstore.Call) faultstore.Fault {
					if c.N == n {
						act(w)
						w.checkWhole()
					}
					return faultstore.None
				})
				if err != nil {
					t.Fatalf("at call %d: %v", n, err)
				}
				w.checkWhole()
				w.cleanAll()
				w.checkWhole()
				w.checkGone()
				if n > calls {
					return
				}
			}
		})
	}
}

// TestNothingToDo: a job that stands still is looked at with a few reads, and
// nothing is written; one that went on costs what went on.
func TestNothingToDo(t *testing.T) {
	w := newWorld(t, store.NewMemory())
	for range 30 {
		w.commit("main", true)
	}
	s := faultstore.New(w.store, nil)
	cleaner := clean.New(w.open(s), options())
	reads := func() (reads int) {
		before := len(s.Calls())
		if _, err := cleaner.Log(ctx, "main", epoch.FirstTask); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Calls()[before:] {
			if c.Operation == "read" {
				reads++
			}
		}
		return reads
	}
	first := reads()
	calls := len(s.Calls())
	if again := reads(); again > 3 || again > first {
		t.Errorf("nothing had happened, and %d objects were read, at first %d", again, first)
	}
	for _, c := range s.Calls()[calls:] {
		if c.Operation == "create" || c.Operation == "delete" || c.Operation == "replace" {
			t.Errorf("nothing had happened, and there was %+v", c)
		}
	}
	if n := len(s.Calls()) - calls; n > 25 {
		t.Errorf("nothing had happened, and there were %d calls", n)
	}
	w.commit("main", true)
	if again := reads(); again > 12 {
		t.Errorf("one epoch came, and %d objects were read", again)
	}
}

// TestCleanersAtOnce lets goroutines share a cleaner, while the owner commits.
func TestCleanersAtOnce(t *testing.T) {
	w := history(t, store.NewMemory())
	cleaner := clean.New(w.open(w.store), options())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 3 {
				if _, err := cleaner.All(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		w.commit("next", true)
	}
	group.Wait()
	w.checkWhole()
	w.cleanAll()
	w.checkGone()
}

// TestSinkThatWasDropped is H12: the live branch lacks a sink that the ended one
// still owes. Only a consent, or that it was drained, lets its outboxes go.
func TestSinkThatWasDropped(t *testing.T) {
	for name, settle := range map[string]func(w *world){
		"drained": func(w *world) {
			w.put(epoch.DrainedPath(1, epoch.FirstTask, "b"), epoch.LiveRecord{Format: 1})
		},
		"consented": func(w *world) {
			w.n++
			w.put(epoch.LivePath(w.n), epoch.LiveRecord{
				Format: 1, JobID: w.logs["next"].owner().Job().ID(), N: w.n, Kind: epoch.Resume, Branch: "next",
				Sinks: map[string]epoch.SinkConsent{"b": {Dropped: "consented"}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, store.NewMemory())
			for range 6 {
				w.commit("main", false)
			}
			w.branch("next")
			w.commit("main", false)
			w.cut("next")
			l := w.logs["next"]
			m, err := l.owner().Commit(ctx, epoch.Manifest{
				Kind: epoch.Open, Now: l.head.Now, State: l.head.State, Sinks: map[string]epoch.SinkState{"a": {Record: "r", Confirmed: 7}},
			})
			w.must("note that a has everything", err)
			l.head = m
			if w.cleanAll(); len(w.manifests("main")) != 9 {
				t.Errorf("of main there are %v", w.manifests("main"))
			}
			settle(w)
			if w.cleanAll(); len(w.manifests("main")) > 4 {
				t.Errorf("of main there are still %v", w.manifests("main"))
			}
		})
	}
}

// manifests are those of a branch.
func (w *world) manifests(branch string) (all []epoch.Epoch) {
	for _, path := range w.names(epoch.LogPath(branch, epoch.FirstTask)) {
		if n, _ := epoch.ParsePath(path); n.Kind == epoch.ManifestObject {
			all = append(all, n.Epoch)
		}
	}
	return all
}

// TestRandomHistories does whatever may be done, in any order.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, store.NewMemory())
		kept := clean.New(w.open(w.store), options()) // one that remembers, as a running job's does
		branches, savepoints := 0, 0
		open := func() (names []string) {
			for name, l := range w.logs {
				if !l.sealed {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return names
		}
		some := func(rt *rapid.T) string { return rapid.SampledFrom(open()).Draw(rt, "branch") }
		act := map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) { w.commit(some(rt), rapid.Bool().Draw(rt, "confirmed")) },
			"live":   func(rt *rapid.T) { w.commit(w.live, true) },
			"merge":  func(rt *rapid.T) { w.merge(some(rt)) },
			"take":   func(rt *rapid.T) { w.take(some(rt)) },
			"wake": func(rt *rapid.T) {
				branch := some(rt)
				if n := len(w.logs[branch].owners); n > 1 {
					w.wake(branch, rapid.IntRange(0, n-2).Draw(rt, "owner"))
				}
			},
			"branch": func(rt *rapid.T) {
				if len(open()) < 3 {
					branches++
					w.branch(fmt.Sprintf("next-%d", branches))
				}
			},
			"give up": func(rt *rapid.T) {
				if b := some(rt); b != w.live {
					w.seal(b)
				}
			},
			"cut": func(rt *rapid.T) {
				if b := some(rt); b != w.live {
					w.cut(b)
				}
			},
			"pin": func(rt *rapid.T) {
				b := some(rt)
				floor, err := w.open(w.store).Floor(ctx, b, epoch.FirstTask)
				w.must("floor", err)
				savepoints++
				e := rapid.Uint64Range(uint64(floor), uint64(w.logs[b].head.Epoch)).Draw(rt, "epoch")
				w.pin(fmt.Sprintf("s%d", savepoints), b, epoch.Epoch(e))
			},
			"unpin": func(rt *rapid.T) {
				for id := range w.pins {
					w.unpin(id)
					return
				}
			},
			"clean": func(rt *rapid.T) {
				w.cleanAll()
				w.checkGone()
			},
			"clean, remembering": func(rt *rapid.T) {
				_, err := kept.Log(ctx, w.live, epoch.FirstTask)
				w.must("clean", err)
			},
			"clean, cut off": func(rt *rapid.T) {
				n := rapid.IntRange(1, 120).Draw(rt, "calls")
				_, err := w.cleanOver(func(c faultstore.Call) faultstore.Fault {
					if c.N >= n {
						return faultstore.Fail
					}
					return faultstore.None
				})
				if err != nil && !errors.Is(err, faultstore.ErrInjected) {
					w.t.Fatalf("clean-up: %v", err)
				}
			},
			"": func(rt *rapid.T) { w.checkWhole() },
		}
		for name, f := range act {
			act[name] = func(rt *rapid.T) { w.t = rt; f(rt) }
		}
		rt.Repeat(act)
	})
}

// TestPause: whoever cleans up in the background is asked every so often, and may
// end it there; what was removed by then is no harm.
func TestPause(t *testing.T) {
	w := newWorld(t, store.NewMemory())
	for range 3 * clean.PauseEvery {
		w.commit("main", true)
	}
	pauses, enough := 0, errors.New("enough")
	o := options()
	o.Pause = func(context.Context) error {
		if pauses++; pauses == 3 {
			return enough
		}
		return nil
	}
	r, err := clean.New(w.open(w.store), o).Log(ctx, "main", epoch.FirstTask)
	if !errors.Is(err, enough) || r.Manifests+r.Objects < 2*clean.PauseEvery || r.Manifests+r.Objects > 3*clean.PauseEvery {
		t.Errorf("ended in the third pause: %+v, %v", r, err)
	}
	w.checkWhole()
	w.cleanAll()
	w.checkWhole()
	w.checkGone()
}

// TestRollbackBeforeItsBase sees that what a branch is going to follow stays while it
// has only a pin, at the end of a branch before the live one.
func TestRollbackBeforeItsBase(t *testing.T) {
	w := newWorld(t, store.NewMemory())
	for range 4 {
		w.commit("main", true)
	}
	w.branch("next")
	w.cut("next")
	final := w.logs["main"].head
	for range 3 {
		w.commit("next", true)
	}
	j := w.open(w.store)
	w.must("pin", j.PutPin(ctx, "back-1", epoch.Point{Branch: "main", Tasks: map[string]epoch.Epoch{epoch.FirstTask: final.Epoch}}, "a rollback"))
	for range 6 {
		w.commit("next", true)
	}
	follows := func() (n epoch.Position) {
		_, err := clean.New(j, clean.Options{Keep: -1, KeepEpochs: 1}).All(ctx)
		w.must("clean up", err)
		for _, e := range w.manifests("next") {
			m, err := j.ManifestBelow(ctx, "next", epoch.FirstTask, e)
			w.must("read", err)
			if m.Kind == epoch.Data && m.Live != nil && m.Position > final.Position {
				n++
			}
		}
		return n
	}
	if n, all := follows(), w.logs["next"].head.Position-final.Position; n != all {
		t.Errorf("%d epochs are left to follow, want all %d", n, all)
	}
	w.must("unpin", j.DeletePin(ctx, "back-1"))
	const anyway = 3 // what is kept, and what a deliverer reads back to
	if n := follows(); n > anyway {
		t.Errorf("%d epochs are left when nobody is going to follow, want %d at the most", n, anyway)
	}
	_, err := j.BeginBranch(ctx, epoch.Beginning{
		Name: "back", Kind: epoch.Rollback, From: &epoch.Point{Branch: "main", Tasks: map[string]epoch.Epoch{epoch.FirstTask: final.Epoch}},
	}, epoch.Identity{Build: epoch.Build{Executable: "exe"}})
	var gone *epoch.TimetableError
	if names := w.names("branches/back-"); !errors.As(err, &gone) || len(names) > 0 || len(w.names("pins/")) > 0 {
		t.Errorf("a rollback with nothing left to follow: %v, and there are %v", err, names)
	}
}

// TestReadersPinsGo sees that the pin of a reader that has died holds an epoch for
// an hour, and that a clean-up takes it away afterwards, which a dry run doesn't.
func TestReadersPinsGo(t *testing.T) {
	w := newWorld(t, store.NewMemory())
	for range 6 {
		w.commit("main", true)
	}
	j := w.open(w.store)
	pin := epoch.Pin{
		Format: epoch.Format, JobID: j.ID(), Point: epoch.Point{Branch: "main", Tasks: map[string]epoch.Epoch{epoch.FirstTask: 2}},
		Reader: true, By: "one that died", Time: w.clock.Now().UnixMicro(),
	}
	w.put(epoch.PinPath("read-1"), pin)
	run := func(dry bool) (pinned int64, pins int) {
		t.Helper()
		r, err := clean.New(j, clean.Options{Keep: -1, KeepEpochs: 1, DryRun: dry}).All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		left, err := j.Pins(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r.Left.Pinned, len(left)
	}
	if pinned, pins := run(false); pinned != 1 || pins != 1 {
		t.Errorf("within the hour %d epochs are pinned by %d pins, want 1 by 1", pinned, pins)
	}
	w.clock.now.Add(60 * 60)
	if pinned, pins := run(true); pinned != 1 || pins != 1 {
		t.Errorf("a dry run after an hour: %d epochs are pinned by %d pins, want 1 by 1", pinned, pins)
	}
	if pinned, pins := run(false); pinned != 0 || pins != 0 {
		t.Errorf("after an hour %d epochs are pinned by %d pins, want none", pinned, pins)
	}
	if _, err := j.ManifestBelow(ctx, "main", epoch.FirstTask, 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("epoch 2, which nothing needs: %v", err)
	}
}
