package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// recount says what the job must have found, from its input alone: it shares no code
// with the job. A key's flights stand in one partition, and are counted in that order.
type recount struct {
	flights map[key][]event
	// base is how many of a key's flights the first version had counted where the
	// second one's branch begins: it went on from there by its own rules.
	base map[key]int64
}

func newRecount(week []event, base map[key]int64) *recount {
	r := &recount{flights: map[key][]event{}, base: base}
	for _, e := range week {
		k := key{e.Origin, e.Carrier}
		r.flights[k] = append(r.flights[k], e)
	}
	return r
}

// row is what a version must say of a key behind so many of its flights.
func (r *recount) row(version string, k key, flights int64) row {
	want := row{OnTime: unknown}
	if version == "v2" {
		want.OnTime = 0
	}
	minutes := int64(0)
	for _, e := range r.flights[k][:min(int(flights), len(r.flights[k]))] {
		want.Flights++
		if e.Departed == nil {
			want.Cancelled++
			continue
		}
		want.WorstDelay = max(want.WorstDelay, *e.Delay)
		delay := *e.Delay
		if version == "v2" && want.Flights > r.base[k] {
			if delay < 15 {
				want.OnTime++
			}
			delay = min(delay, 120)
		}
		minutes += delay
	}
	if left := want.Flights - want.Cancelled; left > 0 {
		want.MeanDelay = float64(minutes) / float64(left)
	}
	return want
}

// table is what a version must say in the end.
func (r *recount) table(version string) map[key]row {
	want := map[key]row{}
	for k, flights := range r.flights {
		want[k] = r.row(version, k, int64(len(flights)))
	}
	return want
}

// share is a part of the story, in which one version wrote the output.
type share struct {
	version string
	rows    int // that it wrote
	flights int // that it was the first to count
}

// audit looks at every row that was ever put out, and says which version accounted
// for how many flights, in the order in which they wrote. Each row must be what the
// recount says behind so many flights, and no key may ever go back.
func (r *recount) audit(rows []delivered) ([]share, error) {
	var shares []share
	last := map[key]int64{}
	for _, d := range rows {
		version := d.row.version()
		if want := r.row(version, d.key, d.row.Flights); d.row != want {
			return nil, fmt.Errorf("%s: %s %s, written by %s: %+v, and the recount has %+v", d.file, d.key.Airport, d.key.Carrier, version, d.row, want)
		}
		more := d.row.Flights - last[d.key]
		if more < 0 {
			return nil, fmt.Errorf("%s: %s %s, written by %s: %d flights, and there were %d before", d.file, d.key.Airport, d.key.Carrier, version, d.row.Flights, last[d.key])
		}
		if len(shares) == 0 || shares[len(shares)-1].version != version {
			shares = append(shares, share{version: version})
		}
		s := &shares[len(shares)-1]
		s.rows++
		s.flights += int(more)
		last[d.key] = d.row.Flights
	}
	return shares, nil
}

// shown bounds how many keys an error names, so that it fits a screen.
const shown = 10

// compare returns an error that names the keys on which two tables differ.
func compare(what string, got map[key]row, other string, want map[key]row) error {
	all := maps.Clone(want)
	maps.Copy(all, got)
	var wrong []string
	for _, k := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		if g, w := got[k], want[k]; g != w {
			wrong = append(wrong, fmt.Sprintf("  %s %s: %+v in the one, %+v in the other", k.Airport, k.Carrier, g, w))
		}
	}
	if wrong == nil {
		return nil
	}
	text := strings.Join(wrong[:min(shown, len(wrong))], "\n")
	return fmt.Errorf("%s differs from %s for %d of %d carriers, such as\n%s", what, other, len(wrong), len(all), text)
}

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.Airport, b.Airport), strings.Compare(a.Carrier, b.Carrier))
}
