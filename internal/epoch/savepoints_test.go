package epoch

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/store"
)

func TestSchedulesAreRead(t *testing.T) {
	got, err := ParseSchedules("hourly=24, daily=7,weekly=4,90m=2,10m=6,3h=1,45s=9")
	want := []Schedule{
		{"hourly", time.Hour, 24}, {"daily", 24 * time.Hour, 7}, {"weekly", 168 * time.Hour, 4},
		{"1h30m", 90 * time.Minute, 2}, {"10m", 10 * time.Minute, 6}, {"3h", 3 * time.Hour, 1}, {"45s", 45 * time.Second, 9},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := ParseSchedules(""); len(got) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	for _, text := range []string{
		"hourly", "hourly=", "hourly=0", "hourly=-1", "hourly=1001", "hourly=x", "=3", "monthly=3", "500ms=2", "1500ms=2", "-1h=2", "hourly=1,", "hourly=1,1h=2", "hourly=1,hourly=1",
		"1s=1,2s=1,3s=1,4s=1,5s=1,6s=1,7s=1,8s=1,9s=1,10s=1,11s=1",
	} {
		if got, err := ParseSchedules(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// The 30th of November 2026 is a Monday.
func TestNamesOfPeriods(t *testing.T) {
	for _, c := range []struct{ schedule, at, name string }{
		{"hourly=1", "2026-11-30T03:00:00Z", "hourly-20261130T03Z"},
		{"hourly=1", "2026-11-30T03:59:59.999999Z", "hourly-20261130T03Z"},
		{"hourly=1", "2026-11-30T05:30:00+02:00", "hourly-20261130T03Z"},
		{"daily=1", "2026-11-30T23:59:59Z", "daily-20261130"},
		{"daily=1", "2026-12-01T00:00:00Z", "daily-20261201"},
		{"weekly=1", "2026-11-29T23:59:59Z", "weekly-20261123"},
		{"weekly=1", "2026-11-30T00:00:00Z", "weekly-20261130"},
		{"weekly=1", "2026-12-06T23:00:00Z", "weekly-20261130"},
		{"weekly=1", "1970-01-01T00:00:00Z", "weekly-19691229"},
		{"10m=1", "2026-11-30T03:19:59Z", "10m-20261130T031000Z"},
		{"7m=1", "1970-01-01T00:13:59Z", "7m-19700101T000700Z"},
		{"1h30m=1", "1970-01-01T02:59:00Z", "1h30m-19700101T013000Z"},
	} {
		s, err := ParseSchedules(c.schedule)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := s[0].NameAt(at.UnixMicro()); got != c.name {
			t.Errorf("%s at %s: %s, want %s", c.schedule, c.at, got, c.name)
		}
		if err := CheckName("savepoint", c.name); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatASchedulePutsAway(t *testing.T) {
	savepoint := func(name, schedule, id string) Savepoint { return Savepoint{Name: name, Schedule: schedule, ID: id} }
	all := []Savepoint{
		savepoint("daily-20261101", "daily", "a"),
		savepoint("hourly-20261130T01Z", "hourly", "b"),
		savepoint("hourly-20261130T03Z", "hourly", "c"),
		savepoint("hourly-20261130T02Z", "hourly", "d"),
		savepoint("hourly-20261130T02Z", "hourly", "e"), // of two owners, in one moment
		savepoint("hourly-20261129T00Z", "", "f"),       // a person's
		savepoint("hourly-20261130T00Z", "hourly", "g"),
		savepoint("before", "", "h"),
	}
	ids := func(all []Savepoint) (ids string) {
		for _, s := range all {
			ids += s.ID
		}
		return ids
	}
	for keep, want := range map[int]string{1: "debg", 2: "bg", 3: "g", 4: "", 9: ""} {
		if got := ids(Schedule{"hourly", time.Hour, keep}.Beyond(all)); got != want {
			t.Errorf("of which %d are kept: %q goes, want %q", keep, got, want)
		}
	}
}

// A savepoint that comes when the floor has passed its epoch is taken back (H11);
// one in time, or of a name that there is, stays, until it is dropped.
func TestSavepointsComeInTimeOrNot(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	for next := range int64(6) {
		commit(t, o, next)
	}
	at := func(e Epoch) Point { return Point{Branch: MainBranch, Tasks: map[string]Epoch{FirstTask: e}} }
	made, err := p.job.MakeSavepoint(t.Context(), Savepoint{Name: "x", Point: at(2), By: "ann", Schedule: "daily"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.job.PutFloor(t.Context(), MainBranch, FirstTask, 4); err != nil {
		t.Fatal(err)
	}
	_, err = p.job.MakeSavepoint(t.Context(), Savepoint{Name: "x", Point: at(3)})
	var late *TooLateError
	if !errors.As(err, &late) || late.Floor != 4 || late.Epoch != 3 || late.Name != "x" {
		t.Errorf("under the floor: %v", err)
	}
	second, err := p.job.MakeSavepoint(t.Context(), Savepoint{Name: "x", Point: at(4)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.job.Savepoints(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != second.ID || all[1].ID != made.ID || all[1].Schedule != "daily" || all[1].By != "ann" {
		t.Fatalf("the savepoints are %+v, %v", all, err)
	}
	if s, ok, err := p.job.Savepoint(t.Context(), "x"); err != nil || !ok || s.Tasks[FirstTask] != 4 {
		t.Errorf("the one that counts is %+v, %t, %v", s, ok, err)
	}
	for range 2 {
		if err := p.job.DropSavepoint(t.Context(), second); err != nil {
			t.Fatal(err)
		}
	}
	if s, ok, err := p.job.Savepoint(t.Context(), "x"); err != nil || !ok || s.Tasks[FirstTask] != 2 {
		t.Errorf("behind a drop, the one that counts is %+v, %t, %v", s, ok, err)
	}
	if _, ok, err := p.job.Savepoint(t.Context(), "y"); ok || err != nil {
		t.Errorf("a savepoint that isn't there: %t, %v", ok, err)
	}
	if _, err := p.job.MakeSavepoint(t.Context(), Savepoint{Name: "y", Point: Point{Branch: MainBranch}}); err == nil {
		t.Error("a savepoint of no epoch was made")
	}
}

// The sum is of printf 'job1\x00\x06ann' | sha256sum.
func TestHashOfAKey(t *testing.T) {
	const want = "48d8913abbb6e7fc0e3495d2eadbf88d8b3f76ebd71981260e126307ee322469"
	if got := EditHash("job1", []byte("\x06ann")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEditsStandInDataAlone(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	head, _ := o.Head()
	now := head.Now + 1
	edits := []Edit{{"spend", 7, EditHash(p.job.ID(), []byte("k"))}}
	if _, err := o.Commit(t.Context(), Manifest{Kind: Open, Now: now, Edits: edits}); err == nil || !strings.Contains(err.Error(), "they stand in a data epoch") {
		t.Errorf("in an open: %v", err)
	}
	m, err := o.Commit(t.Context(), Manifest{Kind: Data, Now: now, Edits: edits, Request: 3}) // nothing has ended
	if err != nil {
		t.Fatal(err)
	}
	if next := Opening(m, p.me.Build, nil); len(next.Edits) != 0 || next.Request != 3 {
		t.Errorf("the next owner's opening is %+v", next)
	}
}

func TestRequestsToForget(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	if _, err := p.job.AskForget(t.Context(), nil, nil, "", "ann"); err == nil {
		t.Error("a request to forget nothing was made")
	}
	if _, err := p.job.AskForget(t.Context(), make([]Edit, MaxAsked+1), nil, "", "ann"); err == nil {
		t.Error("a request with too many entries was made")
	}
	edits := []Edit{{"spend", 7, "ab"}, {"shops", 9, "cd"}}
	asked, err := p.job.AskForget(t.Context(), edits, map[string]string{"spend": `"string"`}, "", "ann")
	if err != nil || asked.N != 1 {
		t.Fatalf("%+v, %v", asked, err)
	}
	got, err := p.job.Request(t.Context(), 1)
	if err != nil || got.Kind != ForgetRequest || got.By != "ann" || !slices.Equal(got.Edits, edits) || got.Keys["spend"] != `"string"` {
		t.Errorf("read again: %+v, %v", got, err)
	}
}
