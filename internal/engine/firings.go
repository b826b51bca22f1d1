package engine

import (
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/window"
)

// Timing says when a window was put out: before its end, at its end, or because a late
// record has changed it.
type Timing string

// The timings, in the order in which a window has them.
const (
	Early  Timing = "early"
	OnTime Timing = "on time"
	Late   Timing = "late"
)

// Firing is what a window has come to so far.
type Firing[K comparable, S any] struct {
	Key    K
	Window Window
	Value  S
	Timing Timing
}

// Firings is where an operator's windows arrive on the way to what they come to.
type Firings[K comparable, S any] struct {
	// Node is where they arrive.
	Node *Node[Firing[K, S]]
	// Every is the length of time, in microseconds, whose multiples have open windows be
	// put out early; 0: none is.
	Every int64
}

// firings are those of the operator in one shard.
//
// Nothing of them is kept. When a window is put out follows from the time before and
// behind a run: at its end if that lies between the two, early if a multiple does. What
// late records have changed is put out when their run ends, which is in their epoch.
type firings[K comparable, S any] struct {
	every  int64
	to     func(*Firing[K, S])
	passed int64    // the time up to which all have been put out; [connector.NoTime]: none
	late   []uint32 // entries that late records of this run have changed
	firing Firing[K, S]
}

// openFirings readies an operator's firings; nil: nobody wants them.
func openFirings[K comparable, S any](in *Instance, spec *Firings[K, S]) *firings[K, S] {
	if spec == nil || !spec.Node.Consumed() {
		return nil
	}
	return &firings[K, S]{every: spec.Every, to: spec.Node.instantiate(in)}
}

// timing is that of an entry for which it is time now; empty: it is not.
func (f *firings[K, S]) timing(e *entry[In[K], S], now int64) Timing {
	end := int64(e.row.Window.End)
	switch {
	case f == nil || end > now:
		return ""
	case end > f.passed:
		return OnTime
	case e.parting&changedLate != 0:
		return Late
	}
	return ""
}

// early tells whether open windows are put out now.
func (f *firings[K, S]) early(now int64) bool {
	return f.every > 0 && f.passed != connector.NoTime && window.FloorDivide(now, f.every) > window.FloorDivide(f.passed, f.every)
}

// fire has windows be put out that late records have changed, or that are open when some
// are put out early.
func (w *windows[K, S, T]) fire(now int64) {
	f := w.firings
	for _, n := range f.late {
		e := w.table.at(n)
		if timing := f.timing(e, now); e.present && e.parting&(isDone|isOut) == 0 && timing == Late {
			w.out(e, n, out{timing: timing})
		}
		e.parting &^= changedLate
	}
	f.late = f.late[:0]
	if f.early(now) {
		for n := range w.table.made {
			if e := w.table.at(n); e.present && e.parting&isDone == 0 && int64(e.row.Window.End) > now {
				w.out(e, n, out{timing: Early})
			}
		}
	}
	f.passed = max(f.passed, now)
}

// fireOne puts out what an entry has come to so far.
func (w *windows[K, S, T]) fireOne(e *entry[In[K], S], timing Timing) {
	w.stand(e.hash, e.row)
	w.firings.firing = Firing[K, S]{e.row.Key, e.row.Window, w.Table.own(e.value), timing}
	w.firings.to(&w.firings.firing)
}
