package upgrades

import (
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// TestFromTime begins with an empty state at the first inputs of a time or later, by an
// upgrade and by a fresh start; none is that late in one partition.
func TestFromTime(t *testing.T) {
	noon := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for name, from := range map[string]struct {
		at     time.Time
		behind bool // the inputs of before are left out
	}{
		"between": {noon, true}, "of another zone": {noon.In(time.FixedZone("", 5400)), true}, "just before": {noon.Add(-time.Millisecond), true}, "before all": {noon.Add(-2 * time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWay(t)
			old := w.run("the old build", first(w, build{version: 1}), sluice.Options{})
			w.at = noon.Add(-time.Hour)
			w.feedEpochs(3, nil)
			before := len(w.fed)
			w.at = noon
			w.feedKeys(odd, odd)
			w.at = noon.Add(time.Minute)
			w.feedKeys(odd, odd)
			w.awaitTable("totals", recount(w.fed, nil))
			w.at = time.Time{}
			want := func() map[string]Counts {
				if from.behind {
					return recount(w.fed[before:], tenfold)
				}
				return recount(w.fed, tenfold)
			}
			changed := first(w, build{version: 2, meaning: 2, weigh: tenfold})
			text := from.at.Format(time.RFC3339Nano)
			if name == "just before" {
				old.stops()
				u := w.run("the new build, fresh", changed, sluice.Options{Fresh: true, FreshFrom: text})
				w.awaitLive(1, epoch.Fresh)
				w.feedAll()
				w.awaitTable("totals", want())
				u.stops()
				return
			}
			u := w.upgrade("the new build", changed, sluice.Options{}, sluice.Upgrade{Auto: true, From: text})
			w.awaitLive(1, epoch.Upgrade)
			old.endsWith(12)
			w.feedAll()
			w.awaitTable("totals", want())
			if why := w.head(w.live().Branch).Manifest.Partial["totals"].Why; why != "began empty, with the first records from "+text+" on" {
				t.Errorf("the state is told to be partial: %q", why)
			}
			u.stops()
		})
	}
}
