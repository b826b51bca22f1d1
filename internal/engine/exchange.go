package engine

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// Keyed is what stands behind a KeyBy: the stage that the records reach by
// their key, and the node at which they arrive there.
type Keyed[K comparable, T any] struct {
	Stage *Stage[K]
	Node  *Node[T]
}

// Stage is the typed half of a keyed stage: what all operators of it share.
type Stage[K comparable] struct {
	id    int
	keys  *schema.Key[K]
	times []*EventTime
}

// Times are the places at which the stage's records have got their times; none: they
// have none.
func (s *Stage[K]) Times() []*EventTime { return s.times }

// Keys returns the keys' codec.
func (s *Stage[K]) Keys() *schema.Key[K] { return s.keys }

// SetMeaning sets the author's meaning version of the keys.
func (s *Stage[K]) SetMeaning(g *Graph, version int) { g.stages[s.id-1].meaning = version }

// KeyContext is the key in hand in one shard of a stage.
type KeyContext[K comparable] struct {
	Key  K
	Hash uint64
}

// keyContext returns the key in hand of the stage's shard in.
func (s *Stage[K]) keyContext(in *Instance) *KeyContext[K] {
	return sharedPart(in, s, "key", func() *KeyContext[K] { return new(KeyContext[K]) })
}

// Context returns the key in hand of the stage's shard in.
func (s *Stage[K]) Context(in *Instance) *KeyContext[K] { return s.keyContext(in) }

// SlotOf is the hash range that a key's hash lies in.
func SlotOf(hash uint64) epoch.Slot { return epoch.Slot(hash >> 48) }

// shardOf is the shard, out of n, that owns the slot of a hash.
func shardOf(hash uint64, n int) int { return int((hash >> 48) * uint64(n) >> 16) }

// SlotsOf returns the slots that a shard, out of n, owns.
func SlotsOf(shard, n int) epoch.Slots {
	first := (shard<<16 + n - 1) / n
	next := ((shard+1)<<16 + n - 1) / n
	return epoch.Slots{First: epoch.Slot(first), Last: epoch.Slot(next - 1)}
}

// piecesKept is about the number of pieces under way between a few workers and
// a few shards.
const piecesKept = 64

// item is a record on its way to its key's shard.
type item[K comparable, T any] struct {
	place Place
	hash  uint64
	key   K
	value T
}

// piece is what one sender has for one shard, of one batch.
type piece[K comparable, T any] struct {
	items []item[K, T]
	times []int64 // of the items, where these have such
}

// exchange sends records from where they are to the shard that owns their key.
type exchange[K comparable, T any] struct {
	stage *Stage[K]
	key   func(T) K
	node  *Node[T]
	copy  func(T) T // nil: the type holds nothing that could be shared
	timed bool
	free  freeList[*piece[K, T]]
}

// KeyBy adds a keyed stage that the records of from reach by their key.
// function is the name of key, if it has one, times are the places where the records
// have got their times.
func KeyBy[K comparable, T any](g *Graph, from *Node[T], keys *schema.Key[K], key func(T) K, function string, times []*EventTime) (Keyed[K, T], error) {
	copyOf, shares, err := schema.Copier[T]()
	if err != nil {
		return Keyed[K, T]{}, err
	}
	if !shares {
		copyOf = nil
	}
	x := &exchange[K, T]{stage: &Stage[K]{id: len(g.stages) + 1, keys: keys, times: times}, key: key, node: new(Node[T]), copy: copyOf, timed: len(times) > 0, free: newFreeList[*piece[K, T]](piecesKept)}
	g.stages = append(g.stages, &stageSpec{id: x.stage.id, key: keys.Schema(), function: function, times: times, start: x.start})
	from.Consume(x.writer)
	return Keyed[K, T]{x.stage, x.node}, nil
}

// exchangeWriter gathers, in one instance, the pieces for the stage's shards.
type exchangeWriter[K comparable, T any] struct {
	x       *exchange[K, T]
	in      *Instance
	pieces  []*piece[K, T]
	staged  []item[K, T] // not hashed yet
	times   []int64      // of these
	strings bool         // keys are strings
	scratch []byte       // keys of the staged
	ends    []int        // where these end
}

func (x *exchange[K, T]) writer(in *Instance) func(*T) {
	w := sharedPart(in, x, "writer", func() *exchangeWriter[K, T] {
		w := &exchangeWriter[K, T]{x: x, in: in, strings: isString[K](), staged: make([]item[K, T], 0, ahead)}
		if in.build != nil {
			in.build.reaches(in, x.stage.id)
			return w
		}
		w.pieces = make([]*piece[K, T], in.run.shards)
		for i := range w.pieces {
			w.pieces[i] = x.free.get(newPiece[K, T])
		}
		in.writers = append(in.writers, w)
		return w
	})
	return w.take
}

func newPiece[K comparable, T any]() *piece[K, T] { return new(piece[K, T]) }

func (w *exchangeWriter[K, T]) take(v *T) {
	w.staged = append(w.staged, item[K, T]{w.in.next(), 0, w.x.key(*v), *v})
	if w.x.copy != nil {
		last := &w.staged[len(w.staged)-1]
		last.value = w.x.copy(last.value)
	}
	if w.x.timed {
		w.times = append(w.times, w.in.time)
	}
	if len(w.staged) == ahead {
		w.route()
	}
}

// route puts the staged records into the pieces of the shards that own their
// keys. It comes for many records at once, so that the memory answers for their
// keys side by side.
func (w *exchangeWriter[K, T]) route() {
	if w.strings {
		var sum byte
		for i := range w.staged {
			sum ^= firstByte(&w.staged[i].key)
		}
		w.in.warmth ^= sum
	}
	// A key that was written a moment ago can't be read yet in larger pieces.
	keys, ends := w.scratch[:0], w.ends[:0]
	for i := range w.staged {
		keys = w.x.stage.keys.Append(keys, w.staged[i].key)
		ends = append(ends, len(keys))
	}
	w.scratch, w.ends = keys, ends
	from := 0
	for i := range w.staged {
		it := &w.staged[i]
		it.hash = xxhash.Sum64(keys[from:ends[i]])
		from = ends[i]
		p := w.pieces[shardOf(it.hash, len(w.pieces))]
		p.items = append(p.items, *it)
		if w.x.timed {
			p.times = append(p.times, w.times[i])
		}
	}
	w.staged, w.times = w.staged[:0], w.times[:0]
}

// isString tells whether K is a string type.
func isString[K comparable]() bool { return reflect.TypeFor[K]().Kind() == reflect.String }

// firstByte reads the memory that a key of a string type points to.
func firstByte[K comparable](k *K) byte {
	if s := *(*string)(unsafe.Pointer(k)); len(s) > 0 {
		return s[0]
	}
	return 0
}

func (w *exchangeWriter[K, T]) drop(record uint64) {
	w.staged = dropRecord(w.staged, record)
	w.times = w.times[:min(len(w.times), len(w.staged))]
	for _, p := range w.pieces {
		p.items = dropRecord(p.items, record)
		p.times = p.times[:min(len(p.times), len(p.items))]
	}
}

// dropRecord takes what has come of a record off the end of items.
func dropRecord[K comparable, T any](items []item[K, T], record uint64) []item[K, T] {
	for n := len(items); n > 0 && items[n-1].place.record() == record; n-- {
		items[n-1] = item[K, T]{}
		items = items[:n-1]
	}
	return items
}

func (w *exchangeWriter[K, T]) flush(b *batch) {
	w.route()
	stage := w.in.run.stages[w.x.stage.id-1]
	for shard, p := range w.pieces {
		if !stage.send(shard, message{batch: b, piece: p}) {
			return
		}
		w.pieces[shard] = w.x.free.get(newPiece[K, T])
	}
}

// start makes the shard's instance and returns the function that applies the
// pieces of one batch.
func (x *exchange[K, T]) start(in *Instance) func(pieces []pieceOf) {
	key := x.stage.keyContext(in)
	in.keyInHand = func() string { return fmt.Sprint(key.Key) }
	push := x.node.instantiate(in)
	s := &applier[K, T]{x: x, in: in, key: key, push: push, strings: isString[K]()}
	in.hot = s.hot.list
	s.tables = in.tables
	return s.apply
}

// applier applies pieces in one shard.
type applier[K comparable, T any] struct {
	x       *exchange[K, T]
	in      *Instance
	key     *KeyContext[K]
	push    func(*T)
	tables  []tableHandle
	heads   []cursor[K, T]
	hashes  []uint64
	strings bool // keys are strings
	hot     hotKeys[K]
}

type cursor[K comparable, T any] struct {
	items []item[K, T]
	times []int64
	at    int
}

// apply applies the pieces of a batch in the order of their places.
func (s *applier[K, T]) apply(pieces []pieceOf) {
	s.heads = s.heads[:0]
	for _, p := range pieces {
		p := p.(*piece[K, T])
		if len(p.items) > 0 {
			s.heads = append(s.heads, cursor[K, T]{items: p.items, times: p.times})
			sample(&s.hot, p.items)
		}
	}
	for len(s.heads) > 1 && s.in.failed == nil {
		least := 0
		for i := 1; i < len(s.heads); i++ {
			if s.heads[i].items[s.heads[i].at].place.before(s.heads[least].items[s.heads[least].at].place) {
				least = i
			}
		}
		h := &s.heads[least]
		if s.x.timed {
			s.in.time = h.times[h.at]
		}
		s.one(&h.items[h.at])
		if h.at++; h.at == len(h.items) {
			s.heads = append(s.heads[:least], s.heads[least+1:]...)
		}
	}
	if len(s.heads) == 1 {
		h := s.heads[0]
		rest := h.items[h.at:]
		for len(rest) > 0 && s.in.failed == nil {
			n := min(len(rest), ahead)
			s.warm(rest[:n])
			for i := 0; i < n && s.in.failed == nil; i++ {
				if s.x.timed {
					s.in.time = h.times[len(h.times)-len(rest)+i]
				}
				s.one(&rest[i])
			}
			rest = rest[n:]
		}
	}
	for _, p := range pieces {
		p := p.(*piece[K, T])
		clear(p.items) // the values' memory is not the pool's to keep
		p.items, p.times = p.items[:0], p.times[:0]
		s.x.free.put(p)
	}
}

// ahead is the number of records whose entries are looked up before the first
// of them is applied: enough for the memory to answer them side by side, few
// enough for what was fetched to be still in the cache.
const ahead = 32

// warm fetches the entries that the records will meet.
func (s *applier[K, T]) warm(items []item[K, T]) {
	if len(s.tables) == 0 {
		return
	}
	s.hashes = s.hashes[:0]
	var sum byte
	for i := range items {
		s.hashes = append(s.hashes, items[i].hash)
		if s.strings {
			sum ^= firstByte(&items[i].key)
		}
	}
	s.in.warmth ^= sum
	for _, t := range s.tables {
		t.warm(s.hashes)
	}
}

func (s *applier[K, T]) one(it *item[K, T]) {
	s.key.Key, s.key.Hash = it.key, it.hash
	s.in.base, s.in.emitted = it.place, 0
	s.push(&it.value)
}
