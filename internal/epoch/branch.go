package epoch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/store"
)

// Beginning says which branch is to begin.
type Beginning struct {
	// Name is the first part of the branch's name, which goes on with a dash and
	// digits: no name is used twice.
	Name string
	// Kind is what the branch is for: upgrade, rollback, resume, failover or fresh.
	Kind BranchKind
	// From is where it starts. Defaults to the newest epochs of the live branch.
	From *Point
	// Asked is how a person said where it begins, if that is not live: a branch that was
	// asked for otherwise is another one.
	Asked string
	// Starts says of sinks that are new where they start: [StartCut] or [StartBase].
	Starts map[string]string
}

// Begun is a branch that has begun, and may lack bases.
type Begun struct {
	File BranchFile
	// Found says that it was there already: an earlier try of the same build, or
	// another process, began it. Its owner may live, so that who takes it waits as T5
	// says.
	Found bool
	// From are the epochs that bases are still to be made of, by task.
	From map[string]Head
}

// BeginBranch is rules U1 to U3: it pins where the branch starts, makes sure that
// this is in time (H11), and makes the branch's record. A branch of the same build,
// kind and start that nobody has finished is found instead, so that whoever was
// killed runs it again; of two processes at once, one begins it and the other finds
// it. What is
// pinned stays so until [Job.UnpinBranch] or [Job.GiveUp].
//
// A build that was replaced is a [SupersededError], unless the kind is rollback or
// me.Replace says that a person wants it; a start that clean-up was faster with, and
// for which there is no newer one, a [CleanedError].
func (j *Job) BeginBranch(ctx context.Context, b Beginning, me Identity) (Begun, error) {
	if err := checkBeginning(b); err != nil {
		return Begun{}, fmt.Errorf("%s: %w", j.name, err)
	}
	version, _, err := j.putVersion(ctx, me.Version)
	if err != nil {
		return Begun{}, err
	}
	me.Build.Version = version
	for range maxTakes {
		file, ok, err := j.Unfinished(ctx, b, me.Build)
		if err != nil {
			return Begun{}, err
		}
		if ok {
			return j.begun(ctx, file, true)
		}
		name, ok, err := j.nextName(ctx, b, me.Build)
		if err != nil {
			return Begun{}, err
		}
		if !ok {
			continue // another process was faster
		}
		file, outcome, err := j.beginNew(ctx, b, name, me)
		if err != nil {
			return Begun{}, err
		}
		if outcome == Mine {
			return j.begun(ctx, file, false)
		}
	}
	return Begun{}, fmt.Errorf("%s: clean-up, or other processes of this build, were faster %d times than a branch could begin; find what does that in a loop, or try again", j.name, maxTakes)
}

func checkBeginning(b Beginning) error {
	if !slices.Contains([]BranchKind{Upgrade, Rollback, Resume, Failover, Fresh, Rehearsal}, b.Kind) {
		return fmt.Errorf("begin a branch: kind %q instead of upgrade, rollback, resume, failover, fresh or rehearsal", b.Kind)
	}
	for sink, start := range b.Starts {
		if start != StartCut && start != StartBase {
			return fmt.Errorf("begin a branch: sink %s starts at %q instead of cut or base", sink, start)
		}
	}
	return CheckName("branch", b.Name)
}

// Unfinished finds the branch of a build, with its version, that has neither ended nor
// been live: the one that [Job.BeginBranch] would find.
func (j *Job) Unfinished(ctx context.Context, b Beginning, build Build) (first BranchFile, ok bool, err error) {
	names, err := j.Branches(ctx)
	if err != nil {
		return first, false, err
	}
	for _, name := range names {
		file, err := j.BranchFile(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			continue // given up before it had a record
		}
		if err != nil {
			return first, false, err
		}
		if !DecideFound(b, build, file) || ok && !before(file, first) {
			continue
		}
		over, err := j.over(ctx, name)
		if err != nil {
			return first, false, err
		}
		if !over {
			first, ok = file, true
		}
	}
	return first, ok, nil
}

func before(a, b BranchFile) bool {
	return a.Time < b.Time || a.Time == b.Time && a.Branch < b.Branch
}

// Ended tells whether a log of a branch is sealed, or gone.
func (j *Job) Ended(ctx context.Context, branch string) (bool, error) {
	tasks, err := j.tasksOf(ctx, branch)
	for _, task := range tasks {
		head, _, err := j.endOf(ctx, branch, task, 0)
		if err != nil || head.Sealed() {
			return true, err
		}
	}
	return false, err
}

// nextName is the name that the branch gets: all processes of a build that begin the
// same find the same one, so that the create of its record decides between them. ok is
// false if one of them has just made it.
func (j *Job) nextName(ctx context.Context, b Beginning, build Build) (name string, ok bool, err error) {
	for try := range listAtMost {
		name = BranchName(j.file.JobID, b, build, try)
		_, err := j.BranchFile(ctx, name)
		free := errors.Is(err, store.ErrNotFound)
		if err != nil && !free {
			return name, false, err
		}
		over, err := j.over(ctx, name)
		if err != nil || !over {
			return name, free, err
		}
	}
	return "", false, fmt.Errorf("%s: this build has begun %d branches; is this a store of Sluice's?", j.name, listAtMost)
}

// over tells whether a branch can't be followed by any more: it has ended, or has been
// live.
func (j *Job) over(ctx context.Context, branch string) (bool, error) {
	ended, err := j.Ended(ctx, branch)
	if err != nil || ended {
		return ended, err
	}
	records, err := j.LiveRecords(ctx, nil)
	return slices.ContainsFunc(records, func(r LiveRecord) bool { return r.Branch == branch }), err
}

// beginNew is U2 and U3. Theirs says that another process was faster, or clean-up was
// before the newest epochs were pinned.
func (j *Job) beginNew(ctx context.Context, b Beginning, name string, me Identity) (file BranchFile, outcome Outcome, err error) {
	from, heads, layout, err := j.start(ctx, b)
	if err != nil {
		return file, 0, err
	}
	if err := j.mayBegin(b, heads, me); err != nil {
		return file, 0, err
	}
	file = BranchFile{
		Format: Format, JobID: j.file.JobID, Branch: name, Build: me.Build, Kind: b.Kind, Layout: layout,
		Base: &from, Asked: b.Asked, Starts: b.Starts, By: me.Writer.String(), Time: j.now(),
	}
	pin, err := j.pinBranch(ctx, file)
	if err != nil {
		return file, 0, err
	}
	late, err := j.late(ctx, from)
	if err != nil {
		return file, 0, err
	}
	if late == nil && b.From != nil {
		if err := j.mayFollow(ctx, name, heads); err != nil {
			return file, 0, cmp.Or(j.DeletePin(ctx, pin), err)
		}
	}
	if outcome = Theirs; late == nil {
		data, err := file.encode()
		if err != nil {
			return file, 0, fmt.Errorf("%s: branch %s: %w", j.name, file.Branch, err)
		}
		if outcome, _, err = j.create(ctx, BranchPath(file.Branch), data); err != nil || outcome == Mine {
			return file, outcome, err
		}
	}
	if err := j.DeletePin(ctx, pin); err != nil { // nothing rests on it
		return file, 0, err
	}
	if late != nil && b.From != nil {
		return file, 0, late
	}
	return file, outcome, nil
}

// start is where a branch begins: as it is told, or at the live branch's heads.
func (j *Job) start(ctx context.Context, b Beginning) (from Point, heads map[string]Head, layout int, err error) {
	live, ok, err := j.Live(ctx)
	if err != nil {
		return from, nil, 0, err
	}
	if !ok {
		return from, nil, 0, fmt.Errorf("%s: the job has never run, so that there is nothing to branch from; run it", j.name)
	}
	if b.From != nil {
		from = *b.From
	} else if from, err = j.newest(ctx, live); err != nil {
		return from, nil, 0, err
	}
	tasks, err := j.tasksOf(ctx, from.Branch)
	if err != nil {
		return from, nil, 0, err
	}
	heads = map[string]Head{}
	for _, task := range tasks {
		e, named := from.Tasks[task]
		if !named {
			return from, nil, 0, fmt.Errorf("%s: the start of a branch names no epoch of task %s", j.name, task)
		}
		m, hash, err := j.manifest(ctx, from.Branch, task, e)
		if err != nil {
			return from, nil, 0, j.startGone(ctx, err)
		}
		heads[task] = Head{Manifest: m, Hash: hash}
	}
	return from, heads, live.Layout, nil
}

// newest are the newest epochs of the live branch. Where that has had nothing of its
// own, and was cleaned away, they are the end of the one before it (H16).
func (j *Job) newest(ctx context.Context, live LiveRecord) (Point, error) {
	p := Point{live.Branch, map[string]Epoch{}}
	tasks, err := j.tasksOf(ctx, live.Branch)
	if err != nil {
		return p, err
	}
	for _, task := range tasks {
		head, gone, err := j.endOf(ctx, live.Branch, task, 0)
		if err != nil {
			return p, err
		}
		if before, ok := live.Before(); gone && ok {
			return before, nil
		}
		if head.Hash == "" {
			return p, &NoLogError{At: At{Job: j.name, Branch: live.Branch, Task: task}}
		}
		p.Tasks[task] = head.Manifest.Epoch
	}
	return p, nil
}

// startGone names an epoch that a branch was to start from and that isn't there.
func (j *Job) startGone(ctx context.Context, err error) error {
	missing := (*missingError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	floor, ferr := j.Floor(ctx, missing.Branch, missing.Task)
	if ferr != nil {
		return ferr
	}
	if floor > missing.Epoch {
		return &CleanedError{At: missing.At, Floor: floor}
	}
	return &NoLogError{At: missing.At}
}

// mayBegin refuses a build that was replaced, and a start that is a seal.
func (j *Job) mayBegin(b Beginning, heads map[string]Head, me Identity) error {
	for task, head := range heads {
		at := At{j.name, head.Manifest.Branch, task, head.Manifest.Epoch}
		if head.Manifest.Kind == Seal {
			return fmt.Errorf("%s: a branch can't begin at a seal; begin at the epoch before", at)
		}
		if hasBuild(head.Manifest.Superseded, me.Build) && b.Kind != Rollback && !me.Replace {
			return &SupersededError{At: at, Build: me.Build, Now: head.Manifest.Build}
		}
	}
	return nil
}

// pinBranch pins a branch's start.
func (j *Job) pinBranch(ctx context.Context, file BranchFile) (id string, err error) {
	random, err := j.env.ID()
	if err != nil {
		return "", err
	}
	id = file.Branch + "-" + random
	return id, j.PutPin(ctx, id, *file.Base, file.By)
}

// late tells, once an epoch of each task is pinned, whether clean-up was faster with
// one of them (H11): it writes its floor first, and reads the pins then.
func (j *Job) late(ctx context.Context, from Point) (late *CleanedError, err error) {
	for task, e := range from.Tasks {
		floor, err := j.Floor(ctx, from.Branch, task)
		if err != nil {
			return nil, err
		}
		if floor <= e {
			continue
		}
		saved, err := j.saved(ctx, Manifest{Branch: from.Branch, Task: task, Epoch: e})
		if err != nil {
			return nil, err
		}
		if !saved {
			return &CleanedError{At: At{j.name, from.Branch, task, e}, Floor: floor}, nil
		}
	}
	return nil, nil
}

// mayFollow refuses a start, once it is pinned, behind which the epochs to follow were
// cleaned away before: a branch from there could never go on. The error is a
// [TimetableError].
func (j *Job) mayFollow(ctx context.Context, branch string, heads map[string]Head) error {
	for task, head := range heads {
		own := head.Manifest
		own.Covers = map[string]Position{task: own.Position}
		if _, err := j.Follow(branch, task).Next(ctx, own, 1); err != nil {
			return err
		}
	}
	return nil
}

// begun reads where the bases start that a branch lacks.
func (j *Job) begun(ctx context.Context, file BranchFile, found bool) (Begun, error) {
	b := Begun{File: file, Found: found, From: map[string]Head{}}
	for task, e := range file.Base.Tasks {
		head, _, err := j.endOf(ctx, file.Branch, task, 0)
		if err != nil {
			return b, err
		}
		at := At{j.name, file.Branch, task, 0}
		switch {
		case head.Sealed():
			return b, &SealedError{At: at, By: head.Seal.By}
		case head.Hash != "":
			continue
		}
		m, hash, err := j.manifest(ctx, file.Base.Branch, task, e)
		if missing := (*missingError)(nil); errors.As(err, &missing) {
			return b, j.damaged(missing.At, ManifestPath(file.Base.Branch, task, e), "the manifest that branch "+file.Branch+" starts from, and has pinned", "none")
		}
		if err != nil {
			return b, err
		}
		b.From[task] = Head{Manifest: m, Hash: hash}
	}
	return b, nil
}

// BeginBase prepares the base of a branch's log. The owner names the data objects
// that the base is to refer to, of epoch 0, and [Owner.PutBase] makes it.
func (j *Job) BeginBase(ctx context.Context, branch, task string, me Identity) (*Owner, error) {
	return j.newOwner(ctx, branch, task, &me)
}

// PutBase is rule U4: it makes the first epoch of a branch's log, whose payload
// [BaseOf] has begun, and this process its owner. The error is a [FencedError] if
// another process made it, which is then to be taken over by [Job.Take], and a
// [SealedError] if the branch was given up.
func (o *Owner) PutBase(ctx context.Context, base Manifest) (Manifest, error) {
	o.committing.Lock()
	defer o.committing.Unlock()
	at := At{o.job.name, o.branch, o.task, 0}
	switch {
	case base.Kind != Base || base.Live != nil || len(base.Edits) > 0:
		return base, fmt.Errorf("%s: a base is of kind base, under no generation, and without edits", at)
	case base.Parent == "" || len(base.Covers) == 0:
		return base, fmt.Errorf("%s: a base says which epoch it starts from, and what it covers", at)
	case o.hash != "" || o.stopped != nil:
		return base, fmt.Errorf("%s: this owner has begun already", at)
	}
	o.identify(&base, 0, base.Parent)
	data, err := base.Encode()
	if err != nil {
		return base, fmt.Errorf("%s: the base can't be written: %w", at, err)
	}
	verdict, holder, err := o.put(ctx, 0, data)
	if err == nil {
		err = o.refusal(0, verdict, holder)
	}
	if err != nil {
		o.stopped = err
		return base, err
	}
	o.mu.Lock()
	o.head, o.hash = base, Hash(data)
	o.mu.Unlock()
	return base, nil
}

// UnpinBranch takes a branch's pins away, once each of its logs has begun or has been
// ended: what it starts from is safe then, or not needed any more (H11b).
func (j *Job) UnpinBranch(ctx context.Context, branch string) error {
	tasks, err := j.tasksOf(ctx, branch)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		head, _, err := j.endOf(ctx, branch, task, 0)
		if err != nil {
			return err
		}
		if head.Hash == "" && !head.Sealed() {
			return &NoLogError{At: At{Job: j.name, Branch: branch, Task: task}}
		}
	}
	pins, err := j.Pins(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(pins)) {
		if PinHolder(id) != branch {
			continue
		}
		if err := j.DeletePin(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// tasksOf are the tasks of a branch's layout; of a branch without a record those of
// the first layout.
func (j *Job) tasksOf(ctx context.Context, branch string) ([]string, error) {
	file, err := j.BranchFile(ctx, branch)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	layout, err := j.Layout(ctx, file.Layout)
	if err != nil {
		return nil, err
	}
	var tasks []string
	for _, t := range layout.Tasks {
		tasks = append(tasks, t.Name)
	}
	return tasks, nil
}
