package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/window"
	"github.com/sluicestream/sluice/schema"
)

// total is a fold whose value shows in which order it was put together.
type total struct {
	Count int64
	Sum   float64
}

func (t *total) add(v float64) { t.Count, t.Sum = t.Count+1, t.Sum+v }
func (t *total) merge(other *total) {
	t.Count, t.Sum = t.Count+other.Count, t.Sum+other.Sum
}

// windowing is an operator of windows in one shard, without a run around it.
type windowing struct {
	t       testing.TB
	in      *Instance
	run     *Run
	spec    *TableSpec[In[int64], total]
	table   *Table[In[int64], total]
	keys    *schema.Key[int64]
	key     *KeyContext[int64]
	push    func(*float64)
	results []Result[int64, total]
	late    int
}

// newWindowing is an operator whose windows are closed that end by then.
func newWindowing(t testing.TB, d *window.Definition, allowed int64, shared bool, closed int64) *windowing {
	t.Helper()
	keys, err := schema.KeyOf[int64]("key")
	if err != nil {
		t.Fatal(err)
	}
	value, err := schema.Of[total]("totals")
	if err != nil {
		t.Fatal(err)
	}
	w := &windowing{t: t, keys: keys}
	g, stage := NewGraph(), &Stage[int64]{id: 1, keys: keys}
	if w.spec, err = AddWindowState(g, stage, StateSpec{Name: "totals"}, value, carry.Spec[In[int64], total]{}, false); err != nil {
		t.Fatal(err)
	}
	w.spec.Panes = shared
	node, results, late := new(Node[float64]), new(Node[Result[int64, total]]), new(Node[float64])
	results.Consume(func(*Instance) func(*Result[int64, total]) {
		return func(r *Result[int64, total]) { w.results = append(w.results, *r) }
	})
	late.Consume(func(*Instance) func(*float64) { return func(*float64) { w.late++ } })
	AddWindows(g, Keyed[int64, float64]{Stage: stage, Node: node}, &WindowSpec[int64, total, float64]{
		Table: w.spec, Windows: d, Allowed: allowed, Fold: (*total).add, Merge: (*total).merge, Results: results, Late: late,
	})
	w.run = &Run{graph: g, shards: 1, changes: newFreeList[*state.Changes](2), rows: newFreeList[*outbox.Rows](1)}
	w.run.o.Windows = map[string]epoch.Windows{w.spec.Operator: {Closed: epoch.Moment(closed)}}
	w.in = &Instance{run: w.run, parts: map[part]any{}, mark: connector.NoTime, batch: &batch{epoch: w.run.newEpoch(0)}}
	w.key = stage.keyContext(w.in)
	w.push = node.instantiate(w.in)
	w.table = w.spec.table(w.in)
	return w
}

func (w *windowing) hash(key int64) uint64 { return xxhash.Sum64(w.keys.Append(nil, key)) }

func (w *windowing) record(key int64, hash uint64, at int64, v float64) {
	w.key.Key, w.key.Hash, w.in.time = key, hash, at
	w.push(&v)
	if w.in.failed != nil {
		w.t.Fatal(w.in.failed)
	}
}

// pass moves the watermark.
func (w *windowing) pass(mark int64) {
	w.in.mark = mark
	w.in.timed[0].pass(w.in)
}

// endEpoch encodes what the epoch has changed.
func (w *windowing) endEpoch() {
	w.table.begin(w.run.newEpoch(0))
	if done, err := w.table.encode(1 << 62); !done || err != nil {
		w.t.Fatal(done, err)
	}
}

// forget deletes a key's entries.
func (w *windowing) forget(key int64) {
	encoded := w.keys.Append(nil, key)
	w.table.forget("job", edits{"totals": {SlotOf(w.hash(key)): {epoch.EditHash("job", encoded): true}}})
}

// restarted is the operator with what this one has stored, in the order of a shuffle.
func (w *windowing) restarted(r *rand.Rand, d *window.Definition, allowed int64) *windowing {
	w.endEpoch()
	closed := w.in.mark
	if closed != connector.NoTime {
		closed -= allowed
	}
	next := newWindowing(w.t, d, allowed, w.spec.Panes, closed)
	next.in.mark, next.results, next.late = w.in.mark, w.results, w.late
	for _, n := range r.Perm(int(w.table.made)) {
		e := w.table.at(uint32(n))
		if !e.present {
			continue
		}
		stored := state.Entry{Key: w.spec.appendKey(nil, &e.row), Element: w.spec.appendElement(nil, &e.row)}
		var err error
		if stored.Value, err = w.spec.value.Append(nil, &e.value); err != nil {
			w.t.Fatal(err)
		}
		if err := next.table.load(&stored); err != nil {
			w.t.Fatal(err)
		}
	}
	next.table.loaded()
	return next
}

// seen is a record that was not late.
type seen struct {
	key, at int64
	value   float64
}

// joined is what records come to that are in [from, from+size), size being a power of
// two: those of a pane one after the other, and panes by halves of the time.
func joined(records []seen, paneOf func(at int64) int64, from, size int64) (out total) {
	if len(records) == 0 {
		return out
	}
	pane := paneOf(records[0].at)
	if !slices.ContainsFunc(records, func(r seen) bool { return paneOf(r.at) != pane }) {
		for _, r := range records {
			out.add(r.value)
		}
		return out
	}
	var halves [2][]seen
	for _, r := range records {
		i := 0
		if paneOf(r.at) >= from+size/2 {
			i = 1
		}
		halves[i] = append(halves[i], r)
	}
	out = joined(halves[0], paneOf, from, size/2)
	other := joined(halves[1], paneOf, from+size/2, size/2)
	if len(halves[0]) == 0 {
		return other
	}
	if len(halves[1]) > 0 {
		out.merge(&other)
	}
	return out
}

// TestPanesAgreeWithWindows feeds times at random, moves the watermark, forgets keys and
// starts anew: each window comes once, in its place, with the value that its panes have
// by their times, to the last bit.
func TestPanesAgreeWithWindows(t *testing.T) {
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, c := range []struct{ size, slide, offset int64 }{{10, 3, 0}, {10, 2, 1}, {7, 5, -2}, {16, 1, 0}, {33, 4, 3}, {9, 0, 0}, {64, 0, 0}, {1, 0, 0}} {
		t.Run(fmt.Sprintf("%d by %d", c.size, c.slide), func(t *testing.T) {
			d, err := window.Sliding(micros(c.size))
			windowsAt := func(at int64) []window.Span { return []window.Span{{Start: at - c.size + 1, End: at + 1}} }
			paneOf := func(at int64) int64 { return at }
			if c.slide > 0 {
				d, err = window.Hopping(micros(c.size), micros(c.slide), micros(c.offset))
				windowsAt = func(at int64) (spans []window.Span) {
					for n := int64(-400); n < 400; n++ {
						if start := n*c.slide + c.offset; start <= at && at < start+c.size {
							spans = append(spans, window.Span{Start: start, End: start + c.size})
						}
					}
					return spans
				}
				panes := map[int64]int64{}
				before, start := []window.Span(nil), int64(0)
				for at := int64(-160); at < 300; at++ {
					if here := windowsAt(at); !slices.Equal(here, before) {
						before, start = here, at
					}
					panes[at] = start
				}
				paneOf = func(at int64) int64 { return panes[at] }
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 60 {
				seed := rand.Uint64()
				r := rand.New(rand.NewPCG(seed, 3))
				if !tryPanes(t, r, d, c.size, windowsAt, paneOf) {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func tryPanes(t *testing.T, r *rand.Rand, d *window.Definition, size int64, windowsAt func(int64) []window.Span, paneOf func(int64) int64) bool {
	allowed := r.Int64N(2) * r.Int64N(8)
	w := newWindowing(t, d, allowed, true, connector.NoTime)
	keys := sameSlot(w)
	var all []seen
	var want []Result[int64, total]
	late, bound := 0, int64(math.MinInt64)
	closing := func(mark int64) {
		type place struct{ key, end int64 }
		ended := map[place]window.Span{}
		for _, x := range all {
			for _, span := range windowsAt(x.at) {
				if bound < span.End && span.End <= mark-allowed {
					ended[place{x.key, span.End}] = span
				}
			}
		}
		from := len(want)
		for at, span := range ended {
			var in []seen
			for _, x := range all {
				if x.key == at.key && span.Holds(x.at) {
					in = append(in, x)
				}
			}
			want = append(want, Result[int64, total]{at.key, windowOf(span), joined(in, paneOf, -512, 1024)})
		}
		slices.SortFunc(want[from:], func(a, b Result[int64, total]) int {
			return cmp.Or(cmp.Compare(w.hash(a.Key)>>48, w.hash(b.Key)>>48), cmp.Compare(a.Window.End, b.Window.End), cmp.Compare(a.Key, b.Key))
		})
		bound = max(bound, mark-allowed)
	}
	mark := int64(-100)
	for range 300 {
		switch step := r.IntN(40); {
		case step < 30:
			x := seen{keys[r.IntN(len(keys))], min(mark-5+r.Int64N(3)*r.Int64N(20), 180), math.Ldexp(r.Float64()-0.5, r.IntN(60))}
			if windowsAt(x.at)[0].End <= bound {
				late++
			} else {
				all = append(all, x)
			}
			w.record(x.key, w.hash(x.key), x.at, x.value)
		case step < 36:
			mark += r.Int64N(4) * r.Int64N(1+r.Int64N(9))
			closing(mark)
			w.pass(mark)
		case step < 38:
			w.endEpoch()
		case step < 39:
			w = w.restarted(r, d, allowed)
		case r.IntN(3) == 0:
			key := keys[r.IntN(len(keys))]
			all = slices.DeleteFunc(all, func(x seen) bool { return x.key == key })
			w.forget(key)
		}
	}
	closing(1000)
	w.pass(1000)
	w.endEpoch()
	for i := range max(len(want), len(w.results)) {
		if i >= len(want) || i >= len(w.results) || want[i] != w.results[i] {
			t.Errorf("result %d of %d is %v, want %v of %d", i, len(w.results), w.results[min(i, len(w.results)-1):min(i+1, len(w.results))], want[min(i, len(want)):min(i+1, len(want))], len(want))
			return false
		}
	}
	if late != w.late {
		t.Errorf("%d records are late, want %d", w.late, late)
	}
	if w.table.used != 0 {
		t.Errorf("%d panes are left", w.table.used)
	}
	p := w.in.timed[0].(*sharing[int64, total, float64])
	left := len(p.due.take(math.MaxInt64, nil))
	if len(p.keys) != 0 || len(p.free) != len(p.held) || left != 0 {
		t.Errorf("%d keys are held, %d of %d numbers are free, and %d are due", len(p.keys), len(p.free), len(p.held), left)
	}
	return !t.Failed()
}

// sameSlot are keys of which some are in one slot.
func sameSlot(w *windowing) []int64 {
	slots := map[epoch.Slot][]int64{}
	for key := int64(-3000); ; key++ {
		slot := SlotOf(w.hash(key))
		if slots[slot] = append(slots[slot], key); len(slots[slot]) == 3 {
			return append(slots[slot], 7, -7)
		}
	}
}

// A window that stands among the entries of panes is named.
func TestPanesRefuseWindows(t *testing.T) {
	d, err := window.Hopping(10*time.Microsecond, 5*time.Microsecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, shared := newWindowing(t, d, 0, false, connector.NoTime), newWindowing(t, d, 0, true, connector.NoTime)
	row := In[int64]{3, Window{0, 10}}
	err = shared.table.load(&state.Entry{Key: whole.spec.appendKey(nil, &row), Element: whole.spec.appendElement(nil, &row), Value: []byte{2, 0, 0, 0, 0, 0, 0, 0, 0}})
	const want = `state totals, key "3": there is an entry for [0, 10), expected one of the panes that the hopping windows share, here [0, 5): what is put into this state has to be of these`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// BenchmarkWindows is what a record costs in one shard, with its part of all that comes
// of it: results, and the entries' encoding. The last one tells how often that of
// tumbling windows the others are.
func BenchmarkWindows(b *testing.B) {
	minute := func(slide time.Duration) *window.Definition {
		d, err := window.Hopping(time.Minute, slide, 0)
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	var tumbling float64
	for _, c := range []struct {
		name   string
		d      *window.Definition
		shared bool
	}{
		{"tumbling", minute(time.Minute), false},
		{"10 s, shared", minute(10 * time.Second), true},
		{"1 s, shared", minute(time.Second), true},
		{"10 s, unshared", minute(10 * time.Second), false},
		{"1 s, unshared", minute(time.Second), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			const keys, perMinute = 1000, 1000 // records of each key
			w := newWindowing(b, c.d, 0, c.shared, connector.NoTime)
			hashes := make([]uint64, keys)
			for i := range hashes {
				hashes[i] = w.hash(int64(i))
			}
			r, at, n := rand.New(rand.NewPCG(1, 2)), int64(0), 0
			for b.Loop() {
				key := r.IntN(keys)
				at += int64(time.Minute/time.Microsecond) / (keys * perMinute)
				w.record(int64(key), hashes[key], at-r.Int64N(1_000_000), 1)
				if n++; n%1000 == 0 {
					w.pass(at - 1_000_000)
					w.results = w.results[:0]
				}
				if n%100_000 == 0 {
					w.endEpoch()
				}
			}
			took := float64(b.Elapsed()) / float64(n)
			if c.name == "tumbling" {
				tumbling = took
			}
			b.ReportMetric(took/tumbling, "of-tumbling")
		})
	}
}
