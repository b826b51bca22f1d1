package window_test

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/window"
)

func TestWindowsOfATime(t *testing.T) {
	const minute, second, ms = 60_000_000, 1_000_000, 1_000
	tumbling := must(t)(window.Tumbling(time.Minute, 0))
	shifted := must(t)(window.Tumbling(time.Minute, 10*time.Second))
	back := must(t)(window.Tumbling(time.Minute, -10*time.Second))
	hopping := must(t)(window.Hopping(time.Minute, 25*time.Second, 0))
	sliding := must(t)(window.Sliding(time.Minute))
	session := must(t)(window.Session(time.Minute))
	for _, c := range []struct {
		d    *window.Definition
		t    int64
		want []window.Span
	}{
		{tumbling, 0, []window.Span{{0, minute}}},
		{tumbling, minute - 1, []window.Span{{0, minute}}},
		{tumbling, minute, []window.Span{{minute, 2 * minute}}},
		{tumbling, -1, []window.Span{{-minute, 0}}},
		{tumbling, -minute, []window.Span{{-minute, 0}}},
		{tumbling, -60_001 * ms, []window.Span{{-120_000 * ms, -60_000 * ms}}},
		{shifted, 0, []window.Span{{-50 * second, 10 * second}}},
		{shifted, 10 * second, []window.Span{{10 * second, 70 * second}}},
		{back, 49 * second, []window.Span{{-10 * second, 50 * second}}},
		{back, 50 * second, []window.Span{{50 * second, 110 * second}}},
		{hopping, 0, []window.Span{{-50 * second, 10 * second}, {-25 * second, 35 * second}, {0, minute}}},
		{hopping, 10 * second, []window.Span{{-25 * second, 35 * second}, {0, minute}}},
		{hopping, -1, []window.Span{{-50 * second, 10 * second}, {-25 * second, 35 * second}}},
		{sliding, 0, []window.Span{{-minute + 1, 1}}},
		{session, -5, []window.Span{{-5, minute - 5}}},
	} {
		got, ok := c.d.Append([]window.Span{{7, 8}}, c.t)
		if !ok || !slices.Equal(got, append([]window.Span{{7, 8}}, c.want...)) {
			t.Errorf("%v: windows of %d are %v (%v), want %v", c.d.Parameters(), c.t, got, ok, c.want)
		}
		one, ok := c.d.One(c.t)
		if single := len(c.want) == 1; ok != single || single && one != c.want[0] {
			t.Errorf("%v: the window of %d is %v (%v), want %v", c.d.Parameters(), c.t, one, ok, c.want)
		}
	}
}

func TestEveryStartTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := small(t, "windows")
		for at := int64(-70); at < 70; at++ {
			wantSpans(t, fmt.Sprintf("%v: windows of %d", d.Parameters(), at), all(t, d, at), holding(listed(d, -130, 130), at))
		}
	})
}

// Near the ends of time, windows are told where all of them fit 64 bits, and only
// there: worked out with numbers that have no end.
func TestEndsOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slide := rapid.Int64Range(1, math.MaxInt64/1000).Draw(t, "slide")
		size := slide + rapid.Int64Range(0, min(5*slide, math.MaxInt64/1000-slide)).Draw(t, "more")
		offset := rapid.Int64Range(0, slide-1).Draw(t, "offset")
		d := must(t)(window.Hopping(micros(size), micros(slide), micros(offset)))
		at := rapid.Int64Range(0, 7*size).Draw(t, "from the end")
		if rapid.Bool().Draw(t, "first end") {
			at += math.MinInt64
		} else {
			at = math.MaxInt64 - at
		}

		fits := true
		var want []window.Span
		start := big.NewInt(at)
		start.Sub(start, new(big.Int).Mod(new(big.Int).Sub(big.NewInt(at), big.NewInt(offset)), big.NewInt(slide)))
		for {
			end := new(big.Int).Add(start, big.NewInt(size))
			if end.Cmp(big.NewInt(at)) <= 0 {
				break
			}
			fits = fits && start.IsInt64() && end.IsInt64()
			want = append(want, window.Span{Start: start.Int64(), End: end.Int64()})
			start.Sub(start, big.NewInt(slide))
		}
		slices.Reverse(want)
		got, ok := d.Append(nil, at)
		if ok != fits || ok && !slices.Equal(got, want) || !ok && len(got) > 0 {
			t.Fatalf("%v: windows of %d are %v (%v), want %v (%v)", d.Parameters(), at, got, ok, want, fits)
		}
		if (d.Refusal(at) == nil) != fits {
			t.Fatalf("%v: %d is refused because of %v, fits %v", d.Parameters(), at, d.Refusal(at), fits)
		}
		if edge, ok := d.NextEdge(at); ok && (edge < at || edge > math.MaxInt64-size) {
			t.Fatalf("%v: the edge from %d on is %d", d.Parameters(), at, edge)
		}
	})
}

func TestEndsOfTimeOfOtherWindows(t *testing.T) {
	sliding, session := must(t)(window.Sliding(micros(10))), must(t)(window.Session(micros(10)))
	day, months := must(t)(window.Calendar(1, window.Day, "Asia/Tokyo", 0)), must(t)(window.Calendar(10_000, window.Month, "America/New_York", 0))
	for _, c := range []struct {
		d  *window.Definition
		t  int64
		ok bool
	}{
		{sliding, math.MinInt64 + 9, true}, {sliding, math.MinInt64 + 8, false},
		{sliding, math.MaxInt64 - 1, true}, {sliding, math.MaxInt64, false},
		{session, math.MinInt64, true}, {session, math.MaxInt64 - 10, true}, {session, math.MaxInt64 - 9, false},
		{day, math.MinInt64, false}, {day, math.MaxInt64, false}, {months, math.MinInt64, false}, {months, math.MaxInt64, false},
		{day, at(t, "0001-01-01T00:00:00Z"), true}, {day, at(t, "0001-01-01T00:00:00Z") - 1, false},
		{months, at(t, "9999-12-31T23:59:59.999999Z"), true}, {months, at(t, "9999-12-31T23:59:59.999999Z") + 1, false},
	} {
		got, ok := c.d.One(c.t)
		if ok != c.ok || ok && !got.Holds(c.t) {
			t.Errorf("%v: the window of %d is %v (%v), want %v", c.d.Parameters(), c.t, got, ok, c.ok)
		}
	}
}

// Far in the past and the future, windows of all lengths hold their time and are as
// long as they should be.
func TestCalendarOfAllYears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]window.Unit{window.Day, window.Week, window.Month}).Draw(t, "unit")
		count := rapid.Int64Range(1, window.MaxCount).Draw(t, "count")
		d := must(t)(window.Calendar(count, unit, rapid.SampledFrom(zones).Draw(t, "zone"), time.Duration(rapid.Int64Range(-23, 23).Draw(t, "hours"))*time.Hour))
		at := rapid.Int64Range(at(t, "0001-01-01T00:00:00Z"), at(t, "9999-12-31T23:59:59Z")).Draw(t, "time")
		const hour = 3_600_000_000
		shortest := map[window.Unit]int64{window.Day: 24 * hour, window.Week: 7 * 24 * hour, window.Month: 28 * 24 * hour}[unit]*count - 25*hour
		if got, ok := d.One(at); !ok || !got.Holds(at) || got.End-got.Start < shortest {
			t.Fatalf("%v: the window of %d is %v", d.Parameters(), at, got)
		}
	})
}

func TestCustom(t *testing.T) {
	given := func(spans ...window.Span) func(int64) iter.Seq[window.Span] {
		return func(int64) iter.Seq[window.Span] { return slices.Values(spans) }
	}
	d := must(t)(window.Custom("promotions", given(window.Span{5, 20}, window.Span{0, 11}, window.Span{5, 12}, window.Span{0, 11})))
	wantSpans(t, "windows in order, each once", all(t, d, 10), []window.Span{{0, 11}, {5, 12}, {5, 20}})
	if _, ok := d.One(10); ok {
		t.Error("three windows are one")
	}
	if got, ok := must(t)(window.Custom("one", given(window.Span{3, 9}))).One(4); !ok || got != (window.Span{3, 9}) {
		t.Errorf("the one window is %v (%v)", got, ok)
	}
	many := func(n int64) func(int64) iter.Seq[window.Span] {
		return func(t int64) iter.Seq[window.Span] {
			return func(yield func(window.Span) bool) {
				for i := range n {
					if !yield(window.Span{t - i, t + 1}) {
						return
					}
				}
			}
		}
	}
	if got := all(t, must(t)(window.Custom("many", many(window.MaxWindows))), 0); len(got) != window.MaxWindows {
		t.Errorf("%d windows", len(got))
	}
	parsed, err := window.Parse(d.Parameters())
	if err != nil || parsed.Complete() || !d.Complete() {
		t.Fatalf("%v is parsed as complete (%v)", d.Parameters(), err)
	}
	for _, c := range []struct {
		d    *window.Definition
		want string
	}{
		{must(t)(window.Custom("other", given(window.Span{0, 11}, window.Span{11, 20}))), "windows of other: [11, 20) doesn't hold the time 10, and the windows of a time have to"},
		{must(t)(window.Custom("nothing", given(window.Span{10, 10}))), "windows of nothing: [10, 10) doesn't hold the time 10, and the windows of a time have to"},
		{must(t)(window.Custom("many", many(window.MaxWindows+1))), "windows of many: more than 10000 for the time 1970-01-01 00:00:00.00001 +0000 UTC"},
		{parsed, "windows of promotions: the function isn't there"},
	} {
		got, ok := c.d.Append([]window.Span{{1, 2}}, 10)
		if ok || !slices.Equal(got, []window.Span{{1, 2}}) {
			t.Errorf("%v puts 10 into %v", c.d.Parameters(), got)
		}
		if err := c.d.Refusal(10); err == nil || err.Error() != c.want {
			t.Errorf("%v refuses because of %v, want %s", c.d.Parameters(), err, c.want)
		}
	}
}

func TestSessionsThatTouch(t *testing.T) {
	d := must(t)(window.Session(time.Second))
	first, _ := d.One(0)
	within, _ := d.One(999_999)
	after, _ := d.One(1_000_000)
	if !first.Overlaps(within) || !within.Overlaps(first) || first.Cover(within) != (window.Span{0, 1_999_999}) {
		t.Errorf("%v and %v are %v", first, within, first.Cover(within))
	}
	if first.Overlaps(after) || after.Overlaps(first) {
		t.Errorf("%v and %v overlap: a record that comes exactly a gap later is of another session", first, after)
	}
}

func TestPanes(t *testing.T) {
	d := must(t)(window.Hopping(micros(10), micros(4), 0))
	panes, _ := d.Panes(nil, window.Span{-4, 6})
	wantSpans(t, "panes", panes, []window.Span{{-4, -2}, {-2, 0}, {0, 2}, {2, 4}, {4, 6}})
	windows, _ := d.WindowsOf(nil, window.Span{2, 4})
	wantSpans(t, "windows of a pane", windows, []window.Span{{-4, 6}, {0, 10}})
	session, sliding := must(t)(window.Session(1000)), must(t)(window.Sliding(micros(1000)))
	if pane, ok := session.Pane(0); ok {
		t.Errorf("%v has the pane %v", session.Parameters(), pane)
	}
	if pane, ok := sliding.Pane(7); !ok || pane != (window.Span{7, 8}) {
		t.Errorf("%v has the pane %v (%v)", sliding.Parameters(), pane, ok)
	}
	if panes, ok := sliding.Panes(nil, window.Span{0, 1000}); ok {
		t.Errorf("%v is made of the panes %v", sliding.Parameters(), panes)
	}
	if next, ok := sliding.NextWindow(7, 7); !ok || next != (window.Span{-992, 8}) {
		t.Errorf("the window of 7 is %v (%v)", next, ok)
	}
	if next, ok := sliding.NextWindow(7, 8); ok {
		t.Errorf("the window of 7 that ends after 8 is %v", next)
	}
	for at, want := range map[int64]int64{7: 1007, math.MaxInt64 - 3: math.MaxInt64} {
		if end, ok := sliding.LastEnd(at); !ok || end != want {
			t.Errorf("%d is in no window behind %d (%v), want %d", at, end, ok, want)
		}
	}
	if panes, ok := d.Panes(nil, window.Span{0, 11}); ok {
		t.Errorf("what is longer than a window has the panes %v", panes)
	}

	rapid.Check(t, func(t *rapid.T) {
		d := small(t, "windows")
		// A pane ends where the windows of the next time are others, and nowhere else.
		for at := int64(-40); at < 40; at++ {
			here, ok := d.Pane(at)
			next, also := d.Pane(at + 1)
			if !ok || !also || !here.Holds(at) {
				t.Fatalf("%v: the pane of %d is %v", d.Parameters(), at, here)
			}
			same := slices.Equal(all(t, d, at), all(t, d, at+1))
			if d.Size > d.Slide && same != (here == next) || !same && here.End != at+1 {
				t.Fatalf("%v: the panes of %d and the next are %v and %v, and their windows are the same: %v", d.Parameters(), at, here, next, same)
			}
			windows, _ := d.WindowsOf(nil, here)
			wantSpans(t, "windows of the pane", windows, all(t, d, at))
			if end, ok := d.LastEnd(at); !ok || end != windows[len(windows)-1].End {
				t.Fatalf("%v: the last window of %d ends at %d, not %d", d.Parameters(), at, windows[len(windows)-1].End, end)
			}
			for after := at - 2; after <= windows[len(windows)-1].End; after++ {
				want := slices.IndexFunc(windows, func(w window.Span) bool { return w.End > after })
				next, ok := d.NextWindow(at, after)
				if ok != (want >= 0) || ok && next != windows[want] {
					t.Fatalf("%v: the window of %d that ends after %d is %v (%v), of %v", d.Parameters(), at, after, next, ok, windows)
				}
			}
			for _, w := range windows {
				panes, ok := d.Panes(nil, w)
				if !ok || panes[0].Start != w.Start || panes[len(panes)-1].End != w.End || int64(len(panes)) > 2*(w.End-w.Start)/d.Slide+1 {
					t.Fatalf("%v: %v is made of %v", d.Parameters(), w, panes)
				}
				for i := range panes[1:] {
					if panes[i].End != panes[i+1].Start {
						t.Fatalf("%v: %v is made of %v", d.Parameters(), w, panes)
					}
				}
			}
		}
	})
}
