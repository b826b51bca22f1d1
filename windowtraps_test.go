package sluice_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// TestWindowBelowZero has a time whose window begins two sizes below zero: it is cut down,
// and not towards zero.
func TestWindowBelowZero(t *testing.T) {
	test := sluicetest.New(t, windowsJob(t.TempDir(), kind{windows: sluice.Tumbling(time.Minute)}, 0, 0))
	sluicetest.Feed(test, "ticks", tick{1, "a", -60_001_000, false}, tick{2, "a", -60_000_000, false}, tick{3, "a", -1, false}, tick{4, "a", 0, false}, tick{5, "end", sluice.Instant(100 * second), false})
	test.Step()
	got := sluicetest.Rows[windowed](test, "results")
	slices.SortFunc(got, func(a, b windowed) int { return int(a.Start - b.Start) })
	if want := "[{a -120000000 -60000000 [1]} {a -60000000 0 [2 3]} {a 0 60000000 [4]}]"; bounds(got) != want {
		t.Errorf("windows are %s, want %s", bounds(got), want)
	}
}

func bounds(rows []windowed) string {
	type row struct {
		Key        string
		Start, End int64
		IDs        []int64
	}
	var out []row
	for _, r := range rows {
		out = append(out, row{r.Key, int64(r.Start), int64(r.End), r.IDs})
	}
	return fmt.Sprint(out)
}

// TestNoTimesYet replays an epoch whose records have no times at all.
func TestNoTimesYet(t *testing.T) {
	test := sluicetest.New(t, windowsJob(t.TempDir(), kind{windows: sluice.Tumbling(time.Minute)}, 0, 0))
	sluicetest.Feed(test, "ticks", tick{1, "a", 0, true}, tick{2, "a", 0, true})
	test.Step()
	if late := sluicetest.Rows[tick](test, "late"); len(late) != 2 {
		t.Errorf("%v are late, want both", late)
	}
	test.Replay(func(*sluice.Options) {})
}

// lastNote is a record of which the last one of a key counts.
type lastNote struct {
	Key  string
	Text string
}

// TestLastWriterWins has two records of one key and time, in one partition: the later in
// the order of reading wins, whatever the shards, and in a replay too.
func TestLastWriterWins(t *testing.T) {
	dir := t.TempDir()
	job := sluice.NewJob("last")
	job.From("notes", file.JSONLines[lastNote]("unused.jsonl")).
		EventTime(func(lastNote) sluice.Instant { return sluice.Instant(second) }, time.Second).
		KeyBy(func(n lastNote) string { return n.Key }).
		Fold(sluice.NewState[string, lastNote]("last"), func(l *lastNote, n lastNote) { *l = n }).
		To("last", file.Upsert(dir+"/last", func(_ string, n lastNote) lastNote { return n }))
	test := sluicetest.New(t, job)
	test.Options(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 3, 3, 1 })
	var feed []lastNote
	for i := range 300 {
		feed = append(feed, lastNote{fmt.Sprint("key-", i%7), fmt.Sprint(i)})
	}
	sluicetest.Feed(test, "notes", feed...)
	test.Step()
	for key, n := range sluicetest.Table[string, lastNote](test, "last") {
		var want string
		for _, f := range feed {
			if f.Key == key {
				want = f.Text
			}
		}
		if n.Text != want {
			t.Errorf("the last of %s is %s, want %s", key, n.Text, want)
		}
	}
	test.Replay(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 2, 2, 50 })
}
