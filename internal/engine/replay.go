package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Recorded is an epoch as a manifest has it: its clock, what was deleted by request
// before its first record, its order of reading, the epochs that it covers, and what it
// has written anew.
type Recorded struct {
	Now   int64
	Edits []epoch.Edit
	Runs  []epoch.Run
	Steps []epoch.Step
	// Idle and Found are as in a manifest and its steps: Found are partitions that hold
	// watermarks back from this epoch on.
	Idle  map[string][]string
	Found []string
	// Advanced is as in a manifest.
	Advanced map[string]epoch.Moment
	// Rewritten is the part of a table's sink that was written anew; nil: none.
	Rewritten *Rewriting
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
		if err := s.replayEpoch(e); err != nil {
			if errors.Is(err, errEnded) {
				return nil
			}
			return err
		}
	}
	return nil
}

func (s *sequencer) replayEpoch(e Recorded) error {
	steps := e.Steps
	if len(steps) == 0 {
		steps = []epoch.Step{{Now: e.Now, Runs: len(e.Runs), Idle: e.Idle, Advanced: e.Advanced}}
	}
	s.holds(e.Found)
	s.idle, s.to = steps[0].Idle, steps[0].Advanced
	if !s.begin(steps[0].Now) {
		return errEnded
	}
	if len(e.Edits) > 0 && !s.delete(e.Edits) {
		return errEnded
	}
	for i, step := range steps {
		if i > 0 {
			s.expect(s.epoch)
			if !s.tell(&batch{epoch: s.epoch, stepEnd: true}) {
				return errEnded
			}
			s.holds(steps[i-1].Found)
			s.last, s.epoch.Now, s.idle, s.to = step.Now, step.Now, step.Idle, step.Advanced
			if !s.passTime() {
				return errEnded
			}
		}
		for _, run := range e.Runs[:step.Runs] {
			if err := s.replayRun(s.run.input.ctx, run); err != nil {
				return err
			}
		}
		e.Runs = e.Runs[step.Runs:]
	}
	s.replayed = e.Rewritten
	s.close()
	return nil
}

// partition is an open partition of the run's; one that has come up since is opened.
func (s *sequencer) partition(ctx context.Context, run epoch.Run) (*openPartition, error) {
	src := s.source(run.Source)
	if src == nil {
		return nil, fmt.Errorf("source %s, which was read once, is not the job's", run.Source)
	}
	if src.parts[run.Partition] == nil {
		if _, err := s.run.input.discover(ctx, src); err != nil {
			return nil, err
		}
	}
	if p := src.parts[run.Partition]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("source %s has no partition %s, which was read once", run.Source, run.Partition)
}
