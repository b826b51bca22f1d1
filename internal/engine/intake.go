package engine

import (
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Intake turns rows that come from elsewhere into entries of a state.
type Intake struct {
	// Row is the schema of the rows. Nil: they are the state's own entries, a key,
	// an element if it has such, and a value.
	Row *schema.Schema
	// Function is the name of the function that maps them, if it has one.
	Function string
	// New returns what maps an encoded row, for one goroutine: put is called with
	// each of its entries, which hold until it returns.
	New func() func(row []byte, put func(e *state.Entry) error) error
	// Merge makes one value of two that have come to one key and element, the
	// earlier first. Nil: two are an error.
	Merge func(earlier, later []byte) ([]byte, error)
}

// ownEntries is the intake of a state without a function: each row is an entry, and
// is encoded anew, since another writer may have encoded it in another way.
func ownEntries[K comparable, S any](keys *schema.Key[K], value *schema.Type[S]) func() func(row []byte, put func(e *state.Entry) error) error {
	return func() func(row []byte, put func(e *state.Entry) error) error {
		w := entryWriter[K, S]{keys: keys, value: value}
		var v S
		return func(row []byte, put func(e *state.Entry) error) error {
			k, rest, err := keys.Decode(row)
			if err == nil {
				rest, err = value.Decode(rest, &v)
			}
			if err == nil {
				err = ended(rest)
			}
			if err != nil {
				return err
			}
			return w.put(k, nil, &v, put)
		}
	}
}

// ownElements is ownEntries for a state that is stored by element.
func ownElements[K, E comparable, V any](keys *schema.Key[K], elements *schema.Key[E], value *schema.Type[V]) func() func(row []byte, put func(e *state.Entry) error) error {
	return func() func(row []byte, put func(e *state.Entry) error) error {
		w := entryWriter[K, V]{keys: keys, value: value}
		var v V
		var element []byte
		return func(row []byte, put func(e *state.Entry) error) error {
			k, rest, err := keys.Decode(row)
			if err != nil {
				return err
			}
			e, rest, err := elements.Decode(rest)
			if err == nil {
				rest, err = value.Decode(rest, &v)
			}
			if err == nil {
				err = ended(rest)
			}
			if err != nil {
				return err
			}
			element = elements.Append(element[:0], e)
			return w.put(k, element, &v, put)
		}
	}
}

func ended(rest []byte) error {
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes too many", len(rest))
	}
	return nil
}

// entryWriter encodes entries.
type entryWriter[K comparable, V any] struct {
	keys  *schema.Key[K]
	value *schema.Type[V]
	buf   []byte
	entry state.Entry
}

func (w *entryWriter[K, V]) put(k K, element []byte, v *V, put func(e *state.Entry) error) (err error) {
	w.buf = w.keys.Append(w.buf[:0], k)
	key := len(w.buf)
	if w.buf, err = w.value.Append(w.buf, v); err != nil {
		return err
	}
	w.entry = state.Entry{Slot: SlotOf(xxhash.Sum64(w.buf[:key])), Key: w.buf[:key:key], Element: element, Value: w.buf[key:]}
	return put(&w.entry)
}

// MappedEntries is the intake of a state whose entries a function makes of rows.
func MappedEntries[K comparable, S, R any](stage *Stage[K], value *schema.Type[S], row *schema.Type[R], rows func(R) (iter.Seq2[K, S], error)) Intake {
	return Intake{Row: row.Schema(), New: func() func(row []byte, put func(e *state.Entry) error) error {
		w := entryWriter[K, S]{keys: stage.keys, value: value}
		return mapped(row, rows, func(k K, v S, put func(e *state.Entry) error) error { return w.put(k, nil, &v, put) })
	}}
}

// MappedElements is MappedEntries for a map state: the function gives, for keys,
// elements with their values.
func MappedElements[K, E comparable, V, R any](stage *Stage[K], elements *schema.Key[E], value *schema.Type[V], row *schema.Type[R], rows func(R) (iter.Seq2[K, map[E]V], error)) Intake {
	return Intake{Row: row.Schema(), New: func() func(row []byte, put func(e *state.Entry) error) error {
		w := entryWriter[K, V]{keys: stage.keys, value: value}
		var element []byte
		return mapped(row, rows, func(k K, all map[E]V, put func(e *state.Entry) error) error {
			for e, v := range all { // their order is the segment's
				element = elements.Append(element[:0], e)
				if err := w.put(k, element, &v, put); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// MappedLists is MappedEntries for a list state: the function gives, for keys, their
// lists as a whole.
func MappedLists[K comparable, V, R any](stage *Stage[K], numbers *schema.Key[int64], value *schema.Type[V], row *schema.Type[R], rows func(R) (iter.Seq2[K, []V], error)) Intake {
	return Intake{Row: row.Schema(), New: func() func(row []byte, put func(e *state.Entry) error) error {
		w := entryWriter[K, V]{keys: stage.keys, value: value}
		var number []byte
		return mapped(row, rows, func(k K, list []V, put func(e *state.Entry) error) error {
			for i := range list {
				number = numbers.Append(number[:0], int64(i))
				if err := w.put(k, number, &list[i], put); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// mapped decodes rows and calls the function; a panic of it is an error.
func mapped[R any, K comparable, V any](row *schema.Type[R], rows func(R) (iter.Seq2[K, V], error), each func(k K, v V, put func(e *state.Entry) error) error) func(src []byte, put func(e *state.Entry) error) error {
	return func(src []byte, put func(e *state.Entry) error) (err error) {
		var r R
		rest, err := row.Decode(src, &r)
		if err == nil {
			err = ended(rest)
		}
		if err != nil {
			return err
		}
		defer func() {
			if p := recover(); p != nil {
				err = &PanicError{Value: fmt.Sprint(p), Stack: string(debug.Stack())}
			}
		}()
		entries, err := rows(r)
		if err != nil || entries == nil {
			return err
		}
		for k, v := range entries {
			if err := each(k, v, put); err != nil {
				return err
			}
		}
		return nil
	}
}

// mergesValues is an author's function that puts two values together, for encoded
// ones; nil if there is none.
func mergesValues[S any](value *schema.Type[S], merge func(earlier *S, later S)) func(earlier, later []byte) ([]byte, error) {
	if merge == nil {
		return nil
	}
	return func(earlier, later []byte) (_ []byte, err error) {
		var a, b S
		if _, err := value.Decode(earlier, &a); err != nil {
			return nil, err
		}
		if _, err := value.Decode(later, &b); err != nil {
			return nil, err
		}
		defer func() {
			if p := recover(); p != nil {
				err = &PanicError{Value: fmt.Sprint(p), Stack: string(debug.Stack())}
			}
		}()
		merge(&a, b)
		return value.Append(nil, &a)
	}
}
