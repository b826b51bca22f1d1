package clean

import (
	"maps"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
)

// TestOnlyOwnObjects: whatever a manifest says, only data objects of the log's
// own folder are ever removed for it.
func TestOnlyOwnObjects(t *testing.T) {
	const own = "branches/main/0.0/data/00000000000000000007-o-1-spend.avro"
	m := epoch.Manifest{Sinks: map[string]epoch.SinkState{"s": {Outbox: []epoch.Object{{Path: own, Bytes: 3}}}}}
	var segments []epoch.Segment
	for _, path := range []string{
		"", "/", "..", "../../etc/passwd", "/etc/passwd", "job.json", "live/0.json", "branches/main/branch.json",
		"branches/main/0.0/00000000000000000007.json", "branches/main/0.0/floor/00000000000000000007.json",
		"branches/main/0.0/data/../../../job.json", "branches/main/0.0/data/../x-o-1-spend.avro", "branches/main/0.0/data/x",
		"branches/main/1.0/data/00000000000000000007-o-1-spend.avro", "branches/next-1/0.0/data/00000000000000000007-o-1-spend.avro",
		"./" + own, "/" + own, own + "/", "branches//main/0.0/data/00000000000000000007-o-1-spend.avro",
	} {
		segments = append(segments, epoch.Segment{Path: path, Bytes: 1 << 62})
	}
	m.State = map[string]epoch.StateEntry{"spend": {Segments: segments}}
	got := objectsIn(place{"main", "0.0"}, m)
	if want := []string{"00000000000000000007-o-1-spend.avro"}; !slices.Equal(slices.Collect(maps.Keys(got)), want) || got[want[0]] != 3 {
		t.Errorf("got %v, want %v", got, want)
	}
}
