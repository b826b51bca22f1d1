package engine

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDues holds the heap against a list that is searched whole: times before and behind
// zero, ones that have passed already, and takes that go back.
func TestDues(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		spread := int64(1) << r.IntN(62)
		d, list, gone := newDues(), []due(nil), map[uint32]bool{}
		stands := func(e due) bool { return !gone[e.number] }
		now := int64(math.MinInt64)
		if r.IntN(2) == 0 {
			now = r.Int64N(spread) - spread/2
		}
		number := uint32(0)
		for range 200 {
			switch r.IntN(4) {
			case 0, 1:
				at := r.Int64N(spread) - spread/2
				if r.IntN(3) == 0 && now != math.MinInt64 {
					at = now + r.Int64N(3) - 1
				}
				d.add(at, number)
				list = append(list, due{at, number})
				number++
			case 2:
				until := max(now, r.Int64N(spread)-spread/2)
				if r.IntN(20) == 0 {
					until = r.Int64N(spread) - spread/2 // somebody asks for less than before
				}
				now = max(now, until)
				got := d.take(until, nil)
				var want, rest []due
				for _, e := range list {
					if e.at <= until {
						want = append(want, e)
					} else {
						rest = append(rest, e)
					}
				}
				list = rest
				got = slices.DeleteFunc(got, func(e due) bool { return !stands(e) }) // soonest may have dropped those
				want = slices.DeleteFunc(want, func(e due) bool { return !stands(e) })
				byNumber := func(a, b due) int { return cmp.Compare(a.number, b.number) }
				slices.SortFunc(got, byNumber)
				slices.SortFunc(want, byNumber)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d: by %d there are %v, want %v", seed, until, got, want)
				}
			default:
				if number > 0 && r.IntN(2) == 0 {
					gone[uint32(r.IntN(int(number)))] = true
				}
				want := int64(never)
				for _, e := range list {
					if stands(e) {
						want = min(want, e.at)
					}
				}
				if got := d.soonest(stands); got != want {
					t.Fatalf("seed %d: the soonest is due at %d, want %d", seed, got, want)
				}
			}
		}
	}
}

// TestSlotOrder holds both ways of sorting by slots against the library's.
func TestSlotOrder(t *testing.T) {
	var o slotOrder
	for _, n := range []int{0, 1, 2, fewPlaced, fewPlaced + 1, 5000} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			slots := 1 + r.IntN(1<<16)
			var want []placed
			o.begin()
			for i := range n {
				hash := uint64(r.IntN(slots))<<48 | r.Uint64()>>16
				o.add(hash)
				want = append(want, placed{SlotOf(hash), uint32(i)})
			}
			slices.SortStableFunc(want, func(a, b placed) int { return cmp.Compare(a.slot, b.slot) })
			if got := o.sorted(); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %d things are sorted as %v, want %v", seed, n, got, want)
			}
		}
	}
}
