package epoch

import (
	"context"
	"errors"
	"fmt"
)

// maxTakes bounds how often a take-over starts over: each time the owner
// before committed in the moments between finding the head and opening.
const maxTakes = 20

// Identity is what a process says of itself when it takes a branch.
type Identity struct {
	// Build is the running program; its Version is filled in from Version.
	Build Build
	// Version describes the job as this build has it.
	Version Version
	// Writer is the running process.
	Writer Writer
	// Replace says that a person wants this build although it was replaced.
	Replace bool
	// Awaited, if set, is the head that [Job.AwaitOwner] decided on. Another one is
	// somebody's who lives, and is not gone on from.
	Awaited *Head
}

// ErrHeadMoved says that a branch is not where it was awaited: its owner lives, or
// another has taken it.
var ErrHeadMoved = errors.New("the head has moved since it was awaited")

// TakeLive takes a task of the live branch: main, if the job has never run.
func (j *Job) TakeLive(ctx context.Context, task string, me Identity) (*Owner, error) {
	for tries := 1; ; tries++ {
		live, ok, err := j.Live(ctx)
		if err != nil {
			return nil, err
		}
		branch := MainBranch
		if ok {
			branch = live.Branch
		}
		o, err := j.Take(ctx, branch, task, me)
		sealed := (*SealedError)(nil)
		if !errors.As(err, &sealed) || sealed.Next == "" || tries == maxTakes {
			return o, err
		}
	}
}

// Take makes this process the owner of a log, rules T1 to T3: it finds the head
// and commits an opening epoch behind it, which shuts out whoever owned it
// before. It does not wait for an owner that lives (T5). If the branch is main
// and the job has never run, its first entries are made.
//
// The opening carries all that the head stands for, so that the caller loads
// state and positions from [Owner.Head]. A build of another version must
// migrate and commit a second opening, with its own version and build, before
// it commits data.
//
// The error is a [SealedError] if the branch has ended, a [SupersededError] if
// this build was replaced, a [FencedError] if another process took the branch
// in the same moment, a [NoLogError] if there is no such branch.
func (j *Job) Take(ctx context.Context, branch, task string, me Identity) (*Owner, error) {
	o, err := j.newOwner(ctx, branch, task, &me)
	if err != nil {
		return nil, err
	}
	for range maxTakes {
		step, err := o.tryTake(ctx, me)
		if err != nil {
			return nil, err
		}
		if step == PutOpen {
			return o, nil
		}
	}
	return nil, fmt.Errorf("%s: the branch's owner committed %d times while it was to be taken over; stop it, or try again", At{j.name, branch, task, o.head.Epoch}, maxTakes)
}

// newOwner prepares a take-over; me.Build gets its version.
func (j *Job) newOwner(ctx context.Context, branch, task string, me *Identity) (*Owner, error) {
	if err := checkLogName(branch, task); err != nil {
		return nil, err
	}
	version, stands, err := j.putVersion(ctx, me.Version)
	if err != nil {
		return nil, err
	}
	me.Build.Version = version
	if err := j.putFunctions(ctx, stands, me.Version, me.Build); err != nil {
		return nil, err
	}
	id, err := j.env.ID()
	if err != nil {
		return nil, err
	}
	return &Owner{job: j, branch: branch, task: task, id: id, writer: me.Writer}, nil
}

// tryTake is one round: PutOpen says that the opening is committed, StartOver
// that there is a newer head.
func (o *Owner) tryTake(ctx context.Context, me Identity) (TakeStep, error) {
	live, haveLive, err := o.job.Live(ctx)
	if err != nil {
		return 0, err
	}
	beat, _, err := o.job.Heartbeat(ctx, o.branch, o.task)
	if damaged := (*DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
		return 0, err // one that is damaged is overwritten by the next
	}
	head, err := o.job.headFrom(ctx, o.branch, o.task, o.head.Epoch)
	if none := (*NoLogError)(nil); errors.As(err, &none) && !haveLive && o.isFirst() {
		return StartOver, o.begin(ctx, me.Build)
	}
	if err != nil {
		return 0, o.job.lostLog(ctx, err, haveLive && live.Branch == o.branch)
	}
	if err := o.job.checkBeat(beat, head); err != nil {
		return 0, err
	}
	if err := o.job.checkRecords(ctx, head, live, haveLive); err != nil {
		return 0, err
	}
	if me.Awaited != nil && head.Hash != me.Awaited.Hash && head.Manifest.Owner != o.id {
		return 0, fmt.Errorf("%s: %w", At{o.job.name, o.branch, o.task, head.Manifest.Epoch}, ErrHeadMoved)
	}
	if !haveLive && o.isFirst() {
		return StartOver, o.makeFirstLive(ctx)
	}
	if err := o.mayTake(ctx, head, live, me); err != nil {
		return 0, err
	}
	if step, err := o.lookBeyond(ctx, head); err != nil || step == StartOver {
		return step, err
	}
	o.live = nil
	if haveLive && live.Branch == o.branch {
		o.live = &live.N
	}
	return o.putOpening(ctx, head, me.Build)
}

// beyond bounds how far behind the head manifests are looked for.
const beyond = 1 << 20

// lookBeyond makes sure that nothing stands behind the head: a manifest that was
// lost in the middle of a log must not pass for its end, and its name must not
// be taken.
func (o *Owner) lookBeyond(ctx context.Context, head Head) (TakeStep, error) {
	next := head.Manifest.Epoch + 1
	exists := func(e Epoch) (bool, error) {
		return o.job.store.Exists(ctx, o.job.Object(ManifestPath(o.branch, o.task, e)))
	}
	for step := Epoch(1); step <= beyond; step *= 2 {
		later, err := exists(next + step)
		if err != nil {
			return 0, err
		}
		if !later {
			continue
		}
		if there, err := exists(next); err != nil || there {
			return StartOver, err // its owner has committed meanwhile
		}
		return 0, o.job.damaged(At{o.job.name, o.branch, o.task, next}, ManifestPath(o.branch, o.task, next),
			fmt.Sprintf("a manifest, since that of epoch %d is there", next+step), "none")
	}
	return PutOpen, nil
}

// isFirst tells whether this is the log that a job begins with.
func (o *Owner) isFirst() bool { return o.branch == MainBranch && o.task == FirstTask }

// mayTake is T1 and T2, once the head is found: nil to go on with T3.
func (o *Owner) mayTake(ctx context.Context, head Head, live LiveRecord, me Identity) error {
	view := TakeView{Head: head, Me: me.Build, Replace: me.Replace}
	at := At{o.job.name, o.branch, o.task, head.Manifest.Epoch}
	var next LiveRecord
	if head.Sealed() {
		var err error
		if next, _, err = o.job.Live(ctx); err != nil {
			return err
		}
		view.NewerLive = next.N > live.N
		at.Epoch = head.Seal.Epoch
	}
	switch DecideTake(view) {
	case StartOver:
		return &SealedError{At: at, By: head.Seal.By, Next: next.Branch}
	case RefuseSealed:
		return &SealedError{At: at, By: head.Seal.By}
	case RefuseSuperseded:
		return &SupersededError{At: at, Build: me.Build, Now: head.Manifest.Build}
	}
	return nil
}

// putOpening is T3.
func (o *Owner) putOpening(ctx context.Context, head Head, me Build) (TakeStep, error) {
	m := Opening(head.Manifest, me, o.live)
	o.identify(&m, head.Manifest.Epoch+1, head.Hash)
	data, err := m.Encode()
	if err != nil {
		return 0, fmt.Errorf("%s: the opening can't be written: %w", At{o.job.name, o.branch, o.task, m.Epoch}, err)
	}
	verdict, holder, err := o.put(ctx, m.Epoch, data)
	if err != nil {
		return 0, err
	}
	if verdict == Committed {
		o.head, o.hash = m, Hash(data)
		return PutOpen, o.lookAtLive(ctx)
	}
	o.head = head.Manifest // where the next search begins
	if DecideLostOpen(head.Manifest, holder, verdict) == StartOver {
		return StartOver, nil
	}
	return 0, o.refusal(m.Epoch, verdict, holder)
}

// lookAtLive is what a follower does after its opening: the branch may have
// become the live one since the owner looked.
func (o *Owner) lookAtLive(ctx context.Context) error {
	if o.live != nil {
		return nil
	}
	live, ok, err := o.job.Live(ctx)
	if ok && live.Branch == o.branch {
		o.live = &live.N
	}
	return err
}

// begin makes main's record and its base, for a job that has never run.
// Whoever is first counts; the next round finds what is there.
func (o *Owner) begin(ctx context.Context, me Build) error {
	file := BranchFile{
		Format: Format, JobID: o.job.file.JobID, Branch: o.branch,
		Build: me, Kind: First, By: o.writer.String(), Time: o.job.now(),
	}
	if err := o.job.makeRecord(ctx, BranchPath(o.branch), file.encode); err != nil {
		return err
	}
	base := Manifest{Kind: Base, Version: me.Version, Build: me, Now: o.job.now()}
	o.identify(&base, 0, "")
	data, err := base.Encode()
	if err != nil {
		return fmt.Errorf("%s: the base can't be written: %w", At{o.job.name, o.branch, o.task, 0}, err)
	}
	verdict, holder, err := o.put(ctx, 0, data)
	if err != nil || verdict == Fenced || verdict == Sealed {
		return err
	}
	return o.refusal(0, verdict, holder)
}

// makeFirstLive makes main the live branch; whoever finds it missing does.
func (o *Owner) makeFirstLive(ctx context.Context) error {
	record := LiveRecord{
		Format: Format, JobID: o.job.file.JobID, Kind: First, Branch: o.branch,
		Covers: map[string]Epoch{o.task: 0}, By: o.writer.String(), Time: o.job.now(),
	}
	return o.job.makeRecord(ctx, LivePath(0), record.encode)
}
