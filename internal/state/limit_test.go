package state_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

// What passes a limit is, of each key, the begin or the end of its entries.
func TestLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := state.Limit{Entries: rapid.IntRange(1, 4).Draw(t, "limit"), Descending: rapid.Bool().Draw(t, "descending")}
		var got, want []string
		dropped := 0
		l := state.NewLimited(limit, func(slot epoch.Slot, key, element, value []byte) error {
			got = append(got, fmt.Sprintf("%d %s %s %s", slot, key, element, value))
			return nil
		})
		for key, count := range rapid.SliceOfN(rapid.IntRange(1, 9), 0, 6).Draw(t, "counts") {
			var all []string
			for n := range count {
				all = append(all, fmt.Sprintf("%d k%d %03d v%d", key, key, n, n*n*n))
				if err := l.Put(epoch.Slot(key), fmt.Append(nil, "k", key), fmt.Appendf(nil, "%03d", n), fmt.Append(nil, "v", n*n*n)); err != nil {
					t.Fatal(err)
				}
			}
			over := max(0, count-limit.Entries)
			dropped += over
			if limit.Descending {
				all = all[over:]
			}
			want = append(want, all[:min(len(all), limit.Entries)]...)
		}
		if err := l.End(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) || l.Dropped() != int64(dropped) {
			t.Fatalf("%+v: %d dropped, got\n%q\nwant %d dropped and\n%q", limit, l.Dropped(), got, dropped, want)
		}
	})
}
