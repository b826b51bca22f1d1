package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
)

// Epoch is one step of a run: inputs in the order in which they were read, and
// what came of them. It is complete once Done is closed; what it holds is to be
// read after that, and given back with [Run.Release].
type Epoch struct {
	// Now is the frozen clock, in microseconds since 1970 UTC.
	Now int64
	// Runs is the order of reading.
	Runs []epoch.Run
	// Covered are the epochs of another branch that this one covers, and Steps how
	// they lie in Runs, if there is more than one.
	Covered []epoch.Manifest
	Steps   []epoch.Step
	// Reached, if not nil, is the epoch of the other branch whose offsets this one has
	// come to by itself.
	Reached *epoch.Manifest
	// Edits are the entries that were deleted by request before the first record, and
	// Request is the newest of the requests; 0: none. If they are a part of one only,
	// behind which others come, EditsOf is that request, and Request is 0.
	Edits            []epoch.Edit
	Request, EditsOf uint64
	// Rewritten is the part of a table's sink that was written anew; nil: none.
	Rewritten *Rewriting
	// Idle are the partitions, by event time, that held no watermark back; see
	// [epoch.Manifest].
	Idle map[string][]string
	// Advanced is to where watermarks were moved when it began, by event time.
	Advanced map[string]epoch.Moment
	// Offsets are where the partitions of each source stand at the epoch's end.
	Offsets map[string]map[string]connector.Offset
	// Records, DeadLetters and Bytes count what was read, what of it went to
	// the dead letters, and the bytes of the records' values.
	Records, DeadLetters, Bytes atomic.Int64
	// Forgotten counts the entries that the edits have met, each element by itself.
	Forgotten atomic.Int64
	// Done is closed when all of the epoch has been processed and encoded.
	Done chan struct{}

	run     *Run
	batches []*batch
	pending atomic.Int64 // batches and shards that are not done
	changes [][]*state.Changes
	outputs []output
	frozen  atomic.Int64 // bytes of the outputs
	counts  timeCounts
	pause   atomic.Int64 // longest of a shard, in nanoseconds
}

// Pause is the longest time for which a shard took no record because the epoch
// ended: what it then does at once, or a slice of its encoding.
func (e *Epoch) Pause() time.Duration { return time.Duration(e.pause.Load()) }

// paused notes that a shard took no record since then.
func (e *Epoch) paused(since time.Time) {
	took := int64(e.run.o.Env.Clock.Now().Sub(since))
	for {
		longest := e.pause.Load()
		if took <= longest || e.pause.CompareAndSwap(longest, took) {
			return
		}
	}
}

// output is what an epoch puts out to one sink.
type output struct {
	mu     sync.Mutex
	pieces []outputPiece
}

func (r *Run) newEpoch(now int64) *Epoch {
	e := &Epoch{Now: now, run: r, Done: make(chan struct{}), outputs: make([]output, len(r.graph.sinks))}
	e.counts.ahead = make([]atomic.Int64, len(r.graph.times))
	e.changes = make([][]*state.Changes, len(r.graph.states))
	for i := range e.changes {
		e.changes[i] = make([]*state.Changes, r.shards)
	}
	e.pending.Store(1) // the sequencer's own, until the epoch is closed
	return e
}

// finish notes that one batch, shard or the sequencer is done with the epoch.
func (e *Epoch) finish() {
	if e.pending.Add(-1) == 0 {
		close(e.Done)
	}
}

func (e *Epoch) addChanges(state, shard int, c *state.Changes) { e.changes[state][shard] = c }

func (e *Epoch) addRows(sink int, p outputPiece) {
	if len(p.rows.Refs) == 0 {
		e.run.rows.put(p.rows)
		return
	}
	e.frozen.Add(int64(len(p.rows.Buf)))
	o := &e.outputs[sink]
	o.mu.Lock()
	o.pieces = append(o.pieces, p)
	o.mu.Unlock()
}

// Changes returns what the epoch changed in the state of the given number, by
// shard.
func (e *Epoch) Changes(state int) []*state.Changes { return e.changes[state] }

// Rows returns what the epoch puts out to the sink of the given number: for a
// stream, in the order in which it is to be put out, for a table in none.
func (e *Epoch) Rows(sink int) []outbox.Batch {
	pieces := e.outputs[sink].pieces
	out := make([]outbox.Batch, len(pieces))
	for i, p := range pieces {
		out[i] = outbox.Batch{Seq: p.seq, Rows: p.rows}
	}
	return out
}

// Release gives the epoch's memory back to the run, and lets another epoch be
// opened. It is called once the epoch is committed.
func (r *Run) Release(e *Epoch) {
	for _, shards := range e.changes {
		for _, c := range shards {
			if c != nil {
				c.Reset()
				r.changes.put(c)
			}
		}
	}
	for i := range e.outputs {
		for _, p := range e.outputs[i].pieces {
			p.rows.Reset()
			r.rows.put(p.rows)
		}
	}
	for _, b := range e.batches {
		r.heads.put(b)
	}
	e.changes, e.outputs, e.batches = nil, nil, nil
	<-r.open
}
