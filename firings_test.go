package sluice_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// fired is a row of a window's firing.
type fired struct {
	windowed
	Timing string
}

func firedOf(f sluice.Firing[string, bag]) fired {
	return fired{windowed{f.Key, f.Window.Start, f.Window.End, slices.Sorted(slices.Values(f.Value.IDs))}, string(f.Timing)}
}

// firingsJob puts ticks into windows, whose firings and results it puts out.
func firingsJob(dir string, windows sluice.Windows, lateness, early time.Duration, opts ...sluice.WindowOption) *sluice.Job {
	job := sluice.NewJob("firings")
	table := job.From("ticks", file.JSONLines[tick]("unused.jsonl")).
		EventTime(tick.time, lateness).
		KeyBy(tick.key).
		Window(windows, opts...).
		FoldMerge(bags, (*bag).add, (*bag).merge)
	table.Firings(early).Map(firedOf).To("firings", file.Append[fired](dir+"/firings"))
	table.Results().Map(rowOf).To("results", file.Append[windowed](dir+"/results"))
	return job
}

// firingsBy finds the firings of ticks that each are a run of their own, by going through
// all windows for each of them.
type firingsBy struct {
	size, gap                int64 // of tumbling windows, or of sessions
	lateness, allowed, early int64
	mark                     int64 // none: there is none yet
	open                     []*windowed
	out                      []fired
}

const noMark = -1 << 62

func (m *firingsBy) take(x tick) {
	changed := m.put(x)
	before := m.mark
	if !x.None {
		m.mark = max(m.mark, int64(x.At)-m.lateness)
	}
	fire := func(w *windowed, timing string) {
		row := *w
		row.IDs = slices.Sorted(slices.Values(w.IDs))
		m.out = append(m.out, fired{row, timing})
	}
	passes := before != noMark && m.early > 0 && floor(m.mark, m.early) > floor(before, m.early)
	for _, w := range m.open {
		end := int64(w.End)
		switch {
		case end > before && end <= m.mark:
			fire(w, "on time")
		case w == changed && end <= before:
			fire(w, "late")
		case end > m.mark && passes:
			fire(w, "early")
		}
	}
}

func floor(t, length int64) int64 {
	n := t / length
	for n*length > t {
		n--
	}
	return n
}

// put puts a tick into its window, and returns that; nil: it is late.
func (m *firingsBy) put(x tick) *windowed {
	if x.None {
		return nil
	}
	own := windowed{Key: x.Key, Start: x.At, End: x.At + sluice.Instant(m.gap), IDs: []int64{x.ID}}
	if m.size > 0 {
		own.Start = sluice.Instant(floor(int64(x.At), m.size) * m.size)
		own.End = own.Start + sluice.Instant(m.size)
	}
	closed := func(w *windowed) bool { return m.mark != noMark && int64(w.End)+m.allowed <= m.mark }
	if closed(&own) {
		return nil
	}
	var meets []*windowed
	for _, w := range m.open {
		if w.Key == x.Key && w.Start < own.End && own.Start < w.End {
			if closed(w) {
				return nil
			}
			meets = append(meets, w)
		}
	}
	slices.SortFunc(meets, func(a, b *windowed) int { return cmp.Compare(a.Start, b.Start) })
	for _, w := range meets {
		own.Start, own.End, own.IDs = min(own.Start, w.Start), max(own.End, w.End), append(own.IDs, w.IDs...)
	}
	m.open = slices.DeleteFunc(m.open, func(w *windowed) bool { return slices.Contains(meets, w) })
	m.open = append(m.open, &own)
	return &own
}

func compareFirings(t *testing.T, got, want []fired) {
	t.Helper()
	text := func(rows []fired) (lines []string) {
		for _, r := range rows {
			lines = append(lines, fmt.Sprint(r))
		}
		slices.Sort(lines)
		return lines
	}
	g, w := text(got), text(want)
	for len(g) > 0 || len(w) > 0 {
		switch {
		case len(w) == 0 || len(g) > 0 && g[0] < w[0]:
			t.Errorf("%s is there, and shouldn't", g[0])
			g = g[1:]
		case len(g) == 0 || g[0] > w[0]:
			t.Errorf("%s is missing", w[0])
			w = w[1:]
		default:
			g, w = g[1:], w[1:]
		}
	}
}

// TestFirings holds the firings of windows against a search through all of them behind
// each record, with crashes, restarts and epochs anywhere: none is missing, none comes
// twice, and a replay gives the same.
func TestFirings(t *testing.T) {
	for name, c := range map[string]struct {
		windows sluice.Windows
		m       firingsBy
	}{
		"tumbling": {sluice.Tumbling(4 * time.Second), firingsBy{size: 4 * second}},
		"session":  {sluice.Session(3 * time.Second), firingsBy{gap: 3 * second}},
	} {
		for _, allowed := range []time.Duration{0, 5 * time.Second} {
			for _, early := range []time.Duration{0, 1500 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, allowed, early), func(t *testing.T) {
					t.Parallel()
					seed := uint64(time.Now().UnixNano())
					t.Logf("seed %d", seed)
					r := rand.New(rand.NewPCG(seed, 8))
					lateness := time.Duration(r.IntN(3)) * time.Second
					m := c.m
					m.lateness, m.allowed, m.early, m.mark = lateness.Microseconds(), allowed.Microseconds(), early.Microseconds(), noMark
					opts := []sluice.WindowOption{sluice.AllowedLateness(allowed)}
					if r.IntN(2) == 0 {
						opts = append(opts, sluice.MergeAhead())
					}
					test := sluicetest.New(t, firingsJob(t.TempDir(), c.windows, lateness, early, opts...))
					clock, id := int64(-20*second), int64(0) // some lie before 1970
					counts := map[string]int{}
					missing := func() bool {
						clear(counts)
						for _, f := range m.out {
							counts[f.Timing]++
						}
						return counts["on time"] == 0 || counts["early"] == 0 && early > 0 || counts["late"] == 0 && allowed > 0
					}
					for round := 0; round < 12 || round < 100 && missing(); round++ {
						test.Options(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(4), 1+r.IntN(3), 1 })
						var feed []tick
						for range r.IntN(25) {
							clock += r.Int64N(second)
							at := clock - r.Int64N(5)*r.Int64N(2*second)
							if r.IntN(2) == 0 { // so that ends and watermarks meet
								at = floor(at, second/4) * (second / 4)
							}
							x := tick{id, fmt.Sprint("key-", r.IntN(3)), sluice.Instant(at), r.IntN(40) == 0}
							id++
							feed = append(feed, x)
							m.take(x)
						}
						sluicetest.Feed(test, "ticks", feed...)
						if len(feed) > 0 && r.IntN(2) == 0 {
							test.Crash(1 + r.IntN(4))
						}
						test.Step()
					}
					compareFirings(t, sluicetest.Rows[fired](test, "firings"), m.out)
					if missing() {
						t.Errorf("too few to tell anything: %v", counts)
					}
					test.Replay(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(20) })
				})
			}
		}
	}
}

// TestLastFiringIsTheResult reads runs of many records: a window's last firing has what
// its result has, and one at most comes at its end.
func TestLastFiringIsTheResult(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 8))
	test := sluicetest.New(t, firingsJob(t.TempDir(), sluice.Tumbling(4*time.Second), time.Second, time.Second, sluice.AllowedLateness(6*time.Second), sluice.MergeAhead()))
	clock, id := int64(0), int64(0)
	for range 15 {
		test.Options(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(30) })
		var feed []tick
		for range 40 {
			clock += r.Int64N(second / 2)
			feed = append(feed, tick{id, fmt.Sprint("key-", r.IntN(3)), sluice.Instant(clock - r.Int64N(8*second)), false})
			id++
		}
		sluicetest.Feed(test, "ticks", feed...)
		if r.IntN(2) == 0 {
			test.Crash(1 + r.IntN(4))
		}
		test.Step()
	}
	last, onTime := map[string]fired{}, map[string]int{}
	name := func(w windowed) string { return fmt.Sprint(w.Key, w.Start, w.End) }
	for _, f := range sluicetest.Rows[fired](test, "firings") {
		last[name(f.windowed)] = f
		if f.Timing == "on time" {
			onTime[name(f.windowed)]++
		}
	}
	results := sluicetest.Rows[windowed](test, "results")
	if len(results) < 50 {
		t.Errorf("%d windows have closed, which is too few to tell anything", len(results))
	}
	for _, w := range results {
		if f := last[name(w)]; !slices.Equal(f.IDs, w.IDs) {
			t.Errorf("the result %v, and the last firing %v", w, f)
		}
		if onTime[name(w)] > 1 {
			t.Errorf("%v came at its end %d times", w, onTime[name(w)])
		}
	}
}

// TestFiringsThatCantBe holds what is said of firings that a job can't have.
func TestFiringsThatCantBe(t *testing.T) {
	job := sluice.NewJob("firings")
	keyed := job.From("ticks", file.JSONLines[tick]("unused.jsonl")).EventTime(tick.time, 0).KeyBy(tick.key)
	shared := keyed.Window(sluice.Sliding(time.Second)).FoldMerge(sluice.NewState[sluice.In[string], bag]("shared"), (*bag).add, (*bag).merge)
	shared.Firings(0).Discard()
	twice := keyed.Window(sluice.Tumbling(time.Second)).Fold(sluice.NewState[sluice.In[string], bag]("twice"), (*bag).add)
	twice.Firings(0).Discard()
	twice.Firings(time.Second).Discard()
	never := keyed.Window(sluice.Tumbling(time.Second)).Fold(sluice.NewState[sluice.In[string], bag]("never"), (*bag).add)
	never.Firings(-time.Second).Discard()
	err := job.Check()
	for _, want := range []string{
		`Firings of state "shared", whose windows share panes; use Fold`,
		`a second Firings of state "twice"`,
		`Firings: early each -1s, expected whole microseconds, and at least 0`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
