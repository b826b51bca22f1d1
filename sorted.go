package sluice

import (
	"iter"

	"github.com/sluicestream/sluice/internal/engine"
)

// SortedState describes a state of entries in an order per key, of which a key
// has so many at most: what comes behind these is dropped. It is stored entry by
// entry: what a change costs is the entry. See [Setup.Sorted].
//
// Order and limit are part of the job's version. With a greater limit the state
// is incomplete, since what was dropped is gone; a smaller one drops entries,
// which needs a consent; in the other order the wrong ones would have been kept,
// which is refused unless [SortedState.MigrateKeys] says what becomes of them.
type SortedState[K, Order comparable, V any] struct {
	// Its entries are a map's by all but their number.
	m MapState[K, Order, V]
}

// NewSortedState describes a state that has, for each key of type K, at most limit
// values of type V, at least 1, by an order of type Order: strings, integers,
// booleans, arrays of bytes, [Instant]s and structs of these, which compare field
// by field. Small ones come first; see [SortedState.Descending].
func NewSortedState[K, Order comparable, V any](name string, limit int) SortedState[K, Order, V] {
	s := SortedState[K, Order, V]{NewMapState[K, Order, V](name)}
	s.m.d.limit.Entries = limit
	return s
}

// Descending has the greatest come first, so that the smallest are dropped.
func (s SortedState[K, Order, V]) Descending() SortedState[K, Order, V] {
	s.m.d.limit.Descending = true
	return s
}

// Meaning gives the state a meaning version, see [State.Meaning].
func (s SortedState[K, Order, V]) Meaning(version int) SortedState[K, Order, V] {
	s.m = s.m.Meaning(version)
	return s
}

// Migrate is [State.Migrate], for each entry's value.
func (s SortedState[K, Order, V]) Migrate(m Migration[V]) SortedState[K, Order, V] {
	s.m = s.m.Migrate(m)
	return s
}

// MigrateKeys is [State.MigrateKeys], for each entry. Where more come to one key
// than the limit allows, those behind it are dropped.
func (s SortedState[K, Order, V]) MigrateKeys[OldKey, OldOrder comparable](f func(OldKey, OldOrder, V) iter.Seq2[KeyElement[K, Order], V], merge func(earlier *V, later V)) SortedState[K, Order, V] {
	s.m = s.m.MigrateKeys(f, merge)
	return s
}

// TakesOver is [State.TakesOver] for another sorted state of the same order. Of
// what several have at one key, what is behind the limit is dropped.
func (s SortedState[K, Order, V]) TakesOver(name string, chain ...Migration[V]) SortedState[K, Order, V] {
	s.m = s.m.TakesOver(name, chain...)
	return s
}

// Merge is [State.Merge], for two values that meet at one key and order.
func (s SortedState[K, Order, V]) Merge(merge func(earlier *V, later V)) SortedState[K, Order, V] {
	s.m = s.m.Merge(merge)
	return s
}

// Import is [MapState.Import]. Of what comes to one key, what is behind the limit
// is dropped.
func (s SortedState[K, Order, V]) Import[R any](rows func(R) iter.Seq2[K, map[Order]V]) SortedState[K, Order, V] {
	s.m = s.m.Import(rows)
	return s
}

// Sorted returns the sorted entries of the key in hand.
func (p *Setup[K, O]) Sorted[Order comparable, V any](state SortedState[K, Order, V]) *Sorted[K, Order, V] {
	m := state.m
	name := m.d.name
	if p.building {
		if m.d.limit.Entries < 1 {
			p.op.job.fault("state %q: a limit of %d: expected how many entries a key has at most, 1 or more", name, m.d.limit.Entries)
		}
		spec, orders := addElementState[K, Order, V](p.op.job, p.stage, m.d, m.carry, m.intake, "sorted", p.owns(name))
		p.op.states[name] = func(in *engine.Instance) *engine.Sorted[K, Order, V] {
			return engine.OpenSorted(in, p.stage, spec, orders)
		}
		return &Sorted[K, Order, V]{}
	}
	return &Sorted[K, Order, V]{p.op.states[name].(func(*engine.Instance) *engine.Sorted[K, Order, V])(p.in)}
}

// Sorted is a state of sorted entries per key, at the key in hand of a Process.
type Sorted[K, Order comparable, V any] struct{ s *engine.Sorted[K, Order, V] }

// Put puts a value in at its place in the order, or instead of the one that is
// there. If that makes one more than the limit allows the last is dropped, and Put
// tells which: it may be the one that was put.
func (s *Sorted[K, Order, V]) Put(order Order, v V) (dropped Order, was bool) {
	return s.s.Put(order, v)
}

// Read returns the value at a place in the order, and whether there is one.
func (s *Sorted[K, Order, V]) Read(order Order) (V, bool) { return s.s.Read(order) }

// Update returns the value at a place in the order for being changed in place; nil
// if there is none.
func (s *Sorted[K, Order, V]) Update(order Order) *V { return s.s.Update(order) }

// Delete removes the value at a place in the order.
func (s *Sorted[K, Order, V]) Delete(order Order) { s.s.Delete(order) }

// Len is the number of entries.
func (s *Sorted[K, Order, V]) Len() int { return s.s.Len() }

// First returns the first entry, and whether there is one.
func (s *Sorted[K, Order, V]) First() (Order, V, bool) { return s.s.First() }

// Last returns the last entry, and whether there is one: if Len is the limit, the
// one that the next to come before it drops.
func (s *Sorted[K, Order, V]) Last() (Order, V, bool) { return s.s.Last() }

// All goes through the entries in their order. Entries may be put in and deleted on
// the way: what then stands behind the entry in hand is met.
func (s *Sorted[K, Order, V]) All() iter.Seq2[Order, V] { return s.s.All() }

// Clear removes all entries.
func (s *Sorted[K, Order, V]) Clear() { s.s.Clear() }
