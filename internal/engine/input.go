package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// input reads the partitions of all sources, each in a goroutine of its own.
type input struct {
	run      *Run
	ctx      context.Context
	cancel   context.CancelFunc
	sources  []*openSource
	arrivals chan arrival
	reading  sync.WaitGroup

	mu     sync.Mutex // guards ctx and cancel while the reading begins once more
	closed bool
}

type openSource struct {
	number  int
	spec    *sourceSpec
	reader  connector.Reader
	mu      sync.Mutex
	parts   map[string]*openPartition
	bounded bool
}

type openPartition struct {
	source *openSource
	name   string
	from   connector.Offset // where reading begins
	part   connector.Partition
	read   atomic.Int64 // offset behind what was sequenced
	until  int64        // nothing from here on is read; -1: all is

	// Since when it has been seen read to its end, and where that was.
	quiet   time.Time
	quietAt int64
}

// arrival is what a reader has for the sequencer: of a new partition first that it
// is there.
type arrival struct {
	part  *openPartition
	batch *connector.Batch
	bytes int64
	found bool
	ended bool
	err   error
}

// openInput opens the sources, and each partition at the offset where it is to
// be read on: what has changed under the job's feet is found before any record
// is read.
func openInput(ctx context.Context, r *Run) (*input, error) {
	in := &input{run: r, arrivals: make(chan arrival, r.o.Workers)}
	in.ctx, in.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for i, spec := range r.graph.sources {
		reader, err := spec.open(ctx, r.opening(spec.name))
		if err != nil {
			in.close()
			return nil, &SourceError{Source: spec.name, Cause: err}
		}
		s := &openSource{number: i, spec: spec, reader: reader, parts: map[string]*openPartition{}, bounded: reader.Bounded()}
		in.sources = append(in.sources, s)
		if _, err := in.discover(ctx, s); err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}

// opening is what a source is opened with.
func (r *Run) opening(source string) connector.Opening {
	return r.o.opening(source, len(r.o.Offsets[source]) > 0 || r.o.Followed[source])
}

// opening is what a source is opened with.
func (o *Options) opening(source string, begun bool) connector.Opening {
	return connector.Opening{
		Env: o.Env, Log: o.Log, Job: o.Job, JobID: o.JobID, Name: source, Begun: begun, TransactionPrefix: o.TransactionPrefix,
	}
}

// found are the beginnings of the partitions that were not known before and have
// something to be known by.
func (in *input) found() map[string]map[string]connector.Offset {
	out := map[string]map[string]connector.Offset{}
	for _, s := range in.sources {
		known := in.run.o.Offsets[s.spec.name]
		if in.run.o.Followed[s.spec.name] {
			continue // the other branch's epochs tell it
		}
		for name, p := range s.parts {
			if _, ok := known[name]; ok || p.from == (connector.Offset{}) && !in.run.graph.Timed() {
				continue
			}
			if out[s.spec.name] == nil {
				out[s.spec.name] = map[string]connector.Offset{}
			}
			out[s.spec.name][name] = p.from
		}
	}
	return out
}

// discover opens the partitions that are not open yet.
func (in *input) discover(ctx context.Context, s *openSource) ([]*openPartition, error) {
	names, err := s.reader.Partitions(ctx)
	if err != nil {
		return nil, &SourceError{Source: s.spec.name, Cause: err}
	}
	known := in.run.o.Offsets[s.spec.name]
	for name := range known {
		if !slices.Contains(names, name) && s.parts[name] == nil {
			return nil, &SourceError{s.spec.name, name, fmt.Errorf("offset %d is to be read next, and the partition is not there any more: bring it back", known[name].Next)}
		}
	}
	var found []*openPartition
	for _, name := range names {
		if s.parts[name] != nil {
			continue
		}
		p := &openPartition{source: s, name: name, from: known[name], until: -1}
		if p.part, err = s.reader.Partition(ctx, name, p.from); err != nil {
			return nil, &SourceError{s.spec.name, name, err}
		}
		if f, ok := p.part.(connector.FoundPartition); ok {
			p.from = f.From()
		}
		p.read.Store(p.from.Next)
		s.mu.Lock()
		s.parts[name] = p
		s.mu.Unlock()
		found = append(found, p)
	}
	return found, nil
}

// beginAt opens a partition at an offset that another branch has found, also where it
// was opened at another: nothing was read from it yet.
func (in *input) beginAt(ctx context.Context, s *openSource, name string, from connector.Offset) error {
	p := s.parts[name]
	if p != nil && p.from == from {
		return nil
	}
	part, err := s.reader.Partition(ctx, name, from)
	if err != nil {
		return &SourceError{s.spec.name, name, err}
	}
	if p != nil {
		p.part.Close()
	}
	p = &openPartition{source: s, name: name, from: from, part: part, until: -1}
	p.read.Store(from.Next)
	s.mu.Lock()
	s.parts[name] = p
	s.mu.Unlock()
	return nil
}

// start begins to read.
func (in *input) start() {
	for _, s := range in.sources {
		for _, p := range s.parts {
			in.reading.Go(func() { in.read(p) })
		}
		if !s.bounded {
			in.reading.Go(func() { in.watch(s) })
		}
	}
}

// watch looks for new partitions from time to time.
func (in *input) watch(s *openSource) {
	timer := in.run.o.Env.Clock.NewTimer(in.run.o.DiscoverEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
		case <-in.ctx.Done():
			return
		}
		found, err := in.discover(in.ctx, s)
		if err != nil {
			in.arrive(arrival{err: err})
			return
		}
		for _, p := range found {
			in.arrive(arrival{part: p, found: true})
			in.reading.Go(func() { in.read(p) })
		}
		timer.Reset(in.run.o.DiscoverEvery)
	}
}

// read reads a partition until it ends.
func (in *input) read(p *openPartition) {
	for {
		b := in.run.newBatch(p.name)
		err := p.part.Next(in.ctx, b, p.until)
		switch {
		case in.ctx.Err() != nil:
			return
		case errors.Is(err, io.EOF):
			in.arrive(arrival{part: p, ended: true})
			return
		case err != nil:
			in.arrive(arrival{err: &SourceError{p.source.spec.name, p.name, err}})
			return
		}
		if !in.arrive(arrival{part: p, batch: b, bytes: valueBytes(b)}) {
			return
		}
	}
}

func (in *input) arrive(a arrival) bool {
	select {
	case in.arrivals <- a:
		return true
	case <-in.ctx.Done():
		return false
	}
}

func valueBytes(b *connector.Batch) (n int64) {
	for i := range b.Records {
		n += int64(len(b.Records[i].Value))
	}
	return n
}

// newBatch returns an empty batch for a partition.
func (r *Run) newBatch(partition string) *connector.Batch {
	b := r.batches.get(func() *connector.Batch { return new(connector.Batch) })
	*b = connector.Batch{
		Partition: partition, Records: b.Records[:0], Buffer: b.Buffer[:0],
		Limit: r.o.BatchRecords, LimitBytes: r.o.BatchBytes,
	}
	return b
}

// stop ends the reading; what was read and not sequenced is dropped.
func (in *input) stop() {
	in.mu.Lock()
	cancel := in.cancel
	in.mu.Unlock()
	cancel()
	in.reading.Wait()
}

// again readies the input, whose reading was ended, to read once more; false: it is
// closed.
func (in *input) again(ctx context.Context) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancel()
	in.ctx, in.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if in.closed {
		in.cancel()
	}
	return !in.closed
}

func (in *input) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.stop()
	for _, s := range in.sources {
		s.mu.Lock()
		for _, p := range s.parts {
			p.part.Close()
		}
		s.mu.Unlock()
		s.reader.Close()
	}
}

// PartitionLag is how far a partition has been read.
type PartitionLag struct {
	Source, Partition string
	// Next is the offset to be read next, End that behind the last record.
	Next, End int64
	// Start is the offset of the oldest record that there still is, of sources that lose
	// such; else 0.
	Start int64
}

// Lag tells how far each partition has been read, in no order.
func (r *Run) Lag() []PartitionLag {
	var out []PartitionLag
	for _, s := range r.input.sources {
		s.mu.Lock()
		for _, p := range s.parts {
			out = append(out, PartitionLag{s.spec.name, p.name, p.read.Load(), p.part.End(), startOf(p.part)})
		}
		s.mu.Unlock()
	}
	return out
}

func startOf(p connector.Partition) int64 {
	if p, loses := p.(connector.StartPartition); loses {
		return p.Start()
	}
	return 0
}

// Ends tells where all partitions end now, new ones included, by a look of its
// own: what the open ones know may be a while old.
func (r *Run) Ends(ctx context.Context) (out []PartitionLag, err error) {
	for _, s := range r.input.sources {
		ends, err := r.endsOf(ctx, s)
		if err != nil {
			return nil, &SourceError{Source: s.spec.name, Cause: err}
		}
		out = append(out, ends...)
	}
	return out, nil
}

func (r *Run) endsOf(ctx context.Context, s *openSource) (out []PartitionLag, err error) {
	opening := r.opening(s.spec.name)
	opening.Begun = true // a partition that is new by now is read from its beginning
	reader, err := s.spec.open(ctx, opening)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := reader.Close(); err == nil {
			err = cerr
		}
	}()
	names, err := reader.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := reader.Partition(ctx, name, connector.Offset{})
		if err != nil {
			return nil, err
		}
		out = append(out, PartitionLag{Source: s.spec.name, Partition: name, End: p.End()})
		if err := p.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
