package schema_test

import (
	"testing"

	"github.com/sluicestream/sluice/schema"
)

// TestValuesOnAStackThatGrows reads and writes values that lie on the stack, in new
// goroutines that have used ever more of it: so that it has to grow, and moves, at each
// of the calls on the way. The race detector adds calls of its own.
func TestValuesOnAStackThatGrows(t *testing.T) {
	type item struct {
		Name  string
		Parts []int64
	}
	items, err := schema.Of[item]("item")
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ Row, Seat int64 }
	keys, err := schema.KeyOf[place]("place")
	if err != nil {
		t.Fatal(err)
	}
	copyOf, _, err := schema.Copier[item]()
	if err != nil {
		t.Fatal(err)
	}
	for depth := range 1500 {
		done := make(chan bool)
		go func() {
			defer close(done)
			deeper(depth, func() {
				stored, err := items.Append(nil, &item{"ada", []int64{1, 2}})
				if err != nil {
					t.Error(err)
					return
				}
				var got item
				if _, err := items.Decode(stored, &got); err != nil || got.Name != "ada" || len(got.Parts) != 2 {
					t.Errorf("depth %d: %+v is read (%v), expected ada's two parts", depth, got, err)
				}
				other := copyOf(got)
				if other.Parts[0] = 7; got.Parts[0] != 1 || other.Name != "ada" {
					t.Errorf("depth %d: the copy of %+v is %+v", depth, got, other)
				}
				if key, _, err := keys.Decode(keys.Append(nil, place{3, 4})); err != nil || key != (place{3, 4}) {
					t.Errorf("depth %d: the key %v is read (%v), expected {3 4}", depth, key, err)
				}
			})
		}()
		<-done
		if t.Failed() {
			return
		}
	}
}

// deeper calls f below so many frames.
//
//go:noinline
func deeper(depth int, f func()) {
	if depth == 0 {
		f()
		return
	}
	deeper(depth-1, f)
}
