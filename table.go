package sluice

import (
	"iter"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/engine"
)

// Table is a state of one value per key, as what stands there: others may read
// its changes and send its rows to sinks.
type Table[K comparable, S any] struct {
	job  *Job
	name string                  // of the operator
	spec *engine.TableSpec[K, S] // nil: a fault was noted
}

// Change is what one epoch made of one key of a table.
type Change[K comparable, S any] struct {
	// Key is the entry's key.
	Key K
	// Old is the value from before the epoch, zero if there was none.
	Old S
	// New is the value at the epoch's end, zero if there is none.
	New S
	// HadOld tells whether there was an entry before the epoch, HasNew whether
	// there is one at its end.
	HadOld, HasNew bool
}

// noRows is why a table whose entries are panes has no rows.
const noRows = "the windows share panes, which are what the state holds, so that it has no rows of windows: use Results, or, with Hopping, Fold instead of FoldMerge, which keeps an entry for each window"

// Changes is the stream of what changes in the table: one change for each key
// that an epoch has written, at the epoch's end, in the order of slots and keys.
func (t *Table[K, S]) Changes() *Stream[Change[K, S]] {
	out := newStream[Change[K, S]](t.job, []string{t.name})
	switch {
	case t.spec == nil:
		return out
	case t.spec.Panes:
		t.job.fault("Changes of state %q: %s", t.name, noRows)
		return out
	}
	engine.Through(t.spec.Changes, out.node, func(_ *engine.Instance, next func(*Change[K, S])) func(*engine.Change[K, S]) {
		var c Change[K, S]
		return func(v *engine.Change[K, S]) {
			c = Change[K, S](*v)
			next(&c)
		}
	})
	return out
}

// To sends the table's rows to a sink: at each epoch's end, the rows of the keys
// that it has written, and deletes for those that it has removed. It returns the
// table, which may have other sinks.
func (t *Table[K, S]) To(name string, sink connector.TableSink[K, S]) *Table[K, S] {
	t.job.claim("sink", name, []string{t.name})
	switch {
	case t.spec == nil:
		return t
	case t.spec.Panes:
		t.job.fault("sink %q of state %q: %s", name, t.name, noRows)
		return t
	}
	t.job.refuseRivals(name, sink)
	if err := engine.AddTableSink(t.job.graph, t.spec, name, sink); err != nil {
		t.job.fault("sink %q: %v", name, err)
	}
	return t
}

// Regroup keys the table's rows anew: the new table's value of a group is kept
// up to date by add, called with each row that comes into the group, and remove,
// called with each that leaves it, before add. remove tells whether the group
// stays; it must take back exactly what add did.
func (t *Table[K, S]) Regroup[G comparable, A any](groups State[G, A], group func(K, S) G, add func(*A, S), remove func(*A, S) bool) *Table[G, A] {
	type move struct {
		Group G
		Row   S
		Added bool
	}
	moves := t.Changes().FlatMap(func(c Change[K, S]) iter.Seq[move] {
		return func(yield func(move) bool) {
			if c.HadOld && !yield(move{group(c.Key, c.Old), c.Old, false}) {
				return
			}
			if c.HasNew {
				yield(move{group(c.Key, c.New), c.New, true})
			}
		}
	})
	keyed := moves.KeyBy(func(m move) G { return m.Group })
	return keyed.FoldKeep(groups, func(a *A, m move) bool {
		if m.Added {
			add(a, m.Row)
			return true
		}
		return remove(a, m.Row)
	})
}
