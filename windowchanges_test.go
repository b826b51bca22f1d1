package sluice_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/sluicetest"
)

// row is a row of edges: windows of a size that begin at each multiple of a slide, and an
// offset.
type row struct{ size, slide, offset int64 }

func (w row) windows() sluice.Windows {
	out := sluice.Hopping(micros(w.size), micros(w.slide))
	if w.size == w.slide {
		out = sluice.Tumbling(micros(w.size))
	}
	return out.Offset(micros(w.offset))
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// begins tells whether a window begins then.
func (w row) begins(at int64) bool { return (at-w.offset)%w.slide == 0 }

// stretch is a row of edges and where its windows begin.
type stretch struct {
	row
	from, until int64
}

// changed computes, of windows that change, all that a time is in.
func changed(parts []stretch) func(at int64) (windows [][2]int64) {
	return func(at int64) (windows [][2]int64) {
		for _, p := range parts {
			last := at - ((at-p.offset)%p.slide+p.slide)%p.slide
			for start := last; start > at-p.size; start -= p.slide {
				if p.from <= start && start < p.until {
					windows = append(windows, [2]int64{start, start + p.size})
				}
			}
		}
		return windows
	}
}

// ticking feeds ticks out of order, some of them too late, some without a time, to a job
// whose windows change.
type ticking struct {
	*sluicetest.Test
	r      *rand.Rand
	clocks []int64
	all    []tick
}

func newTicking(t *testing.T, job *sluice.Job) *ticking {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 8))
	return &ticking{Test: sluicetest.New(t, job), r: r, clocks: make([]int64, 1+r.IntN(3))}
}

// steps has a build read ticks in some epochs, with crashes, in shards that change. The
// first epoch of a build has writes that a job can do without, so that it would not stop.
func (test *ticking) steps(epochs int) {
	for n := range epochs {
		test.Options(func(o *sluice.Options) {
			o.Shards, o.Workers, o.BatchRecords = 1+test.r.IntN(4), 1+test.r.IntN(3), 1+test.r.IntN(9)
			o.Replace = true // windows may be again what they were
		})
		before := len(test.all)
		for p := range test.clocks {
			var feed []tick
			for range test.r.IntN(30) {
				test.clocks[p] += test.r.Int64N(second / 2)
				at := test.clocks[p] - test.r.Int64N(5)*test.r.Int64N(2*second) - 20*second
				feed = append(feed, tick{int64(len(test.all)), fmt.Sprint("key-", test.r.IntN(4)), sluice.Instant(at), test.r.IntN(40) == 0})
				test.all = append(test.all, feed[len(feed)-1])
			}
			sluicetest.FeedPartition(test.Test, "ticks", fmt.Sprint(p), feed...)
		}
		if n > 0 && len(test.all) > before && test.r.IntN(2) == 0 {
			test.Crash(1 + test.r.IntN(4))
		}
		test.Step()
	}
}

// end ends every window.
func (test *ticking) end() {
	for p := range test.clocks {
		sluicetest.FeedPartition(test.Test, "ticks", fmt.Sprint(p), tick{-1, "end", 1000 * sluice.Instant(second), false})
	}
	test.Step()
}

// kept are the ticks so far that were not late.
func (test *ticking) kept() (kept []tick) {
	late := map[int64]bool{}
	for _, l := range sluicetest.Rows[tick](test.Test, "late") {
		late[l.ID] = true
	}
	for _, x := range test.all {
		if !late[x.ID] {
			kept = append(kept, x)
		}
	}
	return kept
}

// TestWindowsThatChange changes windows, and how long they wait, while some are open:
// what they come to is what a batch says that knows the instants from which others begin,
// which it finds by trying one after the other. Each tick is in its windows once, or late.
func TestWindowsThatChange(t *testing.T) {
	rows := []row{
		{4 * second, 4 * second, 0}, {6 * second, 6 * second, 0}, {6 * second, 2 * second, 0}, {5 * second, 3 * second, 0},
		{3 * second, 3 * second, 0}, {10 * second, 5 * second / 2, second / 2},
	}
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job := func(w row, allowed time.Duration) *sluice.Job {
				return windowsJob(dir, kind{windows: w.windows()}, 2*time.Second, allowed)
			}
			parts := []stretch{{rows[i], -1 << 62, 1 << 62}}
			test := newTicking(t, job(rows[i], 0))
			test.steps(2 + test.r.IntN(4))
			for range 3 {
				next := rows[test.r.IntN(len(rows))]
				last := &parts[len(parts)-1]
				after, any := last.from, false
				for _, x := range test.kept() {
					after, any = max(after, int64(x.At)), true
				}
				test.Replace(job(next, time.Duration(test.r.IntN(3))*1500*time.Millisecond))
				switch {
				case next == last.row:
				case !any:
					parts = []stretch{{next, -1 << 62, 1 << 62}}
				default:
					at := after/(second/2)*(second/2) - second
					for at <= after || !last.begins(at) || !next.begins(at) {
						at += second / 2
					}
					last.until = at
					parts = append(parts, stretch{next, at, 1 << 62})
				}
				test.steps(2 + test.r.IntN(4))
			}
			test.end()
			want := sorted(assigned(changed(parts))(test.kept()))
			t.Logf("%d ticks, %d kept, %d windows of %v", len(test.all), len(test.kept()), len(want), parts)
			got := slices.DeleteFunc(sorted(sluicetest.Rows[windowed](test.Test, "results")), func(w windowed) bool { return w.Key == "end" })
			compareWindows(t, "results", got, want)
		})
	}
}

// TestSessionsWithAnotherGap changes the gap of sessions, some of which are open and some
// closed and held: what they come to is what a batch says in which each tick reaches as
// far as the gap of the build that has read it.
func TestSessionsWithAnotherGap(t *testing.T) {
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gaps := []int64{3 * second, 6 * second, second, 3 * second, 5 * second / 2}
			test := newTicking(t, windowsJob(dir, kind{windows: sluice.Session(micros(gaps[0])), merged: true}, 2*time.Second, 0))
			reach := map[int64]int64{}
			for n, gap := range gaps {
				if n > 0 {
					test.Replace(windowsJob(dir, kind{windows: sluice.Session(micros(gap)), merged: true}, 2*time.Second, time.Duration(test.r.IntN(3))*1500*time.Millisecond))
				}
				before := len(test.all)
				test.steps(2 + test.r.IntN(3))
				for _, x := range test.all[before:] {
					reach[x.ID] = gap
				}
			}
			test.end()
			kept := test.kept()
			slices.SortFunc(kept, func(a, b tick) int { return int(a.At - b.At) })
			var want []windowed
			open := map[string]int{} // by key, the session that began last
			for _, x := range kept {
				end := x.At + sluice.Instant(reach[x.ID])
				if n, ok := open[x.Key]; ok && x.At < want[n].End {
					want[n].End = max(want[n].End, end)
					want[n].IDs = append(want[n].IDs, x.ID)
					continue
				}
				open[x.Key] = len(want)
				want = append(want, windowed{x.Key, x.At, end, []int64{x.ID}})
			}
			t.Logf("%d ticks, %d kept", len(test.all), len(kept))
			got := slices.DeleteFunc(sorted(sluicetest.Rows[windowed](test.Test, "results")), func(w windowed) bool { return w.Key == "end" })
			compareWindows(t, "results", got, sorted(want))
		})
	}
}
