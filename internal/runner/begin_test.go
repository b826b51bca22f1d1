package runner

import (
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
)

// TestReadsAgain tells places that lie before what was read from those that don't.
func TestReadsAgain(t *testing.T) {
	at := func(offsets map[string]int64) epoch.SourceState {
		s := epoch.SourceState{Partitions: map[string]epoch.Offset{}}
		for partition, next := range offsets {
			s.Partitions[partition] = epoch.Offset{Next: next}
		}
		return s
	}
	stood := at(map[string]int64{"a": 7, "b": 0})
	for name, c := range map[string]struct {
		begins, stood epoch.SourceState
		want          bool
	}{
		"where it stood":                     {stood, stood, false},
		"behind that":                        {at(map[string]int64{"a": 9, "b": 1}), stood, false},
		"with a partition more":              {at(map[string]int64{"a": 7, "b": 0, "c": 0}), stood, false},
		"before that":                        {at(map[string]int64{"a": 6, "b": 5}), stood, true},
		"without a partition that was read":  {at(map[string]int64{"b": 5}), stood, true},
		"without one that was not":           {at(map[string]int64{"a": 7}), stood, false},
		"a source that there was not before": {at(map[string]int64{"a": 7}), epoch.SourceState{}, true},
		"a source of which nothing was read": {at(map[string]int64{"a": 7}), at(nil), false},
		"no place at all":                    {epoch.SourceState{}, stood, true},
	} {
		if got := readsAgain(c.begins, c.stood); got != c.want {
			t.Errorf("%s: it reads again %v, want %v", name, got, c.want)
		}
	}
}
