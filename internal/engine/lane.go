package engine

import (
	"reflect"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/schema"
)

// piecesKept is about the number of pieces under way between a few workers and
// a few shards.
const piecesKept = 64

// lane is one of the ways to the shards of a stage, of values of one type: each batch has
// a piece from each sender to each shard on it.
type lane[K comparable, T any] struct {
	stage *Stage[K]
	node  *Node[T]  // where the values arrive
	copy  func(T) T // nil: nothing is shared with whoever has sent a value
	timed bool
	free  freeList[*piece[K, T]]
}

func newLane[K comparable, T any](stage *Stage[K], copyOf func(T) T) *lane[K, T] {
	return &lane[K, T]{stage, new(Node[T]), copyOf, len(stage.times) > 0, newFreeList[*piece[K, T]](piecesKept)}
}

// item is a value on its way to its key's shard.
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

// laneWriter gathers, in one sender, the pieces for the stage's shards.
type laneWriter[K comparable, T any] struct {
	*lane[K, T]
	in      *Instance
	number  int // of the lane
	pieces  []*piece[K, T]
	staged  []item[K, T] // not hashed yet
	times   []int64      // of these
	hashing hashing[K]
}

// writer returns a sender's end of the lane, which is the stage's of the given number.
func (l *lane[K, T]) writer(in *Instance, number int) *laneWriter[K, T] {
	w := &laneWriter[K, T]{lane: l, in: in, number: number, staged: make([]item[K, T], 0, ahead), hashing: hashing[K]{keys: l.stage.keys}}
	w.pieces = make([]*piece[K, T], in.run.shards)
	for i := range w.pieces {
		w.pieces[i] = l.free.get(newPiece[K, T])
	}
	return w
}

func newPiece[K comparable, T any]() *piece[K, T] { return new(piece[K, T]) }

// put takes a value of a key, with its time.
func (w *laneWriter[K, T]) put(place Place, key K, time int64, v *T) {
	w.staged = append(w.staged, item[K, T]{place, 0, key, *v})
	if w.copy != nil {
		last := &w.staged[len(w.staged)-1]
		last.value = w.copy(last.value)
	}
	if w.timed {
		w.times = append(w.times, time)
	}
	if len(w.staged) == ahead {
		w.route()
	}
}

// route puts the staged values into the pieces of the shards that own their keys.
func (w *laneWriter[K, T]) route() {
	w.hashing.hash(w.in, w.staged)
	for i := range w.staged {
		var time int64
		if w.timed {
			time = w.times[i]
		}
		w.send(&w.staged[i], time)
	}
	w.staged, w.times = w.staged[:0], w.times[:0]
}

// send puts a value that has been hashed into the piece of the shard that owns its key.
func (w *laneWriter[K, T]) send(it *item[K, T], time int64) {
	p := w.pieces[shardOf(it.hash, len(w.pieces))]
	p.items = append(p.items, *it)
	if w.timed {
		p.times = append(p.times, time)
	}
}

// hashing hashes the keys of many values at once, so that the memory answers for them
// side by side.
type hashing[K comparable] struct {
	keys    *schema.Key[K]
	scratch []byte
	ends    []int // of the keys in scratch
}

func (h *hashing[K]) hash[T any](in *Instance, items []item[K, T]) {
	if isString[K]() {
		var sum byte
		for i := range items {
			sum ^= firstByte(&items[i].key)
		}
		in.warmth ^= sum
	}
	// A key that was written a moment ago can't be read yet in larger pieces.
	keys, ends := h.scratch[:0], h.ends[:0]
	for i := range items {
		keys = h.keys.Append(keys, items[i].key)
		ends = append(ends, len(keys))
	}
	h.scratch, h.ends = keys, ends
	from := 0
	for i := range items {
		items[i].hash = xxhash.Sum64(keys[from:ends[i]])
		from = ends[i]
	}
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

func (w *laneWriter[K, T]) drop(record uint64) {
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

func (w *laneWriter[K, T]) flush(b *batch) {
	w.route()
	stage := w.in.run.stages[w.stage.id-1]
	for shard, p := range w.pieces {
		if !stage.send(shard, message{batch: b, lane: w.number, piece: p}) {
			return
		}
		w.pieces[shard] = w.free.get(newPiece[K, T])
	}
}

// applier returns the shard's end of the lane: it changes these tables.
func (l *lane[K, T]) applier(in *Instance, tables []tableHandle, push func(*T)) *applier[K, T] {
	return &applier[K, T]{lane: l, in: in, key: l.stage.keyContext(in), push: push, tables: tables, strings: isString[K]()}
}

// applier applies pieces of one lane in one shard.
type applier[K comparable, T any] struct {
	*lane[K, T]
	in      *Instance
	key     *KeyContext[K]
	push    func(*T)
	tables  []tableHandle
	heads   []cursor[K, T]
	hashes  []uint64
	strings bool        // keys are strings
	hot     *hotKeys[K] // nil: nobody counts the keys
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
			if s.hot != nil {
				sample(s.hot, p.items)
			}
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
		if s.timed {
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
			var times []int64
			if s.timed {
				times = h.times[len(h.times)-len(rest):][:n]
			}
			s.warm(rest[:n], times)
			for i := 0; i < n && s.in.failed == nil; i++ {
				if s.timed {
					s.in.time = times[i]
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
		s.free.put(p)
	}
}

// ahead is the number of records whose entries are looked up before the first
// of them is applied: enough for the memory to answer them side by side, few
// enough for what was fetched to be still in the cache.
const ahead = 32

// warm fetches the entries that the records will meet, which have these times, if any.
func (s *applier[K, T]) warm(items []item[K, T], times []int64) {
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
		t.warm(s.hashes, times)
	}
}

func (s *applier[K, T]) one(it *item[K, T]) {
	s.key.Key, s.key.Hash = it.key, it.hash
	s.in.base, s.in.emitted = it.place, 0
	s.push(&it.value)
}
