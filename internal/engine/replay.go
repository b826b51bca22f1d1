package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Recorded is an epoch as a manifest has it: its clock, what was deleted by request
// before its first record, and its order of reading.
type Recorded struct {
	Now   int64
	Edits []epoch.Edit
	Runs  []epoch.Run
}

// StartReplay begins to read and process just what was recorded, epoch by
// epoch, in the recorded order. Batches may be cut smaller than they were.
func (r *Run) StartReplay(ctx context.Context, recorded iter.Seq2[Recorded, error]) error {
	in, err := openInput(ctx, r)
	if err != nil {
		return err
	}
	r.input = in
	r.startProcessing()
	r.goes(func() error { return r.replay(ctx, recorded) })
	return nil
}

func (r *Run) replay(ctx context.Context, recorded iter.Seq2[Recorded, error]) error {
	defer close(r.epochs)
	s := r.newSequencer(ctx)
	for e, err := range recorded {
		if err != nil {
			return err
		}
		select {
		case r.open <- struct{}{}:
		case <-r.stopping:
			return nil
		case <-r.quit:
			return nil
		}
		s.begin(e.Now)
		if len(e.Edits) > 0 && !s.delete(e.Edits) {
			return nil
		}
		for _, run := range e.Runs {
			if err := s.replayRun(run); err != nil {
				return err
			}
		}
		s.close()
	}
	return nil
}

// replayRun reads what one batch held when it was first read.
func (s *sequencer) replayRun(run epoch.Run) error {
	p, err := s.partition(run)
	if err != nil {
		return err
	}
	for read := p.read.Load(); read < run.Next; {
		b := s.run.newBatch(p.name)
		err := p.part.Next(s.run.input.ctx, b, run.Next)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("source %s, partition %s: offset %d, which was read once, is not there any more: it ends at %d", run.Source, run.Partition, run.Next, read)
		}
		if err != nil {
			return fmt.Errorf("source %s, partition %s: %w", run.Source, run.Partition, err)
		}
		read = b.To.Next
		p.read.Store(read)
		s.record(run.Source, run.Partition, b.To, read >= run.Next)
		if !s.dispatch(p.source.number, p.name, b) {
			return nil
		}
	}
	return nil
}

func (s *sequencer) partition(run epoch.Run) (*openPartition, error) {
	for _, src := range s.run.input.sources {
		if src.spec.name != run.Source {
			continue
		}
		if p := src.parts[run.Partition]; p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("source %s has no partition %s, which was read once", run.Source, run.Partition)
}
