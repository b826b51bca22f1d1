package epoch

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
	"pgregory.net/rapid"
)

// upgrades is a store with any number of processes of three builds. They run the job,
// upgrade it, roll it back, resume it, seal it at any moment and give branches up, and
// sleep between any two of their steps, over a network that loses and delays what it
// likes, while clean-up runs. A sink gets what they deliver. Each live data epoch reads
// one record: that of its position's number.
type upgrades struct {
	t     *rapid.T
	test  *testing.T
	bare  *store.Memory
	procs []*upgrader
	// done are the hashes of live data epochs of which a commit said that they are
	// done, by position, and where they are.
	done  map[Position]string
	where map[Position]At
	sink  table
	took  map[Position]string // by position: the manifest whose rows the sink took
}

var background = context.Background()

// plan has faults for some of the creates of one step.
func (w *upgrades) plan() func(faultstore.Call) faultstore.Fault {
	faults := rapid.SliceOfN(rapid.SampledFrom([]faultstore.Fault{
		faultstore.None, faultstore.None, faultstore.None, faultstore.None, faultstore.LostCall, faultstore.LostReply, faultstore.Late, faultstore.Fail,
	}), 0, 5).Draw(w.t, "faults")
	return func(c faultstore.Call) faultstore.Fault {
		if c.Operation != "create" || len(faults) == 0 {
			return faultstore.None
		}
		next := faults[0]
		faults = faults[1:]
		return next
	}
}

// allow stops at errors that no history should end in.
func (w *upgrades) allow(what string, err error) {
	var (
		fenced     *FencedError
		void       *VoidError
		sealed     *SealedError
		superseded *SupersededError
		cleaned    *CleanedError
		timetable  *TimetableError
		live       *LiveBranchError
		cut        *CutUnderWayError
	)
	switch {
	case err == nil, errors.As(err, &fenced), errors.As(err, &void), errors.As(err, &sealed), errors.As(err, &superseded),
		errors.As(err, &cleaned), errors.As(err, &timetable), errors.As(err, &live), errors.As(err, &cut), errors.Is(err, faultstore.ErrInjected):
	default:
		w.t.Fatalf("%s: %v", what, err)
	}
}

// process draws one of the processes, and lets its calls fail.
func (w *upgrades) process(owns bool) *upgrader {
	var some []*upgrader
	for _, p := range w.procs {
		p.store.SetPlan(nil)
		if !owns || p.owner != nil {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		w.t.Skip("no such process: the history draws another step")
	}
	p := rapid.SampledFrom(some).Draw(w.t, "process")
	p.store.SetPlan(w.plan())
	return p
}

// start starts a process: of a build, on the live branch.
func (w *upgrades) start() {
	u := w.fresh()
	o, err := u.job.TakeLive(background, FirstTask, u.me)
	w.allow("start", err)
	u.owner = o
}

// fresh is a new process, that has not begun anything.
func (w *upgrades) fresh() *upgrader {
	if len(w.procs) == 6 { // the oldest is killed
		w.procs = w.procs[1:]
	}
	build := rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(w.t, "build")
	u := newUpgrader(w.test, w.bare, w.number(), build)
	w.procs = append(w.procs, u)
	u.store.SetPlan(w.plan())
	return u
}

func (w *upgrades) number() int {
	if len(w.procs) == 0 {
		return 1
	}
	return w.procs[len(w.procs)-1].me.Writer.PID + 1
}

// begin begins a branch, or goes on with one of the same build.
func (w *upgrades) begin() {
	if _, live, err := w.bareJob().Live(background); err != nil || !live {
		w.t.Skip("the job has never run: the history draws another step")
	}
	u := w.fresh()
	b := Beginning{Name: "b", Kind: rapid.SampledFrom([]BranchKind{Upgrade, Upgrade, Rollback, Resume, Failover}).Draw(w.t, "kind")}
	if live, _, err := u.job.Live(background); err == nil && b.Kind == Rollback {
		if before, ok := live.Before(); ok {
			b.From = &before
		}
	}
	err := u.begin(background, b)
	w.allow("begin", err)
	if err != nil {
		u.owner = nil
	}
}

func (w *upgrades) bareJob() *Job {
	j, err := OpenJob(background, testEnv(0), w.bare, "spend", "")
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// work commits an epoch of the live branch, or follows.
func (w *upgrades) work() {
	u := w.process(true)
	if _, live := u.owner.Live(); !live {
		if u.feed == nil {
			u.feed = u.job.Follow(u.owner.Branch(), FirstTask)
		}
		if _, known := u.head().Covers[FirstTask]; known {
			_, err := u.follow(background, rapid.IntRange(1, 4).Draw(w.t, "most"))
			w.allow("follow", err)
		}
		return
	}
	m := withSink(u.owner, nextOf(u.head())+1)
	if s := m.Sinks["out"]; w.sink.record != nil && w.sink.record.Position > s.Confirmed && w.sink.record.Position <= u.head().Position {
		s.Confirmed = w.sink.record.Position
		m.Sinks = map[string]SinkState{"out": s}
	}
	m, err := u.owner.Commit(background, m)
	w.allow("commit", err)
	if err != nil {
		return
	}
	_, hash := u.owner.Head()
	if other, twice := w.done[m.Position]; twice {
		w.t.Fatalf("position %d was done twice: %s, and %s by %s", m.Position, other, hash, u.name)
	}
	w.done[m.Position], w.where[m.Position] = hash, At{"", m.Branch, m.Task, m.Epoch}
}

func (u *upgrader) head() Manifest {
	m, _ := u.owner.Head()
	return m
}

// seal ends the live branch, whoever wants that, and whether or not it has caught up.
func (w *upgrades) seal() {
	u := w.process(false)
	live, ok, err := u.job.Live(background)
	if err != nil || !ok {
		w.t.Skip("nothing is live: the history draws another step")
	}
	_, err = u.job.SealBranch(background, live.Branch, u.me.Writer, u.name)
	w.allow("seal", err)
}

// cut tries to go live.
func (w *upgrades) cut() {
	u := w.process(true)
	kind := u.begun.File.Kind
	if kind == "" {
		w.t.Skip("it has begun no branch: the history draws another step")
	}
	_, _, err := u.owner.GoLive(background, Cutting{Kind: kind, Sinks: u.sinks})
	w.allow("cut", err)
}

// giveUp gives a branch up.
func (w *upgrades) giveUp() {
	u := w.process(false)
	branches, err := u.job.Branches(background)
	if err != nil || len(branches) == 0 {
		w.t.Skip("there is no branch: the history draws another step")
	}
	branch := rapid.SampledFrom(branches).Draw(w.t, "branch")
	records, err := u.job.LiveRecords(background, nil)
	was := slices.ContainsFunc(records, func(r LiveRecord) bool { return r.Branch == branch })
	if err == nil && !was && branch != MainBranch && rapid.Bool().Draw(w.t, "it has looked for a cut before") {
		err = u.job.giveUp(background, branch, records, u.me.Writer, u.name)
	} else if err == nil {
		err = u.job.GiveUp(background, branch, u.me.Writer, u.name)
	}
	w.allow("give up", err)
}

// deliver lets a process that thinks it may deliver what is owed.
func (w *upgrades) deliver() {
	u := w.process(true)
	head := u.head()
	if _, live := u.owner.Live(); !live || head.Sinks["out"].Record == "" {
		w.t.Skip("it has nothing to deliver: the history draws another step")
	}
	owed, err := u.job.OwedTo(background, head, u.sinks)
	if damaged := (*DamagedError)(nil); errors.As(err, &damaged) && w.behind(u) {
		return // its log was cleaned up since it lost that
	}
	if err != nil {
		w.t.Fatalf("%s: what is owed: %v", u.name, err)
	}
	most := rapid.IntRange(1, 3).Draw(w.t, "deliveries")
	for i, o := range owed["out"] {
		if i == most {
			return
		}
		v := w.sink.view(o, head.Sinks["out"].Confirmed, head.Position)
		switch step, reason := DecideDelivery(v); {
		case step == Apply:
			data, err := o.Manifest.Encode()
			if err != nil {
				w.t.Fatal(err)
			}
			w.sink.apply(o.To)
			w.took[o.To] = Hash(data)
		case step == Disagree && !w.behind(u):
			w.t.Fatalf("%s: position %d: %s", u.name, o.To, reason)
		case step == Disagree:
			return // D4: a zombie, which stops
		}
	}
}

// behind tells whether a process has lost its log, or its generation has ended: rule
// D4's look.
func (w *upgrades) behind(u *upgrader) bool {
	live, _, err := w.bareJob().Live(background)
	if err != nil || live.Branch != u.owner.Branch() {
		return true
	}
	head, err := w.bareJob().Head(background, live.Branch, FirstTask)
	return err != nil || head.Manifest.Owner != u.owner.ID()
}

func (w *upgrades) land() {
	u := w.process(false)
	_ = u.store.Land(background) // it may meet whatever is there
}

// clean cleans up a branch by the real decisions: floor, pins, other branches, and then
// manifests.
func (w *upgrades) clean() {
	j := w.bareJob()
	live, ok, err := j.Live(background)
	if err != nil || !ok {
		w.t.Skip("nothing is live: the history draws another step")
	}
	head, err := j.Head(background, live.Branch, FirstTask)
	if err != nil {
		w.t.Skip("the live branch is gone: the history draws another step")
	}
	floor, err := j.Floor(background, live.Branch, FirstTask)
	if err != nil {
		w.t.Fatal(err)
	}
	var log []Trace
	for m, err := range j.Manifests(background, live.Branch, FirstTask, floor, head.Manifest.Epoch) {
		if err != nil {
			w.t.Fatal(err)
		}
		log = append(log, TraceOf(m))
	}
	sinks := head.Manifest.Sinks
	view := FloorView{Floor: floor, Log: log, Retention: Retention{Micros: -1, Epochs: Epoch(rapid.IntRange(1, 3).Draw(w.t, "keep"))}, Covered: w.covered(j, live.Branch)}
	view.Owed, view.Filling = Deliveries{Live: true, WasLive: true, Own: sinks, Newest: sinks}.Owed()
	if choice := DecideFloor(view); choice.Floor > floor && !head.Sealed() {
		floor = choice.Floor
	}
	if err := j.PutFloor(background, live.Branch, FirstTask, floor); err != nil {
		w.t.Fatal(err)
	}
	w.remove(j, live.Branch, floor)
}

// covered are the positions of followers that may go on.
func (w *upgrades) covered(j *Job, live string) (all []Position) {
	branches, err := j.Branches(background)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, branch := range branches {
		if head, _, err := j.endOf(background, branch, FirstTask, 0); err == nil && branch != live && head.Hash != "" && !head.Sealed() {
			all = append(all, head.Manifest.Covers[FirstTask])
		}
	}
	return all
}

// remove is G3 and G8.
func (w *upgrades) remove(j *Job, branch string, floor Epoch) {
	pins, err := j.Pins(background)
	if err != nil {
		w.t.Fatal(err)
	}
	from, pinned := AllEpochs, map[Epoch]bool{}
	for _, pin := range pins {
		if e, ok := pin.Tasks[FirstTask]; ok && pin.Branch == branch {
			from, pinned[e] = min(from, e), true
		}
	}
	covered := w.covered(j, branch)
	for e := range floor {
		m, err := j.ManifestBelow(background, branch, FirstTask, e)
		if err == nil && DecideManifest(ManifestView{Trace: TraceOf(m), Floor: floor, Pinned: pinned[e], From: from, Covered: covered}) {
			if err := w.bare.Delete(background, "spend/"+ManifestPath(branch, FirstTask, e)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// check holds what is stored against what commits were told, and against the sink.
func (w *upgrades) check() {
	j := w.bareJob()
	at, err := checkChain(j)
	if err != nil {
		w.t.Fatal(err)
	}
	for p, hash := range w.done {
		where := w.where[p]
		m, there := at[p]
		if !there {
			if floor, err := j.Floor(background, where.Branch, where.Task); err != nil || where.Epoch >= floor {
				w.t.Fatalf("position %d was done as %s, and is lost", p, where)
			}
			continue
		}
		if data, err := m.Encode(); err != nil || Hash(data) != hash {
			w.t.Fatalf("position %d was done as %s, and is %s's", p, where, m.Branch)
		}
	}
	w.checkCuts(j)
	for i, p := range w.sink.rows {
		if p != Position(i+1) {
			w.t.Fatalf("the sink has positions %v", w.sink.rows)
		}
		if hash, ok := w.done[p]; ok && w.took[p] != hash {
			w.t.Fatalf("the sink has other rows of position %d than %s holds", p, w.where[p])
		}
	}
}

// checkCuts holds what each generation began with against what the one before ended
// with.
func (w *upgrades) checkCuts(j *Job) {
	records, err := j.LiveRecords(background, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records[min(1, len(records)):] {
		final, err := j.ManifestBelow(background, r.Ends.Branch, FirstTask, r.Ends.Tasks[FirstTask].Epoch)
		begin, berr := j.ManifestBelow(background, r.Branch, FirstTask, r.Covers[FirstTask])
		if err != nil || berr != nil {
			continue // cleaned away
		}
		if !AtEnd(begin, final, nil) {
			w.t.Fatalf("generation %d begins at %+v, and the one before ended at %+v", r.N, begin, final)
		}
		if had, has := final.Sinks["out"], begin.Sinks["out"]; had.Record != has.Record || had.Confirmed != has.Confirmed {
			w.t.Fatalf("generation %d knows %+v of the sink, and the one before knew %+v", r.N, has, had)
		}
		if begin.Build != final.Build && !hasBuild(begin.Superseded, final.Build) {
			w.t.Fatalf("generation %d does not say that it replaces %s", r.N, final.Build)
		}
	}
}

func TestRandomUpgrades(t *testing.T) {
	reached := map[string]int{}
	missing := func() (what []string) {
		for _, w := range []string{"a second generation", "a third generation", "a delivery over a cut", "a floor"} {
			if reached[w] == 0 {
				what = append(what, w)
			}
		}
		return what
	}
	// A hundred histories reach all of it mostly; chance is given more of them.
	for rounds := 0; rounds == 0 || rounds < 10 && len(missing()) > 0; rounds++ {
		rapid.Check(t, func(rt *rapid.T) { randomUpgrade(rt, t, reached) })
	}
	t.Logf("reached: %v", reached)
	if what := missing(); what != nil {
		t.Errorf("no history has reached %v: %v", what, reached)
	}
}

// randomUpgrade is a history.
func randomUpgrade(rt *rapid.T, t *testing.T, reached map[string]int) {
	w := &upgrades{t: rt, test: t, bare: store.NewMemory(), done: map[Position]string{}, where: map[Position]At{}, took: map[Position]string{}}
	w.sink = *made()
	w.start()
	step := func(do func()) func(*rapid.T) {
		return func(rt *rapid.T) {
			w.t = rt
			do()
		}
	}
	steps := map[string]func(*rapid.T){
		"start": step(w.start), "begin": step(w.begin), "work": step(w.work), "more work": step(w.work), "still more work": step(w.work),
		"seal": step(w.seal), "cut": step(w.cut), "cut again": step(w.cut), "give up": step(w.giveUp), "deliver": step(w.deliver),
		"land": step(w.land), "clean": step(w.clean), "": step(w.check),
	}
	rt.Repeat(steps)
	w.count(reached)
}

// count notes what a history has reached.
func (w *upgrades) count(reached map[string]int) {
	j := w.bareJob()
	chain, err := j.Chain(background, FirstTask)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, name := range []string{"", "a second generation", "a third generation"} {
		if len(chain) > i {
			reached[name]++
		}
	}
	if len(chain) > 1 && len(w.sink.rows) > int(chain[1].From) {
		reached["a delivery over a cut"]++
	}
	for _, link := range chain {
		if floor, err := j.Floor(background, link.Branch, FirstTask); err == nil && floor > 0 {
			reached["a floor"]++
		}
	}
}
