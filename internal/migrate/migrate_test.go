package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
)

// However many goroutines convert, and wherever batches end, the entries come out
// in the order of the state, and the segment has the same bytes.
func TestBatches(t *testing.T) {
	if batchEntries != 1024 {
		t.Fatalf("a batch holds %d entries: the sizes below are meant for 1024", batchEntries)
	}
	for _, n := range []int{0, 1, 1023, 1024, 1025, 2048, 9000} {
		x := newStock(t)
		stored := crates(n)
		x.keep("things", false, stored...)
		want, first := inOrder(boxed(stored)), ""
		for _, workers := range []int{1, 2, 3, 8} {
			path := fmt.Sprintf("new-%d.avro", workers)
			way, progress := x.sealing(), new(atomic.Int64)
			o := x.options(way, path, workers)
			o.Progress = progress
			segment, report, err := State(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if want := (Report{Read: int64(n), Written: int64(n)}); report != want || progress.Load() != int64(n) {
				t.Fatalf("%d entries by %d workers: %+v, and progress is %d", n, workers, report, progress.Load())
			}
			same(t, x.migrated(way, segment), want)
			switch object := x.object(path); {
			case n == 0 && object != "":
				t.Fatal("nothing was stored, and there is a segment")
			case workers == 1:
				first = object
			case object != first:
				t.Fatalf("%d entries: %d workers write other bytes than one", n, workers)
			}
		}
	}
}

// Entries that fill a batch by themselves, or more than that, go through.
func TestLargeEntries(t *testing.T) {
	if batchBytes != 1<<20 {
		t.Fatalf("a batch holds %d bytes: the sizes below are meant for 1 MiB", batchBytes)
	}
	x := newStock(t)
	stored := crates(40)
	for i, size := range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20, 1<<20 - 30, 5 << 20} {
		stored[i*5].value.Label = strings.Repeat("x", size)
	}
	x.keep("things", false, stored...)
	way := x.sealing()
	segment, _, err := State(t.Context(), x.options(way, "new.avro", 3))
	if err != nil {
		t.Fatal(err)
	}
	same(t, x.migrated(way, segment), inOrder(boxed(stored)))
}

// What several segments have of a key is migrated once, as the newest has it.
func TestNewerSegments(t *testing.T) {
	x := newStock(t)
	stored := crates(3000)
	x.keep("things", false, stored...)
	for i := range stored {
		stored[i].value.Label = "newer"
	}
	x.keep("things", false, stored[500:2500]...)
	older := crates(3000)
	want := slices.Concat(older[:500], stored[500:2500], older[2500:])
	way := x.sealing()
	segment, report, err := State(t.Context(), x.options(way, "new.avro", 2))
	if err != nil || report.Read != 3000 {
		t.Fatalf("%+v, %v", report, err)
	}
	same(t, x.migrated(way, segment), inOrder(boxed(want)))
}

// The first entry in the state's order that can't be carried over ends the
// migration, however many workers there are, and leaves nothing.
func TestFirstFailureEnds(t *testing.T) {
	x := newStock(t)
	stored := inOrder(crates(6000))
	stored[4000].value.Label, stored[1500].value.Label = "bad", "bad"
	x.keep("things", false, stored...)
	for _, workers := range []int{1, 2, 8} {
		_, _, err := State(t.Context(), x.options(x.sealing(), "new.avro", workers))
		var failed *carry.EntryError
		if !errors.As(err, &failed) || failed.Key != fmt.Sprintf("%q", stored[1500].key) && failed.Key != stored[1500].key {
			t.Fatalf("%d workers: %v, expected the entry of %s", workers, err, stored[1500].key)
		}
		if failed.Function != "migrate.seal" || failed.State != "things" {
			t.Fatalf("%+v", failed)
		}
		if x.object("new.avro") != "" {
			t.Fatal("a segment is there all the same")
		}
	}
}

// Entries that fail are told in their order, and the others go on; what they are
// told may end it.
func TestFailuresAreTold(t *testing.T) {
	x := newStock(t)
	stored := inOrder(crates(5000))
	var bad []string
	for _, i := range []int{0, 1, 1023, 1024, 3000, 4999} {
		stored[i].value.Label = "bad"
		bad = append(bad, stored[i].key)
	}
	x.keep("things", false, stored...)
	way := x.sealing()
	o := x.options(way, "new.avro", 4)
	var told []string
	o.Failed = func(failed *carry.EntryError, e *state.Entry) error {
		told = append(told, string(e.Key[1:])) // one byte holds the length
		return nil
	}
	segment, report, err := State(t.Context(), o)
	if want := (Report{Read: 5000, Written: 4994, SetAside: 6}); err != nil || report != want || !slices.Equal(told, bad) {
		t.Fatalf("%+v, %v: told are %q, expected %q", report, err, told, bad)
	}
	stored = slices.DeleteFunc(stored, func(s thing[crate]) bool { return s.value.Label == "bad" })
	same(t, x.migrated(way, segment), boxed(stored))

	enough := errors.New("enough")
	o.Path, told = "other.avro", nil
	o.Failed = func(*carry.EntryError, *state.Entry) error {
		if told = append(told, ""); len(told) == 3 {
			return enough
		}
		return nil
	}
	if _, _, err := State(t.Context(), o); !errors.Is(err, enough) || len(told) != 3 || x.object("other.avro") != "" {
		t.Fatalf("%v after %d", err, len(told))
	}
}

// New keys may come from anywhere: entries that meet are put together in the
// order of the old keys, across batches; some give several, some none.
func TestMeetAcrossBatches(t *testing.T) {
	x := newStock(t)
	stored := crates(5000)
	x.keep("things", false, stored...)
	keys := func(key string, b box) []string {
		switch b.Number % 5 {
		case 0:
			return nil
		case 1:
			return []string{"one", "both"}
		}
		return []string{"rest", "both"}
	}
	merge := func(earlier *box, later box) {
		earlier.Number = earlier.Number*31 + later.Number // so that the order counts
		earlier.Label = later.Label
		earlier.Sealed = earlier.Sealed != later.Sealed
	}
	met := map[string]*box{}
	var dropped int64
	for _, s := range inOrder(boxed(stored)) {
		to := keys(s.key, s.value)
		if to == nil {
			dropped++
		}
		for _, key := range to {
			b, is := met[key]
			if !is {
				v := s.value
				met[key] = &v
				continue
			}
			b.Number, b.Label, b.Sealed = b.Number*31+s.value.Number, s.value.Label, b.Sealed != s.value.Sealed
		}
	}
	var want []thing[box]
	for key, b := range met {
		want = append(want, thing[box]{key: key, value: *b})
	}
	first := ""
	for _, workers := range []int{1, 2, 8} {
		way := x.rekeying(keys, merge)
		path := fmt.Sprintf("new-%d.avro", workers)
		segment, report, err := State(t.Context(), x.options(way, path, workers))
		if expected := (Report{Read: 5000, Written: 3, Dropped: dropped, Merged: 2*(5000-dropped) - 3}); err != nil || report != expected {
			t.Fatalf("%+v, %v; expected %+v", report, err, expected)
		}
		same(t, x.migrated(way, segment), inOrder(want))
		if object := x.object(path); first != "" && object != first {
			t.Fatalf("%d workers write other bytes", workers)
		} else {
			first = object
		}
	}

	_, _, err := State(t.Context(), x.options(x.rekeying(keys, nil), "none.avro", 2))
	var failed *carry.EntryError
	if !errors.As(err, &failed) || failed.State != "things" || !strings.Contains(failed.Error(), "two entries come to this key") {
		t.Fatalf("without a function that puts them together: %v", err)
	}
	way := x.rekeying(func(string, box) []string { return nil }, nil)
	if segment, report, err := State(t.Context(), x.options(way, "nothing.avro", 2)); err != nil || segment.Rows != 0 || report.Dropped != 5000 || x.object("nothing.avro") != "" {
		t.Fatalf("all dropped: %+v, %+v, %v", segment, report, err)
	}
}

// A merge that panics is an error of the entry's new key.
func TestMergePanics(t *testing.T) {
	x := newStock(t)
	x.keep("things", false, crates(3000)...)
	way := x.rekeying(func(string, box) []string { return []string{"all"} }, func(earlier *box, later box) { panic("never") })
	_, _, err := State(t.Context(), x.options(way, "new.avro", 2))
	var failed *carry.EntryError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "all") || !strings.Contains(err.Error(), "panic: never") {
		t.Fatal(err)
	}
}

// Lists of two states stand one behind the other, in the order in which the
// states are taken over, numbered from 0.
func TestListsOfTwoStates(t *testing.T) {
	x := newStock(t)
	list := func(label string, n int) (things []thing[crate]) {
		for _, key := range []string{"ann", "bob", label} {
			for i := range n {
				// Numbers begin anywhere and have gaps, as a list's do that was cut.
				things = append(things, thing[crate]{key, int64(7 + 3*i), crate{int64(i), fmt.Sprintf("%s %s %d", label, key, i)}})
			}
		}
		return things
	}
	x.keep("early", true, list("early", 1500)...)
	x.keep("late", true, list("late", 2)...)
	var want []thing[box]
	add := func(key string, lists ...string) {
		n := int64(0)
		for _, label := range lists {
			for i := range map[string]int{"early": 1500, "late": 2}[label] {
				want = append(want, thing[box]{key, n, box{int64(i), fmt.Sprintf("%s %s %d", label, key, i), i%2 == 0}})
				n++
			}
		}
	}
	add("ann", "late", "early")
	add("bob", "late", "early")
	add("early", "early")
	add("late", "late")
	for _, workers := range []int{1, 3} {
		way := x.way(true, carry.Spec[spot, box]{
			Chain: carry.First(seal), Takes: []carry.Taken[box]{{Name: "late"}, {Name: "early"}}, Merge: func(*box, box) { t.Error("elements of lists don't meet") },
		})
		segment, report, err := State(t.Context(), x.options(way, fmt.Sprintf("new-%d.avro", workers), workers))
		if expected := (Report{Read: 4506, Written: 4506}); err != nil || report != expected {
			t.Fatalf("%+v, %v", report, err)
		}
		same(t, x.migrated(way, segment), inOrder(want))
	}
}

// A migration that is cancelled in the middle answers with the cause, leaves
// nothing, and no goroutine; TestMain looks for these.
func TestCancelled(t *testing.T) {
	x := newStock(t)
	x.keep("things", false, crates(20_000)...)
	for _, workers := range []int{1, 4} {
		for _, after := range []int64{1, 5000, 20_000} {
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the operator stops it")
			var calls atomic.Int64
			way := x.way(false, carry.Spec[spot, box]{Chain: carry.First(func(c crate) (box, error) {
				if calls.Add(1) == after {
					cancel(why)
				}
				return seal(c)
			})})
			segment, _, err := State(ctx, x.options(way, "new.avro", workers))
			if err == nil && segment.Rows == 20_000 && after == 20_000 {
				t.Log("the last entry's call came too late to stop anything")
				x.st.Delete(t.Context(), "depot/new.avro")
			} else if !errors.Is(err, why) && !errors.Is(err, context.Canceled) || x.object("new.avro") != "" {
				t.Fatalf("%d workers, cancelled at entry %d: %v", workers, after, err)
			}
			cancel(nil)
		}
	}
}

// The segment says what its entries take in memory.
func TestMemory(t *testing.T) {
	x := newStock(t)
	x.keep("things", false, crates(10)...)
	bytes := int64(0)
	for _, s := range crates(10) { // a length and the text of the key, a number below 64 in one byte, a length and the label, a boolean
		bytes += int64(1 + len(s.key) + 1 + 1 + len(s.value.Label) + 1)
	}
	for name, way := range map[string]*carry.Way{"in order": x.sealing(), "collected": x.rekeying(func(key string, _ box) []string { return []string{key} }, nil)} {
		segment, _, err := State(t.Context(), x.options(way, strings.ReplaceAll(name, " ", "-")+".avro", 2))
		if err != nil || segment.Memory != 100*10+bytes {
			t.Errorf("%s: memory is %d, expected %d (%v)", name, segment.Memory, 100*10+bytes, err)
		}
	}
}
