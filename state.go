package sluice

import (
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/schema"
)

// descriptor is what the kinds of states have in common.
type descriptor struct {
	name    string
	meaning int
	limit   engine.Limit // of a sorted state
}

// State describes a state of one value per key: its name, which it keeps for
// good, and its types. It is immutable, and may be a package's variable. The
// value's schema is derived from the Go type and stored with the data; package
// schema says which types can be stored, and how.
type State[K comparable, S any] struct {
	d      descriptor
	carry  carry.Spec[K, S]
	intake func(stage *engine.Stage[K], value *schema.Type[S]) (engine.Intake, error) // nil: rows are entries
}

// NewState describes a state of one value of type S per key of type K.
func NewState[K comparable, S any](name string) State[K, S] {
	return State[K, S]{d: descriptor{name: name}}
}

// Meaning gives the state a meaning version: another number says that equal
// types mean something else now. Defaults to 0.
func (s State[K, S]) Meaning(version int) State[K, S] { s.d.meaning = version; return s }

// MapState describes a state of a map per key, stored element by element: what
// a change costs is the element, not the map. See [Setup.Map].
type MapState[K, E comparable, V any] struct {
	d      descriptor
	carry  carry.Spec[engine.Pair[K, E], V]
	intake func(stage *engine.Stage[K], elements *schema.Key[E], value *schema.Type[V]) (engine.Intake, error) // nil: rows are entries
}

// NewMapState describes a state that has, for each key of type K, values of
// type V by elements of type E.
func NewMapState[K, E comparable, V any](name string) MapState[K, E, V] {
	return MapState[K, E, V]{d: descriptor{name: name}}
}

// Meaning gives the state a meaning version, see [State.Meaning].
func (s MapState[K, E, V]) Meaning(version int) MapState[K, E, V] { s.d.meaning = version; return s }

// ListState describes a state of a list per key, stored element by element.
// See [Setup.List].
type ListState[K comparable, V any] struct {
	d      descriptor
	carry  carry.Spec[engine.Pair[K, int64], V]
	intake func(stage *engine.Stage[K], numbers *schema.Key[int64], value *schema.Type[V]) (engine.Intake, error) // nil: rows are entries
}

// NewListState describes a state that has, for each key of type K, a list of
// values of type V.
func NewListState[K comparable, V any](name string) ListState[K, V] {
	return ListState[K, V]{d: descriptor{name: name}}
}

// Meaning gives the state a meaning version, see [State.Meaning].
func (s ListState[K, V]) Meaning(version int) ListState[K, V] { s.d.meaning = version; return s }

// Instant is a moment in microseconds since 1970 UTC. Unlike a time.Time it can
// be a key.
type Instant = schema.Instant

// owner is the operator that owns a state.
type owner struct {
	name      string // of its first state
	operation string // fold, process
	function  string // the name of its function, if it has one
	from      []string
}

// specOf is the untyped description of a state for the engine.
func (d descriptor) specOf(kind string, o owner) engine.StateSpec {
	return engine.StateSpec{Name: d.name, Kind: kind, Operator: o.name, Operation: o.operation, Function: o.function, Meaning: d.meaning, Limit: d.limit}
}

// addState adds a state to a stage. It returns nil if it can't be, with the
// fault noted; a stage that is nil was refused before.
func addState[K comparable, S any](job *Job, stage *engine.Stage[K], s State[K, S], o owner) *engine.TableSpec[K, S] {
	job.claim("state", s.d.name, o.from)
	value, err := schema.Of[S](s.d.name)
	if err != nil {
		job.fault("state %q: %v", s.d.name, err)
		return nil
	}
	if stage == nil {
		return nil
	}
	untyped := s.d.specOf("value", o)
	if s.intake != nil {
		if untyped.Intake, err = s.intake(stage, value); err != nil {
			job.fault("state %q: %v", s.d.name, err)
		}
	}
	spec, err := engine.AddState(job.graph, stage, untyped, value, s.carry)
	if err != nil {
		job.fault("state %q: %v", s.d.name, err)
	}
	return spec
}

// addElementState is addState for states that are stored by element.
func addElementState[K, E comparable, V any](job *Job, stage *engine.Stage[K], d descriptor, carried carry.Spec[engine.Pair[K, E], V], intake func(*engine.Stage[K], *schema.Key[E], *schema.Type[V]) (engine.Intake, error), kind string, o owner) (*engine.TableSpec[engine.Pair[K, E], V], *schema.Key[E]) {
	job.claim("state", d.name, o.from)
	value, err := schema.Of[V](d.name)
	if err != nil {
		job.fault("state %q: %v", d.name, err)
	}
	elements, kerr := schema.KeyOf[E]("element")
	if kerr != nil {
		job.fault("state %q: element: %v", d.name, kerr)
	}
	if stage == nil || err != nil || kerr != nil {
		return nil, nil
	}
	untyped := d.specOf(kind, o)
	if intake != nil {
		if untyped.Intake, err = intake(stage, elements, value); err != nil {
			job.fault("state %q: %v", d.name, err)
		}
	}
	spec, err := engine.AddElementState(job.graph, stage, untyped, elements, value, carried)
	if err != nil {
		job.fault("state %q: %v", d.name, err)
		return nil, nil
	}
	return spec, elements
}
