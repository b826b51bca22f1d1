package engine

import (
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// Keyed is what stands behind a KeyBy: the stage that the records reach by
// their key, and the node at which they arrive there.
type Keyed[K comparable, T any] struct {
	Stage *Stage[K]
	Node  *Node[T]

	exchange *exchange[K, T] // nil: the records are no longer what the KeyBy has sent
}

// Direct tells whether the records are those that the KeyBy sends, so that they can be
// folded before that.
func (k Keyed[K, T]) Direct() bool { return k.exchange != nil }

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

// exchange sends records from where they are to the shard that owns their key, and in
// the place of records what they were folded to ahead.
type exchange[K comparable, T any] struct {
	key     func(T) K
	records *lane[K, T]

	foldedAhead []foldedAhead[K, T]
}

// foldedAhead is an operator whose records are folded in the sender already. It gets what
// comes of that by a lane of its own.
type foldedAhead[K comparable, T any] struct {
	// sender returns what takes the records in an instance that they are sent from.
	sender func(in *Instance, lane int) func(key K, v *T)
	// start makes the shard's end of the lane.
	start func(in *Instance) func(pieces []pieceOf)
	// table is the operator's in a shard.
	table func(in *Instance) tableHandle
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
	stage := &Stage[K]{id: len(g.stages) + 1, keys: keys, times: times}
	x := &exchange[K, T]{key: key, records: newLane(stage, copyOf)}
	g.stages = append(g.stages, &stageSpec{id: stage.id, key: keys.Schema(), function: function, times: times, start: x.start})
	from.Consume(x.sender)
	return Keyed[K, T]{stage, x.records.node, x}, nil
}

// sendsRecords tells whether records themselves are sent: somebody takes them who does
// not fold them ahead.
func (x *exchange[K, T]) sendsRecords() bool {
	return len(x.foldedAhead) == 0 || len(x.records.node.consumers) > len(x.foldedAhead)
}

// sender returns what takes the records in an instance that they are sent from.
func (x *exchange[K, T]) sender(in *Instance) func(*T) {
	return sharedPart(in, x, "sender", func() func(*T) {
		if in.build != nil {
			in.build.reaches(in, x.records.stage.id)
			return func(*T) {}
		}
		var takes []func(key K, v *T)
		if x.sendsRecords() {
			records := x.records.writer(in, len(takes))
			in.writers = append(in.writers, records)
			if len(x.foldedAhead) == 0 {
				return func(v *T) { records.put(in.next(), x.key(*v), in.time, v) }
			}
			takes = append(takes, func(key K, v *T) { records.put(in.next(), key, in.time, v) })
		}
		for _, a := range x.foldedAhead {
			takes = append(takes, a.sender(in, len(takes)))
		}
		return func(v *T) {
			key := x.key(*v)
			for _, take := range takes {
				take(key, v)
			}
		}
	})
}

// start makes the shard's instance and returns, for each lane, the function that applies
// its pieces of one batch.
func (x *exchange[K, T]) start(in *Instance) (lanes []func(pieces []pieceOf)) {
	key := x.records.stage.keyContext(in)
	in.keyInHand = func() string { return fmt.Sprint(key.Key) }
	push := x.records.node.instantiate(in)
	if x.sendsRecords() {
		tables := slices.Clone(in.tables)
		for _, a := range x.foldedAhead {
			table := a.table(in)
			tables = slices.DeleteFunc(tables, func(t tableHandle) bool { return t == table })
		}
		records := x.records.applier(in, tables, push)
		records.hot = new(hotKeys[K])
		in.hot, lanes = records.hot.list, append(lanes, records.apply)
	}
	for _, a := range x.foldedAhead {
		lanes = append(lanes, a.start(in))
	}
	return lanes
}
