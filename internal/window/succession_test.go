package window_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/window"
)

func joined(t failer) func(s window.Succession, err error) window.Succession {
	return func(s window.Succession, err error) window.Succession {
		t.Helper()
		if err != nil {
			t.Fatalf("%v", err)
		}
		return s
	}
}

func spansAt(t failer, s window.Succession, at int64) []window.Span {
	t.Helper()
	got, ok := s.Append(nil, at)
	if !ok {
		t.Fatalf("the succession refuses %d", at)
	}
	return got
}

func TestChangeAtABoundary(t *testing.T) {
	hopping, tumbling := must(t)(window.Hopping(micros(10), micros(5), 0)), must(t)(window.Tumbling(micros(4), 0))
	s := joined(t)(window.Begin(hopping).Then(tumbling, 20))
	for at, want := range map[int64][]window.Span{
		14: {{5, 15}, {10, 20}},
		19: {{10, 20}, {15, 25}},
		20: {{15, 25}, {20, 24}}, // what began before goes on
		24: {{15, 25}, {24, 28}},
		25: {{24, 28}},
	} {
		wantSpans(t, fmt.Sprintf("windows of %d", at), spansAt(t, s, at), want)
	}
	if s.Finished(27) != 0 || s.Finished(28) != 1 { // 24 is in a window of both
		t.Errorf("at 27 %d parts are finished, at 28 %d", s.Finished(27), s.Finished(28))
	}
	s = s.Drop(1)
	wantSpans(t, "windows that were dropped", spansAt(t, s, 19), nil)
	wantSpans(t, "windows of what is left", spansAt(t, s, 20), []window.Span{{20, 24}})
	if len(s.Parts()) != 1 || s.Finished(math.MaxInt64) != 0 {
		t.Errorf("%d parts are left, of which %d are finished", len(s.Parts()), s.Finished(math.MaxInt64))
	}
}

func TestChangeAtACut(t *testing.T) {
	hopping, tumbling := must(t)(window.Hopping(micros(10), micros(5), 0)), must(t)(window.Tumbling(micros(4), 0))
	s := joined(t)(window.Begin(hopping).Cut(tumbling, 22))
	s = joined(t)(s.Cut(hopping, 23))
	s = joined(t)(s.Cut(must(t)(window.Sliding(micros(3))), 30))
	s = joined(t)(s.Cut(must(t)(window.Session(micros(5))), 40))
	for at, want := range map[int64][]window.Span{
		11: {{5, 15}, {10, 20}},
		21: {{15, 22}, {20, 22}},
		22: {{22, 23}},
		23: {{23, 25}, {23, 30}},
		24: {{23, 25}, {23, 30}},
		29: {{23, 30}, {25, 30}},
		30: {{30, 31}},
		33: {{31, 34}},
		39: {{37, 40}},
		40: {{40, 45}},
	} {
		wantSpans(t, fmt.Sprintf("windows of %d", at), spansAt(t, s, at), want)
	}
	for span, want := range map[window.Span]bool{
		{10, 20}: false, {15, 22}: true, {20, 22}: true, {22, 23}: true, {23, 25}: true, {23, 30}: true, {25, 30}: true,
		{30, 31}: true, {31, 34}: false, {37, 40}: false,
		// A record at 39 would have been in a session that begins at 40 to 43.
		{40, 45}: true, {43, 48}: true, {44, 49}: false, {50, 60}: false,
	} {
		if got := s.Partial(span); got != want {
			t.Errorf("%v is partial: %v, want %v", span, got, want)
		}
	}
	if s.Finished(21) != 0 || s.Finished(22) != 1 || s.Finished(29) != 2 || s.Finished(30) != 3 || s.Finished(40) != 4 {
		t.Error("cut parts are finished at other times than where they are cut")
	}
	dropped := s.Drop(2)
	wantSpans(t, "windows behind a cut that was dropped", spansAt(t, dropped, 23), []window.Span{{23, 25}, {23, 30}})
	wantSpans(t, "windows that were dropped", spansAt(t, dropped, 22), nil)
	if !dropped.Partial(window.Span{23, 25}) {
		t.Error("a window is whole because what was cut off it was dropped")
	}

	sessions := joined(t)(window.Begin(must(t)(window.Session(micros(5)))).Cut(must(t)(window.Session(micros(9))), 100))
	wantSpans(t, "a session before the cut", spansAt(t, sessions, 97), []window.Span{{97, 100}})
	wantSpans(t, "a session behind it", spansAt(t, sessions, 100), []window.Span{{100, 109}})
	if !sessions.Partial(window.Span{90, 100}) || sessions.Partial(window.Span{90, 99}) {
		t.Error("sessions that end at the cut are whole, or those before it aren't")
	}

	day, month := must(t)(window.Calendar(1, window.Day, "Europe/Paris", 0)), must(t)(window.Calendar(1, window.Month, "Europe/Paris", 0))
	calendar := joined(t)(window.Begin(month).Cut(day, at(t, "2026-05-20T10:00:00Z")))
	wantSpans(t, "a month that is cut", spansAt(t, calendar, at(t, "2026-05-20T09:59:59Z")), []window.Span{spanOf(t, "2026-04-30T22:00:00Z", "2026-05-20T10:00:00Z")})
	wantSpans(t, "a day that is cut", spansAt(t, calendar, at(t, "2026-05-20T10:00:00Z")), []window.Span{spanOf(t, "2026-05-20T10:00:00Z", "2026-05-20T22:00:00Z")})
	for span, want := range map[window.Span]bool{
		spanOf(t, "2026-03-31T22:00:00Z", "2026-04-30T22:00:00Z"): false,
		spanOf(t, "2026-04-30T22:00:00Z", "2026-05-20T10:00:00Z"): true,
		spanOf(t, "2026-05-20T10:00:00Z", "2026-05-20T22:00:00Z"): true,
		spanOf(t, "2026-05-20T22:00:00Z", "2026-05-21T22:00:00Z"): false,
	} {
		if got := calendar.Partial(span); got != want {
			t.Errorf("%v is partial: %v, want %v", span, got, want)
		}
	}
}

// change is a definition and how it begins.
type change struct {
	d    *window.Definition
	from int64
	cut  bool
}

// changes draws a succession of definitions of few microseconds, and lists them.
func changes(t *rapid.T) (s window.Succession, list []change) {
	list = []change{{small(t, "first"), -1000, false}}
	s = window.Begin(list[0].d)
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		last := list[len(list)-1]
		next := change{d: small(t, "next")}
		after := max(last.from, -40) + rapid.Int64Range(0, 20).Draw(t, "later")
		at, ok := window.Boundary(last.d, next.d, after)
		if next.from, next.cut = at, !ok || rapid.Bool().Draw(t, "cut"); next.cut {
			next.from = after + 1
			s = joined(t)(s.Cut(next.d, next.from))
		} else {
			s = joined(t)(s.Then(next.d, next.from))
		}
		list = append(list, next)
	}
	return s, list
}

// ruled are the windows of a time by the rule: every window of every part that
// begins in the part's time, those at cuts shortened and without the records from
// the other side.
func ruled(list []change, t int64) (want []window.Span, partial []bool) {
	for i, c := range list {
		until, cutAfter := int64(2000), false
		if i+1 < len(list) {
			until, cutAfter = list[i+1].from, list[i+1].cut
		}
		if c.cut && t < c.from || cutAfter && t >= until {
			continue
		}
		for _, whole := range holding(listed(c.d, -1100, 1100), t) {
			w := whole
			if c.cut {
				w.Start = max(w.Start, c.from)
			}
			if cutAfter {
				w.End = min(w.End, until)
			}
			if c.from <= w.Start && w.Start < until && !slices.Contains(want, w) {
				want = append(want, w)
				partial = append(partial, w != whole)
			}
		}
	}
	return want, partial
}

func TestSuccessionsByTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, list := changes(t)
		ends := slices.Repeat([]int64{math.MinInt64}, len(list)) // of the last window of each part
		finder := s.Finder()
		last := list[len(list)-1].from
		for at := int64(-60); at < last+60; at++ {
			want, partial := ruled(list, at)
			got := spansAt(t, s, at)
			wantSpans(t, fmt.Sprintf("windows of %d", at), got, want)
			found, _ := finder.Append(nil, at)
			wantSpans(t, fmt.Sprintf("windows of %d that are found", at), found, want)
			if one, ok := finder.One(at); ok != (len(want) == 1) || ok && one != want[0] {
				t.Fatalf("the window of %d is %v (%v), want %v", at, one, ok, want)
			}
			for i, w := range got {
				if s.Partial(w) != partial[i] {
					t.Fatalf("%v is partial: %v, want %v", w, s.Partial(w), partial[i])
				}
				for p := range list {
					if list[p].from <= w.Start && (p+1 == len(list) || w.Start < list[p+1].from) {
						ends[p] = max(ends[p], w.End)
					}
				}
			}
		}
		for watermark := int64(-60); watermark < last+60; watermark++ {
			n := s.Finished(watermark)
			for p := range n {
				if ends[p] > watermark {
					t.Fatalf("at %d part %d is finished, and has a window that ends at %d", watermark, p, ends[p])
				}
			}
			// Records whose windows haven't ended all keep them.
			dropped := s.Drop(n)
			for at := watermark; at < watermark+20; at++ {
				wantSpans(t, fmt.Sprintf("at %d, %d parts being dropped, windows of %d", watermark, n, at), spansAt(t, dropped, at), spansAt(t, s, at))
			}
		}
		if n := s.Finished(last + 60); n != len(list)-1 {
			t.Fatalf("%d of %d parts are finished in the end", n, len(list))
		}
	})
}

// Where both definitions divide time, a change leaves nobody out and counts nobody
// twice.
func TestEachTimeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *window.Definition {
			if rapid.Bool().Draw(t, label+" is a calendar") {
				return must(t)(window.Calendar(rapid.Int64Range(1, 3).Draw(t, label), rapid.SampledFrom([]window.Unit{window.Day, window.Week, window.Month}).Draw(t, label), rapid.SampledFrom(zones).Draw(t, label), 0))
			}
			return must(t)(window.Tumbling(time.Duration(rapid.Int64Range(1, 100).Draw(t, label))*time.Hour, 0))
		}
		old, now := draw("old"), draw("new")
		after := rapid.Int64Range(at(t, "1980-01-01T00:00:00Z"), at(t, "2030-01-01T00:00:00Z")).Draw(t, "after")
		s, err := window.Begin(old).Cut(now, after)
		if boundary, ok := window.Boundary(old, now, after); ok && boundary-after < 1<<50 {
			after = boundary
			s, err = window.Begin(old).Then(now, boundary)
		}
		s = joined(t)(s, err)
		finder := s.Finder()
		before := window.Span{}
		for at := after - 3_600_000_000*200; at < after+3_600_000_000*200; at += 3_599_999_999 {
			got, ok := finder.One(at)
			if !ok || !got.Holds(at) || got != before && before.End > got.Start {
				t.Fatalf("%v, then %v from %d: the window of %d is %v (%v), after %v", old.Parameters(), now.Parameters(), after, at, got, ok, before)
			}
			before = got
		}
	})
}

func TestCustomWindowsThatAreCut(t *testing.T) {
	custom := must(t)(window.Custom("odd", func(int64) iter.Seq[window.Span] {
		return slices.Values([]window.Span{{0, 50}, {10, 30}, {20, 50}})
	}))
	s := joined(t)(window.Begin(must(t)(window.Session(micros(5)))).Cut(custom, 25))
	wantSpans(t, "windows", spansAt(t, s, 26), []window.Span{{25, 30}, {25, 50}})
	if !s.Partial(window.Span{25, 30}) || s.Partial(window.Span{26, 30}) {
		t.Error("custom windows that begin at the cut are whole, or others aren't")
	}
	if got, ok := s.Append([]window.Span{{1, 2}}, 60); ok || len(got) != 1 {
		t.Errorf("windows that don't hold their time are %v", got)
	}
	finder := s.Finder()
	if got, ok := finder.Append([]window.Span{{1, 2}}, 60); ok || len(got) != 1 {
		t.Errorf("windows that don't hold their time are found as %v", got)
	}
}

func TestChangesThatCannotBe(t *testing.T) {
	minute, hour := must(t)(window.Tumbling(time.Minute, 0)), must(t)(window.Tumbling(time.Hour, 0))
	s := joined(t)(window.Begin(minute).Then(hour, 3_600_000_000))
	wrong := func(want string) func(window.Succession, error) {
		return func(_ window.Succession, err error) {
			t.Helper()
			if err == nil || err.Error() != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
	}
	wrong("windows can't change at 3600000000: the definition before them begins at 3600000000")(s.Cut(minute, 3_600_000_000))
	wrong("windows can't change from event time to processing time: their times can't be compared")(s.Cut(minute.On(window.ProcessingTime), 7_200_000_000))
	wrong("windows can't change at 3660000000 without being cut: it isn't where windows of both definitions begin, as the rules of time zones are here")(s.Then(minute, 3_660_000_000))
	if len(s.Parts()) != 2 || s.Parts()[1].Until != window.Forever {
		t.Errorf("the succession has changed: %v", s.Parts())
	}
	// Two ways on from one succession don't know of each other.
	one, other := joined(t)(s.Then(minute, 7_200_000_000)), joined(t)(s.Then(minute, 10_800_000_000))
	if one.Parts()[1].Until != 7_200_000_000 || other.Parts()[1].Until != 10_800_000_000 {
		t.Errorf("%v and %v", one.Parts(), other.Parts())
	}
}

func TestSuccessionAsJSON(t *testing.T) {
	s := window.Begin(must(t)(window.Tumbling(time.Minute, 0)))
	s = joined(t)(s.Then(must(t)(window.Hopping(time.Hour, 10*time.Minute, 0)), 600_000_000))
	s = joined(t)(s.Cut(must(t)(window.Calendar(1, window.Day, "Europe/Paris", 0)), 700_000_000))
	for _, c := range []struct {
		s    window.Succession
		want string
	}{
		{s, `{"parts":[{"parameters":{"clock":"event","size":"1m0s","window":"tumbling"},"until":600000000},` +
			`{"parameters":{"clock":"event","size":"1h0m0s","slide":"10m0s","window":"hopping"},"until":700000000,"cut":true},` +
			`{"parameters":{"clock":"event","count":"1","unit":"day","window":"calendar","zone":"Europe/Paris"}}]}`},
		{s.Drop(2), `{"from":700000000,"cut":true,"parts":[{"parameters":{"clock":"event","count":"1","unit":"day","window":"calendar","zone":"Europe/Paris"}}]}`},
	} {
		raw, err := json.Marshal(c.s)
		if err != nil || string(raw) != c.want {
			t.Errorf("in JSON it is %s (%v), want %s", raw, err, c.want)
		}
		var read window.Succession
		if err := json.Unmarshal([]byte(c.want), &read); err != nil {
			t.Fatal(err)
		}
		for at := int64(500_000_000); at < 800_000_000; at += 20_000_000 {
			wantSpans(t, fmt.Sprintf("windows of %d", at), spansAt(t, read, at), spansAt(t, c.s, at))
		}
		if again, _ := json.Marshal(read); string(again) != c.want {
			t.Errorf("read and written again it is %s", again)
		}
	}
	const minute = `{"parameters":{"clock":"event","size":"1m","window":"tumbling"}`
	for raw, want := range map[string]string{
		`{}`:                                    "succession of windows: it has no part",
		`{"parts":[` + minute + `,"until":5}]}`: "succession of windows: the last part has an end",
		`{"parts":[` + minute + `},` + minute + `}]}`:                               "succession of windows: part 0 has no end, and isn't the last",
		`{"parts":[{"parameters":{}}]}`:                                             "succession of windows: parameters of windows: there is no window",
		`{"parts":[` + minute + `,"until":5},` + minute + `}]}`:                     "succession of windows: windows can't change at 5 without being cut: it isn't where windows of both definitions begin, as the rules of time zones are here",
		`{"from":9,"parts":[` + minute + `,"until":5,"cut":true},` + minute + `}]}`: "succession of windows: windows can't change at 5: the definition before them begins at 9",
	} {
		var read window.Succession
		if err := json.Unmarshal([]byte(raw), &read); err == nil || err.Error() != want {
			t.Errorf("%s is read (%v), want the error %s", raw, err, want)
		}
	}
}
