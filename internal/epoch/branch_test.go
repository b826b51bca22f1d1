package epoch

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

var upgrading = Beginning{Name: "next", Kind: Upgrade}

// TestUpgradeAndRollback: v1 runs, v2 follows and takes its place, v1 goes back from
// where it was sealed; what each knows of builds, requests and deliveries comes along.
func TestUpgradeAndRollback(t *testing.T) {
	s := store.NewMemory()
	v1 := newUpgrader(t, s, 1, "v1")
	main := v1.take()
	input(t, main, 4)
	m := withSink(main, 5)
	m.Request = 3
	m.Sinks = map[string]SinkState{"out": {Record: "made", Confirmed: 2}}
	if _, err := main.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}

	v2 := newUpgrader(t, s, 2, "v2")
	if err := v2.begin(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	if v2.begun.Found || !strings.HasPrefix(v2.begun.File.Branch, "next-") || v2.begun.File.Base.Branch != MainBranch {
		t.Errorf("begun: %+v", v2.begun)
	}
	base, _ := v2.owner.Head()
	_, mainHash := main.Head()
	if base.Kind != Base || base.Position != 5 || base.Parent != mainHash || base.Request != 3 || base.Covers[FirstTask] != 5 ||
		!slices.Equal(base.Superseded, []Build{v1.build()}) || base.Sinks["out"].Confirmed != 2 || base.Live != nil {
		t.Errorf("the base is %+v", base)
	}
	if pins, err := v2.job.Pins(t.Context()); err != nil || len(pins) != 0 {
		t.Errorf("pins are left: %v, %v", pins, err)
	}
	input(t, main, 7)
	if step, err := v2.catchUp(t.Context()); err != nil || step != AwaitEpoch {
		t.Fatalf("it has caught up: %d, %v", step, err)
	}
	if head, _ := v2.owner.Head(); head.Position != 12 || head.Live != nil || nextOf(head) != 12 || head.Epoch != 3 {
		t.Errorf("the follower is at %+v, want 7 positions in 3 steps", head)
	}
	// Something is confirmed by an opening alone; the cut has to note it (C6, U7).
	head, _ := main.Head()
	open := Manifest{Kind: Open, Now: head.Now, Sources: head.Sources, Request: 9, Sinks: map[string]SinkState{"out": {Record: "made", Confirmed: 11}}}
	if _, err := main.Commit(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	if step, err := v2.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil || step != IsLive {
		t.Fatalf("the cut: %d, %v", step, err)
	}
	noted, _ := v2.owner.Head()
	if noted.Kind != Open || noted.Request != 9 || noted.Sinks["out"].Confirmed != 11 || noted.Position != 12 || noted.Live != nil {
		t.Errorf("the final is noted as %+v", noted)
	}
	live, _, err := v2.job.Live(t.Context())
	final, finalHash := main.Head()
	if err != nil || live.N != 1 || live.Ends.Branch != MainBranch || live.Ends.Live != 0 ||
		live.Ends.Tasks[FirstTask] != (Final{final.Epoch, 12, finalHash}) || live.Covers[FirstTask] != noted.Epoch {
		t.Errorf("the live record is %+v, %v", live, err)
	}
	wantError[*SealedError](t, "main's owner", lastErr(main.Commit(t.Context(), work(main, 13))))
	input(t, v2.owner, 3)
	step, newest, err := v1.job.LookEnded(t.Context(), MainBranch, FirstTask, Aftermath{Me: Identity{Build: v1.build()}, Owner: true})
	if err != nil || step != EndSuperseded || newest.N != 1 {
		t.Errorf("v1 does %d, %v", step, err)
	}
	// A supervisor starts v1 anew.
	_, err = newUpgrader(t, s, 3, "v1").job.TakeLive(t.Context(), FirstTask, v1.me)
	wantError[*SupersededError](t, "v1 again", err)
	_, err = v1.job.BeginBranch(t.Context(), upgrading, v1.me)
	wantError[*SupersededError](t, "an upgrade to v1", err)

	back := newUpgrader(t, s, 4, "v1")
	from, ok := live.Before()
	if !ok || from.Branch != MainBranch || from.Tasks[FirstTask] != final.Epoch {
		t.Fatalf("before is %+v", from)
	}
	back.upgrade(t, Beginning{Name: "back", Kind: Rollback, From: &from})
	after, _ := back.owner.Head()
	input(t, back.owner, 2)
	if !slices.Equal(after.Superseded, []Build{v2.build()}) || after.Sinks["out"].Confirmed != 11 || after.Request != 9 {
		t.Errorf("after the rollback: %+v", after)
	}
	at, err := checkChain(v1.job)
	if err != nil || len(at) != 17 || at[12].Branch != MainBranch || at[13].Branch != v2.begun.File.Branch || at[16].Branch != back.begun.File.Branch {
		t.Errorf("the chain has %d positions, %v", len(at), err)
	}
}

// TestBeginBranchGoesOnAfterEachCall: a process that begins a branch is killed at
// each call of the store in turn; another of its build goes on, and no branch too many
// is left that anybody would follow.
func TestBeginBranchGoesOnAfterEachCall(t *testing.T) {
	for call, done := 1, false; !done; call++ {
		s := store.NewMemory()
		main := newProcess(t, s, 1).take()
		input(t, main, 3)
		killed := newUpgrader(t, s, 2, "v2")
		from := len(killed.store.Calls())
		killed.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
			if c.N >= from+call {
				return faultstore.Fail
			}
			return faultstore.None
		})
		done = killed.begin(t.Context(), upgrading) == nil
		input(t, main, 2)
		again := newUpgrader(t, s, 3, "v2")
		if err := again.begin(t.Context(), upgrading); err != nil {
			t.Fatalf("killed at call %d: %v", call, err)
		}
		if killed.begun.File.Branch != "" && killed.begun.File.Branch != again.begun.File.Branch {
			t.Fatalf("killed at call %d: branch %s was begun, and %s goes on", call, killed.begun.File.Branch, again.begun.File.Branch)
		}
		if pins, err := again.job.Pins(t.Context()); err != nil || len(pins) != 0 {
			t.Fatalf("killed at call %d: pins are left: %v, %v", call, pins, err)
		}
		branches, err := again.job.Branches(t.Context())
		if err != nil || len(branches) != 2 {
			t.Fatalf("killed at call %d: branches %v, %v", call, branches, err)
		}
		if step, err := again.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil || step != IsLive {
			t.Fatalf("killed at call %d: the cut: %d, %v", call, step, err)
		}
		if at, err := checkChain(again.job); err != nil || len(at) != 5 {
			t.Fatalf("killed at call %d: %d positions, %v", call, len(at), err)
		}
	}
}

// TestUpgradeGoesOnAfterEachCall: the upgrade is killed at each call from its base to
// its first epoch as the live branch. Whoever runs it again finishes it.
func TestUpgradeGoesOnAfterEachCall(t *testing.T) {
	for call, done := 1, false; !done; call++ {
		s := store.NewMemory()
		main := newProcess(t, s, 1).take()
		input(t, main, 3)
		killed := newUpgrader(t, s, 2, "v2")
		if err := killed.begin(t.Context(), upgrading); err != nil {
			t.Fatal(err)
		}
		input(t, main, 2)
		from := len(killed.store.Calls())
		killed.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
			if c.N >= from+call {
				return faultstore.Fail
			}
			return faultstore.None
		})
		step, err := killed.cut(t.Context(), Cutting{Kind: Upgrade})
		done = err == nil && step == IsLive
		again := newUpgrader(t, s, 3, "v2")
		live, _, err := again.job.Live(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if live.Branch == MainBranch {
			if err := again.begin(t.Context(), upgrading); err != nil {
				t.Fatalf("killed at call %d: %v", call, err)
			}
			if !again.begun.Found || again.begun.File.Branch != killed.begun.File.Branch {
				t.Fatalf("killed at call %d: it began %s", call, again.begun.File.Branch)
			}
			if step, err := again.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil || step != IsLive {
				t.Fatalf("killed at call %d: the cut: %d, %v", call, step, err)
			}
		} else {
			again.owner = again.take()
		}
		input(t, again.owner, 1)
		if at, err := checkChain(again.job); err != nil || len(at) != 6 || at[6].Branch != killed.begun.File.Branch {
			t.Fatalf("killed at call %d: %d positions, %v", call, len(at), err)
		}
	}
}

// TestTwoBeginAtOnce: two processes of one build begin a branch, the second between
// any two calls of the first; they end up on one branch.
func TestTwoBeginAtOnce(t *testing.T) {
	for call, met := 1, true; met; call++ {
		s := store.NewMemory()
		input(t, newProcess(t, s, 1).take(), 3)
		a, b := newUpgrader(t, s, 2, "v2"), newUpgrader(t, s, 3, "v2")
		from := len(a.store.Calls())
		var second Begun
		met = false
		a.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
			if c.N == from+call {
				met = true
				var err error
				if second, err = b.job.BeginBranch(t.Context(), upgrading, b.me); err != nil {
					t.Fatal(err)
				}
			}
			return faultstore.None
		})
		first, err := a.job.BeginBranch(t.Context(), upgrading, a.me)
		if err != nil {
			t.Fatal(err)
		}
		if met && first.File.Branch != second.File.Branch {
			t.Errorf("at call %d: %s and %s", call, first.File.Branch, second.File.Branch)
		}
	}
}

// TestTwoMakeTheBase: two processes of one branch race for its base; one is fenced,
// and takes the branch over then.
func TestTwoMakeTheBase(t *testing.T) {
	for _, fault := range []faultstore.Fault{faultstore.None, faultstore.LostReply, faultstore.Late} {
		s := store.NewMemory()
		input(t, newProcess(t, s, 1).take(), 3)
		a, b := newUpgrader(t, s, 2, "v2"), newUpgrader(t, s, 3, "v2")
		begun, err := a.job.BeginBranch(t.Context(), upgrading, a.me)
		if err != nil {
			t.Fatal(err)
		}
		a.begun = begun
		if b.begun, err = b.job.BeginBranch(t.Context(), upgrading, b.me); err != nil || !b.begun.Found || b.begun.File.Branch != begun.File.Branch {
			t.Fatalf("%+v, %v", b.begun, err)
		}
		isBase := func(path string) bool { return path == ManifestPath(begun.File.Branch, FirstTask, 0) }
		a.store.SetPlan(onName(isBase, 1, fault))
		if err := a.base(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.base(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = a.store.Land(t.Context()) // meets the base, whoever's
		log := checkLog(t, b.job, begun.File.Branch)
		if len(log) != 2 || log[1].Kind != Open || log[1].Owner != b.owner.ID() {
			t.Errorf("fault %d: the log is %+v", fault, log)
		}
		wantError[*FencedError](t, "the first", lastErr(a.owner.Commit(t.Context(), Manifest{Kind: Open, Now: log[1].Now})))
	}
}

// TestGiveUp: a branch that was given up can't get a base, nor go on, and its pins go
// only then.
func TestGiveUp(t *testing.T) {
	s := store.NewMemory()
	input(t, newProcess(t, s, 1).take(), 3)
	u := newUpgrader(t, s, 2, "v2")
	begun, err := u.job.BeginBranch(t.Context(), upgrading, u.me)
	if err != nil {
		t.Fatal(err)
	}
	branch := begun.File.Branch
	wantError[*NoLogError](t, "unpin before the base", u.job.UnpinBranch(t.Context(), branch))
	other := newUpgrader(t, s, 3, "v3")
	if err := other.job.GiveUp(t.Context(), branch, other.me.Writer, "a person"); err != nil {
		t.Fatal(err)
	}
	if pins, err := u.job.Pins(t.Context()); err != nil || len(pins) != 0 {
		t.Errorf("pins %v, %v", pins, err)
	}
	u.begun = begun
	sealed := wantError[*SealedError](t, "the base", u.base(t.Context()))
	if sealed.By != "a person" {
		t.Errorf("sealed by %q", sealed.By)
	}
	if err := u.begin(t.Context(), upgrading); err != nil || u.begun.File.Branch == branch {
		t.Fatalf("the next try is on %s, %v", u.begun.File.Branch, err)
	}
	if err := u.job.GiveUp(t.Context(), u.begun.File.Branch, u.me.Writer, "a person"); err != nil {
		t.Fatal(err)
	}
	wantError[*SealedError](t, "the follower", lastErr(u.owner.Commit(t.Context(), Manifest{Kind: Open, Now: 1 << 60})))
	step, _, err := u.job.LookEnded(t.Context(), u.begun.File.Branch, FirstTask, Aftermath{Me: u.me})
	if err != nil || step != EndGivenUp {
		t.Errorf("it does %d, %v", step, err)
	}
	wantError[*LiveBranchError](t, "main", u.job.GiveUp(t.Context(), MainBranch, u.me.Writer, "a person"))
	// A branch of which there are but pins: its process died before its record.
	if err := u.job.PutPin(t.Context(), "lost-12-34", *begun.File.Base, "a test"); err != nil {
		t.Fatal(err)
	}
	if err := u.job.GiveUp(t.Context(), "lost-12", u.me.Writer, "a person"); err != nil {
		t.Fatal(err)
	}
	if pins, err := u.job.Pins(t.Context()); err != nil || len(pins) != 0 {
		t.Errorf("pins %v, %v", pins, err)
	}
}

// TestCutWhileGivingUp gives a branch up that goes live between the look and the seal:
// it is said, and the job goes on behind its end.
func TestCutWhileGivingUp(t *testing.T) {
	s := store.NewMemory()
	v1 := newUpgrader(t, s, 1, "v1")
	input(t, v1.take(), 3)
	n := newUpgrader(t, s, 2, "v2")
	if err := n.begin(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	branch, cut := n.begun.File.Branch, false
	v1.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && !cut {
			cut = true
			if _, err := n.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil {
				t.Fatal(err)
			}
		}
		return faultstore.None
	})
	e := wantError[*CutUnderWayError](t, "giving up", v1.job.GiveUp(t.Context(), branch, v1.me.Writer, "a person"))
	if !e.Live || !e.Ended {
		t.Errorf("giving up a branch that goes live: %+v", e)
	}
	wantError[*SealedError](t, "the one that is live", lastErr(n.owner.Commit(t.Context(), Manifest{Kind: Open, Now: 1 << 60})))
}

// TestCleanedStart is H11: the start is cleaned away between the look at the head and
// the pin; a newer one is chosen, and no pin is left of the first.
func TestCleanedStart(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 3)
	u := newUpgrader(t, s, 2, "v2")
	cleaned := false
	u.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && strings.HasPrefix(c.Name, "spend/pins/") && !cleaned {
			cleaned = true
			input(t, main, 4)
			head, _ := main.Head()
			clean(t, s, MainBranch, head.Epoch)
		}
		return faultstore.None
	})
	begun, err := u.job.BeginBranch(t.Context(), upgrading, u.me)
	if err != nil || begun.From[FirstTask].Manifest.Position != 7 {
		t.Fatalf("%+v, %v", begun, err)
	}
	if pins, err := u.job.Pins(t.Context()); err != nil || len(pins) != 1 {
		t.Errorf("pins %v, %v", pins, err)
	}
	// One that was named can't be chosen anew.
	old := Point{MainBranch, map[string]Epoch{FirstTask: 2}}
	_, err = u.job.BeginBranch(t.Context(), Beginning{Name: "x", Kind: Upgrade, From: &old}, u.me)
	wantError[*CleanedError](t, "a start under the floor", err)
}

// TestResume: main is sealed, and whoever sealed it has died. Another process of
// main's build goes on from the end, and the one that was to go live comes too late.
func TestResume(t *testing.T) {
	s := store.NewMemory()
	v1 := newUpgrader(t, s, 1, "v1")
	main := v1.take()
	input(t, main, 3)
	v2 := newUpgrader(t, s, 2, "v2")
	if err := v2.begin(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	if _, err := v2.job.SealBranch(t.Context(), MainBranch, v2.me.Writer, "v2"); err != nil {
		t.Fatal(err)
	}
	look := Aftermath{Me: Identity{Build: v1.build()}, Owner: true, After: 60}
	for still, want := range map[int64]EndedStep{0: DeliverRest, 59: DeliverRest, 60: ResumeNow} {
		look.Still = still
		if step, _, err := v1.job.LookEnded(t.Context(), MainBranch, FirstTask, look); err != nil || step != want {
			t.Errorf("after %d: %d, %v", still, step, err)
		}
	}
	resumed := newUpgrader(t, s, 3, "v1")
	resumed.upgrade(t, Beginning{Name: "resumed", Kind: Resume})
	input(t, resumed.owner, 2)
	if step, _, err := v1.job.LookEnded(t.Context(), MainBranch, FirstTask, look); err != nil || step != StandByAgain {
		t.Errorf("another process of the build: %d, %v", step, err)
	}
	// v2 wakes: it finds that another is live, follows that, and takes its place.
	if step, err := v2.catchUp(t.Context()); err != nil || step != AwaitEpoch {
		t.Fatalf("v2 follows: %d, %v", step, err)
	}
	if head, _ := v2.owner.Head(); head.Position != 5 {
		t.Errorf("v2 is at %d", head.Position)
	}
	if step, err := v2.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil || step != IsLive {
		t.Fatalf("v2 cuts over: %d, %v", step, err)
	}
	if at, err := checkChain(v1.job); err != nil || len(at) != 5 {
		t.Errorf("%d positions, %v", len(at), err)
	}
}
