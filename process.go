package sluice

import (
	"iter"

	"github.com/sluicestream/sluice/internal/engine"
)

// Process gives full control: setup runs once for each shard, gets hold of the
// states and outputs, and returns the function that is called with each record.
// It also runs once when the job is built, to see what it uses. The operator has
// the name of the first state.
func (k *Keyed[K, T]) Process[O any](setup func(*Setup[K, O]) func(*Context[K, O], T)) *Processed[K, O] {
	out := &Processed[K, O]{Stream: behind[O](k), inputs: k.from, site: callSite(), states: map[string]any{}, outputs: map[string]any{}}
	building := &Setup[K, O]{op: out, stage: k.stage(), building: true}
	building.untimed = func(what string) bool { return k.faultIfUntimed(out.site, what) }
	setup(building)
	out.Stream.from = []string{out.operator}
	for _, s := range out.streams {
		s(out.operator)
	}
	if out.operator == "" {
		k.job.faultAt(out.site, "Process without a state; use MapValues, or FlatMap on Values")
	}
	if k.bad {
		return out
	}
	k.keyed.Node.Consume(func(in *engine.Instance) func(*T) {
		emit := engine.Enter(in, out.node)
		c := &Context[K, O]{in: in, key: k.keyed.Stage.Context(in), emit: emit}
		p := &Setup[K, O]{op: out, stage: k.keyed.Stage, in: in, context: c}
		process := setup(p)
		return func(v *T) {
			in.At(out.operator)
			process(c, *v)
		}
	})
	return out
}

// Processed is what a Process puts out: a stream, further named outputs, and
// the states that it owns as tables.
type Processed[K comparable, O any] struct {
	*Stream[O]
	site     site
	operator string // the name of the first state
	inputs   []string
	states   map[string]any // *engine.TableSpec by name
	outputs  map[string]any // *Stream by name
	streams  []func(operator string)
}

// Output returns the stream of a further output, which the set-up must have
// asked for.
func (p *Processed[K, O]) Output[U any](o Output[U]) *Stream[U] {
	if s, ok := p.outputs[o.name].(*Stream[U]); ok {
		return s
	}
	p.job.fault("output %q is not one of the operator %s", o.name, p.operator)
	s := newStream[U](p.job, p.from)
	s.Discard()
	return s
}

// Table returns one of the operator's states as a table.
func (p *Processed[K, O]) Table[S any](state State[K, S]) *Table[K, S] {
	spec, ok := p.states[state.d.name].(*engine.TableSpec[K, S])
	if !ok {
		p.job.fault("state %q is not one of the operator %s", state.d.name, p.operator)
	}
	return &Table[K, S]{p.job, p.operator, spec}
}

// Output describes a further output of a Process. It is immutable.
type Output[U any] struct{ name string }

// NewOutput describes an output of records of type U.
func NewOutput[U any](name string) Output[U] { return Output[U]{name} }

// Setup is where a Process gets hold of its states and outputs, once for each
// shard.
type Setup[K comparable, O any] struct {
	op       *Processed[K, O]
	stage    *engine.Stage[K]
	in       *engine.Instance
	context  *Context[K, O]
	untimed  func(what string) bool // notes a fault if the records have no time
	building bool
}

// owns notes a state while the job is being built.
func (p *Setup[K, O]) owns(name string) owner {
	if p.op.operator == "" {
		p.op.operator = name
	}
	return owner{name: p.op.operator, operation: "process", from: p.op.inputs}
}

// State returns the state of one value per key, at the key in hand.
func (p *Setup[K, O]) State[S any](state State[K, S]) *Value[K, S] {
	name := state.d.name
	if p.building {
		p.op.states[name] = addState(p.op.job, p.stage, state, p.owns(name))
		return &Value[K, S]{}
	}
	return &Value[K, S]{engine.OpenValue(p.in, p.stage, p.op.states[name].(*engine.TableSpec[K, S]))}
}

// Map returns the map of the key in hand.
func (p *Setup[K, O]) Map[E comparable, V any](state MapState[K, E, V]) *Map[K, E, V] {
	name := state.d.name
	if p.building {
		spec, elements := addElementState[K, E, V](p.op.job, p.stage, state.d, state.carry, state.intake, "map", p.owns(name))
		p.op.states[name] = func(in *engine.Instance) *engine.Map[K, E, V] {
			return engine.OpenMap(in, p.stage, spec, elements)
		}
		return &Map[K, E, V]{}
	}
	return &Map[K, E, V]{p.op.states[name].(func(*engine.Instance) *engine.Map[K, E, V])(p.in)}
}

// List returns the list of the key in hand.
func (p *Setup[K, O]) List[V any](state ListState[K, V]) *List[K, V] {
	name := state.d.name
	if p.building {
		spec, numbers := addElementState[K, int64, V](p.op.job, p.stage, state.d, state.carry, state.intake, "list", p.owns(name))
		p.op.states[name] = func(in *engine.Instance) *engine.List[K, V] {
			return engine.OpenList(in, p.stage, spec, numbers)
		}
		return &List[K, V]{}
	}
	return &List[K, V]{p.op.states[name].(func(*engine.Instance) *engine.List[K, V])(p.in)}
}

// Output returns what puts records out to a further output.
func (p *Setup[K, O]) Output[U any](o Output[U]) *Emitter[U] {
	if p.building {
		if p.op.outputs[o.name] != nil {
			p.op.job.fault("two outputs of the name %q", o.name)
		}
		s := after[U](p.op.Stream)
		p.op.outputs[o.name] = s
		p.op.streams = append(p.op.streams, func(operator string) { s.from = []string{operator} })
		return &Emitter[U]{}
	}
	return &Emitter[U]{emit: engine.Enter(p.in, p.op.outputs[o.name].(*Stream[U]).node)}
}

// Emitter puts records out to an output of a Process.
type Emitter[U any] struct {
	emit func(*U)
	out  U // here, so that a record put out is not allocated
}

// Emit puts a record out.
func (e *Emitter[U]) Emit(v U) {
	e.out = v
	e.emit(&e.out)
}

// Context is what a Process's function may use besides its states.
type Context[K comparable, O any] struct {
	in   *engine.Instance
	key  *engine.KeyContext[K]
	emit func(*O)
	out  O // here, so that a record put out is not allocated
}

// Key is the key in hand.
func (c *Context[K, O]) Key() K { return c.key.Key }

// Emit puts a record out to the operator's stream.
func (c *Context[K, O]) Emit(v O) {
	c.out = v
	c.emit(&c.out)
}

// Time is the event time of the record, or the time of the timer that is fired;
// [NoTime] if there is none.
func (c *Context[K, O]) Time() Instant { return Instant(c.in.Time()) }

// Watermark is how far event time has come: no record with a time before is expected any
// more. It is [NoTime] as long as nothing is known.
func (c *Context[K, O]) Watermark() Instant { return Instant(c.in.Watermark()) }

// Now is the epoch's frozen clock: the same in every replay of the epoch.
func (c *Context[K, O]) Now() Instant { return Instant(c.in.Now()) }

// Value is a state of one value per key, at the key in hand of a Process.
type Value[K comparable, S any] struct{ v *engine.Value[K, S] }

// Read returns the value, and whether there is one. What it points to is the
// state's, and not to be changed.
func (v *Value[K, S]) Read() (S, bool) { return v.v.Read() }

// Update returns the value for being changed in place; a new one is zero.
func (v *Value[K, S]) Update() *S { return v.v.Update() }

// Set replaces the value.
func (v *Value[K, S]) Set(s S) { *v.v.Update() = s }

// Delete removes the value.
func (v *Value[K, S]) Delete() { v.v.Delete() }

// Map is a state of many elements per key, at the key in hand of a Process.
type Map[K, E comparable, V any] struct{ m *engine.Map[K, E, V] }

// Read returns an element's value, and whether there is one.
func (m *Map[K, E, V]) Read(e E) (V, bool) { return m.m.Read(e) }

// Update returns an element's value for being changed in place; a new one is
// zero.
func (m *Map[K, E, V]) Update(e E) *V { return m.m.Update(e) }

// Set replaces an element's value.
func (m *Map[K, E, V]) Set(e E, v V) { *m.m.Update(e) = v }

// Delete removes an element.
func (m *Map[K, E, V]) Delete(e E) { m.m.Delete(e) }

// Len is the number of elements.
func (m *Map[K, E, V]) Len() int { return m.m.Len() }

// All goes through the elements in the order of their Avro encoding: numbers by
// size, strings by bytes.
func (m *Map[K, E, V]) All() iter.Seq2[E, V] { return m.m.All() }

// Clear removes all elements.
func (m *Map[K, E, V]) Clear() { m.m.Clear() }

// List is a state of a list per key, at the key in hand of a Process.
type List[K comparable, V any] struct{ l *engine.List[K, V] }

// Len is the number of values.
func (l *List[K, V]) Len() int { return l.l.Len() }

// Append adds a value at the end.
func (l *List[K, V]) Append(v V) { l.l.Append(v) }

// At returns value number i, from 0. It panics if there is none.
func (l *List[K, V]) At(i int) V { return l.l.At(i) }

// Set replaces value number i. It panics if there is none.
func (l *List[K, V]) Set(i int, v V) { l.l.Set(i, v) }

// RemoveFirst removes the first n values, or all if there are fewer.
func (l *List[K, V]) RemoveFirst(n int) { l.l.RemoveFirst(n) }

// All goes through the values in their order.
func (l *List[K, V]) All() iter.Seq2[int, V] { return l.l.All() }
