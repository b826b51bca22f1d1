package epoch

import (
	"reflect"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/window"
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

// A version's windows stand where the manifest says, under the definitions that are not
// done with; those of which it says nothing have not begun.
func TestStandingWindows(t *testing.T) {
	second, err := window.Tumbling(time.Second, 0)
	if err != nil {
		t.Fatal(err)
	}
	hour, err := window.Tumbling(time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	succession, err := window.Begin(second).Then(hour, 3_600_000_000)
	if err != nil {
		t.Fatal(err)
	}
	part := func(d *window.Definition, more ...string) Part {
		p := Part{Kind: WindowKind, Parameters: d.Parameters()}
		for i := 0; i < len(more); i += 2 {
			p.Parameters[more[i]] = more[i+1]
		}
		return p
	}
	v := Version{Operators: map[string]Part{
		"new": part(second), "waiting": part(second, AllowedLateness, "1s", "panes", "shared"), "changing": part(hour), "changed": part(hour), "fold": {Kind: "fold"},
	}}
	m := Manifest{Windows: map[string]Windows{
		"waiting":  {Seen: 5, Closed: 3, Late: NoTime, LateRecords: 7, UntimedRecords: 1},
		"changing": {Seen: 3_599_000_000, Closed: 3_599_999_999, Late: NoTime, Succession: &succession},
		"changed":  {Seen: 3_599_000_000, Closed: 3_600_000_000, Late: NoTime, Succession: &succession},
	}}
	got, err := m.StandingWindows(v)
	if err != nil || len(got) != 4 {
		t.Fatalf("%v, %v", got, err)
	}
	for name, want := range map[string]string{
		"new": "tumbling 1s", "waiting": "tumbling 1s", "changing": "tumbling 1s until 1970-01-01T01:00:00Z, then tumbling 1h", "changed": "tumbling 1h",
	} {
		if text := got[name].InForce.String(); text != want {
			t.Errorf("of %s %s are in force, expected %s", name, text, want)
		}
	}
	if w := got["waiting"]; w.Allowed != "1s" || w.Closed != 3 || w.LateRecords != 7 || w.UntimedRecords != 1 {
		t.Errorf("those that wait are %+v", w)
	}
	if w := got["new"]; w.Windows != noWindows || w.Allowed != "" {
		t.Errorf("those that have not begun are %+v", w)
	}
	v.Operators["unknown"] = Part{Kind: WindowKind, Parameters: map[string]string{"window": "round", "clock": "event"}}
	if _, err := m.StandingWindows(v); err == nil {
		t.Error("windows of a kind that nobody knows stand somewhere")
	}
}
