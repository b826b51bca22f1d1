package sluice

import (
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/schema"
)

// Keyed is a stream whose records stand at their key: an operator on it can
// keep state for each key.
type Keyed[K comparable, T any] struct {
	job   *Job
	keyed engine.Keyed[K, T]
	from  []string
	bad   bool // a fault was noted; what is added has no effect
	mixed bool // some of the records have got no time
}

func keyOf[K comparable]() (*schema.Key[K], error) { return schema.KeyOf[K]("key") }

// Fold folds each record into its key's value: fold changes the value in place,
// which is zero for a new key. A panic in fold leaves the value as it was.
func (k *Keyed[K, T]) Fold[S any](state State[K, S], fold func(*S, T)) *Table[K, S] {
	t := k.table(state, "fold", connector.FunctionName(fold))
	if t.spec != nil {
		engine.AddAlwaysFold(k.keyed, t.spec, fold)
	}
	return t
}

// FoldKeep is [Keyed.Fold] with a function that tells whether the entry stays:
// where it returns false, the key is deleted, here and in the table's sinks.
func (k *Keyed[K, T]) FoldKeep[S any](state State[K, S], fold func(*S, T) bool) *Table[K, S] {
	t := k.table(state, "fold", connector.FunctionName(fold))
	if t.spec != nil {
		engine.AddFold(k.keyed, t.spec, fold)
	}
	return t
}

func (k *Keyed[K, T]) table[S any](state State[K, S], operation, function string) *Table[K, S] {
	spec := addState(k.job, k.stage(), state, owner{state.d.name, operation, function, k.from})
	if spec == nil && !k.bad { // one fault is enough
		k.keyed.Node.Consume(func(*engine.Instance) func(*T) { return func(*T) {} })
	}
	return &Table[K, S]{job: k.job, name: state.d.name, spec: spec}
}

// stage is where the keyed records are; nil if that was refused.
func (k *Keyed[K, T]) stage() *engine.Stage[K] {
	if k.bad {
		return nil
	}
	return k.keyed.Stage
}

// behind returns a stream of what comes of k, whose records have its times.
func behind[U any, K comparable, T any](k *Keyed[K, T]) *Stream[U] {
	s := newStream[U](k.job, k.from)
	if k.keyed.Stage != nil {
		s.times, s.mixed = k.keyed.Stage.Times(), k.mixed
	}
	return s
}

// MapValues turns each record into another that stays at its key.
func (k *Keyed[K, T]) MapValues[U any](f func(T) U) *Keyed[K, U] {
	out := &Keyed[K, U]{job: k.job, from: k.from, bad: k.bad, mixed: k.mixed}
	if k.bad {
		return out
	}
	s := behind[U](k)
	out.keyed = engine.Keyed[K, U]{Stage: k.keyed.Stage, Node: s.node}
	engine.Through(k.keyed.Node, s.node, func(_ *engine.Instance, next func(*U)) func(*T) {
		var u U
		return func(v *T) {
			u = f(*v)
			next(&u)
		}
	})
	return out
}

// Values drops the key. The records stay where they are.
func (k *Keyed[K, T]) Values() *Stream[T] {
	s := behind[T](k)
	if k.bad {
		s.Discard()
		return s
	}
	engine.Through(k.keyed.Node, s.node, func(_ *engine.Instance, next func(*T)) func(*T) { return next })
	return s
}
