package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/runner"
)

// Upgrade says how a build takes a running job over, and when.
type Upgrade struct {
	// Auto cuts over as soon as the new branch has caught up and nothing speaks against
	// it; otherwise it waits for CutOver, or for `sluice cutover`.
	Auto bool
	// CutOver gives the word to cut over; it may be nil.
	CutOver <-chan struct{}
	// Soak is for how long the branch follows at the least once it has caught up.
	// Defaults to none.
	Soak time.Duration
	// RequireEqual lets it cut over only if all outputs were equal, MaxChanged, if not
	// nil, only if at most this share of each sink's rows differ, from 0 to 1.
	RequireEqual bool
	MaxChanged   *float64
	// Columns say of columns, by sink and name, that they are not to be compared exactly.
	Columns map[string]map[string]ColumnRule
	// Check, if not nil, is asked before the cut, and refuses it by an error; it is asked
	// again from time to time.
	Check func(ctx context.Context, p UpgradeProgress) error
	// DropDeliveries names sinks that this build lacks and whose pending deliveries are
	// given up.
	DropDeliveries []string
	// From says where the branch begins: live; live-10m, or another time behind it, for the
	// newest kept epoch that is so old; a savepoint; an epoch as BRANCH:NUMBER. With an
	// empty state it begins at earliest, the first records that the sources have, or
	// latest, where the live branch stands, or with the first records of a time or later,
	// as RFC 3339 writes it: 2026-11-30T09:00:00Z. Defaults to live, for a rollback to where
	// this build was sealed, for a rehearsal to a little earlier.
	From string
	// Import, if not nil, begins the branch with state from files, at the offsets that it
	// names, or with From at latest; without files the state is empty. Offsets to
	// which the live branch has not read yet are refused with files, and cut to those
	// that it has without.
	Import *Import
	// OwnClock says that inputs which the live branch has read in epochs that are not kept
	// any more may be read with this process's clock.
	OwnClock bool
	// Backfill fills sinks that are new before the cut: a table's with all rows that it
	// has, a stream's with what the branch puts out from where it begins on. Nobody is to
	// read them until then; a target that has rows already is refused. Sinks that are
	// not filled get what changes from the cut on. Defaults to false.
	Backfill bool
	// Rehearse follows up to where the live branch stands, compares, asks what guards the
	// cut, and gives the branch up: nothing is ever delivered. The last that Told is told
	// has what came of it. From defaults to a few minutes before the live head then, as far
	// as the live branch has been what it is now and its epochs are kept.
	Rehearse bool
	// Again begins another branch although this build has been upgraded to, or gone back
	// to, already: it is live, or another one has replaced it since, as a rollback has.
	// Otherwise a process that is started again and again would undo what came after.
	Again bool
	// WaitGroup names a group of consumers that changes over from the topics of sinks that
	// this build lacks to those of sinks that are new: once this build is live, these get
	// nothing before the group has committed the offsets at which the old ones end, or
	// WaitGroupFor has passed, which defaults to 60 s. A start in between waits that long
	// anew. The group's cluster is that of the new sinks. Defaults to none.
	WaitGroup    string
	WaitGroupFor time.Duration
	// Over gives branches up by which other builds are to upgrade. Otherwise one on which a
	// process is at work is an error.
	Over bool
	// Told, if not nil, is told how it goes on, about once a second.
	Told func(p UpgradeProgress)
}

// ColumnRule says how a column of a sink's rows is compared.
type ColumnRule struct {
	// Ignore leaves the column out.
	Ignore bool
	// Absolute and Relative are by how much numbers may differ and be equal: by
	// Absolute, or by Relative times the larger of their sizes.
	Absolute, Relative float64
	// Time is by how much moments and durations may differ.
	Time time.Duration
	// Unordered compares arrays without their order.
	Unordered bool
}

// UpgradeProgress is how a branch follows.
type UpgradeProgress struct {
	// Stage is "begun", "catching up", "caught up", "cutting over", "live" or "rehearsed".
	Stage string
	// Branch is the new branch, Followed the one that is live.
	Branch, Followed string
	// Position is the position that it has covered, Lag how many positions the live
	// branch is ahead.
	Position, Lag uint64
	// Sinks are what has been compared so far.
	Sinks []SinkComparison
	// Objections are what keeps it from cutting over.
	Objections []string
}

// SinkComparison is what came of comparing the outputs of both branches for a sink.
type SinkComparison struct {
	// Sink is its name.
	Sink string
	// Equal, Changed, OnlyOld and OnlyNew count rows: of a table, a row is what becomes
	// of a key in the epochs that are compared together.
	Equal, Changed, OnlyOld, OnlyNew int64
	// NotCompared counts rows that were not compared, and Reasons say why.
	NotCompared int64
	Reasons     []string
}

// Upgrade brings this build of the job to where another build runs it: it makes the
// plan, begins a branch from the live one's newest epoch, follows the live branch while
// that goes on, compares the outputs of both, seals the live branch, takes its place,
// and goes on running as [Job.Run] does. Nothing is lost and nothing repeated,
// whether the process that ran the job before is healthy, hung or gone.
//
// A process that was killed anywhere does the same again, and it goes on from where it
// was. If ctx ends while the branch follows, the error is nil, and the branch stays.
func (job *Job) Upgrade(ctx context.Context, o Options, u Upgrade) error {
	f := u.following(epoch.Upgrade)
	if u.Import != nil {
		files := env.Real().Files
		if o.Env != nil {
			files = o.Env.Files
		}
		in, err := job.runnerImport(files, *u.Import)
		if err != nil {
			return err
		}
		f.Import = in
	}
	return job.run(ctx, o, f)
}

// Rollback goes back: this build, which another one has replaced, begins a branch at
// the epoch at which its own was sealed, works through what has come since, and takes
// the live branch's place, as an upgrade does.
func (job *Job) Rollback(ctx context.Context, o Options, u Upgrade) error {
	return job.run(ctx, o, u.following(epoch.Rollback))
}

func (u Upgrade) following(kind epoch.BranchKind) *runner.Following {
	f := &runner.Following{
		Kind: kind, Name: string(kind), Auto: u.Auto, CutOver: u.CutOver, Soak: u.Soak, Again: u.Again, Over: u.Over, FromText: u.From, OwnClock: u.OwnClock, Backfill: u.Backfill, Rehearse: u.Rehearse, DropDeliveries: u.DropDeliveries,
		Guard: compare.Guard{RequireEqual: u.RequireEqual, MaxChanged: u.MaxChanged}, Compare: map[string]compare.Options{},
	}
	f.AwaitGroup, f.AwaitGroupFor = u.WaitGroup, orDuration(u.WaitGroupFor, time.Minute)
	for sink, rules := range u.Columns {
		columns := map[string]compare.Column{}
		for name, rule := range rules {
			columns[name] = compare.Column(rule)
		}
		f.Compare[sink] = compare.Options{Columns: columns}
	}
	if u.Check != nil {
		f.Check = func(ctx context.Context, p runner.FollowProgress) error { return u.Check(ctx, progressOf(p)) }
	}
	if u.Told != nil {
		f.Told = func(p runner.FollowProgress) { u.Told(progressOf(p)) }
	}
	return f
}

func progressOf(p runner.FollowProgress) UpgradeProgress {
	out := UpgradeProgress{
		Stage: string(p.Stage), Branch: p.Branch, Followed: p.Followed, Position: uint64(p.Position), Lag: uint64(p.Lag), Objections: p.Objections,
	}
	for _, r := range p.Results {
		out.Sinks = append(out.Sinks, SinkComparison{
			Sink: r.Sink, Equal: r.Equal, Changed: r.Changed, OnlyOld: r.OnlyOld, OnlyNew: r.OnlyNew,
			NotCompared: r.UntoldOld + r.UntoldNew, Reasons: r.Reasons,
		})
	}
	return out
}

// Rest is what a sink was owed that the build which runs the job lacks.
type Rest struct {
	// Sink is its name.
	Sink string
	// Delivered and Pending count deliveries: those that were made now, and those that the
	// sink is owed still.
	Delivered, Pending int
	// Lacks says that this build lacks the sink as well.
	Lacks bool
}

// Deliver delivers what sinks are owed that this build has, and the one that runs the job
// lacks, where the process that was to do so has died. It reads nothing, and disturbs
// nobody: the job may be running. It may be ended anywhere, and run again. If ctx ends, the
// error is nil, and what is left stays owed.
//
// Of o, Store, Lease, Log and Env count.
func (job *Job) Deliver(ctx context.Context, o Options) (all []Rest, err error) {
	if err := job.Check(); err != nil {
		return nil, err
	}
	ro, err := job.runnerOptions(o)
	if err != nil {
		return nil, err
	}
	found, err := runner.DeliverRest(ctx, ro)
	for _, r := range found {
		all = append(all, Rest(r))
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return all, err
}
