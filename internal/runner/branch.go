package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/upgrade"
	"github.com/sluicestream/sluice/internal/vitals"
	"github.com/sluicestream/sluice/store"
)

// Following is how a run begins a branch, follows the live one, and takes its place.
type Following struct {
	// Kind is what the branch is for, Name the first part of its name.
	Kind epoch.BranchKind
	Name string
	// From is where it begins. Defaults to the newest epoch of the live branch.
	From *epoch.Point
	// FromText says where it begins as people do: live, live-10m, earliest, latest, a
	// savepoint, or an epoch as BRANCH:NUMBER. Import has offsets instead, if it has any,
	// and what the state holds then. Defaults to live.
	FromText string
	asked    string // as the branch's record has it
	Import   Import
	// Begin, if not nil, begins it with a state of its own instead of the one there.
	Begin *Begin
	// OwnClock says that inputs whose epochs are not kept may be read by this process's
	// own clock.
	OwnClock bool
	// Backfill fills sinks that are new before the cut: those of tables with all rows,
	// others with what the branch puts out.
	Backfill bool
	starts   map[string]string // of sinks that are new
	// RepeatOutputs names sinks that may get outputs again which they have.
	RepeatOutputs []string
	// Again begins another branch although this build's last one is live, or another build
	// has replaced it since.
	Again bool
	// Over gives up branches that other builds are about to upgrade by; otherwise one on
	// which somebody is at work is an error.
	Over bool
	// Create begins the branch with its base, and leaves it there.
	Create bool
	// Standby waits until the live branch's owner gives no sign of life, and cuts over
	// then.
	Standby bool
	// Rehearse follows up to where the live branch stands, compares, asks what guards the
	// cut, and gives the branch up. By itself it begins a few minutes before the live head.
	Rehearse bool
	// Auto cuts over as soon as the branch has caught up and what guards it allows
	// that; otherwise it waits for CutOver, which has room for a word, or a request.
	Auto    bool
	CutOver <-chan struct{}
	// Soak is for how long the branch follows at the least once it has caught up.
	Soak time.Duration
	// Guard is what has to hold of the outputs of both branches, which are compared by
	// Compare, by sink.
	Guard   compare.Guard
	Compare map[string]compare.Options
	// Check, if not nil, is asked before the cut, and refuses by an error.
	Check func(ctx context.Context, p FollowProgress) error
	// DropDeliveries gives up what named sinks are owed that this build lacks.
	DropDeliveries []string
	// AwaitGroup is a group of consumers that is to have read all of the sinks that this
	// build lacks before those that are new get anything: once the branch is live it is
	// awaited for at most AwaitGroupFor. Empty: none is.
	AwaitGroup    string
	AwaitGroupFor time.Duration
	// Told, if not nil, is told how it goes on, from time to time.
	Told func(p FollowProgress)
}

// FollowStage is how far a branch is on its way to be live.
type FollowStage string

// The stages of a branch that follows.
const (
	Begun      FollowStage = "begun"
	CatchingUp FollowStage = "catching up"
	Caught     FollowStage = "caught up"
	Cutting    FollowStage = "cutting over"
	Live       FollowStage = "live"
	Rehearsed  FollowStage = "rehearsed"
)

// FollowProgress is how a branch follows.
type FollowProgress struct {
	Stage FollowStage
	// Branch is the branch, Followed the one that it follows.
	Branch, Followed string
	// Position is the one that it has covered, Lag the number of those that the followed
	// branch is ahead.
	Position, Lag epoch.Position
	// Results are what has been compared so far, by sink. Compared says that this is all
	// that there was when the branch had caught up.
	Results  []compare.Result
	Compared bool
	// Objections are what keeps it from cutting over.
	Objections []string
}

// openBranch begins the branch, or finds the one that an earlier start has begun, and
// owns it. A build whose branch is live by now goes on with that.
func (r *runner) openBranch(ctx context.Context, me epoch.Identity) error {
	f := r.o.Follow
	if f.Standby {
		if mine, err := r.nobodyRuns(ctx, me); err != nil || mine {
			if err == nil {
				r.o.Follow = nil
				err = r.take(ctx, me)
			}
			return err
		}
	}
	if err := r.findFrom(ctx); err != nil {
		return err
	}
	if f.Kind == epoch.Fresh {
		return r.openFresh(ctx, me)
	}
	if done, err := r.cutAlready(ctx, me); err != nil || done {
		if err == nil && f.Create {
			return fmt.Errorf("%s: this build is live already, and follows nobody; begin another branch for it with --again", r.o.Job)
		}
		if err == nil {
			r.o.Log.Info("this build is live already; it goes on there")
			r.o.Follow = nil
			err = r.take(ctx, me)
		}
		return err
	}
	if err := r.wentBack(ctx, me); err != nil {
		return err
	}
	if f.Kind == epoch.Rollback && f.From == nil {
		from, err := r.job.SealedAt(ctx, epoch.FirstTask, r.o.Build.Version)
		if err != nil {
			return err
		}
		f.From = &from
	}
	if err := r.checkStart(ctx, me); err != nil {
		return err
	}
	if err := r.checkAwaited(ctx); err != nil {
		return err
	}
	if err := r.others(ctx, me); err != nil {
		return err
	}
	if err := r.openBegun(ctx, me); err != nil || !f.Create {
		return err
	}
	if f.Told != nil {
		head, _ := r.owner.Head()
		f.Told(FollowProgress{Stage: Begun, Branch: head.Branch, Position: head.Position})
	}
	r.startPulse(ctx) // which says, at the end, that nobody has it
	return errCreated
}

// errCreated ends a run that was to begin a branch.
var errCreated = errors.New("created")

// others looks for branches that other builds are about to upgrade by. One on which
// somebody is at work is refused, or given up if a person wants that.
func (r *runner) others(ctx context.Context, me epoch.Identity) error {
	f := r.o.Follow
	if f.Kind != epoch.Upgrade || f.Rehearse {
		return nil
	}
	me.Build.Version = r.o.Build.Version
	all, err := upgrade.Look(ctx, r.job, epoch.FirstTask)
	if err != nil {
		return err
	}
	for _, b := range all.All {
		if b.Standing != upgrade.Follows || b.File.Kind != epoch.Upgrade || b.File.Build == me.Build && b.File.Asked == f.asked {
			continue
		}
		atWork := b.Owned() && r.job.Now()-b.LastSign() < r.o.Lease.Microseconds()
		switch {
		case f.Over:
			if err := r.job.GiveUp(ctx, b.Name, epoch.ThisProcess(), "an upgrade by another build, with --over"); err != nil {
				return err
			}
			r.o.Log.Info("gave a branch up by which another build was to upgrade", "branch", b.Name, "by", b.File.Build.String())
		case atWork:
			return &OtherUpgradeError{Job: r.o.Job, Branch: b.Name, Build: b.File.Build, By: b.Head.Manifest.Writer}
		default:
			r.o.Log.Info("another build was to upgrade by a branch on which nobody is at work; it is left alone, and `sluice branch drop` gives it up", "branch", b.Name, "by", b.File.Build.String())
		}
	}
	return nil
}

// OtherUpgradeError says that another build is about to upgrade as well.
type OtherUpgradeError struct {
	Job, Branch string
	Build       epoch.Build
	By          epoch.Writer
}

// Error implements error.
func (e *OtherUpgradeError) Error() string {
	return fmt.Sprintf("%s: another upgrade is under way, by branch %s of %s (%s): expected none, and nothing was changed. Let that one go live first; or give it up with `sluice branch drop %s %s`, or with --over.",
		e.Job, e.Branch, e.Build, e.By, e.Job, e.Branch)
}

// ExitCode is the exit code of the command line.
func (e *OtherUpgradeError) ExitCode() int { return 13 }

// beginning is the branch that is to begin.
func (r *runner) beginning() epoch.Beginning {
	f := r.o.Follow
	return epoch.Beginning{Name: f.Name, Kind: f.Kind, From: f.From, Asked: f.asked, Starts: f.starts}
}

// openBegun begins a branch or finds it, and owns it.
func (r *runner) openBegun(ctx context.Context, me epoch.Identity) error {
	f := r.o.Follow
	if f.Rehearse { // each is its own, and nobody finds it
		f.starts = nil // nothing of it is ever delivered
		id, err := r.o.Env.ID()
		if err != nil {
			return err
		}
		f.Kind, f.Name = epoch.Rehearsal, string(epoch.Rehearsal)+"-"+id[:8]
	}
	begun, err := r.job.BeginBranch(ctx, r.beginning(), me)
	if err != nil {
		return err
	}
	r.o.Log.Info("began a branch", "branch", begun.File.Branch, "kind", begun.File.Kind, "base", begun.File.Base.Branch, "found", begun.Found)
	if from, ok := begun.From[epoch.FirstTask]; ok {
		r.o.Log.Info("the branch begins with its base", "branch", begun.File.Branch, "epoch", from.Manifest.Epoch, "position", from.Manifest.Position)
		err := r.putBase(ctx, begun.File, from, me)
		var fenced *epoch.FencedError
		if !errors.As(err, &fenced) {
			return err
		}
	}
	return r.takeBranch(ctx, begun.File.Branch, me)
}

// checkStart makes the plan for where the branch begins, before anything is made.
func (r *runner) checkStart(ctx context.Context, me epoch.Identity) error {
	m, begun, err := r.liveHead(ctx)
	if err != nil || !begun {
		if err == nil {
			err = fmt.Errorf("%s: the job has never run in this store, so that there is nothing to follow; run it", r.o.Job)
		}
		return err
	}
	if err := r.replaced(m); err != nil {
		return err
	}
	if err := r.checkNames(ctx, m); err != nil {
		return err
	}
	if err := r.findStarts(ctx, m); err != nil {
		return err
	}
	// Where it begins tells nothing of what its sinks lack when it takes over.
	if reasons := r.absent(m); len(reasons) > 0 && !r.o.Follow.Rehearse {
		return &RefusedError{epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, reasons}
	}
	if from := r.o.Follow.From; from != nil {
		if m, err = r.job.Manifest(ctx, from.Branch, epoch.FirstTask, from.Tasks[epoch.FirstTask]); err != nil {
			return err
		}
	}
	if r.begins() {
		if err := r.comparePlaces(ctx, m); err != nil {
			return err
		}
		_, err := r.beginSources(ctx, m)
		return err
	}
	if _, err := r.compare(ctx, m); err != nil {
		return err
	}
	if err := r.checkInputs(ctx, m, me); err != nil {
		return err
	}
	return memory.Admit(epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}, needs(m), r.o.Limit)
}

// cutAlready tells whether the live branch is one that this build has begun: an earlier
// start was killed when it had gone live.
func (r *runner) cutAlready(ctx context.Context, me epoch.Identity) (bool, error) {
	live, ok, err := r.job.Live(ctx)
	if err != nil || !ok || live.Branch == epoch.MainBranch || r.o.Follow.Again || r.o.Follow.Rehearse || r.o.Follow.Kind == epoch.Resume {
		return false, err
	}
	if head, err := r.job.Head(ctx, live.Branch, epoch.FirstTask); err != nil || head.Sealed() { // it can't go on there
		return false, err
	}
	file, err := r.job.BranchFile(ctx, live.Branch)
	me.Build.Version = r.o.Build.Version
	return err == nil && file.Build == me.Build, err
}

// nobodyRuns tells whether the live branch may be taken at once: there is nothing to
// stand by for.
func (r *runner) nobodyRuns(ctx context.Context, me epoch.Identity) (bool, error) {
	if err := r.check(ctx); err != nil {
		return false, err
	}
	return r.job.Watch(epoch.FirstTask, r.standby(me)).Look(ctx, 0)
}

// wentBack refuses a rollback that this build has made already, and that another build
// has replaced since: a supervisor which repeats the command would undo what came after.
func (r *runner) wentBack(ctx context.Context, me epoch.Identity) error {
	if r.o.Follow.Kind != epoch.Rollback || r.o.Follow.Again {
		return nil
	}
	records, err := r.job.LiveRecords(ctx, nil)
	if err != nil {
		return err
	}
	mine := false
	for _, record := range slices.Backward(records) {
		file, err := r.job.BranchFile(ctx, record.Branch)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		was := mine
		if mine = err == nil && file.Build == me.Build; mine && record.Kind == epoch.Rollback {
			return fmt.Errorf("%w This build was gone back to before; `rollback --again` goes back to it once more.", r.superseded(ctx, records[len(records)-1]))
		}
		if was && !mine {
			break // its newest time
		}
	}
	return nil
}

// putBase makes the branch's first epoch: the state of the one that it begins at, as
// this build has it.
func (r *runner) putBase(ctx context.Context, file epoch.BranchFile, from epoch.Head, me epoch.Identity) (err error) {
	if r.owner, err = r.job.BeginBase(ctx, file.Branch, epoch.FirstTask, me); err != nil {
		return err
	}
	if r.begins() {
		r.stored = &stored{ways: map[string]*carry.Way{}}
	} else if r.stored, err = r.compare(ctx, from.Manifest); err != nil {
		return err
	}
	build := me.Build
	build.Version = r.o.Build.Version
	base := epoch.BaseOf(from, build, file.Branch, file.Starts)
	if err := r.rewriteFrom(ctx, &base, from); err != nil {
		return err
	}
	r.fillFrom(&base, file)
	base.State = maps.Clone(base.State)
	if base.State == nil {
		base.State = map[string]epoch.StateEntry{}
	}
	if r.begins() {
		if err := r.beginAnew(ctx, from.Manifest, &base); err != nil {
			return err
		}
		r.stored.partial = base.Partial
	}
	aside, err := r.newSetAsides(ctx, from.Manifest)
	if err != nil {
		return err
	}
	defer aside.close()
	r.o.Board.SetRole(vitals.Restoring)
	err = r.carryOver(ctx, from.Manifest, &base, aside, func() (err error) {
		_, err = r.owner.PutBase(ctx, base)
		return err
	})
	if err != nil {
		return err
	}
	r.left.referred(base)
	return r.job.UnpinBranch(ctx, file.Branch)
}

// carryOver writes anew what has to be, notes it in the next manifest, and has that
// put.
func (r *runner) carryOver(ctx context.Context, head epoch.Manifest, next *epoch.Manifest, aside *setAsides, put func() error) error {
	for _, name := range r.stored.dropped {
		delete(next.State, name)
	}
	next.Partial, next.Windows = r.stored.partial, r.stored.windows
	for _, spec := range r.o.Graph.States() {
		w := r.stored.ways[spec.Name]
		if w == nil || !w.Rewrites() {
			continue
		}
		entry, err := r.migrate(ctx, head, spec, w, aside)
		if err != nil {
			return err
		}
		next.State[spec.Name] = entry
	}
	if err := memory.Admit(epoch.At{Job: r.o.Job, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch}, needs(*next), r.o.Limit); err != nil {
		return err // before it is the job's state, and no build fits it
	}
	if err := aside.sync(); err != nil {
		return err
	}
	if err := put(); err != nil {
		return err
	}
	if err := aside.publish(); err != nil {
		return err
	}
	for name := range r.stored.ways {
		r.stored.ways[name] = &carry.Way{State: name, Verdict: carry.Same}
	}
	r.stored.dropped = nil
	return nil
}

// takeBranch owns a branch that has its base, once nobody else does.
func (r *runner) takeBranch(ctx context.Context, branch string, me epoch.Identity) error {
	standby := r.standby(me)
	standby.Branch = branch
	for {
		head, err := r.job.AwaitOwner(ctx, epoch.FirstTask, standby)
		if err != nil {
			return err
		}
		if me.Awaited = &head; standby.TakeOver {
			me.Awaited = nil
		}
		var fenced *epoch.FencedError
		if r.owner, err = r.job.Take(ctx, branch, epoch.FirstTask, me); err == nil {
			break
		} else if !errors.As(err, &fenced) && !errors.Is(err, epoch.ErrHeadMoved) {
			return err
		}
		standby.TakeOver = false
		r.o.Log.Info("another process was quicker", "error", err)
	}
	return r.job.UnpinBranch(ctx, branch)
}
