package epoch

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// find runs a search over names that are present from floor to head.
func find(floor, head, hint Epoch) (found Epoch, ok bool, probes int) {
	s := SearchHead(floor, hint)
	for name, more := s.Probe(); more; name, more = s.Probe() {
		s.Answer(floor <= name && name <= head)
		probes++
	}
	found, ok = s.Head()
	return found, ok, probes
}

func TestSearchFindsTheHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		floor := Epoch(rapid.Uint64Range(0, 1<<40).Draw(t, "floor"))
		kept := Epoch(rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(0, 1<<40)).Draw(t, "kept"))
		hint := Epoch(rapid.OneOf(
			rapid.Just(uint64(0)), rapid.Uint64(), rapid.Uint64Range(uint64(floor), uint64(floor+kept)),
		).Draw(t, "hint"))
		head := floor + kept
		found, ok, probes := find(floor, head, hint)
		if !ok || found != head {
			t.Fatalf("found %d, %v; the head is %d", found, ok, head)
		}
		// From the hint to the head, or from the floor to the hint: doubling
		// and halving over no more than the greater distance.
		distance := max(head, hint) - floor
		if most := 2*bits.Len64(uint64(distance)) + 3; probes > most {
			t.Fatalf("%d probes for a distance of %d, want at most %d", probes, distance, most)
		}
	})
}

func TestSearchExhaustively(t *testing.T) {
	for floor := range Epoch(4) {
		for head := floor; head < floor+70; head++ {
			for hint := range floor + 80 {
				if found, ok, _ := find(floor, head, hint); !ok || found != head {
					t.Fatalf("floor %d, head %d, hint %d: found %d, %v", floor, head, hint, found, ok)
				}
			}
		}
	}
}

func TestSearchOfNothing(t *testing.T) {
	for _, hint := range []Epoch{0, 1, 100, AllEpochs} {
		s := SearchHead(0, hint)
		probes := 0
		for _, more := s.Probe(); more; _, more = s.Probe() {
			s.Answer(false)
			probes++
		}
		if head, ok := s.Head(); ok || probes > 66 {
			t.Errorf("hint %d: found %d, %v after %d probes", hint, head, ok, probes)
		}
	}
}

func TestSearchWithTheRightHintAsksTwice(t *testing.T) {
	if _, _, probes := find(1000, 1_000_000, 1_000_000); probes != 2 {
		t.Errorf("%d probes, want 2", probes)
	}
}

// TestSearchWhileTheLogGrows: what is found was the head at some moment.
func TestSearchWhileTheLogGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := Epoch(rapid.Uint64Range(0, 1000).Draw(t, "head"))
		before := head
		s := SearchHead(0, Epoch(rapid.Uint64Range(0, 1500).Draw(t, "hint")))
		for name, more := s.Probe(); more; name, more = s.Probe() {
			head += Epoch(rapid.Uint64Range(0, 3).Draw(t, "grown"))
			s.Answer(name <= head)
		}
		if found, ok := s.Head(); !ok || found < before || found > head {
			t.Fatalf("found %d, %v; the head went from %d to %d", found, ok, before, head)
		}
	})
}
