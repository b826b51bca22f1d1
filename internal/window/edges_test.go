package window_test

import (
	"iter"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/window"
)

func TestBoundaryEveryInstantTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, now := small(t, "old"), small(t, "new")
		after := rapid.Int64Range(-2000, 2000).Draw(t, "after")
		var want int64
		found := false
		for at := after + 1; at <= after+old.Slide*now.Slide && !found; at++ {
			want, found = at, (at-old.Offset)%old.Slide == 0 && (at-now.Offset)%now.Slide == 0
		}
		if got, ok := window.Boundary(old, now, after); ok != found || ok && got != want {
			t.Fatalf("%v and %v meet after %d at %d (%v), want %d (%v)", old.Parameters(), now.Parameters(), after, got, ok, want, found)
		}
	})
}

func TestEdgesEveryInstantTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := small(t, "windows")
		for at := int64(-50); at < 50; at++ {
			want := at
			for (want-d.Offset)%d.Slide != 0 {
				want++
			}
			if got, ok := d.NextEdge(at); !ok || got != want {
				t.Fatalf("%v: the edge from %d on is %d (%v), want %d", d.Parameters(), at, got, ok, want)
			}
		}
	})
}

func TestBoundaries(t *testing.T) {
	tumbling := func(size, offset time.Duration) *window.Definition { return must(t)(window.Tumbling(size, offset)) }
	hopping := must(t)(window.Hopping(time.Hour, 25*time.Minute, 0))
	days := func(zone string, offset time.Duration) *window.Definition {
		return must(t)(window.Calendar(1, window.Day, zone, offset))
	}
	weeks := must(t)(window.Calendar(1, window.Week, "Europe/Paris", 0))
	months := must(t)(window.Calendar(1, window.Month, "Europe/Paris", 0))
	custom := must(t)(window.Custom("promotions", func(int64) iter.Seq[window.Span] { return nil }))
	for _, c := range []struct {
		name        string
		old, now    *window.Definition
		after, want string // want is empty where there is none
	}{
		{"the same", tumbling(time.Minute, 0), tumbling(time.Minute, 0), "2026-05-01T10:00:00Z", "2026-05-01T10:01:00Z"},
		{"a multiple", tumbling(time.Minute, 0), tumbling(time.Hour, 0), "2026-05-01T10:00:30Z", "2026-05-01T11:00:00Z"},
		{"before 1970", tumbling(time.Minute, 0), tumbling(time.Hour, 0), "1969-05-01T10:00:30Z", "1969-05-01T11:00:00Z"},
		{"slides count, not sizes", hopping, tumbling(10*time.Minute, 0), "1970-01-01T00:00:00Z", "1970-01-01T00:50:00Z"},
		{"never", tumbling(time.Hour, 0), tumbling(time.Hour, time.Minute), "2026-05-01T10:00:00Z", ""},
		{"offsets that meet", tumbling(4*time.Minute, time.Minute), tumbling(6*time.Minute, 3*time.Minute), "1970-01-01T00:00:00Z", "1970-01-01T00:09:00Z"},
		{"days and hours", days("Europe/Paris", 0), tumbling(time.Hour, 0), "2026-05-01T10:00:00Z", "2026-05-01T22:00:00Z"},
		{"hours and days", tumbling(time.Hour, 0), days("Asia/Kathmandu", 0), "2026-05-01T10:00:00Z", ""},
		{"quarter hours and days", tumbling(15*time.Minute, 0), days("Asia/Kathmandu", 0), "2026-05-01T10:00:00Z", "2026-05-01T18:15:00Z"},
		{"days and weeks", days("Europe/Paris", 0), weeks, "2026-10-20T00:00:00Z", "2026-10-25T23:00:00Z"},
		{"weeks and months", weeks, months, "2026-05-01T00:00:00Z", "2026-05-31T22:00:00Z"}, // Monday, June 1st
		{"in winter", days("Europe/London", 0), days("UTC", 0), "2026-06-01T00:00:00Z", "2026-10-26T00:00:00Z"},
		{"days of places apart", days("Europe/Paris", 0), days("Europe/London", 0), "2026-06-01T00:00:00Z", ""},
		{"business days", days("Europe/Paris", 0), days("Europe/Paris", 4*time.Hour), "2026-06-01T00:00:00Z", ""},
		{"sliding", tumbling(time.Minute, 0), must(t)(window.Sliding(time.Minute)), "2026-05-01T10:00:00Z", ""},
		{"sessions", must(t)(window.Session(time.Minute)), tumbling(time.Minute, 0), "2026-05-01T10:00:00Z", ""},
		{"custom", custom, custom, "2026-05-01T10:00:00Z", ""},
		{"clocks", tumbling(time.Minute, 0), tumbling(time.Minute, 0).On(window.ProcessingTime), "2026-05-01T10:00:00Z", ""},
	} {
		got, ok := window.Boundary(c.old, c.now, at(t, c.after))
		if ok != (c.want != "") || ok && got != at(t, c.want) {
			t.Errorf("%s: they meet at %s (%v), want %s", c.name, time.UnixMicro(got).UTC(), ok, c.want)
		}
		back, also := window.Boundary(c.now, c.old, at(t, c.after))
		if also != ok || back != got && ok {
			t.Errorf("%s: the other way round they meet at %s (%v)", c.name, time.UnixMicro(back).UTC(), also)
		}
	}
}

func TestBoundaryAtTheEndsOfTime(t *testing.T) {
	a, b := must(t)(window.Tumbling(micros(7), 0)), must(t)(window.Tumbling(micros(5), 0))
	// 35 times 263,524,915,338,707,880 is 2^63-8; and -263,524,915,338,707,880 is as far.
	if got, ok := window.Boundary(a, b, math.MaxInt64-40); !ok || got != 9_223_372_036_854_775_800 {
		t.Errorf("the last boundary is %d (%v)", got, ok)
	}
	if got, ok := window.Boundary(a, b, math.MaxInt64-7); ok {
		t.Errorf("behind the last boundary comes %d", got)
	}
	if got, ok := window.Boundary(a, b, math.MaxInt64); ok {
		t.Errorf("behind the end comes %d", got)
	}
	if got, ok := window.Boundary(a, b, math.MinInt64); !ok || got != -9_223_372_036_854_775_800 {
		t.Errorf("the first boundary is %d (%v)", got, ok)
	}
	// Slides without a common divisor, whose product is 7·10^30 µs.
	long, longer := must(t)(window.Tumbling(micros(2_500_000_000_000_001), micros(1))), must(t)(window.Tumbling(micros(2_800_000_000_000_003), 0))
	if got, ok := window.Boundary(long, longer, 1); ok {
		t.Errorf("%v and %v meet at %d", long.Parameters(), longer.Parameters(), got)
	}
}
