package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
)

// Options are the settings of a run.
type Options struct {
	// Env is the world, Log the logger, Job the job's name, JobID its id, and
	// TransactionPrefix what begins the names of its transactions.
	Env                           *env.Env
	Log                           *slog.Logger
	Job, JobID, TransactionPrefix string
	// Workers decode; Shards own the state. Both are at least 1.
	Workers, Shards int
	// EpochEvery is the time after its first record at which an epoch closes;
	// 0: only when it is told to.
	EpochEvery time.Duration
	// EpochBytes bounds the bytes that an epoch reads, and those of its outputs.
	EpochBytes int64
	// BatchRecords and BatchBytes bound a batch.
	BatchRecords, BatchBytes int
	// EpochsInFlight bounds the epochs that are not committed yet, the one that
	// is being read included.
	EpochsInFlight int
	// DiscoverEvery is the time between two looks for new partitions.
	DiscoverEvery time.Duration
	// DeadLetters tells whether records that can't be processed are put out as
	// dead letters instead of stopping the job.
	DeadLetters bool
	// Skip are the records that are known to fail, by where they stand.
	Skip map[RecordID]*RecordError
	// Offsets are where to read on, by source and partition.
	Offsets map[string]map[string]connector.Offset
	// Admit is called before an epoch is opened, and waits while that has to
	// wait. Nil: never.
	Admit func(ctx context.Context) error
	// Now, if set, is the least value of the first epoch's clock.
	Now int64
	// Watermarks are how far the times of records have come, by event time.
	Watermarks map[string]epoch.EventTime
	// Windows are how far windows have come, by operator.
	Windows map[string]epoch.Windows
	// Until, if not nil, are the offsets up to which a run reads by itself, and ends.
	Until Until
	// Advance is to where watermarks are moved, by event time, in an epoch behind all that
	// is read, with which a run that reads to somewhere ends.
	Advance map[string]epoch.Moment
	// Followed are the sources that a branch has which this run follows.
	Followed map[string]bool
}

// headsKept bounds the heads of batches that are kept for being used again: more
// than an epoch of a second has at a million records.
const headsKept = 1024

// RecordID is where a record stands.
type RecordID struct {
	Source, Partition string
	Offset            int64
}

// Run is a graph at work.
type Run struct {
	o      Options
	graph  *Graph
	shards int
	stages []*stageRun
	tables [][]tableHandle // by state, by shard

	work    chan job
	epochs  chan *Epoch
	open    chan struct{} // a token for each epoch that is not committed
	changes freeList[*state.Changes]
	rows    freeList[*outbox.Rows]
	batches freeList[*connector.Batch]
	heads   freeList[*batch]

	quit    chan struct{}
	stop    sync.Once
	err     error
	running sync.WaitGroup
	input   *input

	following *sequencer // of a run that follows

	marksMu sync.Mutex
	marks   *watermarks // as of the last epoch that was asked about
	marked  int         // the number of these

	stopping chan struct{}
	stopOnce sync.Once

	forgets  *forgetQueue
	rewrites *rewriteQueue
	untils   chan untilAsked // has room for one
}

// NewRun makes a run of a graph that was built. It does nothing before Start.
func NewRun(g *Graph, o Options) (*Run, error) {
	r := &Run{
		o: o, graph: g, shards: o.Shards,
		work:    make(chan job, o.Workers),
		epochs:  make(chan *Epoch, o.EpochsInFlight),
		open:    make(chan struct{}, o.EpochsInFlight),
		changes: newFreeList[*state.Changes](2 * o.Shards * len(g.states)),
		rows:    newFreeList[*outbox.Rows](4 * (o.Shards + o.Workers) * len(g.sinks)),
		batches: newFreeList[*connector.Batch](4 * o.Workers),
		heads:   newFreeList[*batch](headsKept),
		quit:    make(chan struct{}),
		tables:  make([][]tableHandle, len(g.states)),

		stopping: make(chan struct{}),
		forgets:  &forgetQueue{more: make(chan struct{}, 1)},
		rewrites: newRewriteQueue(),
		untils:   make(chan untilAsked, 1),
	}
	if o.BatchRecords > maxBatchRecords {
		return nil, fmt.Errorf("a batch holds at most %d records; %d were asked for", maxBatchRecords, o.BatchRecords)
	}
	if g.Timed() {
		r.marks = newWatermarks(g.times, o.Watermarks)
	}
	for i := range r.tables {
		r.tables[i] = make([]tableHandle, r.shards)
	}
	for _, spec := range g.stages {
		s := &stageRun{run: r, spec: spec, ofEnd: 1}
		for _, origin := range spec.origins {
			if origin == 0 {
				s.ofBatch += spec.lanes
			} else {
				s.ofBatch += spec.lanes * r.shards
				s.ofEnd += spec.lanes * r.shards
			}
		}
		r.stages = append(r.stages, s)
	}
	for _, s := range r.stages {
		for n := range r.shards {
			in := &Instance{run: r, stage: s.spec.id, shard: n, parts: map[part]any{}}
			sh := &shard{stage: s, in: in, inbox: make(chan message, inboxSize), waiting: map[uint64]*assembly{}}
			if g.Timed() {
				sh.marks = newWatermarks(g.times, o.Watermarks)
				in.mark, in.clock = sh.marks.least(s.spec.times), o.Now
			}
			sh.lanes = s.spec.start(in)
			sh.noteTick()
			s.shards = append(s.shards, sh)
			for _, t := range in.tables {
				r.tables[t.number()][n] = t
			}
		}
	}
	return r, nil
}

// Open opens the sources, and tells where partitions that Options.Offsets lack
// begin: Start may be called once that is kept.
func (r *Run) Open(ctx context.Context) (found map[string]map[string]connector.Offset, err error) {
	in, err := openInput(ctx, r)
	if err != nil {
		return nil, err
	}
	r.input = in
	found = in.found()
	offsets := maps.Clone(r.o.Offsets)
	if offsets == nil {
		offsets = map[string]map[string]connector.Offset{}
	}
	for source, parts := range found {
		offsets[source] = maps.Clone(offsets[source])
		if offsets[source] == nil {
			offsets[source] = map[string]connector.Offset{}
		}
		maps.Copy(offsets[source], parts)
	}
	r.o.Offsets = offsets
	return found, nil
}

// Start begins to read and to process, after Open. Epochs come out of
// [Run.Epochs] until the input ends or [Run.Stop] is called.
func (r *Run) Start(ctx context.Context) {
	r.startProcessing()
	r.goes(func() error { return r.sequence(ctx) })
}

// Groups are the sources whose systems keep how far they have been read, by name.
func (r *Run) Groups() map[string]connector.GroupReader {
	out := map[string]connector.GroupReader{}
	for _, s := range r.input.sources {
		if g, ok := s.reader.(connector.GroupReader); ok {
			out[s.spec.name] = g
		}
	}
	return out
}

func (r *Run) startProcessing() {
	for _, s := range r.stages {
		for _, sh := range s.shards {
			r.goes(sh.loop)
		}
	}
	for range r.o.Workers {
		r.goes(newWorker(r).loop)
	}
}

// goes runs f as a part of the run; if it fails, the run ends.
func (r *Run) goes(f func() error) {
	r.running.Go(func() {
		if err := f(); err != nil {
			r.abort(err)
		}
	})
}

// abort ends the run at once.
func (r *Run) abort(err error) {
	r.stop.Do(func() {
		r.err = err
		close(r.quit)
	})
}

// Epochs gives the epochs in their order, each as soon as it is closed; it is
// complete when its Done is closed. The channel is closed when the input has
// ended, or the run.
func (r *Run) Epochs() <-chan *Epoch { return r.epochs }

// Quit is closed when the run has ended.
func (r *Run) Quit() <-chan struct{} { return r.quit }

// Wait ends the run, waits until nothing of it runs any more, and returns the error that
// ended it, if any. The sources stay open.
func (r *Run) Wait() error {
	r.abort(nil)
	r.running.Wait()
	return r.err
}

// Close ends the run, waits for all that belongs to it, and returns the error
// that ended it, if any.
func (r *Run) Close() error {
	r.abort(nil)
	if r.input != nil {
		r.input.close()
	}
	r.running.Wait()
	return r.err
}

// Load returns the functions that put a state's stored entries into each
// shard's table. stored are the schemas that the entries were written with,
// rows about how many there are.
func (r *Run) Load(number int, stored state.Form, rows int64) (func(part int) func(*state.Entry) error, error) {
	for _, t := range r.tables[number] {
		if err := t.resolve(stored.Value); err != nil {
			return nil, err
		}
		t.reserve(rows/int64(r.shards) + 1)
	}
	return func(part int) func(*state.Entry) error { return r.tables[number][part].load }, nil
}

// Loaded ends the loading of a state.
func (r *Run) Loaded(number int) {
	for _, t := range r.tables[number] {
		t.loaded()
	}
	for _, s := range r.stages {
		for _, sh := range s.shards {
			sh.noteTick()
		}
	}
}

// Entries is the number of entries of a state in memory, as of the last epoch's
// end.
func (r *Run) Entries(number int) (n int64) {
	for _, t := range r.tables[number] {
		n += t.held()
	}
	return n
}

// Slots are the slots of each shard.
func (r *Run) Slots() []epoch.Slots {
	out := make([]epoch.Slots, r.shards)
	for i := range out {
		out[i] = SlotsOf(i, r.shards)
	}
	return out
}

// EntrySize is what an entry of a state takes in memory, besides what it
// points to, in bytes.
func (s *StateSpec) EntrySize() int { return s.entrySize }
