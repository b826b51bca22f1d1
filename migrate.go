package sluice

import (
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/schema"
)

// Migration is a chain of functions from older types of a state's values to T,
// for [State.Migrate]. It is immutable.
type Migration[T any] struct{ chain carry.Chain[T] }

// Migrate begins a chain with a function from a type that was stored to the next
// one. The functions must be pure. An error, or a panic, stops the start at which
// a state is migrated, names the key, and leaves everything as it was; see also
// [Options.SetAside].
func Migrate[Old, New any](f func(Old) (New, error)) Migration[New] {
	return Migration[New]{carry.First(f)}
}

// Then goes on with a function to the next type. What is stored enters the chain
// at the type that it fits.
func (m Migration[T]) Then[New any](f func(T) (New, error)) Migration[New] {
	return Migration[New]{carry.Then(m.chain, f)}
}

// From says which meaning version ([State.Meaning]) the values have that the
// newest function takes. It is needed only where two types of a chain are stored
// alike, such as before and after a fold began to count otherwise.
func (m Migration[T]) From(meaning int) Migration[T] { return Migration[T]{m.chain.From(meaning)} }

// Migrate gives the state functions that carry over what older versions have
// stored. What is stored as a type of the chain goes through the functions from
// there on, once: the chain may stay in the code, since what a version with these
// functions has stored has been through them. What is stored in yet another way is
// resolved by Avro's rules; where that could be both to the state's own type and
// to one of the chain, it is refused until [Migration.From] and [State.Meaning]
// tell. `plan` tells which functions are called.
func (s State[K, S]) Migrate(m Migration[S]) State[K, S] { s.carry.Chain = m.chain; return s }

// MigrateKeys gives the state a function from an old key and its value, migrated,
// to any number of new ones: none drops the entry, which is counted. merge puts
// two values together that meet at one key, in the order of the old keys; nil if
// that can't be, and is an error. The function is called where stored keys are of
// another type, or their meaning was another ([Keyed.Meaning]), or the state is
// taken over: once, since what a version with such a function has stored has been
// through it. It may stay in the code.
func (s State[K, S]) MigrateKeys[Old comparable](f func(Old, S) iter.Seq2[K, S], merge func(earlier *S, later S)) State[K, S] {
	if merge != nil {
		s.carry.Merge = merge
	}
	s.carry.Keys = &carry.Keys[K, S]{Function: carry.FunctionName(f), Alike: takesKeys[Old], Open: func(key, _ *schema.Schema) (func(key, _ []byte, v S) (iter.Seq2[K, S], error), error) {
		read, err := keyReader[Old](key)
		if err != nil {
			return nil, err
		}
		return func(key, _ []byte, v S) (iter.Seq2[K, S], error) {
			old, err := read(key)
			return f(old, v), err
		}, nil
	}}
	return s
}

// TakesOver lets the state begin with what another state has stored, the first
// time that it is run: a state that was renamed, one part of a state that was
// split, or one that several were put together in, which needs [State.Merge].
// Values go through the chain that is given, or that of [State.Migrate]. The
// other state may be gone from the job, or go on.
func (s State[K, S]) TakesOver(name string, chain ...Migration[S]) State[K, S] {
	s.carry.Takes = taking(s.carry.Takes, name, chain)
	return s
}

// Merge says what becomes of two values that meet at one key when the state is
// migrated, taken over or imported: earlier is changed in place.
func (s State[K, S]) Merge(merge func(earlier *S, later S)) State[K, S] {
	s.carry.Merge = merge
	return s
}

// Migrate is [State.Migrate], for each element's value.
func (s MapState[K, E, V]) Migrate(m Migration[V]) MapState[K, E, V] {
	s.carry.Chain = m.chain
	return s
}

// KeyElement is a key of a map state and an element of it.
type KeyElement[K, E comparable] struct {
	Key     K
	Element E
}

// MigrateKeys is [State.MigrateKeys], for each element of the map.
func (s MapState[K, E, V]) MigrateKeys[OldKey, OldElement comparable](f func(OldKey, OldElement, V) iter.Seq2[KeyElement[K, E], V], merge func(earlier *V, later V)) MapState[K, E, V] {
	if merge != nil {
		s.carry.Merge = merge
	}
	s.carry.Keys = &carry.Keys[engine.Pair[K, E], V]{Function: carry.FunctionName(f), Alike: takesElements[OldKey, OldElement], Open: func(key, element *schema.Schema) (func(key, element []byte, v V) (iter.Seq2[engine.Pair[K, E], V], error), error) {
		readKey, err := keyReader[OldKey](key)
		if err != nil {
			return nil, err
		}
		readElement, err := keyReader[OldElement](element)
		if err != nil {
			return nil, fmt.Errorf("element: %w", err)
		}
		return func(key, element []byte, v V) (iter.Seq2[engine.Pair[K, E], V], error) {
			k, err := readKey(key)
			if err != nil {
				return nil, err
			}
			el, err := readElement(element)
			return func(yield func(engine.Pair[K, E], V) bool) {
				for to, v := range f(k, el, v) {
					if !yield(engine.Pair[K, E](to), v) {
						return
					}
				}
			}, err
		}, nil
	}}
	return s
}

// TakesOver is [State.TakesOver] for another map state.
func (s MapState[K, E, V]) TakesOver(name string, chain ...Migration[V]) MapState[K, E, V] {
	s.carry.Takes = taking(s.carry.Takes, name, chain)
	return s
}

// Merge is [State.Merge], for two values that meet at one element.
func (s MapState[K, E, V]) Merge(merge func(earlier *V, later V)) MapState[K, E, V] {
	s.carry.Merge = merge
	return s
}

// Migrate is [State.Migrate], for each value of the list.
func (s ListState[K, V]) Migrate(m Migration[V]) ListState[K, V] {
	s.carry.Chain = m.chain
	return s
}

// MigrateKeys is [State.MigrateKeys], for each value of the list. Values that come
// to one key stand there in the order of the old keys, and of their old lists.
func (s ListState[K, V]) MigrateKeys[Old comparable](f func(Old, V) iter.Seq2[K, V]) ListState[K, V] {
	s.carry.Keys = &carry.Keys[engine.Pair[K, int64], V]{Function: carry.FunctionName(f), Alike: takesKeys[Old], Open: func(key, _ *schema.Schema) (func(key, _ []byte, v V) (iter.Seq2[engine.Pair[K, int64], V], error), error) {
		read, err := keyReader[Old](key)
		if err != nil {
			return nil, err
		}
		return func(key, _ []byte, v V) (iter.Seq2[engine.Pair[K, int64], V], error) {
			old, err := read(key)
			return func(yield func(engine.Pair[K, int64], V) bool) {
				for to, v := range f(old, v) {
					if !yield(engine.Pair[K, int64]{Key: to}, v) {
						return
					}
				}
			}, err
		}, nil
	}}
	return s
}

// TakesOver is [State.TakesOver] for another list state; where several lists of
// one key are put together, they stand one behind the other.
func (s ListState[K, V]) TakesOver(name string, chain ...Migration[V]) ListState[K, V] {
	s.carry.Takes = taking(s.carry.Takes, name, chain)
	return s
}

// Meaning gives the key a meaning version: another number says that keys of equal
// types mean something else now, for the states that are kept under them. Defaults
// to 0.
func (k *Keyed[K, T]) Meaning(version int) *Keyed[K, T] {
	if !k.bad {
		k.keyed.Stage.SetMeaning(k.job.graph, version)
	}
	return k
}

// taking adds a state to those that are taken over.
func taking[S any](takes []carry.Taken[S], name string, chain []Migration[S]) []carry.Taken[S] {
	t := carry.Taken[S]{Name: name}
	if len(chain) > 0 {
		t.Chain = chain[0].chain
	}
	return append(takes[:len(takes):len(takes)], t)
}

// keyReader reads stored keys of a schema as Old.
func keyReader[Old comparable](stored *schema.Schema) (func(src []byte) (Old, error), error) {
	keys, err := schema.KeyOf[Old]("key")
	if err != nil {
		return nil, err
	}
	if !carry.SameEncoding(stored, keys.Schema()) {
		return nil, fmt.Errorf("it takes %s, and stored are %s", keys.Schema().Word(), stored.Word())
	}
	return func(src []byte) (Old, error) {
		key, rest, err := keys.Decode(src)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%d bytes behind the key", len(rest))
		}
		return key, err
	}, nil
}

// takesKeys tells whether keys of a schema are just what Old is stored as.
func takesKeys[Old comparable](key, _ *schema.Schema) bool {
	keys, err := schema.KeyOf[Old]("key")
	return err == nil && len(schema.Differences(keys.Schema(), key)) == 0
}

// takesElements is takesKeys for a key and an element of it.
func takesElements[OldKey, OldElement comparable](key, element *schema.Schema) bool {
	return takesKeys[OldKey](key, nil) && element != nil && takesKeys[OldElement](element, nil)
}
