package engine

import (
	"iter"
	"slices"

	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Limit is how many entries a key of a sorted state has at most.
type Limit = state.Limit

// Sorted is a state of entries in an order, of which each key has so many at
// most, at the key in hand.
type Sorted[K, E comparable, V any] struct {
	key        *KeyContext[K]
	table      *Table[Pair[K, E], V]
	elements   *schema.Key[E]
	limit      int
	descending bool
	rankings   map[K]*ranking[E]
	spare      *ranking[E] // of a key that has lost its last entry
	moves      uint64      // how often an entry has come or gone
	scratch    []byte
}

// ranking are the elements of one key. They ascend, whatever the state's order:
// that is how segments have them, so that loading appends.
type ranking[E comparable] struct{ places []ranked[E] }

// ranked is an element and the hash that finds its entry.
type ranked[E comparable] struct {
	element E
	hash    uint64
}

// OpenSorted returns the state at the key in hand of one shard.
func OpenSorted[K, E comparable, V any](in *Instance, stage *Stage[K], t *TableSpec[Pair[K, E], V], elements *schema.Key[E]) *Sorted[K, E, V] {
	table := t.table(in)
	return sharedPart(in, t, "sorted", func() *Sorted[K, E, V] {
		s := &Sorted[K, E, V]{
			key: stage.keyContext(in), table: table, elements: elements, limit: t.Limit.Entries, descending: t.Limit.Descending, rankings: map[K]*ranking[E]{},
		}
		table.observer = s.observe
		return s
	})
}

func (s *Sorted[K, E, V]) observe(row Pair[K, E], hash uint64, added bool) {
	s.moves++
	r := s.rankings[row.Key]
	switch {
	case added && r == nil:
		if r, s.spare = s.spare, nil; r == nil {
			r = new(ranking[E])
		}
		r.places = append(r.places[:0], ranked[E]{row.Element, hash})
		s.rankings[row.Key] = r
	case added:
		at, _ := s.find(r, row.Element)
		r.places = slices.Insert(r.places, at, ranked[E]{row.Element, hash})
	case len(r.places) == 1:
		delete(s.rankings, row.Key)
		r.places, s.spare = slices.Delete(r.places, 0, 1), r
	default:
		at, _ := s.find(r, row.Element)
		r.places = slices.Delete(r.places, at, at+1)
	}
}

// find returns where an element stands, or would, and whether it is there.
func (s *Sorted[K, E, V]) find(r *ranking[E], e E) (at int, is bool) {
	low, high := 0, len(r.places)
	if high > 0 && s.elements.Compare(&r.places[high-1].element, &e) < 0 {
		return high, false // what comes in order
	}
	for low < high {
		middle := int(uint(low+high) >> 1)
		switch order := s.elements.Compare(&r.places[middle].element, &e); {
		case order == 0:
			return middle, true
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// ranking is that of the key in hand; nil if it has no entries.
func (s *Sorted[K, E, V]) ranking() *ranking[E] { return s.rankings[s.key.Key] }

// ends are the indexes of the first place in the state's order and of the last.
func (s *Sorted[K, E, V]) ends(r *ranking[E]) (first, last int) {
	if s.descending {
		return len(r.places) - 1, 0
	}
	return 0, len(r.places) - 1
}

func (s *Sorted[K, E, V]) row(e E) Pair[K, E] { return Pair[K, E]{s.key.Key, e} }

func (s *Sorted[K, E, V]) hash(e E) uint64 {
	s.scratch = s.elements.Append(s.scratch[:0], e)
	return elementHash(s.key.Hash, s.scratch)
}

// value is that of an entry that there is.
func (s *Sorted[K, E, V]) value(p ranked[E]) *V { return s.table.get(p.hash, s.row(p.element)) }

func (s *Sorted[K, E, V]) remove(p ranked[E]) {
	s.table.remove(s.table.update(p.hash, s.row(p.element)))
}

// Put puts an entry in, or gives the one that there is another value. If that
// makes one too many the last is dropped, and returned: it may be the new one.
func (s *Sorted[K, E, V]) Put(e E, v V) (dropped E, was bool) {
	if r := s.ranking(); r != nil {
		at, is := s.find(r, e)
		if is {
			s.table.update(r.places[at].hash, s.row(e)).value = v
			return dropped, false
		}
		if len(r.places) >= s.limit {
			behind := at == len(r.places)
			if s.descending {
				behind = at == 0
			}
			if behind {
				return e, true
			}
			_, last := s.ends(r)
			dropped, was = r.places[last].element, true
			s.remove(r.places[last])
		}
	}
	entry := s.table.update(s.hash(e), s.row(e))
	entry.value = v
	s.table.put(entry)
	return dropped, was
}

// Read returns an entry's value, and whether there is one.
func (s *Sorted[K, E, V]) Read(e E) (value V, ok bool) {
	if p := s.table.get(s.hash(e), s.row(e)); p != nil {
		return *p, true
	}
	return value, false
}

// Update returns an entry's value for being changed; nil if there is none.
func (s *Sorted[K, E, V]) Update(e E) *V {
	h, row := s.hash(e), s.row(e)
	if s.table.get(h, row) == nil {
		return nil
	}
	return &s.table.update(h, row).value
}

// Delete removes an entry.
func (s *Sorted[K, E, V]) Delete(e E) {
	if h := s.hash(e); s.table.get(h, s.row(e)) != nil {
		s.remove(ranked[E]{e, h})
	}
}

// Len is the number of entries.
func (s *Sorted[K, E, V]) Len() int {
	if r := s.ranking(); r != nil {
		return len(r.places)
	}
	return 0
}

// First returns the first entry, and whether there is one.
func (s *Sorted[K, E, V]) First() (e E, v V, ok bool) {
	if r := s.ranking(); r != nil {
		first, _ := s.ends(r)
		return r.places[first].element, *s.value(r.places[first]), true
	}
	return e, v, false
}

// Last returns the last entry, and whether there is one.
func (s *Sorted[K, E, V]) Last() (e E, v V, ok bool) {
	if r := s.ranking(); r != nil {
		_, last := s.ends(r)
		return r.places[last].element, *s.value(r.places[last]), true
	}
	return e, v, false
}

// All goes through the entries in their order. What is put in or removed on the
// way is met, or not, if it stands behind the entry in hand.
func (s *Sorted[K, E, V]) All() iter.Seq2[E, V] {
	return func(yield func(E, V) bool) {
		r := s.ranking()
		if r == nil {
			return
		}
		for at, _ := s.ends(r); at >= 0 && at < len(r.places); {
			p, moves := r.places[at], s.moves
			if !yield(p.element, *s.value(p)) {
				return
			}
			is := true
			if s.moves != moves {
				if r = s.ranking(); r == nil {
					return
				}
				at, is = s.find(r, p.element)
			}
			switch {
			case s.descending:
				at--
			case is:
				at++
			}
		}
	}
}

// Clear removes all entries.
func (s *Sorted[K, E, V]) Clear() {
	for r := s.ranking(); r != nil; r = s.ranking() {
		s.remove(r.places[len(r.places)-1])
	}
}
