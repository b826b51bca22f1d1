package window_test

import (
	"iter"
	"maps"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/window"
)

func TestArguments(t *testing.T) {
	refused(t, "tumbling windows: size 0s, and it has to be at least 1µs")(window.Tumbling(0, 0))
	refused(t, "tumbling windows: size -1m0s, and it has to be at least 1µs")(window.Tumbling(-time.Minute, 0))
	refused(t, "tumbling windows: size 1.5µs isn't whole microseconds")(window.Tumbling(1500, 0))
	refused(t, "tumbling windows: offset 1m0s isn't shorter than 1m0s, from one window to the next")(window.Tumbling(time.Minute, time.Minute))
	refused(t, "tumbling windows: offset -1m0s isn't shorter than 1m0s, from one window to the next")(window.Tumbling(time.Minute, -time.Minute))
	refused(t, "hopping windows: slide 0s, and it has to be at least 1µs")(window.Hopping(time.Minute, 0, 0))
	refused(t, "hopping windows: slide 1m1s is longer than size 1m0s: times in between would be in no window")(window.Hopping(time.Minute, 61*time.Second, 0))
	refused(t, "hopping windows: offset 1ns isn't whole microseconds")(window.Hopping(time.Minute, time.Second, 1))
	refused(t, "hopping windows: size 10.000001s with slide 1ms puts each record into more than 10000 windows: a longer slide is needed")(window.Hopping(10*time.Second+time.Microsecond, time.Millisecond, 0))
	refused(t, "sliding windows: size 999ns, and it has to be at least 1µs")(window.Sliding(999))
	refused(t, "sessions: gap 0s, and it has to be at least 1µs")(window.Session(0))
	refused(t, "calendar windows: 0 units in a window, and it has to be 1 to 10000")(window.Calendar(0, window.Day, "UTC", 0))
	refused(t, "calendar windows: 10001 units in a window, and it has to be 1 to 10000")(window.Calendar(10_001, window.Day, "UTC", 0))
	refused(t, `calendar windows: unit "year", and it has to be day, week or month`)(window.Calendar(1, "year", "UTC", 0))
	refused(t, "calendar windows: offset 24h0m0s isn't shorter than 1 days")(window.Calendar(1, window.Day, "UTC", 24*time.Hour))
	refused(t, "calendar windows: offset -672h0m0s isn't shorter than 28 days")(window.Calendar(1, window.Month, "UTC", -28*24*time.Hour))
	refused(t, "calendar windows: offset 1ns isn't whole microseconds")(window.Calendar(1, window.Day, "UTC", 1))
	refused(t, `calendar windows: zone "" depends on who reads it: name one, such as UTC or Europe/Paris`)(window.Calendar(1, window.Day, "", 0))
	refused(t, `calendar windows: zone "Local" depends on who reads it: name one, such as UTC or Europe/Paris`)(window.Calendar(1, window.Day, "Local", 0))
	refused(t, `calendar windows: zone "Mars/Olympus" isn't known: unknown time zone Mars/Olympus`)(window.Calendar(1, window.Day, "Mars/Olympus", 0))
	refused(t, "custom windows: the function has no name")(window.Custom("", func(int64) iter.Seq[window.Span] { return nil }))
	refused(t, "custom windows: there is no function promotions")(window.Custom("promotions", nil))

	if d := must(t)(window.Hopping(10*time.Second, time.Millisecond, 0)); len(all(t, d, 0)) != window.MaxWindows {
		t.Errorf("%v puts 0 into %d windows, want %d", d.Parameters(), len(all(t, d, 0)), window.MaxWindows)
	}
}

func TestParameters(t *testing.T) {
	custom := func(int64) iter.Seq[window.Span] { return nil }
	for _, c := range []struct {
		d    *window.Definition
		want map[string]string
	}{
		{must(t)(window.Tumbling(time.Minute, 0)), map[string]string{"window": "tumbling", "clock": "event", "size": "1m0s"}},
		{must(t)(window.Tumbling(time.Hour, -10*time.Minute)).On(window.ProcessingTime), map[string]string{"window": "tumbling", "clock": "processing", "size": "1h0m0s", "offset": "50m0s"}},
		{must(t)(window.Hopping(time.Minute, 1500*time.Microsecond+10*time.Second, time.Microsecond)), map[string]string{"window": "hopping", "clock": "event", "size": "1m0s", "slide": "10.0015s", "offset": "1µs"}},
		{must(t)(window.Sliding(time.Minute)), map[string]string{"window": "sliding", "clock": "event", "size": "1m0s"}},
		{must(t)(window.Session(time.Minute)), map[string]string{"window": "session", "clock": "event", "gap": "1m0s"}},
		{must(t)(window.Calendar(1, window.Day, "Europe/Paris", 4*time.Hour)), map[string]string{"window": "calendar", "clock": "event", "count": "1", "unit": "day", "zone": "Europe/Paris", "offset": "4h0m0s"}},
		{must(t)(window.Calendar(2, window.Week, "UTC", -time.Hour)), map[string]string{"window": "calendar", "clock": "event", "count": "2", "unit": "week", "zone": "UTC", "offset": "335h0m0s"}},
		{must(t)(window.Calendar(3, window.Month, "UTC", -time.Hour)), map[string]string{"window": "calendar", "clock": "event", "count": "3", "unit": "month", "zone": "UTC", "offset": "-1h0m0s"}},
		{must(t)(window.Custom("promotions", custom)), map[string]string{"window": "custom", "clock": "event", "function": "promotions"}},
	} {
		if got := c.d.Parameters(); !maps.Equal(got, c.want) {
			t.Errorf("parameters are %v, want %v", got, c.want)
		}
		parsed, err := window.Parse(c.want)
		if err != nil || !parsed.Equal(c.d) || parsed.Offset != c.d.Offset || parsed.Size != c.d.Size || parsed.Slide != c.d.Slide || parsed.Clock != c.d.Clock {
			t.Errorf("%v is parsed as %v (%v)", c.want, parsed, err)
		}
	}
}

func TestParametersRoundTrip(t *testing.T) {
	length := rapid.Int64Range(1, math.MaxInt64/1000)
	rapid.Check(t, func(t *rapid.T) {
		var d *window.Definition
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			size := length.Draw(t, "size")
			d = must(t)(window.Tumbling(micros(size), micros(rapid.Int64Range(-size+1, size-1).Draw(t, "offset"))))
		case 1:
			slide := length.Draw(t, "slide")
			size := slide + rapid.Int64Range(0, min(9999*min(slide, math.MaxInt64/10_000_000), math.MaxInt64/1000-slide)).Draw(t, "more")
			d = must(t)(window.Hopping(micros(size), micros(slide), micros(rapid.Int64Range(-slide+1, slide-1).Draw(t, "offset"))))
		case 2:
			d = must(t)(window.Sliding(micros(length.Draw(t, "size"))))
		case 3:
			d = must(t)(window.Session(micros(length.Draw(t, "gap"))))
		case 4:
			d = must(t)(window.Calendar(rapid.Int64Range(1, window.MaxCount).Draw(t, "count"),
				rapid.SampledFrom([]window.Unit{window.Day, window.Week, window.Month}).Draw(t, "unit"),
				rapid.SampledFrom(zones).Draw(t, "zone"), micros(rapid.Int64Range(-86_399_999_999, 86_399_999_999).Draw(t, "offset"))))
		}
		if rapid.Bool().Draw(t, "processing") {
			d = d.On(window.ProcessingTime)
		}
		parsed, err := window.Parse(d.Parameters())
		if err != nil || !parsed.Equal(d) {
			t.Fatalf("%v is parsed as %v (%v)", d.Parameters(), parsed, err)
		}
		for range 5 {
			at := rapid.Int64Range(-1<<60, 1<<60).Draw(t, "time")
			if d.Slide > 0 && d.Size/d.Slide > 100 {
				break // only to save time
			}
			a, ok := d.Append(nil, at)
			b, also := parsed.Append(nil, at)
			if ok != also {
				t.Fatalf("%v is parsed as %v", d.Parameters(), parsed.Parameters())
			}
			wantSpans(t, "windows of what was parsed", b, a)
		}
	})
}

func TestParametersThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		parameters map[string]string
		want       string
	}{
		{nil, "parameters of windows: there is no window"},
		{map[string]string{"window": "cascading", "clock": "event"}, `parameters of windows: kind "cascading" isn't known`},
		{map[string]string{"window": "tumbling", "clock": "event"}, "parameters of windows: there is no size"},
		{map[string]string{"window": "tumbling", "size": "1m"}, "parameters of windows: there is no clock"},
		{map[string]string{"window": "tumbling", "size": "1m", "clock": "wall"}, `parameters of windows: clock "wall", and it has to be event or processing`},
		{map[string]string{"window": "tumbling", "size": "a minute", "clock": "event"}, `parameters of windows: size "a minute" is no duration: time: invalid duration "a minute"`},
		{map[string]string{"window": "tumbling", "size": "1m", "slide": "1s", "gap": "1s", "clock": "event"}, "parameters of windows: tumbling windows have no gap, slide"},
		{map[string]string{"window": "hopping", "size": "1m", "slide": "2m", "clock": "event"}, "parameters of windows: hopping windows: slide 2m0s is longer than size 1m0s: times in between would be in no window"},
		{map[string]string{"window": "calendar", "count": "one", "unit": "day", "zone": "UTC", "clock": "event"}, `parameters of windows: count "one" is no number: strconv.ParseInt: parsing "one": invalid syntax`},
		{map[string]string{"window": "calendar", "count": "1", "unit": "day", "zone": "Nowhere", "clock": "event"}, `parameters of windows: calendar windows: zone "Nowhere" isn't known: unknown time zone Nowhere`},
		{map[string]string{"window": "custom", "clock": "event"}, "parameters of windows: there is no function"},
	} {
		refused(t, c.want)(window.Parse(c.parameters))
	}
}
