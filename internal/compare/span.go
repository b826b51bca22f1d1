package compare

import (
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Side is what one branch has for a sink.
type Side struct {
	// Store has the outboxes, below the folder of Job. Whoever compares keeps them
	// there meanwhile, by a pin.
	Store store.Store
	Job   string
	// Steps are the side's steps in the order of their positions, without gaps.
	Steps iter.Seq2[Step, error]
}

// Step is an epoch of a side.
type Step struct {
	// After and To are the positions that the step covers: those behind After, up to
	// To.
	After, To epoch.Position
	// Outbox is what the epoch has for the sink; empty if that is nothing.
	Outbox []epoch.Object
}

func (s Step) rows() (n int64) {
	for _, o := range s.Outbox {
		n += o.Rows
	}
	return n
}

// The two sides.
const (
	oldSide = 0
	newSide = 1
)

var sideNames = [2]string{"old", "new"}

// GapError says that a side has no step where the next one should begin.
type GapError struct {
	Job, Sink string
	// Side is "old" or "new".
	Side string
	// Expected is the position behind which the step should begin, Found that behind
	// which it does.
	Expected, Found epoch.Position
}

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("%s: sink %s: the %s outputs can't be compared: expected those behind position %d next, found those behind position %d. Start behind a position at which both sides have an epoch that ends.",
		e.Job, e.Sink, e.Side, e.Expected, e.Found)
}

// maxSpanSteps bounds the steps of a side that are compared as one span: a day of
// epochs of a second. What has more is not compared.
const maxSpanSteps = 1 << 17

// span is a run of positions at whose ends both sides have a boundary.
type span struct {
	after, to epoch.Position
	steps     [2][]Step // without those that have no rows
	taken     [2]int    // how many steps there are
	rows      [2]int64
	long      bool // a side has more steps than are held
}

func (s *span) add(side int, step Step) {
	s.taken[side]++
	rows := step.rows()
	s.rows[side] += rows
	switch {
	case rows == 0:
	case len(s.steps[side]) == maxSpanSteps:
		s.long = true
	default:
		s.steps[side] = append(s.steps[side], step)
	}
}

// linedUp tells whether each side took the span in one step.
func (s *span) linedUp() bool { return s.taken == [2]int{1, 1} }

// sameBytes tells whether both sides have the very same objects, which then need
// not be read.
func (s *span) sameBytes() bool {
	if len(s.steps[oldSide]) != 1 || len(s.steps[newSide]) != 1 {
		return false
	}
	a, b := s.steps[oldSide][0].Outbox, s.steps[newSide][0].Outbox
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].SHA256 == "" || a[i].SHA256 != b[i].SHA256 {
			return false
		}
	}
	return true
}

// pairing cuts two sides into spans.
type pairing struct {
	sink string
	jobs [2]string
	next [2]func() (Step, error, bool)
	stop [2]func()
	at   epoch.Position
	// begun tells that at is where the next span begins; before that, both sides
	// have to begin at one position, whichever it is.
	begun bool
}

func newPairing(sink string, sides [2]Side) *pairing {
	p := &pairing{sink: sink}
	for i, s := range sides {
		p.jobs[i] = s.Job
		p.next[i], p.stop[i] = iter.Pull2(s.Steps)
	}
	return p
}

func (p *pairing) close() {
	p.stop[oldSide]()
	p.stop[newSide]()
}

// span returns the next span, or nil if a side has no steps up to a position where
// the other has a boundary too.
func (p *pairing) span() (*span, error) {
	var s *span
	var to [2]epoch.Position
	take := func(side int) (ok bool, err error) {
		step, err, ok := p.next[side]()
		if err != nil || !ok {
			return false, err
		}
		switch {
		case s == nil && p.begun:
			s = &span{after: p.at}
		case s == nil:
			s = &span{after: step.After}
		}
		expected := s.after
		if s.taken[side] > 0 {
			expected = to[side]
		}
		if step.After != expected || step.To <= step.After {
			return false, &GapError{Job: p.jobs[side], Sink: p.sink, Side: sideNames[side], Expected: expected, Found: step.After}
		}
		to[side] = step.To
		s.add(side, step)
		return true, nil
	}
	for side := range to {
		if ok, err := take(side); !ok {
			return nil, err
		}
	}
	for to[oldSide] != to[newSide] {
		behind := oldSide
		if to[newSide] < to[oldSide] {
			behind = newSide
		}
		if ok, err := take(behind); !ok {
			return nil, err
		}
	}
	s.to, p.at, p.begun = to[oldSide], to[oldSide], true
	return s, nil
}
