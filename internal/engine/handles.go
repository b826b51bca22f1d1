package engine

import (
	"iter"
	"slices"

	"github.com/sluicestream/sluice/schema"
)

// Value is a state of one value per key, at the key in hand.
type Value[K comparable, S any] struct {
	key   *KeyContext[K]
	table *Table[K, S]
}

// OpenValue returns the state at the key in hand of one shard.
func OpenValue[K comparable, S any](in *Instance, stage *Stage[K], t *TableSpec[K, S]) *Value[K, S] {
	return &Value[K, S]{stage.keyContext(in), t.table(in)}
}

// Read returns the value, and whether there is one.
func (v *Value[K, S]) Read() (value S, ok bool) {
	if p := v.table.get(v.key.Hash, v.key.Key); p != nil {
		return *p, true
	}
	return value, false
}

// Update returns the value for being changed in place; a new one is zero.
func (v *Value[K, S]) Update() *S {
	e := v.table.update(v.key.Hash, v.key.Key)
	v.table.put(e)
	return &e.value
}

// Delete removes the value.
func (v *Value[K, S]) Delete() {
	if v.table.get(v.key.Hash, v.key.Key) != nil {
		v.table.remove(v.table.update(v.key.Hash, v.key.Key))
	}
}

// Map is a state of many elements per key, at the key in hand.
type Map[K, E comparable, V any] struct {
	key      *KeyContext[K]
	table    *Table[Pair[K, E], V]
	elements *schema.Key[E]
	compare  func(a, b []byte) int
	keys     map[K]*members[E]
	scratch  []byte
}

// members are the elements of one key. The order is made when it is asked for.
type members[E comparable] struct {
	live   map[E]struct{}
	sorted []E // may hold some that are not live any more
	fresh  []E // not in sorted yet
}

// OpenMap returns the state at the key in hand of one shard.
func OpenMap[K, E comparable, V any](in *Instance, stage *Stage[K], t *TableSpec[Pair[K, E], V], elements *schema.Key[E]) *Map[K, E, V] {
	compare, err := schema.Comparer(elements.Schema())
	if err != nil {
		panic(err) // keys have an order; this was one
	}
	table := t.table(in)
	return sharedPart(in, t, "map", func() *Map[K, E, V] {
		m := &Map[K, E, V]{key: stage.keyContext(in), table: table, elements: elements, compare: compare, keys: map[K]*members[E]{}}
		table.observer = m.observe
		return m
	})
}

func (m *Map[K, E, V]) observe(r Pair[K, E], _ uint64, added bool) {
	s := m.keys[r.Key]
	if added {
		if s == nil {
			s = &members[E]{live: map[E]struct{}{}}
			m.keys[r.Key] = s
		}
		s.live[r.Element] = struct{}{}
		s.fresh = append(s.fresh, r.Element)
		return
	}
	delete(s.live, r.Element)
	if len(s.live) == 0 {
		delete(m.keys, r.Key)
	}
}

func (m *Map[K, E, V]) hash(e E) uint64 {
	m.scratch = m.elements.Append(m.scratch[:0], e)
	return elementHash(m.key.Hash, m.scratch)
}

func (m *Map[K, E, V]) row(e E) Pair[K, E] { return Pair[K, E]{m.key.Key, e} }

// Read returns an element's value, and whether there is one.
func (m *Map[K, E, V]) Read(e E) (value V, ok bool) {
	if p := m.table.get(m.hash(e), m.row(e)); p != nil {
		return *p, true
	}
	return value, false
}

// Update returns an element's value for being changed; a new one is zero.
func (m *Map[K, E, V]) Update(e E) *V {
	entry := m.table.update(m.hash(e), m.row(e))
	m.table.put(entry)
	return &entry.value
}

// Delete removes an element.
func (m *Map[K, E, V]) Delete(e E) {
	if h := m.hash(e); m.table.get(h, m.row(e)) != nil {
		m.table.remove(m.table.update(h, m.row(e)))
	}
}

// Len is the number of elements.
func (m *Map[K, E, V]) Len() int {
	if s := m.keys[m.key.Key]; s != nil {
		return len(s.live)
	}
	return 0
}

// All goes through the elements in the order of their encoding. The elements
// may be changed and deleted on the way; what is added is not met.
func (m *Map[K, E, V]) All() iter.Seq2[E, V] {
	return func(yield func(E, V) bool) {
		s := m.keys[m.key.Key]
		if s == nil {
			return
		}
		m.sort(s)
		for _, e := range slices.Clone(s.sorted) {
			if v, ok := m.Read(e); ok && !yield(e, v) {
				return
			}
		}
	}
}

// sort brings the order of a key's elements up to date.
func (m *Map[K, E, V]) sort(s *members[E]) {
	if len(s.fresh) == 0 && len(s.sorted) == len(s.live) {
		return
	}
	var encoded []byte
	type place struct {
		element  E
		from, to int
	}
	places := make([]place, 0, len(s.live))
	seen := make(map[E]struct{}, len(s.live))
	for _, list := range [2][]E{s.sorted, s.fresh} {
		for _, e := range list {
			if _, ok := s.live[e]; !ok {
				continue
			}
			if _, ok := seen[e]; ok {
				continue
			}
			seen[e] = struct{}{}
			from := len(encoded)
			encoded = m.elements.Append(encoded, e)
			places = append(places, place{e, from, len(encoded)})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return m.compare(encoded[a.from:a.to], encoded[b.from:b.to])
	})
	s.sorted, s.fresh = s.sorted[:0], nil
	for _, p := range places {
		s.sorted = append(s.sorted, p.element)
	}
}

// Clear removes all elements.
func (m *Map[K, E, V]) Clear() {
	for e := range m.All() {
		m.Delete(e)
	}
}

// List is a state of many values per key in the order in which they were
// appended, at the key in hand.
type List[K comparable, V any] struct {
	key    *KeyContext[K]
	table  *Table[Pair[K, int64], V]
	bounds map[K]*bounds
	number *schema.Key[int64]
	buffer []byte
}

// bounds are the numbers of the first value of a list and of the next one.
type bounds struct{ first, next int64 }

// OpenList returns the state at the key in hand of one shard.
func OpenList[K comparable, V any](in *Instance, stage *Stage[K], t *TableSpec[Pair[K, int64], V], number *schema.Key[int64]) *List[K, V] {
	table := t.table(in)
	return sharedPart(in, t, "list", func() *List[K, V] {
		l := &List[K, V]{key: stage.keyContext(in), table: table, bounds: map[K]*bounds{}, number: number}
		table.observer = l.observe
		return l
	})
}

func (l *List[K, V]) observe(r Pair[K, int64], _ uint64, added bool) {
	b := l.bounds[r.Key]
	switch {
	case added && b == nil:
		l.bounds[r.Key] = &bounds{r.Element, r.Element + 1}
	case added:
		b.first, b.next = min(b.first, r.Element), max(b.next, r.Element+1)
	case r.Element == b.first && b.first+1 == b.next:
		delete(l.bounds, r.Key)
	case r.Element == b.first:
		b.first++
	}
}

func (l *List[K, V]) row(i int64) (uint64, Pair[K, int64]) {
	l.buffer = l.number.Append(l.buffer[:0], i)
	return elementHash(l.key.Hash, l.buffer), Pair[K, int64]{l.key.Key, i}
}

// Len is the number of values.
func (l *List[K, V]) Len() int {
	if b := l.bounds[l.key.Key]; b != nil {
		return int(b.next - b.first)
	}
	return 0
}

// Append adds a value at the end.
func (l *List[K, V]) Append(v V) {
	var next int64
	if b := l.bounds[l.key.Key]; b != nil {
		next = b.next
	}
	hash, row := l.row(next)
	e := l.table.update(hash, row)
	e.value = v
	l.table.put(e)
}

// At returns the value number i, for being changed in place. It panics if i is
// out of range, as a slice does.
func (l *List[K, V]) At(i int) V {
	hash, row := l.row(l.place(i))
	return *l.table.get(hash, row)
}

// Set replaces the value number i. It panics if i is out of range.
func (l *List[K, V]) Set(i int, v V) {
	hash, row := l.row(l.place(i))
	l.table.update(hash, row).value = v
}

func (l *List[K, V]) place(i int) int64 {
	_ = make([]struct{}, l.Len())[i] // panics as a slice does
	return l.bounds[l.key.Key].first + int64(i)
}

// RemoveFirst removes the first n values, or all if there are fewer.
func (l *List[K, V]) RemoveFirst(n int) {
	n = min(n, l.Len())
	for range n {
		hash, row := l.row(l.bounds[l.key.Key].first)
		l.table.remove(l.table.update(hash, row))
	}
}

// All goes through the values in their order.
func (l *List[K, V]) All() iter.Seq2[int, V] {
	return func(yield func(int, V) bool) {
		for i := range l.Len() {
			if i >= l.Len() || !yield(i, l.At(i)) {
				return
			}
		}
	}
}
