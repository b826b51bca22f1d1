// Package clean removes from a checkpoint store what no epoch that is kept
// refers to: rules G1 to G8 of the protocol, whose decisions are those of
// package epoch. It may run anywhere, while the job runs and while it doesn't,
// twice at once, and be stopped at any moment: every step may be repeated.
package clean

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
)

// What is kept unless something else is said.
const (
	DefaultKeep       = 10 * time.Minute
	DefaultKeepEpochs = 100
)

// PauseEvery is the number of removals between two calls of [Options.Pause].
const PauseEvery = 100

// Options say what is kept, and who is told.
type Options struct {
	// Keep is how old an epoch may be, reckoned from its log's newest, before it
	// may go. Defaults to [DefaultKeep]; less than 0 keeps none by its age.
	Keep time.Duration
	// KeepEpochs is how many of a log's newest epochs are kept whatever their
	// age. Defaults to [DefaultKeepEpochs].
	KeepEpochs int
	// DryRun decides and counts, and neither removes nor writes anything.
	DryRun bool
	// Log is told, at its debug level, of each clean-up that removed something.
	// Defaults to none.
	Log *slog.Logger
	// Pause, if there is one, is called after each [PauseEvery] removals: who
	// cleans up beside work that must not suffer waits in it.
	Pause func(ctx context.Context) error
	// Progress, if there is one, is told now and then what has gone from the log
	// that is being cleaned up.
	Progress func(branch, task string, sofar Result)
}

// Result is what a clean-up did, or would do.
type Result struct {
	// Floor is the oldest epoch that is kept; [epoch.AllEpochs] if the log is
	// gone. For several logs it is that of the live branch.
	Floor epoch.Epoch
	// Manifests and Objects are how many were removed, Bytes the size of the
	// data objects among them.
	Manifests, Objects int64
	Bytes              int64
	Left               Left
}

// Left is how many epochs are left, by what keeps them.
type Left struct {
	// Kept are kept by their age and number, Owed besides those for deliveries,
	// Followed besides those for branches that follow, Pinned under the floor
	// for pins and savepoints.
	Kept, Owed, Followed, Pinned int64
}

// again adds a later clean-up of the same log.
func (r *Result) again(s Result) {
	r.Left = Left{}
	r.add(s)
	r.Floor = s.Floor
}

// add adds another log's.
func (r *Result) add(s Result) {
	r.Manifests += s.Manifests
	r.Objects += s.Objects
	r.Bytes += s.Bytes
	r.Left.Kept += s.Left.Kept
	r.Left.Owed += s.Left.Owed
	r.Left.Followed += s.Left.Followed
	r.Left.Pinned += s.Left.Pinned
}

// Cleaner cleans up a job's logs. It remembers what the manifests that are kept
// refer to, so that each is read about once: some hundred bytes for each object
// that they keep. Its methods may be called from many goroutines, and wait for
// each other.
type Cleaner struct {
	job *epoch.Job
	o   Options

	mu       sync.Mutex
	logs     map[place]*index
	branches map[string]branchFile
	layouts  map[int][]string
	live     map[epoch.Generation]epoch.LiveRecord
}

// place is a log of a job.
type place struct{ branch, task string }

// New returns a cleaner of a job's logs.
func New(job *epoch.Job, o Options) *Cleaner {
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.KeepEpochs == 0 {
		o.KeepEpochs = DefaultKeepEpochs
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Cleaner{
		job: job, o: o, logs: map[place]*index{}, branches: map[string]branchFile{},
		layouts: map[int][]string{}, live: map[epoch.Generation]epoch.LiveRecord{},
	}
}

// Log cleans up the log of one task of a branch. If it fails half way nothing
// that is needed has gone, and the next one goes on.
func (c *Cleaner) Log(ctx context.Context, branch, task string) (Result, error) {
	for what, name := range map[string]string{"branch": branch, "task": task} {
		if err := epoch.CheckName(what, name); err != nil {
			return Result{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &run{c: c, job: c.job, at: place{branch, task}, ix: c.index(place{branch, task})}
	err := r.run(ctx)
	if err != nil {
		err = fmt.Errorf("%s: branch %s, task %s: the clean-up stopped, and has removed nothing that is needed; `sluice gc %s` goes on once this is mended: %w", c.job.Name(), branch, task, c.job.Name(), err)
	}
	if r.result.Manifests+r.result.Objects > 0 && !c.o.DryRun {
		c.o.Log.Debug("cleaned up", "branch", branch, "task", task, "floor", r.result.Floor,
			"manifests", r.result.Manifests, "objects", r.result.Objects, "bytes", r.result.Bytes)
	}
	return r.result, err
}

// All cleans up every log of the job.
func (c *Cleaner) All(ctx context.Context) (Result, error) {
	return c.Each(ctx, func(branch, task string, r Result) {})
}

// Each cleans up every log of the job, and tells what came of each that wasn't
// gone before.
func (c *Cleaner) Each(ctx context.Context, done func(branch, task string, r Result)) (Result, error) {
	var sum Result
	logs, err := c.allLogs(ctx)
	if err != nil {
		return sum, err
	}
	// What one log lets go may be another's, so that each gets a second turn.
	results := make([]Result, len(logs))
	for range min(len(logs), 2) {
		for i, at := range logs {
			r, err := c.Log(ctx, at.branch, at.task)
			if c.o.DryRun {
				results[i] = Result{}
			}
			results[i].again(r)
			if err != nil {
				sum.add(r)
				return sum, err
			}
		}
	}
	live, haveLive, err := c.job.Live(ctx)
	if err != nil {
		return sum, err
	}
	for i, at := range logs {
		sum.add(results[i])
		if at.branch == live.Branch || !haveLive && at.branch == epoch.MainBranch {
			sum.Floor = results[i].Floor
		}
		if results[i] != (Result{Floor: epoch.AllEpochs}) {
			done(at.branch, at.task, results[i])
		}
	}
	return sum, nil
}

func (c *Cleaner) allLogs(ctx context.Context) ([]place, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places(ctx)
}

func (c *Cleaner) retention() epoch.Retention {
	return epoch.Retention{Micros: c.o.Keep.Microseconds(), Epochs: epoch.Epoch(max(c.o.KeepEpochs, 1))}
}
