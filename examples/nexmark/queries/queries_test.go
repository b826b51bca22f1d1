package queries_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/examples/nexmark/queries"
	"github.com/sluicestream/sluice/examples/nexmark/recount"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/sluicetest"
)

const (
	size  = 10 * time.Second
	slide = 2 * time.Second
)

// scales are how many events there are; the last ones run into a thousand windows.
var scales = []generator.Config{
	{Seed: 1, Rate: 20, Count: 400},
	{Seed: 2, Rate: 100, Count: 5_000, OutOfOrder: 30, Partitions: 4},
	{Seed: 3, Rate: 500, Count: 40_000, OutOfOrder: 400, Partitions: 3},
	{Seed: 4, Rate: 50, Count: 40_000, OutOfOrder: 7, Partitions: 2},
}

// watermark is what no event is expected before in the end: where the partition is that
// has come the least far.
func watermark(t *testing.T, c generator.Config) sluice.Instant {
	t.Helper()
	g, err := generator.New(c)
	if err != nil {
		t.Fatal(err)
	}
	latest := map[int64]sluice.Instant{}
	for n, e := range g.Events(0, c.Count) {
		p := n % max(c.Partitions, 1)
		latest[p] = max(latest[p], e.DateTime())
	}
	least := sluice.Instant(1 << 62)
	for _, at := range latest {
		least = min(least, at)
	}
	return least - sluice.Instant(queries.Lateness(c).Microseconds())
}

// answers runs a job to its end, with crashes, epochs and shards as a seed says, and once
// more over the same events, and returns what it has put out.
func answers[T any](t *testing.T, c generator.Config, job func(c generator.Config, out connector.StreamSink[T]) *sluice.Job) []T {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	out := file.Append[T](t.TempDir())
	test := sluicetest.New(t, job(c, out))
	test.Options(func(o *sluice.Options) { o.EpochBytes = 1 + r.Int64N(c.Count) }) // an event counts as one
	for range 3 {
		test.Options(func(o *sluice.Options) {
			o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(500)
		})
		test.Crash(1 + r.IntN(20))
	}
	test.Step()
	rows := sluicetest.Rows[T](test, "answers")
	test.Replay(func(o *sluice.Options) { o.Shards, o.Workers = 1+r.IntN(4), 1+r.IntN(3) })
	return rows
}

func events(t *testing.T, c generator.Config) *generator.Generator {
	t.Helper()
	g, err := generator.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// compare compares answers as texts, in any order.
func compare[G, W any](t *testing.T, got []G, want []W) {
	t.Helper()
	lines := func(n int, row func(i int) any) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(row(i)))
		}
		slices.Sort(all)
		return all
	}
	g := lines(len(got), func(i int) any { return got[i] })
	w := lines(len(want), func(i int) any { return want[i] })
	if slices.Equal(g, w) {
		t.Logf("%d answers", len(g))
		return
	}
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("%d answers, expected %d; answer %d is %v, expected %v", len(g), len(w), i, g[min(i, len(g)):min(i+1, len(g))], w[min(i, len(w)):min(i+1, len(w))])
		}
	}
}

// atScales runs a test with each number of events.
func atScales(t *testing.T, test func(t *testing.T, c generator.Config, closed sluice.Instant)) {
	for _, c := range scales {
		t.Run(fmt.Sprint(c.Count, " events at ", c.Rate), func(t *testing.T) {
			t.Parallel()
			test(t, c, watermark(t, c))
		})
	}
}

func TestHotItems(t *testing.T) {
	atScales(t, func(t *testing.T, c generator.Config, closed sluice.Instant) {
		want := recount.HotItems(events(t, c).Events(0, c.Count), size, slide, nil)
		want = slices.DeleteFunc(want, func(h recount.HotItem) bool { return h.End > closed })
		compare(t, answers(t, c, func(c generator.Config, out connector.StreamSink[queries.HotItem]) *sluice.Job {
			return queries.HotItems(c, size, slide, out)
		}), want)
	})
}

func TestHighestBids(t *testing.T) {
	atScales(t, func(t *testing.T, c generator.Config, closed sluice.Instant) {
		want := recount.HighestBids(events(t, c).Events(0, c.Count), size, nil)
		want = slices.DeleteFunc(want, func(h recount.HighestBid) bool { return h.End > closed })
		compare(t, answers(t, c, func(c generator.Config, out connector.StreamSink[queries.HighestBid]) *sluice.Job {
			return queries.HighestBids(c, size, out)
		}), want)
	})
}

func TestUserSessions(t *testing.T) {
	atScales(t, func(t *testing.T, c generator.Config, closed sluice.Instant) {
		const gap = 3 * time.Second // so that there are several
		want := recount.UserSessions(events(t, c).Events(0, c.Count), gap, nil)
		want = slices.DeleteFunc(want, func(u recount.UserBids) bool { return u.End > closed })
		compare(t, answers(t, c, func(c generator.Config, out connector.StreamSink[queries.UserBids]) *sluice.Job {
			return queries.UserSessions(c, gap, out)
		}), want)
	})
}

// setClock is a clock that stands, but for being set.
type setClock struct {
	env.Clock
	now *time.Time
}

func (c setClock) Now() time.Time { return *c.now }

// TestUserWindows has more and more events be there, a while after the ones before.
func TestUserWindows(t *testing.T) {
	for _, c := range scales {
		t.Run(fmt.Sprint(c.Count, " events"), func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 12))
			out := file.Append[queries.UserBids](t.TempDir())
			now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			var test *sluicetest.Test
			var times []sluice.Instant // by step
			var counts []int64
			total := c.Count
			for step := range 12 {
				c.Count = total * int64(step+1) / 12
				job := queries.UserWindows(c, size, out)
				if test == nil {
					test = sluicetest.New(t, job)
				} else {
					test.Replace(job)
				}
				now = now.Add(time.Duration(r.Int64N(int64(9 * time.Second))))
				test.Options(func(o *sluice.Options) {
					o.Shards, o.Workers = 1+r.IntN(4), 1+r.IntN(3)
					world := *o.Env
					if step == 0 {
						world.Clock = setClock{world.Clock, &now}
					}
					o.Env = &world
				})
				test.Step()
				times, counts = append(times, schema.InstantOf(now)), append(counts, c.Count)
			}
			want := recount.UserWindows(events(t, c).Events(0, c.Count), size, func(n int64) sluice.Instant {
				for step, count := range counts {
					if n < count {
						return times[step]
					}
				}
				panic("no step has read it")
			})
			last := times[len(times)-1]
			want = slices.DeleteFunc(want, func(u recount.UserBids) bool { return u.End > last })
			compare(t, sluicetest.Rows[queries.UserBids](test, "answers"), want)
		})
	}
}
