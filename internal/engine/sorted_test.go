package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// newTestSorted is a sorted state of one shard that runs nowhere.
func newTestSorted[E comparable](t testing.TB, limit state.Limit) *Sorted[int64, E, int64] {
	keys, err := schema.KeyOf[int64]("key")
	if err != nil {
		t.Fatal(err)
	}
	elements, err := schema.KeyOf[E]("element")
	if err != nil {
		t.Fatal(err)
	}
	value, err := schema.Of[int64]("top")
	if err != nil {
		t.Fatal(err)
	}
	g, stage := NewGraph(), &Stage[int64]{id: 1, keys: keys}
	spec, err := AddElementState(g, stage, StateSpec{Name: "top", Kind: "sorted", Limit: limit}, elements, value, carry.Spec[Pair[int64, E], int64]{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{graph: g, shards: 1, open: make(chan struct{}, 9), changes: newFreeList[*state.Changes](2), rows: newFreeList[*outbox.Rows](1)}
	return OpenSorted(&Instance{run: r, parts: map[part]any{}}, stage, spec, elements)
}

func (s *Sorted[K, E, V]) in(key K, hash uint64) { s.key.Key, s.key.Hash = key, hash }

// endEpoch ends an epoch, and encodes it at once.
func (s *Sorted[K, E, V]) endEpoch(t testing.TB) {
	run := s.table.in.run
	ended := run.newEpoch(0)
	s.table.begin(ended)
	for {
		done, err := s.table.encode(512)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			run.open <- struct{}{}
			run.Release(ended)
			return
		}
	}
}

type placing struct {
	Score int64
	Name  string
}

// Once a key has as many entries as it may, no operation allocates: neither one that
// is dropped at once nor one that replaces another.
func TestSortedDoesNotAllocate(t *testing.T) {
	for _, limit := range []state.Limit{{Entries: 1}, {Entries: 3}, {Entries: 3, Descending: true}} {
		s := newTestSorted[placing](t, limit)
		for key := range int64(4) {
			s.in(key, uint64(key)<<50)
			for n := range int64(3) {
				s.Put(placing{n, "name"}, n)
			}
		}
		sum, n := int64(0), int64(0)
		if allocs := testing.AllocsPerRun(100, func() {
			s.in(2, 2<<50)
			for range 5 {
				n++
				s.Put(placing{n % 7, "name"}, n)
				s.Read(placing{n, "name"})
				s.Update(placing{3, "name"})
				s.Delete(placing{n % 3, "name"})
				s.First()
				s.Last()
			}
			for _, v := range s.All() {
				sum += v
			}
		}); allocs >= 1 {
			t.Errorf("%+v: %v allocations, and the sum %d", limit, allocs, sum)
		}
	}
}

// ns per Put with 10 entries of each of 100,000 keys. Half of what is put comes to
// stand among the 10, so that another is dropped for it.
func BenchmarkSortedPut(b *testing.B) {
	b.Run("int64", func(b *testing.B) {
		benchmarkPut(b, func(random *rand.Rand, round int64) int64 { return round + random.Int64N(20) })
	})
	b.Run("string", func(b *testing.B) {
		names := make([]string, 1<<16)
		for i := range names {
			names[i] = "player-" + string([]byte{'a' + byte(i>>12), 'a' + byte(i>>8&15), 'a' + byte(i>>4&15), 'a' + byte(i&15)})
		}
		benchmarkPut(b, func(random *rand.Rand, round int64) string { return names[(round*100+random.Int64N(2000))&0xffff] })
	})
	b.Run("struct", func(b *testing.B) {
		benchmarkPut(b, func(random *rand.Rand, round int64) placing { return placing{round + random.Int64N(20), "player"} })
	})
}

func benchmarkPut[E comparable](b *testing.B, order func(random *rand.Rand, round int64) E) {
	const keys, perEpoch = 100_000, 100_000
	s := newTestSorted[E](b, state.Limit{Entries: 10, Descending: true})
	random := rand.New(rand.NewPCG(1, 2))
	dropped, first := 0, 0
	put := func(i int64) {
		key := random.Int64N(keys)
		s.in(key, uint64(key)*0x9e3779b97f4a7c15)
		e := order(random, i/keys)
		if d, was := s.Put(e, i); was {
			if dropped++; d == e {
				first++
			}
		}
		if i%perEpoch == perEpoch-1 {
			s.endEpoch(b)
		}
	}
	n := int64(0)
	for ; n < 20*keys; n++ {
		put(n)
	}
	b.ReportAllocs()
	dropped, first = 0, 0
	for b.Loop() {
		put(n)
		n++
	}
	b.ReportMetric(float64(dropped)/float64(b.N), "dropped/op")
	b.ReportMetric(float64(first)/float64(b.N), "refused/op")
}
