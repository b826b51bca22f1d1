package runner

import (
	"slices"
	"testing"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

func forget(n uint64) epoch.Request { return epoch.Request{N: n, Kind: epoch.ForgetRequest} }

// A manifest calls nothing done above a request that is still open.
func TestNotedRequests(t *testing.T) {
	newForgetting := func(open ...uint64) *forgetting {
		f := &forgetting{more: make(chan struct{}, 1)}
		for _, n := range open {
			f.add(forget(n))
		}
		return f
	}
	for what, c := range map[string]struct {
		open              []uint64
		head, edits, asks uint64
		want              uint64
	}{
		"nothing":                                {nil, 0, 0, 0, 0},
		"a stop":                                 {nil, 1, 0, 4, 4},
		"an older stop":                          {nil, 5, 0, 4, 5},
		"a stop behind one that is open":         {[]uint64{3}, 1, 0, 4, 2},
		"a stop before one that is open":         {[]uint64{3}, 1, 0, 2, 2},
		"edits":                                  {[]uint64{3}, 1, 3, 0, 3},
		"edits of some":                          {[]uint64{3, 4, 6}, 1, 4, 0, 4},
		"edits of some, and a stop":              {[]uint64{3, 4, 6}, 1, 4, 9, 5},
		"edits of all, and a stop":               {[]uint64{3, 4, 6}, 1, 6, 9, 9},
		"one that is open right behind the head": {[]uint64{2}, 1, 0, 9, 1},
	} {
		if got := newForgetting(c.open...).noted(c.head, c.edits, c.asks); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// What is too much to be held stays in the store, and is not called done.
func TestForgettingHasABound(t *testing.T) {
	f := &forgetting{more: make(chan struct{}, 1)}
	for n := uint64(1); n <= forgetsAtOnce+50; n++ {
		f.add(forget(n))
	}
	if got := len(f.after(0)); got != forgetsAtOnce {
		t.Fatalf("%d are held", got)
	}
	if got := f.noted(0, forgetsAtOnce, 1000); got != forgetsAtOnce {
		t.Errorf("with all that are held done, up to %d is called done", got)
	}
	f.done(forgetsAtOnce / 2)
	if f.hasRoom() {
		t.Error("others are looked for before all are done")
	}
	f.done(forgetsAtOnce)
	if len(f.after(0)) != 0 || !f.hasRoom() || f.hasRoom() {
		t.Error("when all are done, others are not looked for once")
	}
	f.add(forget(forgetsAtOnce))     // known
	f.add(forget(forgetsAtOnce + 1)) // now it has its turn
	if open := f.after(0); len(open) != 1 || open[0].N != forgetsAtOnce+1 {
		t.Errorf("then %v are held", open)
	}
}

// The entries that are held have a bound as well.
func TestForgettingHoldsSoManyEntries(t *testing.T) {
	f := &forgetting{more: make(chan struct{}, 1)}
	large := func(n uint64) epoch.Request {
		r := forget(n)
		r.Edits = make([]epoch.Edit, epoch.MaxAsked)
		return r
	}
	const fit = editsAtOnce / epoch.MaxAsked
	for n := uint64(1); n <= fit+2; n++ {
		f.add(large(n))
	}
	if got := len(f.after(0)); got != fit {
		t.Fatalf("%d are held, expected %d", got, fit)
	}
	f.done(fit)
	if !f.hasRoom() {
		t.Error("there is no room when all are done")
	}
	f.add(large(fit + 1))
	if open := f.after(0); len(open) != 1 || f.edits != epoch.MaxAsked {
		t.Errorf("then %d are held, with %d entries", len(open), f.edits)
	}
}

// A merge takes away what was deleted before it began, and no more; what it wrote, and
// no manifest has, is rubbish once the next merge has taken it up.
func TestWhatAMergeSettles(t *testing.T) {
	segment := func(path string) epoch.Segment { return epoch.Segment{Path: path, Rows: 1} }
	a, b, deletes, x, y := segment("a"), segment("b"), segment("deletes"), segment("x"), segment("y")
	c := &committer{
		r:        &runner{o: Options{Graph: engine.NewGraph()}},
		merging:  &merging{running: map[string]*underWay{"s": {}}},
		segments: map[string][]epoch.Segment{"s": {a, b, deletes}}, // deletes came while the first merge ran
		edited:   map[string]epoch.Epoch{"s": 9}, changed: make(chan struct{}),
	}
	c.r.left.tried("x")
	c.r.left.tried("y")
	check := func(when string, owed bool, segments ...epoch.Segment) {
		t.Helper()
		if c.purging() != owed || !slices.Equal(c.segments["s"], segments) {
			t.Errorf("%s: merges are owed: %t; the segments are %v", when, c.purging(), c.segments["s"])
		}
		head := epoch.Manifest{State: map[string]epoch.StateEntry{"s": {Edited: 9, Segments: []epoch.Segment{a, b, deletes}}}}
		if news := c.purged(&head); news == owed || !owed && (head.State["s"].Edited != 0 || !slices.Equal(head.State["s"].Segments, segments)) {
			t.Errorf("%s: to be noted: %t, %+v", when, news, head.State["s"])
		}
	}
	if err := c.merged(merged{state: "s", inputs: []epoch.Segment{a, b}, output: x, edited: 5}); err != nil {
		t.Fatal(err)
	}
	check("a merge that began before the edits", true, x, deletes)
	if err := c.merged(merged{state: "s", inputs: []epoch.Segment{x, deletes}, output: y, edited: 9}); err != nil {
		t.Fatal(err)
	}
	check("a merge of all", false, y)
	if rubbish := c.r.left.take(); !slices.Equal(rubbish, []string{"x"}) {
		t.Errorf("what goes is %v", rubbish)
	}
}
