package engine

import (
	"encoding/binary"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// newTestTable is a table of one shard that runs nowhere.
func newTestTable(t *testing.T) (*Table[int64, int64], *Run) {
	t.Helper()
	keys, err := schema.KeyOf[int64]("key")
	if err != nil {
		t.Fatal(err)
	}
	value, err := schema.Of[int64]("sum")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGraph()
	spec, err := AddState(g, &Stage[int64]{id: 1, keys: keys}, StateSpec{Name: "sum"}, value, carry.Spec[int64, int64]{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{graph: g, shards: 1, open: make(chan struct{}, 9), changes: newFreeList[*state.Changes](2), rows: newFreeList[*outbox.Rows](1)}
	return spec.table(&Instance{run: r, parts: map[part]any{}}), r
}

// crowded is a hash that makes many keys meet in the index: only a few bits of
// what finds the place differ.
func crowded(k int64) uint64 { return uint64(k)<<48 | uint64(k%3) }

// Random changes, with epochs that end at any time and are encoded bit by bit
// while the next one goes on: the table agrees with a map, and what each epoch
// encodes leads from the state before it to the state at its end.
func TestTableAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		table, run := newTestTable(t)
		model, stored, atEnd := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
		var ended *Epoch
		encode := func(n int) {
			done, err := table.encode(n)
			if err != nil {
				rt.Fatal(err)
			}
			if !done || ended == nil {
				return
			}
			apply(rt, stored, ended.Changes(0)[0])
			if !maps.Equal(stored, atEnd) {
				rt.Fatalf("the epochs' changes lead to %v, the state was %v", stored, atEnd)
			}
			run.open <- struct{}{}
			run.Release(ended)
			ended = nil
		}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			k := rapid.Int64Range(0, 12).Draw(rt, "key")
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1, 2, 3, 4:
				e := table.update(crowded(k), k)
				e.value++
				table.put(e)
				model[k]++
			case 5, 6:
				table.remove(table.update(crowded(k), k))
				delete(model, k)
			case 7:
				encode(rapid.IntRange(1, 5).Draw(rt, "n"))
			case 8:
				encode(1 << 62)
				ended = run.newEpoch(0)
				atEnd = maps.Clone(model)
				table.begin(ended)
			case 9:
				v := table.get(crowded(k), k)
				if want, ok := model[k]; (v != nil) != ok || v != nil && *v != want {
					rt.Fatalf("key %d is %v, want %d, %t", k, v, want, ok)
				}
			}
		}
		for k := range int64(13) {
			v := table.get(crowded(k), k)
			if want, ok := model[k]; (v != nil) != ok || v != nil && *v != want {
				rt.Fatalf("at the end key %d is %v, want %d, %t", k, v, want, ok)
			}
		}
	})
}

// apply decodes changes by hand and applies them to a map.
func apply(rt *rapid.T, m map[int64]int64, c *state.Changes) {
	buf := c.Buf
	long := func() int64 {
		v, n := binary.Varint(buf)
		if n <= 0 {
			rt.Fatal("changes end within a record")
		}
		buf = buf[n:]
		return v
	}
	seen := map[int64]bool{}
	for len(buf) > 0 {
		slot, key, branch := long(), long(), long()
		if slot != key { // crowded makes it so
			rt.Fatalf("key %d has slot %d", key, slot)
		}
		if seen[key] {
			rt.Fatalf("key %d is written twice in one epoch", key)
		}
		seen[key] = true
		if branch == 0 {
			delete(m, key)
		} else {
			m[key] = long()
		}
	}
}

// An entry that goes leaves its place in memory to the next one.
func TestTableUsesPlacesAgain(t *testing.T) {
	table, run := newTestTable(t)
	for k := range int64(5000) {
		e := table.update(crowded(k)^uint64(k)<<20, k)
		table.put(e)
		table.remove(e)
		table.begin(run.newEpoch(0))
		if done, err := table.encode(1 << 62); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	if table.made > 2 || table.used != 0 {
		t.Errorf("%d entries were made and %d are used, for one that is there at a time", table.made, table.used)
	}
}
