package vitals

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicestream/sluice/env"
)

const (
	// maxPartitions bounds the partitions whose history is kept, at 2 KiB each.
	// Those beyond have a lag in offsets, but none in seconds.
	maxPartitions = 1024

	// maxOperations bounds the names of store operations; further ones share
	// the name "other", so that a name made of data can't fill the memory.
	maxOperations = 32
)

// Board is where a running job notes how it is. All methods may be called from
// many goroutines at once; what they are given is copied. Make one with [New].
type Board struct {
	clock env.Clock

	mu       sync.Mutex
	began    time.Time
	roleAt   time.Time
	lifeAt   time.Time
	commitAt time.Time // zero before the first commit
	now      Snapshot  // without what is derived when it is read
	records  rate
	backlogs map[partition]*backlog
	calls    map[string]*StoreCalls
}

// partition is the name of a partition.
type partition struct{ source, partition string }

// New returns a board of a job that is [Starting].
func New(clock env.Clock) *Board {
	now := clock.Now()
	return &Board{
		clock: clock, began: now, roleAt: now, lifeAt: now,
		now: Snapshot{
			Role:    Starting,
			Outputs: map[string]int64{},
			Late:    map[string]int64{}, Untimed: map[string]int64{}, Ahead: map[string]int64{},
			Pauses: newHistogram(pauseBounds()),
		},
		backlogs: map[partition]*backlog{},
		calls:    map[string]*StoreCalls{},
	}
}

// note runs f under the lock, with the time.
func (b *Board) note(f func(now time.Time)) {
	now := b.clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	f(now)
}

// SetRole notes what the process is to its job now. It is a sign of life.
func (b *Board) SetRole(r Role) {
	b.note(func(now time.Time) {
		if r != b.now.Role {
			b.now.Role, b.roleAt = r, now
		}
		b.alive(now)
	})
}

// SetIdentity notes which job this is, and which process runs it.
func (b *Board) SetIdentity(id Identity) {
	b.note(func(time.Time) { b.now.Identity = id })
}

// Alive notes a sign of life of the run loop: it still goes round. What the
// loop notes otherwise (its role, commits, partitions) is one too.
func (b *Board) Alive() {
	b.note(b.alive)
}

// alive notes a sign of life, and so ends a wait.
func (b *Board) alive(now time.Time) { b.lifeAt, b.now.Waiting = now, "" }

// Wait notes that the run loop waits by right, for as long as it takes, and for
// what: "the store has no room". The next sign of life ends it.
func (b *Board) Wait(reason string) {
	b.note(func(now time.Time) {
		b.alive(now)
		b.now.Waiting = reason
	})
}

// Committed notes one epoch's commit. It is a sign of life.
func (b *Board) Committed(c Commit) {
	b.note(func(now time.Time) {
		c = c.clone()
		s := &b.now
		s.Last, b.commitAt = c, now
		s.Epochs++
		s.Records += c.Records
		s.DeadLetters += c.DeadLetters
		s.Bytes += c.Bytes
		for _, total := range []struct{ of, more map[string]int64 }{{s.Outputs, c.Outputs}, {s.Late, c.Late}, {s.Untimed, c.Untimed}, {s.Ahead, c.Ahead}} {
			for name, n := range total.more {
				total.of[name] += n
			}
		}
		s.Pauses.add(c.Pause)
		b.records.add(now, s.Records)
		b.alive(now)
	})
}

// SetStates notes what the states take, in place of what was noted before.
func (b *Board) SetStates(states []State) {
	b.note(func(time.Time) { b.now.States = slices.Clone(states) })
}

// SetPartitions notes how far all partitions are read, in place of what was
// noted before. It is to be called about once a second and at each commit: the
// lag in seconds is as exact as that. It is a sign of life.
func (b *Board) SetPartitions(partitions []Partition) {
	b.note(func(now time.Time) {
		b.now.Partitions = make([]PartitionLag, len(partitions))
		there := make(map[partition]bool, len(partitions))
		for i, p := range partitions {
			b.now.Partitions[i].Partition = p
			there[partition{p.Source, p.Partition}] = true
		}
		maps.DeleteFunc(b.backlogs, func(name partition, _ *backlog) bool { return !there[name] })
		for _, p := range partitions {
			b.backlogOf(partition{p.Source, p.Partition}).see(now, p.Next, p.End)
		}
		b.alive(now)
	})
}

// backlogOf is a partition's history: one that isn't kept, if there are too
// many.
func (b *Board) backlogOf(name partition) *backlog {
	h := b.backlogs[name]
	if h == nil {
		h = &backlog{}
		if len(b.backlogs) < maxPartitions {
			b.backlogs[name] = h
		}
	}
	return h
}

// SetSinks notes how far the sinks have come, in place of what was noted
// before.
func (b *Board) SetSinks(sinks []Sink) {
	b.note(func(time.Time) { b.now.Sinks = slices.Clone(sinks) })
}

// SetHotKeys notes the keys that take the largest shares, in place of what was
// noted before.
func (b *Board) SetHotKeys(keys []HotKey) {
	b.note(func(time.Time) { b.now.HotKeys = slices.Clone(keys) })
}

// SetMemory notes how many bytes of memory the process uses, and how many it
// may; a limit of 0 is none.
func (b *Board) SetMemory(inUse, limit int64) {
	b.note(func(time.Time) { b.now.MemoryInUse, b.now.MemoryLimit = inUse, limit })
}

// StoreCall notes one call of the checkpoint store: which operation it was
// ("create", "read"), how long it took, and its error. An operation's name is
// one of a few, never made of data. While a process starts, stands by or
// restores, a call without an error is a sign of life.
func (b *Board) StoreCall(operation string, d time.Duration, err error) {
	b.note(func(now time.Time) {
		c := b.callsOf(operation)
		c.Durations.add(d)
		if err != nil {
			c.Errors++
			return
		}
		switch b.now.Role {
		case Starting, Standby, Restoring:
			b.alive(now)
		}
	})
}

// callsOf is the tally of an operation.
func (b *Board) callsOf(operation string) *StoreCalls {
	c := b.calls[operation]
	if c == nil && len(b.calls) >= maxOperations {
		operation = "other"
		c = b.calls[operation]
	}
	if c == nil {
		c = &StoreCalls{Operation: operation, Durations: newHistogram(callBounds())}
		b.calls[operation] = c
	}
	return c
}
