package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// recount says what the job must have found, from its input alone. On time are
// only those flights that the second version has counted: a key's flights stand
// in one partition, are counted in that order, and the first version had counted as
// many of them as before says.
func recount(week []event, before map[key]int64) map[key]row {
	want := map[key]row{}
	minutes := map[key]int64{}
	for _, e := range week {
		k := key{e.Origin, e.Carrier}
		r := want[k]
		r.Flights++
		switch {
		case e.Departed == nil:
			r.Cancelled++
		default:
			minutes[k] += *e.Delay
			r.WorstDelay = max(r.WorstDelay, *e.Delay)
			if *e.Delay < 15 && r.Flights > before[k] {
				r.OnTime++
			}
		}
		want[k] = r
	}
	for k, r := range want {
		if left := r.Flights - r.Cancelled; left > 0 {
			r.MeanDelay = float64(minutes[k]) / float64(left)
			want[k] = r
		}
	}
	return want
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
