package epoch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// TestFirstStart looks at every object that a job's first start makes.
func TestFirstStart(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	commit(t, o, 10)
	listed, err := s.List(t.Context(), "spend/", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range listed {
		names = append(names, strings.TrimPrefix(l.Name, "spend/"))
	}
	hash, err := testVersion().Hash()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"branches/main/0.0/00000000000000000000.json", "branches/main/0.0/00000000000000000001.json", "branches/main/0.0/00000000000000000002.json",
		"branches/main/branch.json", "job.json", "layouts/0.json", "live/0.json", "versions/" + hash + ".json",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
	log := checkLog(t, p.job, MainBranch)
	if log[0].Kind != Base || log[1].Kind != Open || log[2].Kind != Data {
		t.Errorf("the log is %s, %s, %s", log[0].Kind, log[1].Kind, log[2].Kind)
	}
	if log[0].Live != nil || *log[1].Live != 0 || *log[2].Live != 0 {
		t.Error("live is not where it belongs: in the opening and the data")
	}
	if log[1].Position != 0 || log[2].Position != 1 || log[2].Version != hash || log[2].Build.Version != hash {
		t.Errorf("the data epoch is %+v", log[2])
	}
	live, ok, err := p.job.Live(t.Context())
	if err != nil || !ok || live.Kind != First || live.Branch != MainBranch || live.Covers[FirstTask] != 0 {
		t.Errorf("live is %+v, %v, %v", live, ok, err)
	}
	layout, err := p.job.Layout(t.Context(), 0)
	if err != nil || !slices.Equal(layout.Tasks, []Task{{"0.0", Slots{0, 65535}}}) || layout.Hash != "xxhash64" {
		t.Errorf("layout 0 is %+v, %v", layout, err)
	}
	branch, err := p.job.BranchFile(t.Context(), MainBranch)
	if err != nil || branch.Kind != First || branch.Base != nil || branch.Build.Executable != "exe" {
		t.Errorf("main is %+v, %v", branch, err)
	}
	version, err := p.job.Version(t.Context(), hash)
	if err != nil || version.States["spend"].Value != `"long"` {
		t.Errorf("the version is %+v, %v", version, err)
	}
	if file := p.job.File(); file.Job != "spend" || len(file.JobID) != 16 || file.TransactionPrefix != "spend/" {
		t.Errorf("job.json is %+v", file)
	}
}

// TestFirstStartCrashesAnywhere starts a job with the store failing from the
// n-th call on, for every n, and then again without faults.
func TestFirstStartCrashesAnywhere(t *testing.T) {
	for fault := faultstore.Fail; fault <= faultstore.LostReply; fault++ {
		for n := 1; ; n++ {
			s := store.NewMemory()
			broken := faultstore.New(s, func(c faultstore.Call) faultstore.Fault {
				if c.N >= n {
					return fault
				}
				return faultstore.None
			})
			me := Identity{Build: Build{Executable: "exe"}, Version: testVersion()}
			o, err := openAndTake(t.Context(), testEnv(1), broken, me)
			again := newProcess(t, s, 2)
			o2 := again.take()
			commit(t, o2, 10)
			log := checkLog(t, again.job, MainBranch)
			if log[0].Kind != Base || log[len(log)-1].Position != 1 {
				t.Fatalf("fault %d from call %d on: the log is %+v", fault, n, log)
			}
			if err == nil {
				broken.SetPlan(nil)
				wantError[*FencedError](t, "the first", lastErr(o.Commit(t.Context(), work(o, 5))))
				break // it needs fewer calls than n
			}
		}
	}
}

func openAndTake(ctx context.Context, e *env.Env, s store.Store, me Identity) (*Owner, error) {
	job, err := OpenJob(ctx, e, s, "spend", "")
	if err != nil {
		return nil, err
	}
	return job.TakeLive(ctx, FirstTask, me)
}

func TestSecondOwnerFencesTheFirst(t *testing.T) {
	s := store.NewMemory()
	p, q := newProcess(t, s, 1), newProcess(t, s, 2)
	first := p.take()
	commit(t, first, 10)
	second := q.take()
	if head, _ := second.Head(); head.Kind != Open || nextOf(head) != 10 || head.Position != 1 {
		t.Fatalf("the second begins at %+v", head)
	}
	fenced := wantError[*FencedError](t, "the first", lastErr(first.Commit(t.Context(), work(first, 20))))
	if fenced.ExitCode() != 11 || fenced.Owner != second.ID() || fenced.Writer.Host != "p2" || fenced.Epoch != 3 {
		t.Errorf("got %+v", fenced)
	}
	if text := fenced.Error(); !strings.HasPrefix(text, "spend: branch main, task 0.0, epoch 3: fenced: owner "+second.ID()+" (process 2 on p2)") {
		t.Errorf("it says %q", text)
	}
	if _, err := first.Commit(t.Context(), work(first, 20)); err != error(fenced) {
		t.Errorf("a second try: got %v, want the same error", err)
	}
	if m := commit(t, second, 20); m.Position != 2 {
		t.Errorf("position %d, want 2", m.Position)
	}
}

// TestTakeWhileTheOldOwnerCommits: losing the name to the owner before is no
// reason to give up.
func TestTakeWhileTheOldOwnerCommits(t *testing.T) {
	s := store.NewMemory()
	old := newProcess(t, s, 1).take()
	p := newProcess(t, s, 2)
	next := int64(0)
	p.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && strings.Contains(c.Name, LogPath(MainBranch, FirstTask)) && next < 50 {
			next += 10
			commit(t, old, next)
		}
		return faultstore.None
	})
	o := p.take()
	if head, _ := o.Head(); nextOf(head) != 50 {
		t.Errorf("it begins at %+v, want 50", head)
	}
	wantError[*FencedError](t, "the old owner", lastErr(old.Commit(t.Context(), work(old, 60))))
}

// TestTwoTakeAtOnce: who loses to another taker stops; it doesn't fence him.
func TestTwoTakeAtOnce(t *testing.T) {
	s := store.NewMemory()
	newProcess(t, s, 1).take()
	p, q := newProcess(t, s, 2), newProcess(t, s, 3)
	var winner *Owner
	p.store.SetPlan(func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && strings.Contains(c.Name, LogPath(MainBranch, FirstTask)) && winner == nil {
			winner = q.take()
		}
		return faultstore.None
	})
	_, err := p.job.TakeLive(t.Context(), FirstTask, p.me)
	if fenced := wantError[*FencedError](t, "the loser", err); fenced.Owner != winner.ID() {
		t.Errorf("got %+v", fenced)
	}
	commit(t, winner, 10)
}

func TestBuildsInPlace(t *testing.T) {
	s := store.NewMemory()
	old, new := newProcess(t, s, 1), newProcess(t, s, 2)
	new.me.Build = Build{Executable: "exe-2"}
	commit(t, old.take(), 10)
	o := new.take()
	head, _ := o.Head()
	if head.Build.Executable != "exe-2" || len(head.Superseded) != 1 || head.Superseded[0].Executable != "exe" {
		t.Fatalf("the new build opens with %+v, superseding %+v", head.Build, head.Superseded)
	}
	if m := commit(t, o, 20); m.Build != head.Build || !slices.Equal(m.Superseded, head.Superseded) {
		t.Errorf("its data has %+v, superseding %+v", m.Build, m.Superseded)
	}
	// A supervisor starts the old one again, and again.
	for range 2 {
		_, err := old.job.TakeLive(t.Context(), FirstTask, old.me)
		if superseded := wantError[*SupersededError](t, "the old build", err); superseded.ExitCode() != 12 || superseded.Now.Executable != "exe-2" {
			t.Errorf("got %+v", superseded)
		}
	}
	commit(t, o, 30) // nothing has disturbed the owner
	old.me.Replace = true
	back := old.take()
	if head, _ := back.Head(); head.Build.Executable != "exe" || len(head.Superseded) != 1 || head.Superseded[0].Executable != "exe-2" {
		t.Errorf("brought back, it opens with %+v, superseding %+v", head.Build, head.Superseded)
	}
}

// TestAnotherVersionOpensTwice is T6: the first opening changes nothing of what
// the job is, the second one everything at once.
func TestAnotherVersionOpensTwice(t *testing.T) {
	s := store.NewMemory()
	old, new := newProcess(t, s, 1), newProcess(t, s, 2)
	oldHead := commit(t, old.take(), 10)
	new.me.Version.States = map[string]StateSchemas{"spend": {Operator: "spend", Key: `"string"`, Value: `"double"`}}
	o := new.take()
	first, _ := o.Head()
	if first.Version != oldHead.Version || first.Build != oldHead.Build || first.Superseded != nil {
		t.Fatalf("the first opening is %+v", first)
	}
	version, err := new.me.Version.Hash()
	if err != nil {
		t.Fatal(err)
	}
	build := new.me.Build
	build.Version = version
	m := Opening(first, build, nil)
	m.Version, m.Build = version, build
	second, err := o.Commit(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if second.Version != version || !slices.Equal(second.Superseded, []Build{oldHead.Build}) || second.Position != oldHead.Position || *second.Live != 0 {
		t.Errorf("the second opening is %+v", second)
	}
	_, err = old.job.TakeLive(t.Context(), FirstTask, old.me)
	wantError[*SupersededError](t, "the old version", err)
}

func TestCommitRefusesMistakes(t *testing.T) {
	o := newProcess(t, store.NewMemory(), 1).take()
	commit(t, o, 10)
	head, _ := o.Head()
	for what, m := range map[string]Manifest{
		"a seal":                  {Kind: Seal, Now: head.Now},
		"a base":                  {Kind: Base, Now: head.Now},
		"no kind":                 {Now: head.Now},
		"an epoch of long ago":    {Kind: Data, Now: head.Now, Epoch: 1},
		"a clock that went back":  {Kind: Data, Now: head.Now - 1},
		"a name that isn't UTF-8": {Kind: Data, Now: head.Now, Counts: map[string]int64{"\xff": 1}},
	} {
		if _, err := o.Commit(t.Context(), m); err == nil {
			t.Errorf("%s was committed", what)
		}
	}
	if m := commit(t, o, 20); m.Epoch != 3 { // mistakes have ended nothing
		t.Errorf("epoch %d, want 3", m.Epoch)
	}
}

func TestCommitOnAFullDisk(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	p.store.SetPlan(onManifest(o.NextEpoch(), once(faultstore.Fail)))
	_, err := o.Commit(t.Context(), work(o, 10))
	if !errors.Is(err, faultstore.ErrInjected) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("got %v, want the store's own error, without a doubt", err)
	}
}

// TestCommitCancelledInDoubt keeps the doubt in the error.
func TestCommitCancelledInDoubt(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	ctx, cancel := context.WithCancel(t.Context())
	p.store.SetPlan(onManifest(o.NextEpoch(), func(n int) faultstore.Fault {
		cancel()
		return faultstore.LostReply
	}))
	_, err := o.Commit(ctx, work(o, 10))
	if !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want both the doubt and the cancellation", err)
	}
}

func TestDataNamesAreUnique(t *testing.T) {
	s := store.NewMemory()
	p, q := newProcess(t, s, 1), newProcess(t, s, 2)
	seen := map[string]bool{}
	for _, o := range []*Owner{p.take(), q.take()} {
		for range 3 {
			path, err := o.DataName(7, "spend")
			if err != nil || seen[path] {
				t.Fatalf("%s: again, or %v", path, err)
			}
			seen[path] = true
			name, ok := ParsePath(path)
			if !ok || name.Epoch != 7 || name.Owner != o.ID() || name.Given != "spend" || name.Branch != MainBranch || name.Task != FirstTask {
				t.Errorf("%s reads as %+v", path, name)
			}
		}
		if _, err := o.DataName(7, "../x"); err == nil {
			t.Error("a name that leads elsewhere was taken")
		}
	}
}

func TestThisProcess(t *testing.T) {
	w := ThisProcess()
	if w.PID == 0 || w.Host == "" {
		t.Errorf("got %+v", w)
	}
	if again := ThisProcess(); again != w {
		t.Errorf("%+v, and then %+v", w, again)
	}
	b, err := ThisExecutable()
	if err != nil || len(b.Executable) != 64 {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestStartTime(t *testing.T) {
	const stat = "17 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20"
	if got := startTime(stat); got != "987654" {
		t.Errorf("got %q, want 987654", got)
	}
	for _, bad := range []string{"", "17 (a", "17 (a) S 1"} {
		if got := startTime(bad); got != "" {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}
