package upgrades

import (
	"fmt"
	"maps"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// endsIn are the offsets behind the last records of a topic, by partition.
func (w *way) endsIn(topic string) map[string]int64 {
	ends := map[string]int64{}
	for _, r := range w.cluster.Read(w.t, topic) {
		ends[fmt.Sprintf("%s/%d", topic, r.Partition)] = r.Offset + 1
	}
	return ends
}

// ended is what the log says of a sink that the live build lacks.
func (w *way) ended(sink string) epoch.DroppedSink {
	w.t.Helper()
	ended, err := w.log().DroppedSink(w.t.Context(), w.head(w.live().Branch).Manifest, sink)
	if err != nil {
		w.t.Fatal(err)
	}
	return ended
}

// TestSwitchOfTopics: where a build writes to another topic, the log tells where the old
// one ends and the new one begins. A consumer that reads up to the one and from the other
// on gets each input once, with none of its rows missing.
func TestSwitchOfTopics(t *testing.T) {
	w := newWay(t, "rows", "more", "also")
	old := w.run("the first build", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{})
	w.feedEpochs(3, nil)
	u := w.upgrade("the second build", second(w, build{version: 2, rows: []string{"more"}}), sluice.Options{}, sluice.Upgrade{Auto: true})
	for range 5 {
		w.feed(9)
	}
	record := w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	before, since := w.cuts(record.Ends.Branch)
	w.awaitRows("rows", before)
	w.awaitRows("more", since)

	ended := w.ended("rows")
	if want := w.endsIn("rows"); ended.Pending != 0 || ended.GivenUp || ended.Span == nil || !maps.Equal(ended.Span.Ends, want) {
		t.Errorf("the old topic ends at %+v, expected %v", ended, want)
	}
	var span *epoch.Span
	w.await("the log says where the new topic ends", func() bool {
		span = w.head(record.Branch).Manifest.Sinks["more"].Span
		return span != nil && maps.Equal(span.Ends, w.endsIn("more"))
	}, func() string { return fmt.Sprintf("%+v, expected %v", span, w.endsIn("more")) })
	if len(span.Begins) != partitions {
		t.Errorf("the new topic begins at %v, expected one offset for each of %d partitions", span.Begins, partitions)
	}

	left := map[string]int{}
	for _, i := range w.fed {
		left[i.ID]++
	}
	for _, topic := range []string{"rows", "more"} {
		for _, r := range w.cluster.Read(t, topic) {
			partition := fmt.Sprintf("%s/%d", topic, r.Partition)
			if topic == "rows" && r.Offset < ended.Span.Ends[partition] || topic == "more" && r.Offset >= span.Begins[partition] {
				left[decode[row](t, r.Value).ID]--
			}
		}
	}
	for id, n := range left {
		if n != 0 {
			t.Errorf("a consumer that changes over lacks %d rows of %s", n, id)
		}
	}
	u.stops()

	// It stays so behind restarts, and for builds that come later.
	third := w.upgrade("the third build", second(w, build{version: 3, rows: []string{"more", "also"}}), sluice.Options{}, sluice.Upgrade{Auto: true})
	w.awaitLive(2, epoch.Upgrade)
	if got := w.ended("rows"); !got.Span.Equal(ended.Span) {
		t.Errorf("a generation later the old topic ends at %+v, it was %+v", got, ended)
	}
	third.stops()
}
