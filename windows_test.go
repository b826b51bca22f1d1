package sluice_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// tick is a record of the tests of windows. Each has a number of its own.
type tick struct {
	ID   int64
	Key  string
	At   sluice.Instant
	None bool // it has no time
}

func (t tick) time() (sluice.Instant, bool) { return t.At, !t.None }
func (t tick) key() string                  { return t.Key }

// bag is what a window is folded to: all that it has got, so that nothing is there
// twice unseen.
type bag struct{ IDs []int64 }

func (b *bag) add(t tick)       { b.IDs = append(b.IDs, t.ID) }
func (b *bag) merge(other *bag) { b.IDs = append(b.IDs, other.IDs...) }

// windowed is a row of a window: what it has got, by number.
type windowed struct {
	Key        string
	Start, End sluice.Instant
	IDs        []int64
}

func rowOf(r sluice.Result[string, bag]) windowed {
	return windowed{r.Key, r.Window.Start, r.Window.End, slices.Sorted(slices.Values(r.Value.IDs))}
}

var bags = sluice.NewState[sluice.In[string], bag]("bags")

// windowsJob puts ticks into windows.
func windowsJob(dir string, k kind, lateness, allowed time.Duration, opts ...sluice.TimeOption) *sluice.Job {
	job := sluice.NewJob("windows")
	keyed := job.From("ticks", file.JSONLines[tick]("unused.jsonl")).
		EventTime(tick.time, lateness, opts...).
		KeyBy(tick.key).
		Window(k.windows, sluice.AllowedLateness(allowed))
	keyed.Late().To("late", file.Append[tick](dir+"/late"))
	var table *sluice.WindowTable[string, bag]
	if k.merged {
		table = keyed.FoldMerge(bags, (*bag).add, (*bag).merge)
	} else {
		table = keyed.Fold(bags, (*bag).add)
	}
	table.Results().Map(rowOf).To("results", file.Append[windowed](dir+"/results"))
	if k.shared {
		return job
	}
	table.To("table", file.Upsert(dir+"/table", func(k sluice.In[string], b bag) windowed {
		return windowed{k.Key, k.Window.Start, k.Window.End, slices.Sorted(slices.Values(b.IDs))}
	}))
	return job
}

// kind is a kind of windows with a computation of its own, over all that was not late.
type kind struct {
	name    string
	windows sluice.Windows
	merged  bool // the fold can be merged
	shared  bool // the windows share panes, and have no table
	batch   func(all []tick) []windowed
}

// assigned computes windows that depend on a record's time alone, by going through all
// that there could be.
func assigned(of func(at int64) (windows [][2]int64)) func(all []tick) []windowed {
	return func(all []tick) []windowed {
		type at struct {
			key        string
			start, end int64
		}
		found := map[at][]int64{}
		for _, t := range all {
			for _, w := range of(int64(t.At)) {
				found[at{t.Key, w[0], w[1]}] = append(found[at{t.Key, w[0], w[1]}], t.ID)
			}
		}
		var out []windowed
		for at, ids := range found {
			out = append(out, windowed{at.key, sluice.Instant(at.start), sluice.Instant(at.end), ids})
		}
		return out
	}
}

const second = int64(time.Second / time.Microsecond)

func hops(size, slide int64) func(at int64) (windows [][2]int64) {
	return func(at int64) (windows [][2]int64) {
		for n := at/slide - size/slide - 2; n <= at/slide+2; n++ {
			if start := n * slide; start <= at && at < start+size {
				windows = append(windows, [2]int64{start, start + size})
			}
		}
		return windows
	}
}

// slides looks, for each time of a key, at all of its records.
func slides(size int64) func(all []tick) []windowed {
	return func(all []tick) (out []windowed) {
		done := map[tick]bool{}
		for _, t := range all {
			if at := (tick{Key: t.Key, At: t.At}); done[at] {
				continue
			} else {
				done[at] = true
			}
			w := windowed{Key: t.Key, Start: t.At - sluice.Instant(size) + 1, End: t.At + 1}
			for _, other := range all {
				if other.Key == t.Key && w.Start <= other.At && other.At < w.End {
					w.IDs = append(w.IDs, other.ID)
				}
			}
			out = append(out, w)
		}
		return out
	}
}

// sessions sorts the records of each key, and cuts where nothing came for the gap.
func sessions(gap int64) func(all []tick) []windowed {
	return func(all []tick) (out []windowed) {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b tick) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.At, b.At)) })
		for i, t := range all {
			if n := len(out) - 1; i > 0 && all[i-1].Key == t.Key && int64(t.At-all[i-1].At) < gap {
				out[n].End = t.At + sluice.Instant(gap)
				out[n].IDs = append(out[n].IDs, t.ID)
				continue
			}
			out = append(out, windowed{t.Key, t.At, t.At + sluice.Instant(gap), []int64{t.ID}})
		}
		return out
	}
}

// uneven are windows of a function: of 1 to 5 s, by turns.
func uneven(at int64) (start, end int64) {
	cycle := at - ((at%(15*second))+15*second)%(15*second)
	for length := second; ; length += second {
		if end := cycle + length; at < end {
			return cycle, end
		}
		cycle += length
	}
}

func kinds() []kind {
	return []kind{
		{"tumbling", sluice.Tumbling(4 * time.Second), true, false, assigned(hops(4*second, 4*second))},
		{"hopping", sluice.Hopping(6*time.Second, 2*time.Second), false, false, assigned(hops(6*second, 2*second))},
		{"hopping, uneven", sluice.Hopping(5*time.Second, 3*time.Second), false, false, assigned(hops(5*second, 3*second))},
		{"hopping by its size", sluice.Hopping(4*time.Second, 4*time.Second), true, false, assigned(hops(4*second, 4*second))},
		{"hopping, shared", sluice.Hopping(6*time.Second, 2*time.Second), true, true, assigned(hops(6*second, 2*second))},
		{"hopping, shared, uneven", sluice.Hopping(5*time.Second, 3*time.Second), true, true, assigned(hops(5*second, 3*second))},
		{"hopping, shared, many", sluice.Hopping(20*time.Second, 300*time.Millisecond), true, true, assigned(hops(20*second, 3*second/10))},
		{"sliding", sluice.Sliding(4 * time.Second), true, true, slides(4 * second)},
		{"session", sluice.Session(3 * time.Second), true, false, sessions(3 * second)},
		{"function", sluice.WindowsBy("uneven", func(t sluice.Instant) iter.Seq[sluice.Window] {
			return func(yield func(sluice.Window) bool) {
				start, end := uneven(int64(t))
				yield(sluice.Window{Start: sluice.Instant(start), End: sluice.Instant(end)})
			}
		}), false, false, assigned(func(at int64) [][2]int64 {
			start, end := uneven(at)
			return [][2]int64{{start, end}}
		})},
	}
}

// sorted brings rows into an order of their own.
func sorted(rows []windowed) []windowed {
	for i := range rows {
		slices.Sort(rows[i].IDs)
	}
	slices.SortFunc(rows, func(a, b windowed) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return rows
}

// TestWindowsAgreeWithABatch feeds ticks out of order, and some too late, with crashes
// and epochs anywhere: what windows come to is what a batch over all that was not late
// comes to, each of them once, and so are the table's rows.
func TestWindowsAgreeWithABatch(t *testing.T) {
	for _, k := range kinds() {
		for _, allowed := range []time.Duration{0, 2500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s/%s", k.name, allowed), func(t *testing.T) {
				t.Parallel()
				seed := uint64(time.Now().UnixNano())
				t.Logf("seed %d", seed)
				r := rand.New(rand.NewPCG(seed, 8))
				lateness := time.Duration(r.IntN(4)) * time.Second
				test := sluicetest.New(t, windowsJob(t.TempDir(), k, lateness, allowed))
				partitions := 1 + r.IntN(3)
				clock := make([]int64, partitions)
				var all []tick
				for range 12 {
					test.Options(func(o *sluice.Options) {
						o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(9)
					})
					before := len(all)
					if r.IntN(4) == 0 { // the watermark passes much at once
						for p := range clock {
							clock[p] += 30 * second
						}
					}
					for p := range partitions {
						var feed []tick
						for range r.IntN(30) {
							clock[p] += r.Int64N(second)
							at := clock[p] - r.Int64N(5)*r.Int64N(2*second) - 20*second // some lie before 1970
							feed = append(feed, tick{int64(len(all)), fmt.Sprint("key-", r.IntN(4)), sluice.Instant(at), r.IntN(40) == 0})
							all = append(all, feed[len(feed)-1])
						}
						sluicetest.FeedPartition(test, "ticks", fmt.Sprint(p), feed...)
					}
					if len(all) > before && r.IntN(2) == 0 {
						test.Crash(1 + r.IntN(4))
					}
					test.Step()
				}
				for p := range partitions { // so that every window ends
					sluicetest.FeedPartition(test, "ticks", fmt.Sprint(p), tick{-1, "end", 1000 * sluice.Instant(second), false})
				}
				test.Step()
				late := map[int64]bool{}
				for _, l := range sluicetest.Rows[tick](test, "late") {
					if late[l.ID] {
						t.Errorf("%+v is late twice", l)
					}
					late[l.ID] = true
				}
				var kept []tick
				for _, x := range all {
					if x.None && !late[x.ID] {
						t.Errorf("%+v has no time, and is not late", x)
					}
					if !late[x.ID] {
						kept = append(kept, x)
					}
				}
				t.Logf("%d ticks, %d late", len(all), len(late))
				want := sorted(k.batch(kept))
				got := sorted(sluicetest.Rows[windowed](test, "results"))
				compareWindows(t, "results", got, want)
				if !k.shared {
					compareWindows(t, "table", sorted(tableRows(test)), want)
				}
				test.Replay(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(20) })
			})
		}
	}
}

// tableRows are the rows of the table as they stand, without that which ends it all.
func tableRows(test *sluicetest.Test) (rows []windowed) {
	for in, row := range sluicetest.Table[sluice.In[string], windowed](test, "table") {
		if in.Key != "end" {
			rows = append(rows, row)
		}
	}
	return rows
}

func compareWindows(t *testing.T, what string, got, want []windowed) {
	t.Helper()
	text := func(rows []windowed) (lines []string) {
		for _, r := range rows {
			lines = append(lines, fmt.Sprint(r))
		}
		return lines
	}
	g, w := text(got), text(want)
	for _, line := range g {
		if !slices.Contains(w, line) {
			t.Errorf("%s: %s is there, and shouldn't", what, line)
		}
	}
	for _, line := range w {
		if !slices.Contains(g, line) {
			t.Errorf("%s: %s is missing", what, line)
		}
	}
	if len(g) != len(w) {
		t.Errorf("%s: %d windows, want %d", what, len(g), len(w))
	}
}
