package epoch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// doubts are the faults that leave open whether a create was done, and none.
var doubts = []faultstore.Fault{faultstore.None, faultstore.LostCall, faultstore.LostReply, faultstore.Late}

// TestSealRaces seals main while its owner commits before any of the sealer's calls,
// with each doubt at the seal's create. Whatever wins, main ends once, and everything
// that its owner was told is done lies before the seal.
func TestSealRaces(t *testing.T) {
	for _, fault := range doubts {
		for call, met := 1, true; met; call++ {
			s := store.NewMemory()
			main := newProcess(t, s, 1).take()
			input(t, main, 2)
			u := newUpgrader(t, s, 2, "v2")
			from, done := len(u.store.Calls()), Position(2)
			met = false
			doubt := onName(func(path string) bool { return strings.HasPrefix(path, LogPath(MainBranch, FirstTask)) }, 1, fault)
			u.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
				if c.N == from+call || c.N == from+call+2 {
					met = true
					if m, err := main.Commit(t.Context(), withSink(main, int64(done)+1)); err == nil {
						done = m.Position
					} else if sealed := (*SealedError)(nil); !errors.As(err, &sealed) {
						t.Fatal(err)
					}
				}
				return doubt(c)
			})
			ends, err := u.job.SealBranch(t.Context(), MainBranch, u.me.Writer, "v2")
			if err != nil {
				t.Fatalf("fault %d, call %d: %v", fault, call, err)
			}
			_ = u.store.Land(t.Context()) // meets what is there
			end := ends[FirstTask]
			if !end.Sealed() || end.Manifest.Position != done || end.Seal.By != "v2" {
				t.Fatalf("fault %d, call %d: main ends at %+v, and %d was done", fault, call, end, done)
			}
			wantError[*SealedError](t, "main's owner", lastErr(main.Commit(t.Context(), withSink(main, 99))))
			again, err := newUpgrader(t, s, 3, "v3").job.SealBranch(t.Context(), MainBranch, Writer{}, "v3")
			if err != nil || again[FirstTask].Hash != end.Hash || again[FirstTask].Seal.By != "v2" {
				t.Fatalf("fault %d, call %d: sealed again: %+v, %v", fault, call, again, err)
			}
			checkLog(t, u.job, MainBranch)
		}
	}
}

// TestSealIsQuickerThanAnOwner is H17: main commits whenever the sealer is about to
// create, for a while.
func TestSealIsQuickerThanAnOwner(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 2)
	u := newUpgrader(t, s, 2, "v2")
	tries, reads := 0, 0
	u.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		switch {
		case c.Operation == "create":
			if tries++; tries <= 20 {
				input(t, main, 1)
			}
		case c.Operation == "read" && tries > 0 && tries <= 20:
			reads++
		}
		return faultstore.None
	})
	ends, err := u.job.SealBranch(t.Context(), MainBranch, u.me.Writer, "v2")
	if err != nil || ends[FirstTask].Manifest.Position != 22 || tries != 21 {
		t.Fatalf("%d tries, %+v, %v", tries, ends, err)
	}
	if reads > 20 { // the manifest that beat each, and nothing else
		t.Errorf("%d reads between 20 lost races", reads)
	}
}

// TestSealAtFreedName is H11a for the sealer itself: it sleeps before its create, and
// the name is freed meanwhile.
func TestSealAtFreedName(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 2)
	u := newUpgrader(t, s, 2, "v2")
	slept := false
	u.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && !slept {
			slept = true
			input(t, main, 5)
			head, _ := main.Head()
			clean(t, s, MainBranch, head.Epoch)
		}
		return faultstore.None
	})
	ends, err := u.job.SealBranch(t.Context(), MainBranch, u.me.Writer, "v2")
	if err != nil || ends[FirstTask].Manifest.Position != 7 {
		t.Fatalf("main ends at %+v, %v", ends, err)
	}
	wantError[*SealedError](t, "main's owner", lastErr(main.Commit(t.Context(), withSink(main, 8))))
}

// TestSealFindsLostManifest: a manifest in the middle is lost; the log's end is not
// taken to be there.
func TestSealFindsLostManifest(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 6)
	lost := ManifestPath(MainBranch, FirstTask, 3)
	if err := s.Delete(t.Context(), "spend/"+lost); err != nil {
		t.Fatal(err)
	}
	u := newUpgrader(t, s, 2, "v2")
	_, err := u.job.SealBranch(t.Context(), MainBranch, u.me.Writer, "v2")
	damaged := wantError[*DamagedError](t, "the seal", err)
	if damaged.Object != "spend/"+lost {
		t.Errorf("it names %s", damaged.Object)
	}
}

// TestTwoBuildsCutOver: two builds have caught up; the second does all that it has to
// do before one of the calls of the first, with each doubt at the first's create of
// the live record. One is live, and the other follows it.
func TestTwoBuildsCutOver(t *testing.T) {
	for _, fault := range doubts {
		for call, met := 1, true; met; call++ {
			s := store.NewMemory()
			main := newProcess(t, s, 1).take()
			input(t, main, 3)
			a, b := newUpgrader(t, s, 2, "v2"), newUpgrader(t, s, 3, "v3")
			for _, u := range []*upgrader{a, b} {
				if err := u.begin(t.Context(), upgrading); err != nil {
					t.Fatal(err)
				}
			}
			input(t, main, 2)
			what := fmt.Sprintf("fault %d, call %d", fault, call)
			var second CutStep
			from := len(a.store.Calls())
			met = false
			doubt := onName(func(path string) bool { return strings.HasPrefix(path, "live/") }, 1, fault)
			a.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
				if c.N == from+call {
					met = true
					var err error
					if second, err = b.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil {
						t.Fatalf("%s: the second: %v", what, err)
					}
					if second == IsLive {
						input(t, b.owner, 2)
					}
				}
				return doubt(c)
			})
			first, err := a.cut(t.Context(), Cutting{Kind: Upgrade})
			replaced := (*SupersededError)(nil) // it was live, and the second has taken its place
			if err != nil && !errors.As(err, &replaced) {
				t.Fatalf("%s: the first: %v", what, err)
			}
			a.store.SetPlan(nil)
			_ = a.store.Land(t.Context())
			chain, err := a.job.Chain(t.Context(), FirstTask)
			if err != nil || len(chain) < 2 {
				t.Fatalf("%s: %+v, %v", what, chain, err)
			}
			// Whoever is live goes on; who was live before the other has no say.
			newest := chain[len(chain)-1]
			for _, u := range []*upgrader{a, b} {
				_, live := u.owner.Live()
				switch {
				case !live:
				case newest.Branch == u.begun.File.Branch:
					input(t, u.owner, 1)
				default:
					wantError[*SealedError](t, what, lastErr(u.owner.Commit(t.Context(), withSink(u.owner, 99))))
				}
			}
			if wrong := replaced != nil && (len(chain) != 3 || newest.Branch != b.begun.File.Branch); wrong || !met && first != IsLive {
				t.Fatalf("%s: the first thinks %d, %v, the second %d, and %+v is live", what, first, replaced, second, newest)
			}
			if at, err := checkChain(a.job); err != nil || len(at) < 6 {
				t.Fatalf("%s: %d positions, %v", what, len(at), err)
			}
		}
	}
}

// TestLateLiveRecordOfAGivenUpBranch is H16: the create of n's live record is late, n
// is given up, and the record lands. The job goes on, also when n has been cleaned
// away by then.
func TestLateLiveRecordOfAGivenUpBranch(t *testing.T) {
	for _, removed := range []bool{false, true} {
		s := store.NewMemory()
		v1 := newUpgrader(t, s, 1, "v1")
		main := v1.take()
		input(t, main, 3)
		n := newUpgrader(t, s, 2, "v2")
		if err := n.begin(t.Context(), upgrading); err != nil {
			t.Fatal(err)
		}
		branch := n.begun.File.Branch
		given := false
		n.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
			if c.Operation != "create" || c.Name != "spend/"+LivePath(1) {
				return faultstore.None
			}
			if !given {
				given = true
				// Who looks now sees the cut; somebody has looked a moment before.
				cut := wantError[*CutUnderWayError](t, "giving up in a cut", v1.job.GiveUp(t.Context(), branch, v1.me.Writer, "a person"))
				if cut.Ended || cut.Sealed != MainBranch {
					t.Errorf("giving up in a cut: %+v", cut)
				}
				records, err := v1.job.LiveRecords(t.Context(), nil)
				if err == nil {
					err = v1.job.giveUp(t.Context(), branch, records, v1.me.Writer, "a person")
				}
				if err == nil { // once more, as after a crash in between
					err = v1.job.GiveUp(t.Context(), branch, v1.me.Writer, "a person")
				}
				if err != nil {
					t.Fatal(err)
				}
				if removed {
					clean(t, s, branch, AllEpochs)
				}
			}
			return faultstore.Late
		})
		if _, err := n.cut(t.Context(), Cutting{Kind: Upgrade}); !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("removed %v: the cut: %v", removed, err)
		}
		if err := n.store.Land(t.Context()); err != nil {
			t.Fatal(err)
		}
		live, _, err := v1.job.Live(t.Context())
		if err != nil || live.Branch != branch {
			t.Fatalf("removed %v: %+v, %v", removed, live, err)
		}
		step, _, err := v1.job.LookEnded(t.Context(), branch, FirstTask, Aftermath{Me: Identity{Build: n.build()}, Resume: true})
		if err != nil || step != ResumeNow {
			t.Errorf("removed %v: it does %d, %v", removed, step, err)
		}
		next := newUpgrader(t, s, 3, "v3")
		next.upgrade(t, Beginning{Name: "next", Kind: Resume})
		input(t, next.owner, 2)
		at, err := checkChain(v1.job)
		if err != nil || len(at) != 5 || at[4].Branch != next.begun.File.Branch {
			t.Errorf("removed %v: %d positions, %v", removed, len(at), err)
		}
		record, _, err := v1.job.Live(t.Context())
		want := branch
		if removed {
			want = MainBranch // where the generation before ended
		}
		if err != nil || record.N != 2 || record.Ends.Live != 1 || record.Ends.Branch != want || record.Ends.Tasks[FirstTask].Position != 3 {
			t.Errorf("removed %v: the record is %+v, %v", removed, record, err)
		}
	}
}

// TestCutAsksForConsent: a gap that nobody has consented to stops the cut before
// anything is noted; with consent, what was owed before the gap comes first (H21).
func TestCutAsksForConsent(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 3)
	without := newUpgrader(t, s, 2, "v2")
	without.sinks = nil
	without.upgrade(t, upgrading)
	input(t, without.owner, 2)
	if head, _ := without.owner.Head(); head.Sinks["out"].Dropped != ToDrain {
		t.Errorf("the sink is %+v", head.Sinks["out"])
	}
	back := newUpgrader(t, s, 3, "v3")
	if err := back.begin(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	before, _ := back.owner.Head()
	_, err := back.cut(t.Context(), Cutting{Kind: Upgrade})
	if gap := wantError[*GapError](t, "a sink that is back", err); gap.From != 0 || gap.To != 5 {
		t.Errorf("%+v", gap)
	}
	if after, _ := back.owner.Head(); after.Epoch != before.Epoch {
		t.Errorf("something was noted: %+v", after)
	}
	c := Cutting{Kind: Upgrade, Settled: map[string]SinkConsent{"out": {Gap: Consented}}}
	if step, err := back.cut(t.Context(), c); err != nil || step != IsLive {
		t.Fatalf("%d, %v", step, err)
	}
	input(t, back.owner, 1)
	head, _ := back.owner.Head()
	owed, err := back.job.OwedTo(t.Context(), head, []string{"out"})
	want := "0-1 main, 1-2 main, 2-3 main, 3-6 " + back.begun.File.Branch
	if got := strings.Join(deliveries(owed["out"]), ", "); err != nil || got != want {
		t.Errorf("owed: %q, %v, want %q", got, err, want)
	}
	// Once the build that had it has delivered the rest, the old log isn't read.
	if err := s.Create(t.Context(), "spend/"+DrainedPath(1, FirstTask, "out"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	owed, err = back.job.OwedTo(t.Context(), head, []string{"out"})
	if got := strings.Join(deliveries(owed["out"]), ", "); err != nil || got != "3-6 "+back.begun.File.Branch {
		t.Errorf("owed: %q, %v", got, err)
	}
	// What main's owner of old is to drain.
	old, _ := main.Head()
	owed, err = back.job.OwedTo(t.Context(), old, []string{"out"})
	if got := strings.Join(deliveries(owed["out"]), ", "); err != nil || got != "0-1 main, 1-2 main, 2-3 main" {
		t.Errorf("owed: %q, %v", got, err)
	}
}

// TestLookLive: the owner of a follower writes under a live record once it has read
// it, and not before.
func TestLookLive(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 3)
	a := newUpgrader(t, s, 2, "v2")
	if err := a.begin(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	if _, mine, err := a.owner.LookLive(t.Context()); err != nil || mine {
		t.Errorf("main's record is its own: %v", err)
	}
	one := Generation(1)
	early := work(a.owner, 4)
	early.Live, early.Position, early.Covers = &one, 4, map[string]Position{FirstTask: 4}
	if _, err := a.owner.Commit(t.Context(), early); err == nil {
		t.Error("data was committed under a record that is not there")
	}
	for name, m := range map[string]Manifest{
		"nothing covered":           {Kind: Data, Position: 4},
		"another position":          {Kind: Data, Position: 4, Covers: map[string]Position{FirstTask: 5}},
		"less than the one before":  {Kind: Data, Position: 3, Covers: map[string]Position{FirstTask: 2}},
		"an opening that goes back": {Kind: Open, Covers: map[string]Position{FirstTask: 2}},
	} {
		head, _ := a.owner.Head()
		m.Now = head.Now
		if _, err := a.owner.Commit(t.Context(), m); err == nil {
			t.Errorf("%s: committed", name)
		}
	}
	if step, err := a.cut(t.Context(), Cutting{Kind: Upgrade}); err != nil || step != IsLive {
		t.Fatalf("%d, %v", step, err)
	}
	if m, err := a.owner.Commit(t.Context(), withSink(a.owner, 4)); err != nil || m.Position != 4 || *m.Live != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}
