package vitals

import (
	"maps"
	"slices"
	"time"
)

// Snapshot is a copy of a [Board] at one moment. Totals count from the
// process's start.
type Snapshot struct {
	Identity Identity
	Role     Role
	RoleFor  time.Duration // since it has this role
	Uptime   time.Duration // since the board was made

	// Quiet is how long ago the run loop last gave a sign of life, and Waiting
	// what it waits for by right; empty while it doesn't.
	Quiet   time.Duration
	Waiting string

	// Last is the last commit, and LastAge how long ago it was. They are zero
	// while Epochs is 0.
	Last    Commit
	LastAge time.Duration

	Epochs           int64
	Records          int64
	DeadLetters      int64
	Bytes            int64            // of input
	Outputs          map[string]int64 // rows, by sink
	Late, Untimed    map[string]int64 // records, by operator
	Ahead            map[string]int64 // times, by event time
	RecordsPerSecond float64          // committed, over the last 10 seconds
	Pauses           Histogram        // of commits

	States     []State
	Partitions []PartitionLag
	Sinks      []Sink
	HotKeys    []HotKey

	MemoryInUse int64 // bytes
	MemoryLimit int64 // bytes; 0: none

	StoreCalls []StoreCalls // in the order of their operations
}

// PartitionLag is how far a partition is read, and how long what isn't has
// waited.
type PartitionLag struct {
	Partition
	// Waited is how long the oldest record that is not read has waited, as far
	// as this process can tell: since it first saw that the partition goes on
	// behind Next. What lay there before the process started has waited since
	// then. It is 0 when all is read.
	Waited time.Duration
	// Timed says that Waited is known. It isn't where the source can't tell its
	// end, nor for partitions beyond the first 1024.
	Timed bool
}

// Lag is how far Next is behind End, in offsets; 0 if the end isn't known.
func (p PartitionLag) Lag() int64 {
	if p.End < 0 {
		return 0
	}
	return max(0, p.End-p.Next)
}

// StoreCalls is the tally of one operation of the checkpoint store.
type StoreCalls struct {
	Operation string
	Errors    int64
	Durations Histogram // of all calls, those that failed among them
}

// Snapshot returns a copy of all that is noted, with rates and ages as of now.
func (b *Board) Snapshot() (s Snapshot) {
	b.note(func(now time.Time) {
		s = b.now
		s.RoleFor, s.Uptime, s.Quiet = since(now, b.roleAt), since(now, b.began), since(now, b.lifeAt)
		if s.Epochs > 0 {
			s.LastAge = since(now, b.commitAt)
		}
		s.RecordsPerSecond = b.records.perSecond(now, s.Records, s.Uptime)
		s.Last = s.Last.clone()
		s.Outputs, s.Late, s.Untimed, s.Ahead = maps.Clone(s.Outputs), maps.Clone(s.Late), maps.Clone(s.Untimed), maps.Clone(s.Ahead)
		s.Pauses = s.Pauses.clone()
		s.States = slices.Clone(s.States)
		s.Sinks = slices.Clone(s.Sinks)
		s.HotKeys = slices.Clone(s.HotKeys)
		s.Partitions = slices.Clone(s.Partitions)
		for i := range s.Partitions {
			p := &s.Partitions[i]
			if h := b.backlogs[partition{p.Source, p.Partition.Partition}]; h != nil && p.End >= 0 {
				p.Waited, p.Timed = h.waited(now, p.Next), true
			}
		}
		for _, operation := range slices.Sorted(maps.Keys(b.calls)) {
			c := *b.calls[operation]
			c.Durations = c.Durations.clone()
			s.StoreCalls = append(s.StoreCalls, c)
		}
	})
	return s
}

func (c Commit) clone() Commit {
	c.Outputs, c.Late, c.Untimed, c.Ahead = maps.Clone(c.Outputs), maps.Clone(c.Late), maps.Clone(c.Untimed), maps.Clone(c.Ahead)
	c.EventTimes, c.Operators = slices.Clone(c.EventTimes), slices.Clone(c.Operators)
	return c
}

// since is the time that has passed, never below 0: a clock without a
// monotonic reading may have stepped back.
func since(now, then time.Time) time.Duration { return max(0, now.Sub(then)) }
