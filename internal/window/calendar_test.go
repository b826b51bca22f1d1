package window_test

import (
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/window"
)

// zones have each done something that makes days hard: gaps at midnight, midnights
// that come twice, clocks that go back over midnight, half hours, days left out.
var zones = []string{
	"UTC", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Atlantic/Azores", "Pacific/Apia",
	"America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu", "Europe/Dublin", "Africa/Casablanca", "Pacific/Kwajalein",
}

func TestDays(t *testing.T) {
	for _, c := range []struct{ zone, within, start, end string }{
		{"America/New_York", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},  // 25 hours
		{"America/New_York", "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},  // 23 hours
		{"America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // begins at one o'clock
		{"America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"Asia/Beirut", "2022-03-27T12:00:00Z", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},     // begins at one o'clock
		{"America/Havana", "2025-11-02T05:30:00Z", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z"},  // midnight twice
		{"Atlantic/Azores", "2025-10-26T01:00:00Z", "2025-10-26T00:00:00Z", "2025-10-27T01:00:00Z"}, // midnight twice
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},    // the 29th, behind which
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},    // comes the 31st
		// At one minute past midnight clocks went back to the evening before.
		{"America/St_Johns", "2006-10-29T02:29:59Z", "2006-10-28T02:30:00Z", "2006-10-29T02:30:00Z"},
		{"America/St_Johns", "2006-10-29T02:30:00Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
		{"America/St_Johns", "2006-10-29T03:29:59Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
		{"UTC", "1969-12-31T23:59:59.999999Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		d := must(t)(window.Calendar(1, window.Day, c.zone, 0))
		got, ok := d.One(at(t, c.within))
		if want := spanOf(t, c.start, c.end); !ok || got != want {
			t.Errorf("%s: the day of %s is %s to %s", c.zone, c.within, time.UnixMicro(got.Start).UTC(), time.UnixMicro(got.End).UTC())
		}
	}
}

func TestWindowsOfSeveralUnits(t *testing.T) {
	for _, c := range []struct {
		count              int64
		unit               window.Unit
		zone               string
		offset             time.Duration
		within, start, end string
	}{
		{1, window.Week, "UTC", 0, "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{2, window.Week, "UTC", 0, "1970-01-01T00:00:00Z", "1969-12-22T00:00:00Z", "1970-01-05T00:00:00Z"},
		{1, window.Week, "Europe/Paris", 0, "2026-10-25T12:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		{1, window.Month, "UTC", 0, "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{3, window.Month, "UTC", 0, "1969-12-31T00:00:00Z", "1969-10-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{12, window.Month, "America/New_York", 0, "2026-06-01T00:00:00Z", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"},
		{1, window.Month, "UTC", 4 * 24 * time.Hour, "2026-03-04T23:00:00Z", "2026-02-05T00:00:00Z", "2026-03-05T00:00:00Z"},
		{1, window.Month, "UTC", -time.Hour, "2026-02-28T23:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T23:00:00Z"},
		{7, window.Day, "UTC", 0, "1970-01-07T23:00:00Z", "1970-01-01T00:00:00Z", "1970-01-08T00:00:00Z"},
		// Four o'clock on the wall, whatever happened in the night.
		{1, window.Day, "America/New_York", 4 * time.Hour, "2026-03-08T07:59:59Z", "2026-03-07T09:00:00Z", "2026-03-08T08:00:00Z"},
		{1, window.Day, "America/New_York", 4 * time.Hour, "2026-11-01T08:59:59Z", "2026-10-31T08:00:00Z", "2026-11-01T09:00:00Z"},
		{1, window.Day, "America/New_York", -2 * time.Hour, "2026-07-02T01:59:59Z", "2026-07-01T02:00:00Z", "2026-07-02T02:00:00Z"},
		// Half past two doesn't exist that day: three o'clock is the first after it.
		{1, window.Day, "America/New_York", 150 * time.Minute, "2026-03-08T07:00:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"},
	} {
		d := must(t)(window.Calendar(c.count, c.unit, c.zone, c.offset))
		got, ok := d.One(at(t, c.within))
		if want := spanOf(t, c.start, c.end); !ok || got != want {
			t.Errorf("%v: the window of %s is %s to %s", d.Parameters(), c.within, time.UnixMicro(got.Start).UTC(), time.UnixMicro(got.End).UTC())
		}
	}
}

// walked are the starts of windows in a range of years, found by walking through
// it: a window begins when the number that stands for it on the wall is higher than
// ever before. Hours in which the offset stays are halved, others walked by seconds.
func walked(zone *time.Location, number func(wall time.Time) int64, from, to int) (starts []int64) {
	numberAt := func(second int64) (n int64, offset int) {
		here := time.Unix(second, 0).In(zone)
		_, offset = here.Zone()
		return number(time.Date(here.Year(), here.Month(), here.Day(), here.Hour(), here.Minute(), here.Second(), 0, time.UTC)), offset
	}
	second := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	highest, before := numberAt(second)
	for ; second < time.Date(to, 1, 1, 0, 0, 0, 0, time.UTC).Unix(); second += 3600 {
		next, offset := numberAt(second + 3600)
		switch {
		case offset != before:
			for s := second; s <= second+3600; s++ {
				if n, _ := numberAt(s); n > highest {
					highest = n
					starts = append(starts, s*1_000_000)
				}
			}
		case next > highest:
			after := sort.Search(3600, func(i int) bool {
				n, _ := numberAt(second + int64(i))
				return n > highest
			})
			highest = next
			starts = append(starts, (second+int64(after))*1_000_000)
		}
		before = offset
	}
	return starts
}

// numbering is what stands for the window on the wall, by the calendar alone.
func numbering(count int64, unit window.Unit, offset time.Duration) func(wall time.Time) int64 {
	floor := func(a int64) int64 {
		n := a / count
		if n*count > a {
			n--
		}
		return n
	}
	return func(wall time.Time) int64 {
		wall = wall.Add(-offset)
		midnight := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
		switch unit {
		case window.Month:
			return floor(int64(wall.Year()-1970)*12 + int64(wall.Month()) - 1)
		case window.Week:
			for midnight.Weekday() != time.Monday {
				midnight = midnight.AddDate(0, 0, -1)
			}
			return floor((midnight.Unix() - time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC).Unix()) / (7 * 86400))
		}
		return floor(midnight.Unix() / 86400)
	}
}

func TestCalendarWalkedThrough(t *testing.T) {
	type walk struct {
		count    int64
		unit     window.Unit
		zone     string
		offset   time.Duration
		from, to int
	}
	walks := []walk{
		{1, window.Day, "America/New_York", 4 * time.Hour, 2005, 2012},
		{1, window.Day, "America/New_York", 90*time.Minute + 17*time.Second, 2005, 2012},
		{1, window.Day, "America/St_Johns", -50 * time.Minute, 2004, 2009},
		{3, window.Day, "America/Sao_Paulo", 0, 1963, 1970},
		{3, window.Day, "Pacific/Apia", -25 * time.Hour, 2009, 2014},
		{1, window.Week, "Europe/Dublin", 0, 1966, 1973},
		{2, window.Week, "America/Havana", 0, 1975, 1990},
		{1, window.Month, "Africa/Cairo", 0, 2005, 2016},
		{5, window.Month, "Asia/Beirut", 26 * time.Hour, 1975, 1990},
		{1, window.Month, "America/Havana", -2 * time.Hour, 1975, 1990},
		{1, window.Day, "Asia/Manila", 0, 1844, 1846},     // a day left out
		{1, window.Day, "America/Juneau", 0, 1866, 1868},  // one that came twice
		{1, window.Day, "Asia/Manila", 0, 1899, 1901},     // clocks went back by minutes and seconds
		{1, window.Day, "Europe/Dublin", 0, 1915, 1923},   // by 25 minutes and 21 seconds
		{1, window.Day, "Africa/Monrovia", 0, 1971, 1973}, // by 44 minutes and 30 seconds
		// Leap years that only the zone's rule tells of, not its table.
		{1, window.Day, "America/New_York", 0, 2043, 2050},
		{1, window.Month, "Australia/Lord_Howe", 0, 2390, 2410},
	}
	for _, zone := range zones {
		walks = append(walks, walk{1, window.Day, zone, 0, 1992, 2012})
	}
	for _, w := range walks {
		zone, err := time.LoadLocation(w.zone)
		if err != nil {
			t.Fatal(err)
		}
		starts := walked(zone, numbering(w.count, w.unit, w.offset), w.from, w.to)
		d := must(t)(window.Calendar(w.count, w.unit, w.zone, w.offset))
		for i, start := range starts[:len(starts)-1] {
			end := starts[i+1]
			for _, at := range []int64{start, start + (end-start)/3, end - 1_000_000, end - 1} {
				if got, ok := d.One(at); !ok || got.Start != start || got.End != end {
					t.Fatalf("%v: the window of %s is %s to %s, want %s to %s", d.Parameters(), time.UnixMicro(at).UTC(),
						time.UnixMicro(got.Start).UTC(), time.UnixMicro(got.End).UTC(), time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC())
				}
			}
		}
	}
}

func TestCalendarWithoutGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := must(t)(window.Calendar(rapid.Int64Range(1, 40).Draw(t, "count"), rapid.SampledFrom([]window.Unit{window.Day, window.Week, window.Month}).Draw(t, "unit"),
			rapid.SampledFrom(zones).Draw(t, "zone"), micros(rapid.Int64Range(-86_399_999_999, 86_399_999_999).Draw(t, "offset"))))
		from := rapid.Int64Range(at(t, "1800-01-01T00:00:00Z"), at(t, "2200-01-01T00:00:00Z")).Draw(t, "from")
		here, ok := d.One(from)
		for range 50 {
			next, also := d.One(here.End)
			if !ok || !also || here.Start >= here.End || next.Start != here.End {
				t.Fatalf("%v: %v is followed by %v", d.Parameters(), here, next)
			}
			if edge, ok := d.NextEdge(here.Start + 1); !ok || edge != here.End {
				t.Fatalf("%v: the edge after %d is %d, want %d", d.Parameters(), here.Start, edge, here.End)
			}
			if edge, ok := d.NextEdge(here.Start); !ok || edge != here.Start {
				t.Fatalf("%v: the edge at %d is %d", d.Parameters(), here.Start, edge)
			}
			within := rapid.Int64Range(here.Start, here.End-1).Draw(t, "within")
			if got, _ := d.One(within); got != here {
				t.Fatalf("%v: the window of %d is %v, want %v", d.Parameters(), within, got, here)
			}
			here = next
		}
	})
}
