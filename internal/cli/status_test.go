package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

// Where consumers change over stands there once a sink with offsets was dropped.
func TestSpansOfSinks(t *testing.T) {
	old := sinkStatus{Sink: "old", Partitions: spansOf(&epoch.Span{Ends: map[string]int64{"old/1": 1200}})}
	next := sinkStatus{Sink: "next", Partitions: spansOf(&epoch.Span{
		Begins: map[string]int64{"next/0": 17, "next/1": 0}, Ends: map[string]int64{"next/1": 5, "next/2": 3},
	})}
	for name, c := range map[string]struct {
		change func()
		want   string
	}{
		"both are there":    {func() {}, ""},
		"dropped":           {func() { old.Dropped = true }, "ROWS OF PARTITION BEGIN AT END BEFORE old old/1 not known 1,200 next next/0 17 17 next next/1 0 5 next next/2 0 3"},
		"not all delivered": {func() { old.Dropped, old.Pending = true, 2 }, "ROWS OF PARTITION BEGIN AT END BEFORE old old/1 not known 1,200, so far next next/0 17 17 next next/1 0 5 next next/2 0 3"},
	} {
		t.Run(name, func(t *testing.T) {
			old.Dropped, old.Pending = false, 0
			c.change()
			var out bytes.Buffer
			if err := (status{Job: "spend", Sinks: []sinkStatus{old, next}}).write(&out); err != nil {
				t.Fatal(err)
			}
			_, got, found := strings.Cut(out.String(), "ROWS OF")
			if got = strings.Join(strings.Fields(got), " "); found {
				got = "ROWS OF " + got
			}
			if got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
		})
	}
}

// A state that will be complete says when.
func TestPartialUntil(t *testing.T) {
	s := status{Job: "spend", Time: "2026-11-30T03:00:00Z", Partial: []partialStatus{
		{State: "week", Why: "it lacks three days", Until: "2026-12-03T00:00:00Z"},
		{State: "always", Why: "it lacks a past"},
	}}
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "PARTIAL STATE")
	got = strings.Join(strings.Fields(got), " ")
	if want := "UNTIL WHY week 2026-12-03 00:00:00Z it lacks three days always for ever it lacks a past"; got != want {
		t.Errorf("%s\nexpected %s\nin\n%s", got, want, out.String())
	}
}

// Where event times stand, what holds them back, and what goes by them.
func TestTimesInStatus(t *testing.T) {
	s := status{
		Job: "spend", Time: "2026-11-30T03:00:00Z",
		EventTimes: []timeStatus{
			{EventTime: "orders", Watermark: "2026-11-30T02:59:58.5Z", HeldBy: "orders/3", Idle: []string{"orders/0", "orders/1"}}, {EventTime: "clicks"},
		},
		Operators: []operatorStatus{{Operator: "joined", EventTimes: []string{"orders", "clicks"}}},
	}
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "EVENT TIME")
	got = strings.Join(strings.Fields(got), " ")
	want := "WATERMARK HELD BY IDLE orders 2026-11-30 02:59:58.5Z orders/3 orders/0, orders/1 clicks none yet OPERATOR WATERMARK OF EVENT TIME joined none yet orders, clicks"
	if got != want {
		t.Errorf("%s\nexpected %s", got, want)
	}
}

// An epoch with late records has columns for them in the log.
func TestLateInLog(t *testing.T) {
	plain := entry{Epoch: 1, Records: 5}
	late := entryOf(epoch.Manifest{Epoch: 2, Counts: map[string]int64{"records": 9, "late.a": 1, "late.b": 2, "untimed.a": 4, "ahead.t": 5, "state.a": 6}})
	for _, c := range []struct {
		entries []entry
		want    string
	}{
		{[]entry{plain}, "RECORDS DEAD ROWS OUT"},
		{[]entry{late, plain}, "RECORDS DEAD LATE UNTIMED AHEAD ROWS OUT STATE ROWS BUILD 2 0 1970-01-01 00:00:00.000Z 9 0 3 4 5 0 6 1 0 1970-01-01 00:00:00.000Z 5 0 0 0 0 0 0"},
	} {
		var out bytes.Buffer
		if err := writeEntries(&out, c.entries); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s\nexpected %s", got, c.want)
		}
	}
}

// What going back and followers have yet to read is told of partitions that have lost
// inputs, and how much of it is gone.
func TestNeededInputs(t *testing.T) {
	at := func(a, b int64) map[string]epoch.SourceState {
		return map[string]epoch.SourceState{"orders": {Partitions: map[string]epoch.Offset{"orders/0": {Next: a}, "orders/1": {Next: b}, "orders/2": {Next: 7}}}}
	}
	follower := upgrade.Branch{Name: "next", Standing: upgrade.Follows, Begun: true}
	follower.Head.Manifest.Sources = at(2000, 51)
	dropped := follower
	dropped.Standing = upgrade.GivenUp
	beat := &epoch.Heartbeat{Sources: map[string]map[string]epoch.Reach{"orders": {"orders/0": {Next: 9000, End: 9000, Start: 1500}, "orders/1": {Next: 90, End: 90, Start: 50}, "orders/2": {Next: 9, End: 9}}}}
	bs := upgrade.Branches{All: []upgrade.Branch{follower, dropped}}
	s := status{Job: "spend", Time: "2026-11-30T03:00:00Z", Needs: needsOf(bs, upgrade.GoingBack{Sources: at(100, 50)}, beat)}
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "NEEDED BY")
	got = strings.Join(strings.Fields(got), " ")
	want := "SOURCE PARTITION FROM OFFSET FIRST LEFT GONE going back orders orders/0 100 1,500 1,400 going back orders orders/1 50 50 " +
		"branch next orders orders/0 2,000 1,500 branch next orders orders/1 51 50"
	if got != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	if all := needsOf(bs, upgrade.GoingBack{Sources: at(0, 0)}, nil); len(all) > 0 {
		t.Errorf("nobody tells what there is, and %v is told", all)
	}
}
