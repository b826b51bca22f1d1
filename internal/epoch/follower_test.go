package epoch

import (
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

func TestDecideFollow(t *testing.T) {
	one := []Link{{Branch: MainBranch, To: AllPositions}}
	two := []Link{{Branch: MainBranch, To: 3}, {Live: 1, Branch: "n", From: 3, To: AllPositions}}
	data := func(p Position) Manifest { return Manifest{Kind: Data, Position: p} }
	open := func(p Position) Manifest { return Manifest{Kind: Open, Position: p} }
	edits := func(p Position) Manifest { return Manifest{Kind: Data, Position: p, Edits: []Edit{{State: "s"}}} }
	for _, c := range []struct {
		name string
		view FollowView
		want FollowStep
		n    int
	}{
		{"nothing new", FollowView{Branch: "n", Covers: 3, Chain: one}, AwaitEpoch, 0},
		{"openings alone", FollowView{Branch: "n", Covers: 3, Chain: one, Ahead: []Manifest{open(3), open(3)}}, AwaitEpoch, 0},
		{"one", FollowView{Branch: "n", Covers: 3, Chain: one, Ahead: []Manifest{data(4), data(5)}}, Cover, 1},
		{"openings around it", FollowView{Branch: "n", Covers: 3, Chain: one, Most: 1, Ahead: []Manifest{open(3), data(4), open(4), data(5)}}, Cover, 3},
		{"many", FollowView{Branch: "n", Covers: 3, Chain: one, Most: 9, Ahead: []Manifest{data(4), open(4), data(5), data(6), open(6)}}, Cover, 5},
		{"no more than that", FollowView{Branch: "n", Covers: 3, Chain: one, Most: 2, Ahead: []Manifest{data(4), data(5), data(6)}}, Cover, 2},
		{"up to edits", FollowView{Branch: "n", Covers: 3, Chain: one, Most: 9, Ahead: []Manifest{data(4), open(4), edits(5), data(6)}}, Cover, 2},
		{"from edits on", FollowView{Branch: "n", Covers: 4, Chain: one, Most: 9, Ahead: []Manifest{open(4), edits(5), data(6), edits(7)}}, Cover, 3},
		{"the rest before a seal", FollowView{Branch: "n", Covers: 3, Chain: one, Most: 9, Sealed: true, Ahead: []Manifest{data(4)}}, Cover, 1},
		{"sealed, and all covered", FollowView{Branch: "n", Covers: 3, Chain: one, Sealed: true}, AwaitSuccessor, 0},
		{"it is its own", FollowView{Branch: "n", Covers: 3, Chain: two}, BeLive, 0},
		{"it isn't its own yet", FollowView{Branch: "n", Covers: 2, Chain: two, Most: 1, Ahead: []Manifest{data(3)}}, Cover, 1},
		{"gone", FollowView{Branch: "n", Covers: 3, Chain: one, Gone: true}, TimetableGone, 0},
	} {
		if got, n := DecideFollow(c.view); got != c.want || n != c.n {
			t.Errorf("%s: got %d, %d", c.name, got, n)
		}
	}
}

// TestFollowerInSpiteOfTheFloor: clean-up keeps what the follower has not covered
// under the floor (G8), and a sleeper puts something at a name that was freed. Then
// clean-up takes that away too, and the follower says so.
func TestFollowerInSpiteOfTheFloor(t *testing.T) {
	s := store.NewMemory()
	sleeper := newProcess(t, s, 3).take()
	main := newProcess(t, s, 1).take()
	input(t, main, 3)
	u := newUpgrader(t, s, 2, "v2")
	if err := u.begin(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	input(t, main, 6)
	head, _ := main.Head()
	floor := func(e Epoch) { // as clean-up does for a follower: the record, and nothing that it needs goes
		if err := u.job.PutFloor(t.Context(), MainBranch, FirstTask, e); err != nil {
			t.Fatal(err)
		}
		for gone := range Epoch(4) {
			if err := s.Delete(t.Context(), "spend/"+ManifestPath(MainBranch, FirstTask, gone)); err != nil {
				t.Fatal(err)
			}
		}
	}
	floor(head.Epoch)
	wantError[*VoidError](t, "the sleeper", lastErr(sleeper.Commit(t.Context(), work(sleeper, 9))))
	if step, err := u.follow(t.Context(), 2); err != nil || step != Cover {
		t.Fatalf("%d, %v", step, err)
	}
	own, _ := u.owner.Head()
	if own.Position != 5 || nextOf(own) != 5 {
		t.Errorf("it is at %+v", own)
	}
	// A new process of the branch finds its place anew.
	if _, err := u.job.Follow(u.begun.File.Branch, FirstTask).Next(t.Context(), own, 2); err != nil {
		t.Fatal(err)
	}
	next := At{"spend", MainBranch, FirstTask, 0}
	for e := Epoch(0); e < head.Epoch; e++ {
		if m, err := u.job.ManifestBelow(t.Context(), MainBranch, FirstTask, e); err == nil && m.Kind == Data && m.Position == 6 && m.Live != nil {
			next.Epoch = e
		}
	}
	if err := s.Delete(t.Context(), "spend/"+ManifestPath(MainBranch, FirstTask, next.Epoch)); err != nil {
		t.Fatal(err)
	}
	for _, feed := range []*Follower{u.feed, u.job.Follow(u.begun.File.Branch, FirstTask)} {
		f, err := feed.Next(t.Context(), own, 2)
		gone := wantError[*TimetableError](t, "the next is gone", err)
		if f.Step != TimetableGone || gone.Covers != 5 || gone.Epoch != head.Epoch || gone.ExitCode() != 13 {
			t.Errorf("%+v, %+v", f, gone)
		}
	}
}

// TestVoidManifestIsNotCovered is H9 for a follower: an opening behind what it has
// covered is cleaned away, and a process that slept puts its own epoch there, with the
// right parent.
func TestVoidManifestIsNotCovered(t *testing.T) {
	for _, most := range []int{1, 2, 9} {
		s := store.NewMemory()
		sleeper := newProcess(t, s, 1).take()
		u := newUpgrader(t, s, 2, "v2")
		if err := u.begin(t.Context(), upgrading); err != nil {
			t.Fatal(err)
		}
		void := sleeper.NextEpoch()
		main := newProcess(t, s, 3).take()
		if step, err := u.follow(t.Context(), most); err != nil || step != AwaitEpoch {
			t.Fatalf("%d, %v", step, err)
		}
		input(t, main, 4)
		if err := u.job.PutFloor(t.Context(), MainBranch, FirstTask, main.NextEpoch()-1); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "spend/"+ManifestPath(MainBranch, FirstTask, void)); err != nil {
			t.Fatal(err)
		}
		wantError[*VoidError](t, "the sleeper", lastErr(sleeper.Commit(t.Context(), work(sleeper, 77))))
		for {
			step, err := u.follow(t.Context(), most)
			if err != nil {
				t.Fatal(err)
			}
			if step != Cover {
				break
			}
		}
		if own, _ := u.owner.Head(); own.Position != 4 || nextOf(own) != 4 {
			t.Errorf("%d at once: it is at %+v", most, own)
		}
		for _, m := range checkLog(t, u.job, u.begun.File.Branch) {
			if nextOf(m) != int64(m.Position) {
				t.Errorf("%d at once: position %d has read up to %d", most, m.Position, nextOf(m))
			}
		}
	}
}

// TestFollowerStartsAnywhere: a follower begins behind any position, over several
// generations, and clean-up raises the floor at each of its calls.
func TestFollowerStartsAnywhere(t *testing.T) {
	s := store.NewMemory()
	main := newProcess(t, s, 1).take()
	input(t, main, 4)
	second := newUpgrader(t, s, 2, "v2")
	second.upgrade(t, upgrading)
	input(t, second.owner, 4)
	third := newUpgrader(t, s, 3, "v3")
	third.upgrade(t, upgrading)
	input(t, third.owner, 4)
	for covers := range Position(13) {
		own := Manifest{Branch: "other", Task: FirstTask, Covers: map[string]Position{FirstTask: covers}}
		feed := third.job.Follow("other", FirstTask)
		for own.Covers[FirstTask] < 12 {
			f, err := feed.Next(t.Context(), own, 3)
			if err != nil || f.Step != Cover {
				t.Fatalf("behind %d: %d, %v", own.Covers[FirstTask], f.Step, err)
			}
			for _, m := range f.Covered {
				if m.Kind == Data && m.Position != own.Covers[FirstTask]+1 {
					t.Fatalf("from %d: position %d after %d", covers, m.Position, own.Covers[FirstTask])
				}
				own.Covers = map[string]Position{FirstTask: m.Position}
			}
		}
		if f, err := feed.Next(t.Context(), own, 3); err != nil || f.Step != AwaitEpoch || f.Link.Live != 2 {
			t.Errorf("from %d: %+v, %v", covers, f, err)
		}
	}
	// The third one's log is cleaned to its head between any two calls: what the
	// follower needs is there, or it says that it is not.
	for call, met := 1, true; met; call++ {
		s := copied(t, s)
		reader := newUpgrader(t, s, 4, "v4")
		feed := reader.job.Follow("other", FirstTask)
		from := len(reader.store.Calls())
		met = false
		reader.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
			if c.N == from+call {
				met = true
				head, _ := third.owner.Head()
				clean(t, s, head.Branch, head.Epoch)
			}
			return faultstore.None
		})
		own := Manifest{Branch: "other", Task: FirstTask, Covers: map[string]Position{FirstTask: 9}}
		f, err := feed.Next(t.Context(), own, 3)
		if err == nil && f.Step == Cover {
			continue // it had read all before
		}
		wantError[*TimetableError](t, "cleaned away", err)
	}
}

// copied is another store with the same objects.
func copied(t *testing.T, from store.Store) store.Store {
	t.Helper()
	to := store.NewMemory()
	listed, err := from.List(t.Context(), "", "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		data, err := from.Read(t.Context(), l.Name, 1<<20)
		if err == nil {
			err = to.Create(t.Context(), l.Name, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}
