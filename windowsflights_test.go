package sluice_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// flight is a line of the month of flights, with its number.
type flight struct {
	N         int64      `json:"-"`
	Carrier   string     `json:"carrier"`
	Scheduled time.Time  `json:"scheduled"`
	Departed  *time.Time `json:"departed"`
	Distance  int64      `json:"distance_mi"`
}

func (f flight) departed() (time.Time, bool) {
	if f.Departed == nil {
		return time.Time{}, false
	}
	return *f.Departed, true
}

func (f flight) scheduled() (time.Time, bool) { return f.Scheduled, true }

// flown is what a window of flights holds.
type flown struct{ Flights, Miles int64 }

func (s *flown) add(f flight) {
	s.Flights++
	s.Miles += f.Distance
}

func (s *flown) merge(other *flown) {
	s.Flights += other.Flights
	s.Miles += other.Miles
}

// leg is a row of a window of flights.
type leg struct {
	Carrier       string
	Start, End    sluice.Instant
	Flights, Mile int64
}

// monthOfFlights reads the flights that left New York in January 2013.
func monthOfFlights(t *testing.T) (all []flight) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "shared", "data", "flights", "flights-2013-01.jsonl.gz"))
	if err != nil {
		t.Skipf("the month of flights is not beside the repository: %v", err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(unpacked); lines.Scan(); {
		x := flight{N: int64(len(all))}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	if len(all) != 26912 {
		t.Fatalf("%d flights, want 26912", len(all))
	}
	return all
}

// TestWindowsOverFlights counts flights by carrier in windows of when they departed, which
// is in order and not there for those that were cancelled, and of when they were scheduled,
// which is out of order by up to many hours: what windows come to is what a batch over all
// that was not late comes to.
func TestWindowsOverFlights(t *testing.T) {
	all := monthOfFlights(t)
	hour := int64(time.Hour / time.Microsecond)
	for _, c := range []struct {
		name     string
		time     func(flight) (time.Time, bool)
		lateness time.Duration
		windows  sluice.Windows
		of       func(at int64) [][2]int64
		late     int // at least
	}{
		{"departed, by the hour", flight.departed, 0, sluice.Tumbling(time.Hour), hops(hour, hour), 0},
		{"scheduled, by the hour", flight.scheduled, 20 * time.Minute, sluice.Tumbling(time.Hour), hops(hour, hour), 100},
		{"scheduled, six hours by one", flight.scheduled, time.Hour, sluice.Hopping(6*time.Hour, time.Hour), hops(6*hour, hour), 100},
		{"departed, days of New York", flight.departed, 0, sluice.Days(1, "America/New_York"), func(at int64) [][2]int64 {
			zone := 5 * hour // all of January
			start := at - (at-zone)%(24*hour)
			return [][2]int64{{start, start + 24*hour}}
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job := sluice.NewJob("flights")
			windowed := job.From("flights", file.JSONLines[flight]("unused.jsonl")).
				EventTime(c.time, c.lateness).
				KeyBy(func(f flight) string { return f.Carrier }).
				Window(c.windows)
			windowed.Late().Map(func(f flight) lateTick { return lateTick{f.N} }).To("late", file.Append[lateTick](dir+"/late"))
			windowed.FoldMerge(sluice.NewState[sluice.In[string], flown]("flown"), (*flown).add, (*flown).merge).
				Results().
				Map(func(r sluice.Result[string, flown]) leg {
					return leg{r.Key, r.Window.Start, r.Window.End, r.Value.Flights, r.Value.Miles}
				}).
				To("legs", file.Append[leg](dir+"/legs"))
			test := sluicetest.New(t, job)
			test.Options(func(o *sluice.Options) { o.Shards, o.BatchRecords = 3, 500 })
			for part := range slices.Chunk(all, 9000) {
				sluicetest.Feed(test, "flights", part...)
				test.Step()
			}
			end := all[len(all)-1].Scheduled.AddDate(1, 0, 0)
			sluicetest.Feed(test, "flights", flight{-1, "end", end, &end, 0})
			test.Step()

			late, cancelled := map[int64]bool{}, 0
			for _, l := range sluicetest.Rows[lateTick](test, "late") {
				late[l.ID] = true
			}
			want := map[string]leg{}
			for _, f := range all {
				at, ok := c.time(f)
				if !ok {
					cancelled++
					if !late[f.N] {
						t.Errorf("flight %d has no time, and is not late", f.N)
					}
				}
				if late[f.N] {
					continue
				}
				for _, w := range c.of(at.UnixMicro()) {
					key := fmt.Sprint(f.Carrier, w)
					l := want[key]
					want[key] = leg{f.Carrier, sluice.Instant(w[0]), sluice.Instant(w[1]), l.Flights + 1, l.Mile + f.Distance}
				}
			}
			got := sluicetest.Rows[leg](test, "legs")
			for _, l := range got {
				key := fmt.Sprint(l.Carrier, [2]int64{int64(l.Start), int64(l.End)})
				if want[key] != l {
					t.Errorf("got %+v, want %+v", l, want[key])
				}
				delete(want, key)
			}
			for _, l := range want {
				t.Errorf("%+v is missing", l)
			}
			t.Logf("%d windows, %d late, %d of them without a time", len(got), len(late), cancelled)
			if len(late)-cancelled < c.late || c.late == 0 && len(late) != cancelled {
				t.Errorf("%d are late that have a time, want %d and more, or none where times are in order", len(late)-cancelled, c.late)
			}
		})
	}
}
