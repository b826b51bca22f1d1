package sluice

import (
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// Options are how a job is to run. The zero value runs it with the defaults.
type Options struct {
	// Store holds everything durable of the job. Defaults to the folder
	// sluice-data in the working directory.
	Store store.Store
	// Epoch is the time after its first record at which an epoch is closed and
	// committed. Defaults to 1 s.
	Epoch time.Duration
	// EpochBytes bounds the bytes that an epoch reads, and those of its outputs.
	// Defaults to 256 MiB.
	EpochBytes int64
	// BatchRecords bounds a batch, as does BatchBytes by the bytes of its
	// records. They default to 2,048 records and 1 MiB.
	BatchRecords, BatchBytes int
	// Shards is the number of goroutines that own the state, Workers of those
	// that decode, at most 1,024 each. They default to GOMAXPROCS. Results do not
	// depend on them.
	Shards, Workers int
	// Grace is how long deliveries may take once the job is to stop. Defaults to
	// 20 s.
	Grace time.Duration
	// SetAside names files, by state, that entries are written to which a
	// migration can't carry over, as lines of JSON with their keys, values and
	// errors; they are no part of the state then. A state without a file is not
	// migrated if an entry fails. A file of another migration is not written over.
	SetAside map[string]string
	// Drop names the states, and fields of states (as "state.Field"), whose
	// stored data this build may drop.
	Drop []string
	// Gap names sinks that this build has again after builds that lacked them, and
	// that may go on without what they did not get meanwhile.
	Gap []string
	// Rewrite says which tables' sinks are written anew at a change, by name: an
	// upgrade, a rollback, a fresh start, or another version of the job in place.
	// "touched" writes a row when its key changes next, so that others stay as the
	// version before has written them; "all" writes all rows bit by bit, and deletes
	// those of keys that the table lacks; "changed" does so and leaves out rows that
	// the sink has already, where it can see them, as PostgreSQL. Defaults to touched,
	// at a rollback to all. Where nothing changes it does nothing.
	Rewrite map[string]string
	// Replace runs this build although the job has been taken over by another
	// build since it ran last.
	Replace bool
	// TransactionPrefix begins the names of the job's transactions, where a sink has
	// such: Kafka's transactional ids. It is fixed when the job runs first. Defaults
	// to the job's name and a slash.
	TransactionPrefix string
	// Lease is how long a process that runs the job may give no sign of life
	// before another one that stands by takes over; one that is known to be gone
	// is not waited for. Defaults to 10 s; 100 ms is the least.
	Lease time.Duration
	// Standby follows the live branch, if another process runs the job, and takes its place
	// once that gives no sign of life for a lease: what it has in memory then is what the
	// other had. Defaults to waiting without following.
	Standby bool
	// Fresh begins the job anew, with an empty state and another branch, which is live at
	// once; the old branch is kept. A build that has done so before and runs the job still
	// goes on instead, since a supervisor repeats what it starts. FreshFrom is where it begins, as [Upgrade].From has it:
	// earliest, latest or a time. RepeatOutputs names sinks that are appended to and may get
	// outputs again that they have: otherwise a place before what the job has read is refused.
	Fresh         bool
	FreshFrom     string
	RepeatOutputs []string
	// AbandonAfter is how long a branch that is to replace this one may give no sign of
	// life before it is given up: it holds clean-up back until then. Defaults to 7 days;
	// below 0: for ever.
	AbandonAfter time.Duration
	// FollowAfterCut goes on, once another build is live, by following it on a new branch,
	// so that going back takes a moment. WaitSuperseded has Run wait until its context
	// ends before it returns the error that says so.
	FollowAfterCut, WaitSuperseded bool
	// Resume goes on behind a branch that was sealed and has no successor, at once.
	Resume bool
	// ResumeAfter is how long a branch that was sealed may have no successor before
	// this process goes on with one. Defaults to 1 minute.
	ResumeAfter time.Duration
	// TakeOver takes the job over from a process that runs it, without waiting;
	// that one stops with an error. Of two that do so at once one stands by.
	TakeOver bool
	// Keep is for how long epochs are kept, and KeepEpochs how many at the least;
	// older ones go, but for what savepoints and pending deliveries need. They
	// default to 10 minutes and 100. Below 0 epochs nothing is cleaned up.
	Keep       time.Duration
	KeepEpochs int
	// Savepoints are made by schedule, such as "hourly=24,daily=7": of the first epoch
	// in each full hour, day or week in UTC, or of a duration as "10m=6"; the number
	// is how many are kept. Those that the schedule did not make stay. Defaults to
	// none.
	Savepoints string
	// MemoryLimit is the memory that the process may use, in bytes: a state that
	// can't fit is refused, and a limit that comes near is logged. Defaults to the
	// least of what the cgroup, GOMEMLIMIT and the machine allow.
	MemoryLimit int64
	// Volatile allows a store on a file system that forgets what was synced when
	// the machine stops, such as one in memory.
	Volatile bool
	// Listener, if set, is where metrics (/metrics), health (/healthz, /readyz)
	// and profiles (/debug/pprof/) are served while the job runs or stands by. Run
	// closes it. Who can reach it can see what the job does, so listen on localhost
	// unless a network is trusted.
	Listener net.Listener
	// Metrics, if set, gets the job's metrics while it runs: each carries a label
	// with the job's name.
	Metrics prometheus.Registerer
	// Asked, if set, is told when the job is asked to stop through the store: by
	// whom, and whether it is to read what there is before ("drain" or "stop").
	Asked func(what, by string)
	// Log gets what the job has to say. Defaults to slog.Default.
	Log *slog.Logger
	// Env is the world. Defaults to [env.Real].
	Env *env.Env
	// Committed, if set, is told of each epoch that was committed.
	Committed func(Committed)
}
