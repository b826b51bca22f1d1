package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/vitals"
	"github.com/sluicestream/sluice/store"
)

// Result says how a run that ended without an error stands.
type Result struct {
	// Head is the newest manifest.
	Head epoch.Manifest
	// Pending is the number of deliveries that are still owed, by sink. It is
	// empty when everything has been delivered.
	Pending map[string]int
}

// Run runs a job until its input ends, ctx ends, or something stops it. When
// ctx ends, the epoch that is open is closed and committed, and deliveries have
// Options.Grace to finish.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, halt := context.WithCancel(ctx)
	defer halt()
	if err := probe(ctx, o); err != nil {
		return Result{}, unlessStopped(ctx, err)
	}
	o.Store = timedStore{o.Store, o.Env.Clock, o.Board}
	for {
		result, next, err := life(ctx, halt, o)
		if next == nil {
			return result, awaitEnd(ctx, o, err)
		}
		o = *next
	}
}

// awaitEnd waits, if the build is superseded and whoever runs it wants that, until the
// process is to end: a supervisor that restarts whatever ends has no use for an end.
func awaitEnd(ctx context.Context, o Options, err error) error {
	var superseded *epoch.SupersededError
	if o.WaitSuperseded && errors.As(err, &superseded) {
		o.Log.Warn("this build was replaced: the process stays, and does nothing, until it is ended", "error", err)
		o.Board.SetRole(vitals.Superseded)
		<-ctx.Done()
	}
	return err
}

// life is a run on one branch. What a branch that has ended calls for is a life on
// another one, with the options that it returns.
func life(ctx context.Context, halt context.CancelFunc, o Options) (Result, *Options, error) {
	r := &runner{o: o, skip: map[engine.RecordID]*engine.RecordError{}, halt: halt, guard: memory.NewGuard(o.Limit), delivered: make(chan struct{}, 1)}
	r.pulse = pulse{r: r, drain: make(chan struct{}, 1), drainTo: make(chan epoch.Request, maxDrainsTo), lost: make(chan error, 1), cutover: make(chan struct{}, 1), soon: make(chan struct{}, 1), forgets: forgetting{more: make(chan struct{}, 1)}}
	if f := o.Follow; f != nil {
		r.awaited = awaitedGroup{f.AwaitGroup, f.AwaitGroupFor}
	}
	result, err := r.run(ctx)
	var next *Options
	if sealed := (*epoch.SealedError)(nil); errors.As(err, &sealed) && ctx.Err() == nil {
		next, err = r.afterSeal(ctx, sealed)
		err = unlessStopped(ctx, err)
		if r.owner != nil {
			result = r.result()
		}
	}
	r.closeSinks()
	if next == nil {
		r.o.Board.SetRole(vitals.Stopped)
	}
	r.pulse.end(ctx, !fencedBy(err) && next == nil)
	return result, next, err
}

// probe has a store that can be held to its word tried before it is relied on.
func probe(ctx context.Context, o Options) error {
	s, ok := o.Store.(interface {
		Probe(ctx context.Context, o store.ProbeOptions) (store.ProbeReport, error)
	})
	if !ok {
		return nil
	}
	report, err := s.Probe(ctx, store.ProbeOptions{Volatile: o.Volatile})
	var unfit *store.UnfitError
	if errors.As(err, &unfit) {
		return fmt.Errorf("%s: %w", o.Job, err)
	}
	if err != nil {
		return fmt.Errorf("%s: the store can't be tried: %w. Nothing was changed; run the job again when it can be written to", o.Job, err)
	}
	o.Log.Info("the store keeps its word", "store", report.Store, "file_system", report.FileSystem)
	return nil
}

// run is Run, up to letting go of the branch.
func (r *runner) run(ctx context.Context) (Result, error) {
	err := r.open(ctx)
	var asked *epoch.RequestedError
	if errors.As(err, &asked) {
		r.pulse.done(asked.Request)
		return Result{}, nil
	}
	if errors.Is(err, errCreated) {
		return r.result(), nil
	}
	if err != nil {
		return Result{}, unlessStopped(ctx, err)
	}
	defer r.startCleaning(ctx)()
	defer r.startSaving(ctx)()
	for {
		err := r.attempt(ctx)
		r.left.giveUp()
		if errors.Is(err, errClosing) {
			continue
		}
		if err == nil { // otherwise a manifest may still come that refers to some of it
			r.removeLeftovers(context.WithoutCancel(ctx))
		}
		if errors.Is(err, errRehearsed) {
			branch := r.owner.Branch()
			return r.result(), r.job.GiveUp(context.WithoutCancel(ctx), branch, epoch.ThisProcess(), "the rehearsal, which has ended")
		}
		var failed *engine.RecordError
		if err == nil || !errors.As(err, &failed) || !r.sidestep(failed) {
			return r.result(), unlessStopped(ctx, r.explain(err))
		}
	}
}

// fencedBy tells whether an error says that another process owns the branch.
func fencedBy(err error) bool {
	var fenced *epoch.FencedError
	var void *epoch.VoidError
	var sealed *epoch.SealedError
	return errors.As(err, &fenced) || errors.As(err, &void) || errors.As(err, &sealed)
}

// unlessStopped makes no error of a stop that comes before the first record, such
// as while a source is being opened: nothing was begun.
func unlessStopped(ctx context.Context, err error) error {
	var input *InputError
	aboutRecord := errors.As(err, &input) && input.Record != nil
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && !aboutRecord {
		return nil
	}
	return err
}

// runner is a job that runs.
type runner struct {
	o      Options
	job    *epoch.Job
	owner  *epoch.Owner
	stored *stored // the state as it was found
	sinks  []*sink
	skip   map[engine.RecordID]*engine.RecordError
	pulse  pulse

	following atomic.Bool     // the branch follows
	filling   map[string]bool // sinks that the branch fills before it is live
	awaited   awaitedGroup
	comparing *comparing // nil: nothing is compared
	left      leftovers
	guard     *memory.Guard

	givenUp map[uint64]bool // requests to forget that were taken back
	unmoved uint64          // the newest request that was there when it was seen that no entries move that one waits for

	halt context.CancelFunc // ends the run as a signal does

	cleaning *cleaning // nil: nothing is cleaned up
	saving   *saving   // nil: no savepoints are made

	goal []engine.PartitionLag // what is to be read before the job stops; nil: nothing in particular

	drainingTo *drainingTo // nil: nobody has asked for that

	told      map[string]string // by source in whose sink's transactions its offsets are told: the group
	delivered chan struct{}     // has room for one: something was, since the groups were told

	handedOver bool // the branch has gone live in the place of one whose owner may deliver still

	running    context.Context // in which deliveries run; nil: none has been started
	stop       context.CancelFunc
	delivering sync.WaitGroup
	failed     chan error // of the deliveries; has room for all
}

// sink is one of the job's sinks at work.
type sink struct {
	spec    *engine.SinkSpec
	target  connector.Target
	deliver *deliver.Deliverer
}

// sidestep notes that a record is to go to the dead letters, and tells whether
// that may help.
func (r *runner) sidestep(failed *engine.RecordError) bool {
	id := engine.RecordID{Source: failed.Source, Partition: failed.Partition, Offset: failed.Offset}
	if !r.o.DeadLetters || r.skip[id] != nil || errors.Is(failed, connector.ErrUnavailable) {
		return false
	}
	r.skip[id] = failed
	r.o.Log.Warn("a record can't be processed: going back to the last epoch, to go on without it", "error", failed)
	return true
}

func (r *runner) result() Result {
	head, _ := r.owner.Head()
	out := Result{Head: head, Pending: map[string]int{}}
	for _, s := range r.sinks {
		if s.deliver != nil && s.deliver.Pending() > 0 {
			out.Pending[s.spec.Name] = s.deliver.Pending()
		}
	}
	return out
}

// explain puts the job in front of an error of the engine, which knows none.
func (r *runner) explain(err error) error {
	var record *engine.RecordError
	var source *engine.SourceError
	var state *engine.StateError
	head, _ := r.owner.Head()
	at := epoch.At{Job: r.o.Job, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch + 1}
	switch {
	case errors.As(err, &record) && errors.Is(err, connector.ErrUnavailable):
		return &UnavailableError{At: at, Cause: record}
	case errors.As(err, &source) && errors.Is(err, connector.ErrUnavailable):
		return &UnavailableError{At: at, Cause: source}
	case errors.As(err, &record):
		return &InputError{At: at, Record: record, Follows: r.following.Load()}
	case errors.As(err, &source):
		return &InputError{At: at, Source: source, Follows: r.following.Load()}
	case errors.As(err, &state):
		return fmt.Errorf("%s: %w. Nothing of this epoch was kept; mend the function, and run the job again", at, err)
	}
	return err
}

// InputError says that what was read, or was to be, stopped the job: a record, or
// a source as such. One of the two is nil.
type InputError struct {
	epoch.At
	Record *engine.RecordError
	Source *engine.SourceError
	// Follows says that the branch is not live, which another one is.
	Follows bool
}

// Error implements error.
func (e *InputError) Error() string {
	if e.Follows {
		cause := error(e.Record)
		if e.Source != nil {
			cause = e.Source
		}
		return fmt.Sprintf("%s: %v. Nothing of this epoch was kept, and the live branch goes on; mend that and start the same again, or give this branch up with `sluice branch drop %s %s` and begin elsewhere.", e.At, cause, e.Job, e.Branch)
	}
	if e.Source != nil {
		return fmt.Sprintf("%s: %v. Nothing of this epoch was kept; mend the source and run the job again.", e.At, e.Source)
	}
	return fmt.Sprintf("%s: %v. Nothing of this epoch was kept; mend the record or the function and run the job again, or send such records to a sink with DeadLetter.", e.At, e.Record)
}

// Unwrap returns the error of the record or the source.
func (e *InputError) Unwrap() error {
	if e.Source != nil {
		return e.Source
	}
	return e.Record
}

// ExitCode is the exit code of the command line.
func (e *InputError) ExitCode() int { return 16 }

// UnavailableError says that what is needed to read, or to make rows, is away or
// refuses: a cluster, a schema registry, a permission. No record is to blame, and
// another start may help.
type UnavailableError struct {
	epoch.At
	// Cause matches [connector.ErrUnavailable].
	Cause error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%s: %v. Nothing of this epoch was kept, and no record became a dead letter; mend what is away or refuses, and run the job again.", e.At, e.Cause)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// open takes the branch, once it is sure that this build can go on from its
// head, and opens the sinks.
func (r *runner) open(ctx context.Context) error {
	job, err := epoch.OpenJob(ctx, r.o.Env, r.o.Store, r.o.Job, r.o.TransactionPrefix)
	if err != nil {
		return err
	}
	r.job = job
	known := r.o.known
	if known == 0 {
		if known, err = job.NewestRequest(ctx, 0); err != nil {
			return err
		}
	}
	r.pulse.known.Store(known)
	if err := r.checkRewrite(); err != nil {
		return err
	}
	if r.o.ResumeNow {
		if err := r.checkSealed(ctx); err != nil {
			return err
		}
	}
	hash, err := r.o.Version.Hash()
	if err != nil {
		return err
	}
	r.o.Build.Version = hash
	if r.o.Follow == nil {
		if err := r.check(ctx); err != nil {
			return err
		}
	}
	me := epoch.Identity{Build: r.o.Build, Version: r.o.Version, Writer: epoch.ThisProcess(), Replace: r.wanted()}
	identity := vitals.Identity{Job: r.o.Job, Task: epoch.FirstTask, Version: hash, Build: r.o.Build.String()}
	r.o.Board.SetIdentity(identity)
	if r.o.Follow != nil {
		err = r.openBranch(ctx, me)
	} else {
		err = r.take(ctx, me)
	}
	if err != nil {
		return err
	}
	_, live := r.owner.Live()
	r.following.Store(!live)
	head, _ := r.owner.Head()
	identity.Branch, identity.Owner = head.Branch, r.owner.ID()
	r.o.Board.SetIdentity(identity)
	r.o.Board.SetRole(vitals.Restoring)
	if live {
		if err := r.findForgets(ctx); err != nil {
			return err
		}
	}
	r.startPulse(ctx)
	if r.stored, err = r.compare(ctx, head); err != nil { // it may have moved since it was checked
		return err
	}
	r.o.Log.Info("opened", "branch", head.Branch, "epoch", head.Epoch, "position", head.Position, "owner", r.owner.ID())
	return r.openSinks(ctx, head)
}

// attempt runs the engine from the newest epoch on.
func (r *runner) attempt(ctx context.Context) (err error) {
	head, _ := r.owner.Head()
	o := r.o.engineOptions()
	o.Offsets = offsets(head.Sources)
	maps.DeleteFunc(r.skip, func(id engine.RecordID, _ *engine.RecordError) bool {
		return id.Offset < o.Offsets[id.Source][id.Partition].Next // its epoch is committed
	})
	o.Skip = maps.Clone(r.skip)
	o.Now, o.Watermarks, o.Windows = head.Now, head.Watermarks, head.Windows
	if head.Version != r.o.Build.Version { // it is to be adopted yet
		o.Windows = r.stored.windows
	}
	c := newCommitter(ctx, r)
	defer c.merging.close()
	r.askedAgain()
	o.Admit, o.Until, o.Advance = c.admit, r.drainingTo.offsets(), r.drainingTo.advance()
	o.JobID, o.TransactionPrefix = r.job.ID(), r.job.TransactionPrefix()
	if r.following.Load() {
		if o.Followed, err = r.followedSources(ctx); err != nil {
			return err
		}
	}
	run, err := engine.NewRun(r.o.Graph, o)
	if err != nil {
		return err
	}
	defer run.Close()
	found, err := run.Open(ctx)
	if err != nil {
		return err
	}
	if err := r.begin(ctx, found); err != nil {
		return err
	}
	c.groups = r.newGroups(run.Groups())
	head, _ = r.owner.Head()
	follows := r.following.Load()
	if !follows {
		if err := r.awaitForgetting(ctx, head, r.stored); err != nil { // somebody may have asked since it was checked
			return err
		}
	}
	if err := r.adopt(ctx); err != nil {
		return err
	}
	if err := r.restore(ctx, run); err != nil {
		return err
	}
	if follows {
		c.begin()
		defer c.groups.end()
		c.groups.follow(ctx, run.Groups())
		r.o.Board.SetRole(vitals.Follower)
		if r.comparing, err = r.startComparing(ctx); err != nil {
			return err
		}
		defer r.comparing.end()
		if err := r.startFilling(ctx); err != nil {
			return err
		}
		if len(r.filling) > 0 {
			c.rewrite(ctx, run)
		}
		run.Follow(ctx, r.newPilot(c, run).next)
		return c.loop(ctx, run)
	}
	if err := r.startDeliveries(ctx); err != nil {
		return err
	}
	c.begin()
	c.groups.start(ctx)
	defer c.groups.end()
	if err := c.forget(ctx, run); err != nil { // before it reads
		return err
	}
	head, _ = r.owner.Head()
	r.saving.committed(head) // which may be what an owner before made no savepoint of any more
	c.rewrite(ctx, run)
	run.Start(ctx)
	r.o.Board.SetRole(vitals.Running)
	return c.loop(ctx, run)
}

// followedSources are the sources that the branch has whose epochs are covered.
func (r *runner) followedSources(ctx context.Context) (map[string]bool, error) {
	live, _, err := r.liveHead(ctx)
	if err != nil {
		return nil, err
	}
	version, err := r.job.Version(ctx, live.Version)
	if err != nil {
		return nil, err
	}
	followed := map[string]bool{}
	for name := range version.Sources {
		followed[name] = true
	}
	return followed, nil
}

// begin keeps where partitions begin that were found at the start, before their
// first record is read: a restart must not look for another beginning.
func (r *runner) begin(ctx context.Context, found map[string]map[string]connector.Offset) error {
	if len(found) == 0 {
		return nil
	}
	head, _ := r.owner.Head()
	next := carried(head)
	next.Kind = epoch.Open
	for source, parts := range found {
		s := epoch.SourceState{Partitions: maps.Clone(next.Sources[source].Partitions)}
		if s.Partitions == nil {
			s.Partitions = map[string]epoch.Offset{}
		}
		maps.Copy(s.Partitions, sourceState(parts).Partitions)
		next.Sources[source] = s
	}
	_, err := r.commit(ctx, next)
	return err
}

// offsets are the manifest's, as the engine has them.
func offsets(sources map[string]epoch.SourceState) map[string]map[string]connector.Offset {
	out := map[string]map[string]connector.Offset{}
	for name, s := range sources {
		out[name] = deliver.Offsets(s)
	}
	return out
}

// sourceState are the engine's offsets, as a manifest has them.
func sourceState(parts map[string]connector.Offset) epoch.SourceState {
	s := epoch.SourceState{Partitions: map[string]epoch.Offset{}}
	for part, at := range parts {
		s.Partitions[part] = epoch.Offset{Next: at.Next, LeaderEpoch: at.LeaderEpoch, Identity: at.Identity}
	}
	return s
}
