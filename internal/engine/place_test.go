package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// step is an emission on a record's way: the number of each level.
type step struct {
	record uint64
	path   []uint64
}

// Places are in the order of the paths, level by level, and two paths never
// have one place.
func TestPlacesAreInTheOrderOfThePaths(t *testing.T) {
	steps := rapid.Custom(func(t *rapid.T) step {
		small := rapid.Uint64Range(0, 3)
		return step{small.Draw(t, "record"), rapid.SliceOfN(small, 3, 3).Draw(t, "path")}
	})
	place := func(s step) Place {
		p := Place{Hi: s.record << recordShift}
		for level, n := range s.path {
			p = p.child(uint8(level), n)
		}
		return p
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := steps.Draw(rt, "a"), steps.Draw(rt, "b")
		less := a.record < b.record || a.record == b.record && slices.Compare(a.path, b.path) < 0
		if place(a).before(place(b)) != less {
			rt.Fatalf("%v before %v: %t", a, b, !less)
		}
		if place(a).record() != a.record {
			rt.Fatalf("the place of %v leads back to record %d", a, place(a).record())
		}
	})
}

func TestSlotsOfShardsCoverAllOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 7, 8, 100, 65536} {
		next := 0
		for shard := range n {
			s := SlotsOf(shard, n)
			if int(s.First) != next {
				t.Fatalf("%d shards: shard %d begins at slot %d, want %d", n, shard, s.First, next)
			}
			for _, slot := range []uint64{uint64(s.First), uint64(s.Last)} {
				if got := shardOf(slot<<48|0xffff, n); got != shard {
					t.Fatalf("%d shards: slot %d goes to shard %d, want %d", n, slot, got, shard)
				}
			}
			next = int(s.Last) + 1
		}
		if next != 65536 {
			t.Fatalf("%d shards own %d slots", n, next)
		}
	}
}
