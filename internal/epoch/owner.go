package epoch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Owner is a process's hold on one log. It ends with the first [Owner.Commit]
// that fails. Its methods may be called from many goroutines.
type Owner struct {
	job    *Job
	branch string
	task   string
	id     string
	writer Writer
	seq    atomic.Uint64 // of data objects

	committing sync.Mutex // held while a manifest is created: one at a time (H8)

	// mu guards what follows. Commit alone changes head and hash, under both
	// locks: whoever only looks doesn't wait for a slow create.
	mu       sync.Mutex
	head     Manifest
	hash     string
	floor    Epoch // newest that was seen
	live     *Generation
	attempts uint64
	beats    uint64
	stopped  error
}

// ID is the owner's random id: one per process start and log.
func (o *Owner) ID() string { return o.id }

// Job is the job that the log belongs to.
func (o *Owner) Job() *Job { return o.job }

// Branch is the branch that is owned.
func (o *Owner) Branch() string { return o.branch }

// Task is the task that is owned.
func (o *Owner) Task() string { return o.task }

// Head is the newest manifest, and its hash.
func (o *Owner) Head() (Manifest, string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.head, o.hash
}

// Live is the generation under which this owner writes; ok is false for a
// follower.
func (o *Owner) Live() (n Generation, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil {
		return 0, false
	}
	return *o.live, true
}

// NextEpoch is the epoch that the next Commit will write; before [Owner.PutBase] that
// of the base.
func (o *Owner) NextEpoch() Epoch {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hash == "" {
		return 0
	}
	return o.head.Epoch + 1
}

// DataName returns a path below the job's folder for a data object that epoch e
// is to refer to; no other call, owner or process ever gets the same. The name
// says what is in it and is checked as [CheckName] does.
func (o *Owner) DataName(e Epoch, name string) (path string, err error) {
	if err := CheckName("data", name); err != nil {
		return "", err
	}
	return DataPath(o.branch, o.task, e, o.id, o.seq.Add(1), name), nil
}

// Commit makes the next epoch of the log: once it returns nil the epoch is
// done, durable and this owner's (C2, C3). The caller has filled in the kind
// (Data or Open) and all that the epoch holds, with data objects that are
// already durable; the owner fills in which epoch it is, whose, when, and its
// position, which for a follower's data is the caller's. A version, a build or
// a list of superseded builds that is left empty is the head's; a new build
// notes the one that it replaces.
//
// It fails with a [FencedError], [SealedError] or [VoidError] if the branch is
// another's, and with any other error if the store fails. After that the owner
// is at its end, and every Commit returns the same error; the epoch may still
// appear if the error matches [store.ErrUnknown]. If ctx ends while the
// outcome is open it is unknown too.
func (o *Owner) Commit(ctx context.Context, m Manifest) (Manifest, error) {
	o.committing.Lock()
	defer o.committing.Unlock()
	if o.stopped != nil {
		return Manifest{}, o.stopped
	}
	m, data, err := o.complete(m)
	if err != nil {
		return Manifest{}, err // nothing was tried, so nothing has ended
	}
	verdict, holder, err := o.put(ctx, m.Epoch, data)
	if err == nil {
		err = o.refusal(m.Epoch, verdict, holder)
	}
	if err != nil {
		o.stopped = err
		return Manifest{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.head, o.hash = m, Hash(data)
	return m, nil
}

// complete fills in what the owner knows, and encodes the manifest.
func (o *Owner) complete(m Manifest) (Manifest, []byte, error) {
	next := o.head.Epoch + 1
	at := At{o.job.name, o.branch, o.task, next}
	switch {
	case m.Kind != Data && m.Kind != Open:
		return m, nil, fmt.Errorf("%s: commit: kind %q instead of data or open", at, m.Kind)
	case m.Epoch != 0 && m.Epoch != next:
		return m, nil, fmt.Errorf("%s: commit: the manifest was made for epoch %d", at, m.Epoch)
	case m.Live != nil && (o.live == nil || *m.Live != *o.live):
		return m, nil, fmt.Errorf("%s: commit: the manifest is of generation %d; expected %s", at, *m.Live, under(o.live))
	case m.Kind != Data && len(m.Edits) > 0:
		return m, nil, fmt.Errorf("%s: commit: %d edits in an %s; they stand in a data epoch", at, len(m.Edits), m.Kind)
	case m.Now < o.head.Now:
		return m, nil, fmt.Errorf("%s: commit: its clock %d is before that of the epoch before, %d", at, m.Now, o.head.Now)
	}
	o.identify(&m, next, o.hash)
	m.Live = o.live
	if o.live == nil {
		if err := o.checkCovers(&m, at); err != nil {
			return m, nil, err
		}
	}
	m.Position = NextPosition(m.Kind, o.live != nil, o.head.Position, m.Position)
	if m.Position < o.head.Position {
		return m, nil, fmt.Errorf("%s: commit: its position %d is before that of the epoch before, %d", at, m.Position, o.head.Position)
	}
	if m.Version == "" {
		m.Version = o.head.Version
	}
	if m.Build == (Build{}) {
		m.Build = o.head.Build
	}
	if m.Superseded == nil {
		m.Superseded = o.head.Superseded
	}
	if m.Build != o.head.Build {
		m.Superseded = Supersede(m.Superseded, o.head.Build, m.Build)
	}
	data, err := m.Encode()
	if err != nil {
		return m, nil, fmt.Errorf("%s: commit: the manifest can't be written: %w", at, err)
	}
	return m, data, nil
}

// under says in which generation an owner writes.
func under(live *Generation) string {
	if live == nil {
		return "none, since no live record that it has read names its branch"
	}
	return fmt.Sprint(*live)
}

// checkCovers holds what a follower's epoch covers against the one before. An open
// covers what that did.
func (o *Owner) checkCovers(m *Manifest, at At) error {
	if m.Kind == Open && m.Covers == nil {
		m.Covers = o.head.Covers
	}
	for task, before := range o.head.Covers {
		if covered, ok := m.Covers[task]; !ok || covered < before {
			return fmt.Errorf("%s: commit: it covers position %d of task %s, and the epoch before covers %d", at, covered, task, before)
		}
	}
	if covered, ok := m.Covers[o.task]; ok && m.Kind == Data && covered != m.Position {
		return fmt.Errorf("%s: commit: it covers position %d, and its own is %d", at, covered, m.Position)
	}
	return nil
}

// identify says which entry a manifest is, and whose attempt.
func (o *Owner) identify(m *Manifest, e Epoch, parent string) {
	o.attempts++
	m.Format, m.JobID, m.Branch, m.Task = Format, o.job.file.JobID, o.branch, o.task
	m.Epoch, m.Parent = e, parent
	m.Owner, m.Attempt, m.Writer = o.id, fmt.Sprintf("%s-%d", o.id, o.attempts), o.writer
	m.Time = o.job.now()
}

// put creates an entry and looks at the floor.
func (o *Owner) put(ctx context.Context, e Epoch, data []byte) (verdict Verdict, holder *Manifest, err error) {
	var held entry
	verdict, held, o.floor, err = o.job.putEntry(ctx, o.branch, o.task, e, data, o.floor)
	return verdict, held.manifest, err
}

// entry is what holds a name that was to be created; nil if nothing else does.
type entry struct {
	manifest *Manifest
	hash     string
}

// putEntry creates an entry of a log and looks at the floor, from one on that is
// known: rules S1 and S6.
func (j *Job) putEntry(ctx context.Context, branch, task string, e Epoch, data []byte, known Epoch) (Verdict, entry, Epoch, error) {
	path := ManifestPath(branch, task, e)
	outcome, found, err := j.create(ctx, path, data)
	if err != nil {
		return 0, entry{}, known, err
	}
	floor, err := j.floorFrom(ctx, branch, task, known)
	if err != nil {
		return 0, entry{}, known, err
	}
	var holder entry
	if outcome == Theirs && found != nil && floor <= e {
		m, err := Decode[Manifest](found)
		if err != nil {
			return 0, holder, floor, j.unreadable(At{j.name, branch, task, e}, path, err)
		}
		holder = entry{&m, Hash(found)}
	}
	return DecideCommit(e, outcome, holder.manifest, floor), holder, floor, nil
}

// refusal is the error that a verdict is, if it is one.
func (o *Owner) refusal(e Epoch, verdict Verdict, holder *Manifest) error {
	at := At{o.job.name, o.branch, o.task, e}
	switch verdict {
	case Committed:
		return nil
	case Void:
		return &VoidError{At: at, Floor: o.floor}
	case Sealed:
		return &SealedError{At: at, By: holder.By}
	case Fenced:
		return &FencedError{At: at, Owner: holder.Owner, Writer: holder.Writer}
	default:
		return o.job.damaged(at, ManifestPath(o.branch, o.task, e), "a manifest, since its name was taken", "none")
	}
}

// unreadable names an object that was found and can't be read.
func (j *Job) unreadable(at At, path string, err error) error {
	if later := (*FormatError)(nil); errors.As(err, &later) {
		later.Object = j.Object(path)
		return later
	}
	return j.damaged(at, path, "an object as it was written", "that "+err.Error())
}
