package epoch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// maxLooks bounds how often a reader starts over because clean-up overtook it.
// Each time means that the log was cleaned within the moments of one look.
const maxLooks = 10

// Job is a job's folder in a checkpoint store. Its methods may be called from
// many goroutines.
type Job struct {
	env   *env.Env
	store store.Store
	name  string
	file  JobFile

	lastLive atomic.Uint64 // highest generation seen: where the next search begins
}

// OpenJob opens a job, and makes its folder if the store has none. The prefix of
// its transactions is fixed then, "<job>/" if it is empty; another one than it has
// is refused with a [PrefixError].
func OpenJob(ctx context.Context, e *env.Env, s store.Store, job, prefix string) (*Job, error) {
	j, err := FindJob(ctx, e, s, job)
	if missing := (*NoJobError)(nil); errors.As(err, &missing) {
		if err := newJob(ctx, e, s, job, prefix); err != nil {
			return nil, err
		}
		j, err = FindJob(ctx, e, s, job) // the id is that of whoever was first
	}
	if err != nil {
		return nil, err
	}
	if prefix != "" && prefix != j.file.TransactionPrefix {
		return nil, &PrefixError{Job: job, Expected: j.file.TransactionPrefix, Found: prefix}
	}
	return j, j.makeLayout(ctx)
}

// makeLayout makes the layout that a job begins with; one that has been live
// had it.
func (j *Job) makeLayout(ctx context.Context) error {
	// The layout is looked for last: one that has been live had it before.
	live, err := j.store.Exists(ctx, j.Object(LivePath(0)))
	if err != nil {
		return fmt.Errorf("%s: %w", j.name, err)
	}
	exists, err := j.store.Exists(ctx, j.Object(LayoutPath(0)))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", j.name, err)
	case exists:
		_, err := j.Layout(ctx, 0)
		return err
	case live:
		return j.damaged(At{}, LayoutPath(0), "the job's layout, since it has been live", "none")
	}
	return j.makeRecord(ctx, LayoutPath(0), soleLayout(j.file.JobID).encode)
}

func newJob(ctx context.Context, e *env.Env, s store.Store, job, prefix string) error {
	if err := checkNew(ctx, s, job); err != nil {
		return err
	}
	return makeJob(ctx, e, s, job, prefix)
}

func makeJob(ctx context.Context, e *env.Env, s store.Store, job, prefix string) error {
	id, err := e.ID()
	if err != nil {
		return err
	}
	if prefix == "" {
		prefix = job + "/"
	}
	j := &Job{env: e, store: s, name: job}
	file := JobFile{Format: Format, Job: job, JobID: id, TransactionPrefix: prefix, Time: j.now()}
	return j.makeRecord(ctx, JobPath, file.encode)
}

func (f JobFile) encode() ([]byte, error)    { return encode(f) }
func (l Layout) encode() ([]byte, error)     { return encode(l) }
func (b BranchFile) encode() ([]byte, error) { return encode(b) }
func (l LiveRecord) encode() ([]byte, error) { return encode(l) }
func (d Drain) encode() ([]byte, error)      { return encode(d) }
func (v Version) encode() ([]byte, error)    { return encode(v) }
func (f Functions) encode() ([]byte, error)  { return encode(f) }

// FindJob opens a job that exists, and writes nothing; [NoJobError] if the
// store has none of this name.
func FindJob(ctx context.Context, e *env.Env, s store.Store, job string) (*Job, error) {
	if err := CheckName("job", job); err != nil {
		return nil, err
	}
	j := &Job{env: e, store: s, name: job}
	file, _, err := read[JobFile](ctx, j, At{}, JobPath)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &NoJobError{Job: job, Store: s.String()}
	}
	if err == nil && file.Job != job {
		err = j.damaged(At{}, JobPath, "the record of job "+job, "that of job "+file.Job)
	}
	if err != nil {
		return nil, err
	}
	j.file = file
	return j, nil
}

// Name is the job's name.
func (j *Job) Name() string { return j.name }

// TransactionPrefix begins the names of the job's transactions.
func (j *Job) TransactionPrefix() string { return j.file.TransactionPrefix }

// ID is the random id that the job got when it was made.
func (j *Job) ID() string { return j.file.JobID }

// File is the job's own record.
func (j *Job) File() JobFile { return j.file }

// Store is where the job is.
func (j *Job) Store() store.Store { return j.store }

// Object is the name in the store of an object below the job's folder.
func (j *Job) Object(path string) string { return j.name + "/" + path }

func (j *Job) now() int64 { return j.env.Clock.Now().UnixMicro() }

// Layout reads a layout; the error matches [store.ErrNotFound] if there is none.
func (j *Job) Layout(ctx context.Context, k int) (Layout, error) {
	l, _, err := read[Layout](ctx, j, At{}, LayoutPath(k))
	return l, err
}

// BranchFile reads a branch's own record; the error matches
// [store.ErrNotFound] if there is none.
func (j *Job) BranchFile(ctx context.Context, branch string) (BranchFile, error) {
	if err := CheckName("branch", branch); err != nil {
		return BranchFile{}, err
	}
	b, _, err := read[BranchFile](ctx, j, At{Branch: branch}, BranchPath(branch))
	return b, err
}

// Version reads a version's description by its hash.
func (j *Job) Version(ctx context.Context, hash string) (Version, error) {
	if err := CheckName("version", hash); err != nil {
		return Version{}, err
	}
	v, _, err := read[Version](ctx, j, At{}, VersionPath(hash))
	if err != nil {
		return v, err
	}
	if found, err := v.Hash(); err != nil || found != hash {
		return v, j.damaged(At{}, VersionPath(hash), "a version of the hash in its name", "one of hash "+found)
	}
	return v, nil
}

// PutVersion stores a version's description and returns its hash. Of builds of
// one version the first one's function names stay.
func (j *Job) PutVersion(ctx context.Context, v Version) (hash string, err error) {
	hash, _, err = j.putVersion(ctx, v)
	return hash, err
}

// putVersion is PutVersion, and returns what stands there.
func (j *Job) putVersion(ctx context.Context, v Version) (hash string, stands Version, err error) {
	v.Format = Format
	if hash, err = v.Hash(); err != nil {
		return "", v, err
	}
	if err := j.makeRecord(ctx, VersionPath(hash), v.encode); err != nil {
		return "", v, err
	}
	stands, err = j.Version(ctx, hash) // what stands there may be damaged
	return hash, stands, err
}

// Live reads the newest live record; ok is false while the job has none.
func (j *Job) Live(ctx context.Context) (record LiveRecord, ok bool, err error) {
	search := SearchHead(0, Epoch(j.lastLive.Load())) // they are never removed
	if err := j.search(ctx, search, func(n Epoch) string { return LivePath(Generation(n)) }); err != nil {
		return LiveRecord{}, false, err
	}
	newest, ok := search.Head()
	if !ok {
		return LiveRecord{}, false, nil
	}
	record, err = j.LiveRecord(ctx, Generation(newest))
	if err != nil {
		return LiveRecord{}, false, err
	}
	j.lastLive.Store(uint64(newest))
	return record, true, nil
}

// LiveRecord reads the live record of a generation; the error matches
// [store.ErrNotFound] if there is none.
func (j *Job) LiveRecord(ctx context.Context, n Generation) (LiveRecord, error) {
	r, _, err := read[LiveRecord](ctx, j, At{}, LivePath(n))
	switch {
	case err != nil:
	case r.N != n || r.JobID != j.file.JobID:
		err = j.damaged(At{}, LivePath(n), fmt.Sprintf("live record %d of job %s", n, j.file.JobID), fmt.Sprintf("live record %d of job %s", r.N, r.JobID))
	case CheckName("branch", r.Branch) != nil:
		err = j.damaged(At{}, LivePath(n), "the name of a branch", fmt.Sprintf("%q", r.Branch))
	}
	return r, err
}

// search asks the store what a search wants to know.
func (j *Job) search(ctx context.Context, s *HeadSearch, path func(Epoch) string) error {
	for name, more := s.Probe(); more; name, more = s.Probe() {
		present, err := j.store.Exists(ctx, j.Object(path(name)))
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		s.Answer(present)
	}
	return nil
}

// read reads an object by its path. The error matches [store.ErrNotFound] only
// if there is none: one that is damaged never reads as absent.
func read[T Stored](ctx context.Context, j *Job, at At, path string) (v T, hash string, err error) {
	data, err := j.store.Read(ctx, j.Object(path), MaxObject)
	if errors.Is(err, store.ErrTooLarge) {
		return v, "", j.damaged(at, path, fmt.Sprintf("at most %d bytes", MaxObject), "more")
	}
	if errors.Is(err, store.ErrNoFile) {
		return v, "", j.damaged(at, path, "a file", "something that is no regular file")
	}
	if err != nil {
		return v, "", fmt.Errorf("%s: %w", j.name, err)
	}
	v, err = Decode[T](data)
	if later := (*FormatError)(nil); errors.As(err, &later) {
		later.Object = j.Object(path)
		return v, "", later
	}
	if err != nil {
		return v, "", j.damaged(at, path, "an object as it was written", "that "+err.Error())
	}
	return v, Hash(data), nil
}

func (j *Job) damaged(at At, path, expected, found string) error {
	at.Job = j.name
	return &DamagedError{At: at, Object: j.Object(path), Expected: expected, Found: found}
}
