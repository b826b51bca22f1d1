// Package runner runs a job: it takes the branch, loads the state, starts the
// engine, and commits and delivers what comes of it.
package runner

import (
	"log/slog"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/vitals"
	"github.com/sluicestream/sluice/store"
)

// Options are a job and how it is to run. Zero values mean the defaults, which
// the root package documents.
type Options struct {
	Env   *env.Env
	Log   *slog.Logger
	Store store.Store
	Job   string
	Graph *engine.Graph
	// DeadLetters tells whether the job has a sink for them.
	DeadLetters bool
	// Version describes the job, Build is the executable.
	Version epoch.Version
	Build   epoch.Build
	// Workers, Shards, EpochEvery, EpochBytes, BatchRecords and BatchBytes are
	// the engine's.
	Workers, Shards          int
	EpochEvery               time.Duration
	EpochBytes               int64
	BatchRecords, BatchBytes int
	// Grace is how long deliveries may take once the job is to stop.
	Grace time.Duration
	// Drop names what may be dropped: a state, or a field of one.
	Drop []string
	// SetAside names files, by state, for entries that can't be carried over.
	SetAside map[string]string
	// Gap names sinks that may go on after an absence, without what they did not
	// get in it.
	Gap []string
	// Rewrite says, by sink, what is to be written anew of tables' sinks at a change: an
	// upgrade, a rollback, or another version in place.
	Rewrite map[string]epoch.RewriteMode
	// TransactionPrefix begins the names of the job's transactions; empty: as it
	// was made.
	TransactionPrefix string
	// Follow, if not nil, begins a branch that follows the live one and takes its place.
	Follow *Following
	// ResumeAfter is how long a branch that was sealed may have no successor before this
	// process makes one.
	ResumeAfter time.Duration
	// AbandonAfter is how long a branch that follows may give no sign of life before it
	// is given up; 0: for ever.
	AbandonAfter time.Duration
	// FollowAfterCut goes on following, on a new branch, once another build is live;
	// WaitSuperseded waits then until ctx ends, instead of ending with an error at once.
	FollowAfterCut, WaitSuperseded bool
	// known is the newest request that was seen in the life before.
	known uint64
	// ResumeNow says that a person wants that at once.
	ResumeNow bool
	// Replace runs this build although it was replaced by another.
	Replace bool
	// Lease is how long an owner may give no sign of life before a start takes
	// over; it gives one itself three times in that time. TakeOver does not wait.
	Lease    time.Duration
	TakeOver bool
	// Keep and KeepEpochs are for how long, and how many, epochs are kept at
	// least. Below 0 epochs nothing is cleaned up.
	Keep       time.Duration
	KeepEpochs int
	// Savepoints are made by a schedule.
	Savepoints []epoch.Schedule
	// Limit is the memory that the process may have; 0 bytes: not known.
	Limit memory.Limit
	// Board is where the run notes how it is.
	Board *vitals.Board
	// Volatile allows a store that forgets what was synced when the machine stops.
	Volatile bool
	// Asked, if not nil, is told what was asked of the job, and by whom.
	Asked func(what, by string)
	// Committed, if not nil, is told of each epoch that was committed, and how
	// far the partitions have been read, and of the longest time for which a shard
	// took no record because of the epoch's end.
	Committed func(m epoch.Manifest, lag []engine.PartitionLag, pause time.Duration)
}

// Bounds that nobody has had to change yet.
const (
	// epochsInFlight: one is being read, one is being encoded, one is being
	// written. More would only let a slow store take more memory.
	epochsInFlight = 3
	// undelivered is the number of epochs that may be owed to a sink before the
	// reading waits for it.
	undelivered = 100
	// segmentsAtMost is the number of segments per state that a restore has to
	// read at the most. Reading waits for the merges before that is passed.
	segmentsAtMost = 12
	// slowFrom is the number of segments from which on epochs are opened at half
	// the pace, so that merges catch up before reading has to stop.
	slowFrom = 10
	// notedAfter is the time within which deliveries are noted in the log if no
	// epoch comes by.
	notedAfter = time.Second
	// storeTries is how often an object is tried to be written, with a pause
	// that doubles from firstPause.
	storeTries = 6
	firstPause = 100 * time.Millisecond
	// groupsWithin is how long it may take to tell a source's system how far the
	// job has read.
	groupsWithin = 10 * time.Second
	// discoverEvery is the time between two looks for new partitions.
	discoverEvery = time.Second
)

func (o *Options) engineOptions() engine.Options {
	return engine.Options{
		Env: o.Env, Log: o.Log, Job: o.Job, Workers: o.Workers, Shards: o.Shards,
		EpochEvery: o.EpochEvery, EpochBytes: o.EpochBytes,
		BatchRecords: o.BatchRecords, BatchBytes: o.BatchBytes,
		EpochsInFlight: epochsInFlight, DiscoverEvery: discoverEvery, DeadLetters: o.DeadLetters,
	}
}
