package upgrade

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Outputs are what a branch, or the chain of live branches, has put out: the epochs
// whose outboxes are kept, by their positions.
type Outputs struct {
	// Name tells people whose they are.
	Name string
	// After and To are the positions: those behind After, up to To. None if they are
	// equal.
	After, To epoch.Position
	// Sinks are those of the newest epoch that have not been dropped, by name.
	Sinks map[string]epoch.SinkState
	// Cleaned says what is missing before After; empty if nothing is.
	Cleaned string

	job    *epoch.Job
	task   string
	pieces []piece
}

// piece is a part of one log.
type piece struct {
	branch string
	// floor is the log's oldest epoch that was kept when it was looked at, last the
	// newest that counts.
	floor, last epoch.Epoch
	// after and to are the positions that count.
	after, to epoch.Position
}

// OutputsOf are what one branch has put out, following or live.
func OutputsOf(ctx context.Context, job *epoch.Job, task, branch string) (Outputs, error) {
	o := Outputs{Name: "branch " + branch, job: job, task: task}
	head, err := job.Head(ctx, branch, task)
	if err != nil {
		return o, err
	}
	if head.Hash == "" {
		return o, &epoch.NoLogError{At: epoch.At{Job: job.Name(), Branch: branch, Task: task}}
	}
	floor, after, err := o.oldest(ctx, branch)
	if err != nil {
		return o, err
	}
	if floor > head.Manifest.Epoch { // it has risen since the head was read
		return o, overtaken(job, branch, task, floor)
	}
	if floor > 0 {
		o.Cleaned = cleanedAway(branch, floor)
	}
	o.pieces = []piece{{branch, floor, head.Manifest.Epoch, after, head.Manifest.Position}}
	o.After, o.To, o.Sinks = after, head.Manifest.Position, sinksOf(head.Manifest)
	return o, nil
}

// LiveOutputs are what the live branches have put out, one after the other: each
// position is of the generation that has it. Those of a branch, and of what has come
// behind it, are left out if before is its name: the rest is what it has followed.
func LiveOutputs(ctx context.Context, job *epoch.Job, task, before string) (Outputs, error) {
	o := Outputs{Name: "the live branches", job: job, task: task}
	chain, err := job.Chain(ctx, task)
	if err != nil {
		return o, err
	}
	if i := slices.IndexFunc(chain, func(l epoch.Link) bool { return l.Branch == before }); i >= 0 {
		chain = chain[:i]
	}
	for _, link := range slices.Backward(chain) {
		if link.Ended() && link.Hash == "" {
			continue // it has no positions
		}
		whole, err := o.addLink(ctx, link)
		if err != nil {
			return o, err
		}
		if !whole {
			break
		}
	}
	slices.Reverse(o.pieces)
	return o, nil
}

// addLink puts a generation before those that are there. It tells whether all of its
// positions are kept.
func (o *Outputs) addLink(ctx context.Context, link epoch.Link) (whole bool, err error) {
	p := piece{branch: link.Branch, last: link.Final, to: link.To}
	if !link.Ended() {
		head, err := o.job.Head(ctx, link.Branch, o.task)
		if _, gone := errors.AsType[*epoch.VoidError](err); gone {
			return true, nil // it had nothing of its own (H16)
		}
		if err != nil {
			return false, err
		}
		p.last, p.to = head.Manifest.Epoch, head.Manifest.Position
	}
	p.floor, p.after, err = o.oldest(ctx, link.Branch)
	if err != nil {
		return false, err
	}
	if len(o.pieces) == 0 {
		o.After, o.To = p.to, p.to
	}
	if p.floor > p.last {
		o.Cleaned = cleanedAway(link.Branch, p.floor)
		return false, nil
	}
	whole = p.after <= link.From
	if p.after = max(p.after, link.From); !whole {
		o.Cleaned = cleanedAway(link.Branch, p.floor)
	}
	if o.Sinks == nil {
		last, err := o.job.Manifest(ctx, link.Branch, o.task, p.last)
		if err != nil {
			return false, o.job.Missed(ctx, epoch.Manifest{Branch: link.Branch, Task: o.task, Epoch: p.last}, err)
		}
		o.Sinks = sinksOf(last)
	}
	o.pieces, o.After = append(o.pieces, p), p.after
	return whole, nil
}

func cleanedAway(branch string, floor epoch.Epoch) string {
	if floor == epoch.AllEpochs {
		return fmt.Sprintf("branch %s was cleaned away", branch)
	}
	return fmt.Sprintf("the epochs of branch %s before %d were cleaned away", branch, floor)
}

func overtaken(job *epoch.Job, branch, task string, floor epoch.Epoch) error {
	return &epoch.CleanedError{At: epoch.At{Job: job.Name(), Branch: branch, Task: task}, Floor: floor}
}

// sinksOf are the sinks that an epoch may have outputs for.
func sinksOf(m epoch.Manifest) map[string]epoch.SinkState {
	sinks := map[string]epoch.SinkState{}
	for name, s := range m.Sinks {
		if s.Dropped == "" {
			sinks[name] = s
		}
	}
	return sinks
}

// oldest finds the oldest epoch of a log that is kept, and the position behind which
// outputs are: its own, or the one before if it is known to hold just one.
func (o *Outputs) oldest(ctx context.Context, branch string) (floor epoch.Epoch, after epoch.Position, err error) {
	floor, err = o.job.Floor(ctx, branch, o.task)
	if err != nil || floor == epoch.AllEpochs {
		return floor, 0, err
	}
	m, err := o.job.Manifest(ctx, branch, o.task, floor)
	if err != nil {
		return floor, 0, o.job.Missed(ctx, epoch.Manifest{Branch: branch, Task: o.task, Epoch: floor}, err)
	}
	return floor, before(m), nil
}

// before is the position behind which a manifest's outputs begin, as far as it tells
// alone.
func before(m epoch.Manifest) epoch.Position {
	if m.Kind == epoch.Data && m.Live != nil {
		return m.Position - 1
	}
	return m.Position
}

// Side is what there is for a sink behind one position, up to another. The steps begin
// at the position if an epoch ends there ([Common]), else at the next that does. The
// epochs are read as the steps are taken.
func (o Outputs) Side(ctx context.Context, sink string, after, to epoch.Position) compare.Side {
	return compare.Side{Store: o.job.Store(), Job: o.job.Name(), Steps: func(yield func(compare.Step, error) bool) {
		for s, err := range o.steps(ctx, after) {
			step := compare.Step{After: s.after, To: s.m.Position, Outbox: s.m.Sinks[sink].Outbox}
			if step.To > to || !yield(step, err) || err != nil {
				return
			}
		}
	}}
}

// step is an epoch and the position behind which it begins.
type step struct {
	after epoch.Position
	m     epoch.Manifest
}

// steps are the epochs that begin at a position or behind it.
func (o Outputs) steps(ctx context.Context, from epoch.Position) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		for _, p := range o.pieces {
			if p.to <= from {
				continue
			}
			if !o.stepsOf(ctx, p, max(from, p.after), yield) {
				return
			}
		}
	}
}

// stepsOf are those of one log. What a branch put out by its own clock, at a position
// that it had already, lines up with nothing and is left out.
func (o Outputs) stepsOf(ctx context.Context, p piece, from epoch.Position, yield func(step, error) bool) bool {
	first, err := o.search(ctx, p, from)
	if err != nil {
		return yield(step{}, err)
	}
	at, begun := epoch.Position(0), false
	for m, err := range o.job.Manifests(ctx, p.branch, o.task, first, p.last) {
		if err != nil {
			return yield(step{}, err)
		}
		if !begun && m.Epoch != first {
			return yield(step{}, overtaken(o.job, p.branch, o.task, m.Epoch))
		}
		if !begun {
			at, begun = before(m), true
		}
		if m.Kind != epoch.Data || m.Position <= at {
			continue
		}
		if at >= from && !yield(step{at, m}, nil) {
			return false
		}
		at = m.Position
	}
	if at != p.to {
		return yield(step{}, fmt.Errorf("%s: branch %s, task %s: its epochs up to %d end at position %d, expected %d: %w; `sluice fsck %s` tells more",
			o.job.Name(), p.branch, o.task, p.last, at, p.to, store.ErrNotFound, o.job.Name()))
	}
	return true
}

// search finds the newest epoch of a piece whose position is not above one; the oldest
// if all are.
func (o Outputs) search(ctx context.Context, p piece, position epoch.Position) (epoch.Epoch, error) {
	low, high := p.floor, p.last
	for low < high {
		middle := high - (high-low)/2
		m, err := o.job.Manifest(ctx, p.branch, o.task, middle)
		switch {
		case err != nil:
			return 0, err
		case m.Position <= position:
			low = middle
		default:
			high = middle - 1
		}
	}
	return low, nil
}

// boundaries are the positions from one on at which an epoch ends, or the first begins.
func (o Outputs) boundaries(ctx context.Context, from epoch.Position) iter.Seq2[epoch.Position, error] {
	return func(yield func(epoch.Position, error) bool) {
		first := true
		for s, err := range o.steps(ctx, from) {
			if first && err == nil && !yield(s.after, nil) {
				return
			}
			if first = false; !yield(s.m.Position, err) || err != nil {
				return
			}
		}
	}
}

// Common is the first position at which two can be compared from: an epoch of each
// ends there. ok is false if there is none before one of them ends.
func Common(ctx context.Context, a, b Outputs) (at epoch.Position, ok bool, err error) {
	from := max(a.After, b.After)
	nextA, stopA := iter.Pull2(a.boundaries(ctx, from))
	defer stopA()
	nextB, stopB := iter.Pull2(b.boundaries(ctx, from))
	defer stopB()
	x, err, okA := nextA()
	if err != nil || !okA {
		return 0, false, err
	}
	y, err, okB := nextB()
	for err == nil && okA && okB && x != y {
		if x < y {
			x, err, okA = nextA()
		} else {
			y, err, okB = nextB()
		}
	}
	return x, err == nil && okA && okB && x < min(a.To, b.To), err
}

// Passed tells whether clean-up has come by since the outputs were looked at, so that
// an object which is not there is no damage (S4).
func (o Outputs) Passed(ctx context.Context) (bool, error) {
	for _, p := range o.pieces {
		floor, err := o.job.Floor(ctx, p.branch, o.task)
		if err != nil || floor > p.floor {
			return err == nil, err
		}
	}
	return false, nil
}
