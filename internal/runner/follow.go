package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
	"github.com/sluicestream/sluice/internal/vitals"
)

const (
	// readAhead is the number of the followed branch's positions that are read at once.
	readAhead = 64
	// looksPerEpoch is how often a branch that has caught up looks for the next epoch
	// in the time of one, within the bounds below.
	looksPerEpoch = 10
	fastestLook   = 5 * time.Millisecond
	slowestLook   = 250 * time.Millisecond
	// looksPerLease is how often one who stands by has looked at the owner at the least
	// before a lease has passed.
	looksPerLease = 20
	// committedLook is the time between two looks whether what was told is committed.
	committedLook = time.Millisecond
	// followToldEvery is the time between two words on how it goes on, and judgedEvery
	// between two looks at the guards.
	followToldEvery = time.Second
	judgedEvery     = time.Second
)

// pilot tells a run that follows what comes next, and brings its branch live.
type pilot struct {
	r   *runner
	c   *committer
	run *engine.Run
	log *epoch.Follower

	own   epoch.Manifest   // the newest, as if all that was told were covered
	ahead []epoch.Manifest // read and not told yet, in order

	watch      *epoch.Watch  // of one that stands by
	lookedAt   time.Time     // by that
	version    string        // of the epoch that was told last
	sealed     bool          // by this process
	still      time.Duration // for which the followed branch has been ended, as far as was seen
	caughtAt   time.Time     // zero: it has never been caught up
	asked      bool          // to cut over
	readyAt    time.Time     // when all was made ready to lead; zero: never
	toldAt     time.Time
	judgedAt   time.Time
	objections []string
	followed   epoch.Manifest // the followed branch's newest that is known
}

func (r *runner) newPilot(c *committer, run *engine.Run) *pilot {
	own, _ := r.owner.Head()
	own.Covers = maps.Clone(own.Covers)
	return &pilot{r: r, c: c, run: run, log: r.job.Follow(own.Branch, own.Task), own: own}
}

// next is the run's timetable (U5 to U8).
func (p *pilot) next(ctx context.Context, open bool) (engine.Turn, []epoch.Manifest, error) {
	for ctx.Err() == nil {
		if len(p.ahead) > 0 {
			covered := p.take()
			if err := p.follows(ctx, covered[0].Version); err != nil {
				return 0, nil, err
			}
			return engine.Cover, covered, p.meets(ctx, covered[0])
		}
		f, err := p.log.Next(ctx, p.own, readAhead)
		var gone *epoch.TimetableError
		if errors.As(err, &gone) && (p.r.begins() || p.r.o.Follow.OwnClock) {
			if open {
				return engine.Commit, nil, nil
			}
			return p.reach(ctx)
		}
		if err != nil {
			return 0, nil, err
		}
		if f.Step == epoch.Cover {
			p.ahead = f.Covered
			p.tell(ctx, CatchingUp, f.Link.Branch)
			continue
		}
		if open {
			return engine.Commit, nil, nil
		}
		if err := p.settle(ctx); err != nil {
			return 0, nil, err
		}
		if p.run.RewriteWaits() {
			return engine.Fill, nil, nil
		}
		if led, err := p.move(ctx, f); err != nil || led {
			return engine.Lead, nil, err
		}
	}
	return 0, nil, ctx.Err()
}

// reach has the run read by its own clock up to the oldest epoch that is kept.
func (p *pilot) reach(ctx context.Context) (engine.Turn, []epoch.Manifest, error) {
	target, err := p.r.job.OldestKept(ctx, p.own.Task)
	if err != nil {
		return 0, nil, err
	}
	p.r.o.Log.Info("the epochs before are not kept: they are read by this process's own clock", "branch", target.Branch, "epoch", target.Epoch, "position", target.Position)
	p.own.Covers[p.own.Task] = target.Position
	return engine.Reach, []epoch.Manifest{target}, nil
}

// take takes the next data epoch, with the openings around it: what these note stands
// in the last of them.
func (p *pilot) take() []epoch.Manifest {
	first := 0
	for p.ahead[first].Kind != epoch.Data {
		first++
	}
	n := first + 1
	for n < len(p.ahead) && p.ahead[n].Kind != epoch.Data {
		n++
	}
	covered := p.ahead[first:n]
	p.ahead = p.ahead[n:]
	p.own.Covers[p.own.Task] = covered[0].Position
	return covered
}

// follows notes which sources the followed branch reads in an epoch: what it does not,
// this branch reads by itself.
func (p *pilot) follows(ctx context.Context, version string) error {
	if version == p.version {
		return nil
	}
	v, err := p.r.job.Version(ctx, version)
	if err != nil {
		return err
	}
	sources := map[string]bool{}
	for name := range v.Sources {
		sources[name] = true
	}
	p.version = version
	p.run.Follows(sources)
	return nil
}

// meets refuses to go on where entries were deleted by request that have other keys in
// this branch: they would stay here.
func (p *pilot) meets(ctx context.Context, m epoch.Manifest) error {
	if len(m.Edits) == 0 || m.Version == p.r.o.Build.Version {
		return nil
	}
	version, err := p.r.job.Version(ctx, m.Version)
	if err != nil {
		return err
	}
	asked := epoch.Request{N: math.MaxUint64, Version: m.Version}
	for _, e := range m.Edits {
		if !p.r.meets(asked, version, e.State) {
			return &ForgottenError{At: epoch.At{Job: p.r.o.Job, Branch: p.own.Branch, Task: p.own.Task, Epoch: p.own.Epoch}, State: e.State, Followed: m.Branch, By: m.Epoch}
		}
	}
	return nil
}

// ForgottenError says that entries were deleted by request on the live branch, while a
// branch follows that has them under other keys.
type ForgottenError struct {
	epoch.At
	State    string
	Followed string
	By       epoch.Epoch
}

// Error implements error.
func (e *ForgottenError) Error() string {
	return fmt.Sprintf("%s: epoch %d of branch %s has deleted entries of state %s by request, which have other keys in this branch: expected keys by which they are found here. They would stay. Give this branch up with `sluice branch drop %s %s`, and upgrade again: the new one begins behind it.",
		e.At, e.By, e.Followed, e.State, e.Job, e.Branch)
}

// ExitCode is the exit code of the command line.
func (e *ForgottenError) ExitCode() int { return 13 }

// settle waits until all that was told is committed.
func (p *pilot) settle(ctx context.Context) error {
	for {
		head, _ := p.r.owner.Head()
		if head.Covers[p.own.Task] >= p.own.Covers[p.own.Task] {
			return nil
		}
		if err := env.Pause(ctx, p.r.o.Env.Clock, committedLook); err != nil {
			return err
		}
	}
}

// move makes the next move of a branch that has covered all there is. It tells
// whether it leads now.
func (p *pilot) move(ctx context.Context, f epoch.Followed) (led bool, err error) {
	now := p.r.o.Env.Clock.Now()
	if p.caughtAt.IsZero() {
		p.caughtAt = now
		// Once what settle has waited for is added to what is compared.
		if err := p.c.do(ctx, func() error { p.r.comparing.caughtUp(); return nil }); err != nil {
			return false, err
		}
		p.r.o.Log.Info("caught up", "branch", p.own.Branch, "position", p.own.Covers[p.own.Task])
	}
	if f.Step != epoch.AwaitSuccessor {
		p.still = 0
	}
	o := p.r.o.Follow
	if o.Rehearse { // which never leads
		return false, p.rehearsed(ctx, f.Link.Branch)
	}
	gone, err := p.gone(ctx, f.Step)
	if err != nil {
		return false, err
	}
	v := upgrade.View{
		Gone: gone,
		Step: f.Step, Asked: p.word(), Auto: o.Auto, Soaked: now.Sub(p.caughtAt) >= o.Soak,
		Sealed: p.sealed,
	}
	if v.Wants() && !p.sealed {
		// Who stops a job means those as well that would go on with it.
		if stops, err := p.r.pulse.stops(ctx); err != nil || stops {
			return false, cmp.Or(err, env.Pause(ctx, p.r.o.Env.Clock, fastestLook))
		}
	}
	if v.Wants() {
		if v.Objections, err = p.object(ctx, f.Step); err != nil {
			return false, err
		}
	}
	p.tell(ctx, Caught, f.Link.Branch)
	switch upgrade.Decide(v) {
	case upgrade.Seal:
		if !p.isReady() {
			return false, p.ready(ctx) // and covers what has come meanwhile
		}
		return false, p.seal(ctx, f.Link.Branch)
	case upgrade.Lead:
		return p.lead(ctx, f)
	}
	pause := min(max(p.r.o.EpochEvery/looksPerEpoch, fastestLook), slowestLook)
	if f.Step == epoch.AwaitSuccessor {
		p.still += pause
	}
	p.r.o.Board.Alive()
	return false, env.Pause(ctx, p.r.o.Env.Clock, pause)
}

// errRehearsed ends a run that was a rehearsal.
var errRehearsed = errors.New("rehearsed")

// rehearsed ends a rehearsal: everything up to here is compared.
func (p *pilot) rehearsed(ctx context.Context, branch string) error {
	if err := p.r.comparing.await(ctx); err != nil {
		return err
	}
	t, err := p.progress(ctx, Rehearsed, branch)
	if err != nil {
		return err
	}
	if p.objections = p.judge(ctx, t, nil); ctx.Err() != nil {
		return ctx.Err()
	}
	p.tell(ctx, Rehearsed, branch)
	return errRehearsed
}

// gone tells whether the owner of the followed branch is, for one that stands by.
func (p *pilot) gone(ctx context.Context, step epoch.FollowStep) (bool, error) {
	switch {
	case !p.r.o.Follow.Standby:
		return false, nil
	case step == epoch.AwaitSuccessor: // and whoever sealed it is gone as well
		return p.still >= p.r.o.ResumeAfter, nil
	}
	if p.watch == nil {
		me := epoch.Identity{Build: p.r.o.Build, Replace: p.r.o.Replace}
		p.watch = p.r.job.Watch(p.own.Task, epoch.Standby{Lease: p.r.o.Lease, Me: me})
		p.lookedAt = p.r.o.Env.Clock.Now()
	}
	now := p.r.o.Env.Clock.Now()
	waited := waitedFor(p.r.o.Lease, now.Sub(p.lookedAt))
	p.lookedAt = now
	return p.watch.Look(ctx, waited)
}

// waitedFor is how much of the time between two looks at an owner counts against its
// lease: no more than a part of that, since this process may have been stopped.
func waitedFor(lease, passed time.Duration) time.Duration {
	return min(max(passed, 0), lease/looksPerLease)
}

// word tells whether a person wants the cut.
func (p *pilot) word() bool {
	select {
	case <-p.r.o.Follow.CutOver:
		p.asked = true
	case <-p.r.pulse.cutover:
		p.asked = true
	default:
	}
	return p.asked
}

const (
	// readyFor is how long what was made ready is taken to be so: connections are given up
	// that nobody uses, and partitions come up.
	readyFor = 5 * time.Second
	// readyWithin bounds how long the sinks may take to get ready.
	readyWithin = 2 * time.Second
)

// isReady tells whether the cut need not wait for what can be done before it.
func (p *pilot) isReady() bool {
	passed := p.r.o.Env.Clock.Now().Sub(p.readyAt)
	return !p.readyAt.IsZero() && passed >= 0 && passed < readyFor
}

// ready does beforehand what takes time behind the seal, or behind the live record, while
// consumers wait: it looks for new partitions, and has the sinks get ready, which changes
// nothing. One that can't is slower, and no reason not to cut over.
func (p *pilot) ready(ctx context.Context) error {
	if err := p.run.Discover(ctx); err != nil {
		return err
	}
	within, cancel := env.Within(ctx, p.r.o.Env.Clock, readyWithin)
	defer cancel()
	var getting sync.WaitGroup
	for _, s := range p.r.sinks {
		target, can := s.target.(connector.ReadyTarget)
		if !can || s.deliver != nil { // one that is being filled delivers
			continue
		}
		getting.Go(func() {
			if err := target.Ready(within); err != nil && ctx.Err() == nil {
				p.r.o.Log.Info("a sink could not get ready for the cut, which is longer for that", "sink", s.spec.Name, "error", err)
			}
		})
	}
	getting.Wait()
	p.readyAt = p.r.o.Env.Clock.Now()
	return ctx.Err()
}

// seal ends the followed branch (U6).
func (p *pilot) seal(ctx context.Context, branch string) error {
	p.tell(ctx, Cutting, branch)
	own, _ := p.r.owner.Head()
	_, err := p.r.job.SealBranch(ctx, branch, epoch.ThisProcess(), "the upgrade to branch "+own.Branch)
	if err == nil {
		p.sealed = true
		p.r.o.Log.Info("sealed", "branch", branch)
	}
	return err
}

// lead makes the branch live, if its end is covered, and the run read on by itself.
// It tells whether it leads: if not there is more to follow.
func (p *pilot) lead(ctx context.Context, f epoch.Followed) (bool, error) {
	if !p.isReady() {
		if err := p.ready(ctx); err != nil {
			return false, err
		}
	}
	led := false
	err := p.c.do(ctx, func() error {
		step, live, err := p.r.owner.GoLive(ctx, p.r.cutting())
		if err == nil && step == epoch.CoverFinal && live.Branch == f.Link.Branch {
			return &UncoveredError{At: epoch.At{Job: p.r.o.Job, Branch: p.own.Branch, Task: p.own.Task, Epoch: p.own.Epoch}, Followed: live.Branch}
		}
		if err != nil || step != epoch.IsLive {
			if err == nil && live.Branch != p.own.Branch {
				p.sealed = false // another's was faster, and that goes on
			}
			return err
		}
		led = true
		return p.c.lead(ctx, p.run, live, p.run.Takeover())
	})
	if led {
		p.r.pulse.object(nil)
		p.tell(ctx, Live, "")
	}
	return led, err
}

// handsOver tells whether the owner of the branch that the cut has ended was there, as far
// as this one knows.
func (r *runner) handsOver() bool {
	f := r.o.Follow
	return f != nil && !f.Standby && (f.Kind == epoch.Upgrade || f.Kind == epoch.Rollback)
}

// cutting is how the branch goes live.
func (r *runner) cutting() epoch.Cutting {
	c := epoch.Cutting{Kind: epoch.Upgrade, Settled: map[string]epoch.SinkConsent{}, Rewrite: r.rewrites(), Replace: r.wanted()}
	if r.o.Follow != nil {
		c.Kind = r.o.Follow.Kind
		for _, name := range r.o.Follow.DropDeliveries {
			c.Settled[name] = epoch.SinkConsent{Dropped: epoch.Consented}
		}
	}
	for _, s := range r.o.Graph.Sinks() {
		c.Sinks = append(c.Sinks, s.Name)
	}
	gaps := r.o.Gap
	if c.Kind == epoch.Rollback { // a table's rows are right again once all are written anew
		for name, mode := range c.Rewrite {
			if mode == epoch.RewriteAll || mode == epoch.RewriteChanged {
				gaps = append(slices.Clone(gaps), name)
			}
		}
	}
	for _, name := range gaps {
		c.Settled[name] = epoch.SinkConsent{Gap: epoch.Consented}
	}
	return c
}

// object asks the guards, and whether the cut would be refused, at most once a second.
func (p *pilot) object(ctx context.Context, step epoch.FollowStep) ([]string, error) {
	now := p.r.o.Env.Clock.Now()
	if len(p.objections) > 0 && now.Sub(p.judgedAt) < judgedEvery {
		return p.objections, nil
	}
	o := p.r.o.Follow
	if o.Guard != (compare.Guard{}) || o.Check != nil {
		if err := p.r.comparing.await(ctx); err != nil {
			return nil, err
		}
	}
	t, err := p.progress(ctx, Caught, p.followed.Branch)
	if err != nil {
		return nil, err
	}
	var fills []string
	if step == epoch.AwaitEpoch { // where nobody is live any more, the rest comes behind the cut
		fills = p.r.fillsStill()
	}
	p.judgedAt, p.objections = now, p.judge(ctx, t, fills)
	p.r.pulse.object(p.objections)
	if err := p.r.fillsRight(ctx); err != nil {
		return nil, err
	}
	if err := p.r.owner.MayGoLive(ctx, p.r.cutting()); err != nil {
		return nil, err // before anything is sealed, and after all that takes time
	}
	return p.objections, ctx.Err()
}

// judge asks what guards the cut, and adds that to what speaks against it besides. The
// check has the last word, where nothing else does.
func (p *pilot) judge(ctx context.Context, t FollowProgress, besides []string) []string {
	o := p.r.o.Follow
	objections := o.Guard.Judge(t.Results).Reasons
	if o.Guard != (compare.Guard{}) && len(t.Results) > 0 && compare.Sum(t.Results).Compared() == 0 {
		objections = append(objections, "nothing has been compared yet")
	}
	objections = append(objections, besides...)
	if o.Check != nil && len(objections) == 0 {
		if err := o.Check(ctx, t); err != nil {
			objections = append(objections, err.Error())
		}
	}
	return objections
}

// UncoveredError says that a branch has gone through all that the sealed one has, and
// does not stand where that ended. It never happens where all is right.
type UncoveredError struct {
	epoch.At
	Followed string
}

// Error implements error.
func (e *UncoveredError) Error() string {
	return fmt.Sprintf("%s: branch %s was sealed, and this one does not stand where it ended: expected the same offsets. Go on behind it with `resume`; give this branch up with `sluice branch drop %s %s`.",
		e.At, e.Followed, e.Job, e.Branch)
}

// ExitCode is the exit code of the command line.
func (e *UncoveredError) ExitCode() int { return 1 }

// progress is how it goes on.
func (p *pilot) progress(ctx context.Context, stage FollowStage, branch string) (FollowProgress, error) {
	own, _ := p.r.owner.Head()
	if branch != "" {
		if head, err := p.r.job.HeadNear(ctx, branch, own.Task, p.followed.Epoch); err == nil {
			p.followed = head.Manifest
		}
	}
	t := FollowProgress{Stage: stage, Branch: own.Branch, Followed: branch, Position: own.Position, Objections: p.objections}
	if p.followed.Position > own.Position && branch != "" {
		t.Lag = p.followed.Position - own.Position
	}
	t.Compared = !p.caughtAt.IsZero() && p.r.comparing.abreast()
	var err error
	t.Results, err = p.r.comparing.results(p.followed)
	return t, err
}

// tell tells how it goes on.
func (p *pilot) tell(ctx context.Context, stage FollowStage, branch string) {
	now := p.r.o.Env.Clock.Now()
	o := p.r.o.Follow
	if now.Sub(p.toldAt) < followToldEvery && (stage == CatchingUp || stage == Caught) {
		return
	}
	p.toldAt = now
	p.r.o.Board.Alive()
	if o.Told == nil {
		return
	}
	t, err := p.progress(ctx, stage, branch)
	if err != nil {
		p.r.o.Log.Warn("the outputs can't be compared any more; the branch follows all the same", "error", err)
	}
	o.Told(t)
}

// do has the committer's goroutine do something between two commits, and waits for it.
func (c *committer) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case c.tasks <- func() error { done <- f(); return nil }:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead begins what a live branch does beside committing: it is called by the committer.
func (c *committer) lead(ctx context.Context, run *engine.Run, live epoch.LiveRecord, found map[string]map[string]connector.Offset) error {
	r := c.r
	if err := r.begin(ctx, found); err != nil {
		return err
	}
	r.o.Log.Info("live", "branch", live.Branch, "generation", live.N)
	if err := r.filledToTheCut(); err != nil {
		return err
	}
	r.handedOver = r.handsOver()
	if err := r.startDeliveries(ctx); err != nil {
		return err
	}
	r.following.Store(false)
	own, _ := r.owner.Head()
	if err := r.awaitForgetting(ctx, own, r.stored); err != nil { // it finds which were taken back
		return err
	}
	if err := r.findForgets(ctx); err != nil {
		return err
	}
	if err := c.forget(ctx, run); err != nil { // before it reads
		return err
	}
	c.groups.start(ctx)
	head, _ := r.owner.Head()
	r.saving.committed(head)
	c.rewrite(ctx, run)
	r.o.Board.SetRole(vitals.Running)
	return nil
}
