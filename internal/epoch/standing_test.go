package epoch

import (
	"reflect"
	"testing"
)

func TestStanding(t *testing.T) {
	v := Version{
		Times: map[string]Part{
			"orders": {Inputs: []string{"orders"}},
			"both":   {Inputs: []string{"clicks", "orders"}},
			"new":    {Inputs: []string{"clicks"}},
		},
		Operators: map[string]Part{
			"spend": {Times: []string{"orders"}}, "joined": {Times: []string{"orders", "both"}},
			"fresh": {Times: []string{"both", "new"}}, "plain": {},
		},
	}
	marks := func(orders0, orders1 Moment) map[string]map[string]PartitionTime {
		return map[string]map[string]PartitionTime{"orders": {"0": {Watermark: orders0}, "1": {Watermark: orders1}}}
	}
	m := Manifest{
		Sources: map[string]SourceState{
			"orders": {Partitions: map[string]Offset{"0": {}, "1": {}}}, "clicks": {Partitions: map[string]Offset{"a": {}}},
		},
		Watermarks: map[string]EventTime{
			"orders": {Watermark: 9, Partitions: marks(20, 7)}, // 9 is from before 1 was there
			"both":   {Watermark: 5, Partitions: marks(6, 5)},
		},
		Idle: map[string][]string{"orders": {"orders/1"}, "both": {"clicks/a"}, "new": {"clicks/a"}},
	}
	want := []TimeStanding{
		{Name: "both", Watermark: 5, HeldBy: "orders/1", Idle: []string{"clicks/a"}},
		{Name: "new", Watermark: NoTime, Idle: []string{"clicks/a"}},
		{Name: "orders", Watermark: 9, HeldBy: "orders/0", Idle: []string{"orders/1"}},
	}
	if got := m.TimesOf(v); !reflect.DeepEqual(got, want) {
		t.Errorf("event times stand at\n%+v, expected\n%+v", got, want)
	}
	if got, want := m.WatermarksOf(v), (map[string]Moment{"spend": 9, "joined": 5, "fresh": NoTime}); !reflect.DeepEqual(got, want) {
		t.Errorf("operators stand at %v, expected %v", got, want)
	}
	// An epoch that covers several has the idle partitions in these; a partition without
	// a time holds it back before all others.
	m.Steps = []Step{{Idle: map[string][]string{"both": {"orders/0", "clicks/a"}}}, {}}
	if got := m.TimesOf(v)[0]; got.HeldBy != "clicks/a" || got.Idle != nil {
		t.Errorf("in steps: %+v, expected it to be held by clicks/a", got)
	}
}
