package sluice_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/sluicetest"
)

// replacedJob has windows of 4 s, whose event time may be given another name and
// lateness.
func replacedJob(name string, lateness time.Duration) *sluice.Job {
	job := sluice.NewJob("times")
	keyed := job.From("ticks", file.JSONLines[tick]("unused.jsonl")).
		EventTime(tick.time, lateness, sluice.TimeName(name)).KeyBy(tick.key).Window(sluice.Tumbling(4 * time.Second))
	keyed.Late().Map(func(t tick) lateTick { return lateTick{t.ID} }).To("late", file.Append[lateTick]("late"))
	keyed.Fold(bags, (*bag).add).Results().Map(closedOf).To("results", file.Append[closedWindow]("results"))
	return job
}

// TestReplacedTimes goes on with builds of other lateness, with no event time of that
// name, and with the first one again.
func TestReplacedTimes(t *testing.T) {
	t.Parallel()
	test := sluicetest.New(t, replacedJob("ticks", 5*time.Second))
	test.Options(func(o *sluice.Options) { o.Replace = true }) // it goes back to a build
	id := int64(0)
	step := func(what string, closed []int64, late []int64, seconds ...sluice.Instant) {
		t.Helper()
		earlier, lost := len(sluicetest.Rows[closedWindow](test, "results")), len(sluicetest.Rows[lateTick](test, "late"))
		for _, at := range seconds {
			sluicetest.Feed(test, "ticks", tick{ID: id, Key: "k", At: begun + at*sluice.Instant(second)})
			id++
		}
		test.Step()
		var starts, ids []int64
		for _, w := range sluicetest.Rows[closedWindow](test, "results")[earlier:] {
			starts = append(starts, w.Start)
		}
		for _, l := range sluicetest.Rows[lateTick](test, "late")[lost:] {
			ids = append(ids, l.ID)
		}
		if !slices.Equal(starts, closed) || !slices.Equal(ids, late) {
			t.Errorf("%s: windows closed that begin at %v, and late were %v; expected %v and %v", what, starts, ids, closed, late)
		}
	}
	step("at first", []int64{0}, nil, 1, 5, 10) // the watermark comes to 5
	test.Replace(replacedJob("ticks", 8*time.Second))
	step("a larger lateness, at 11", nil, []int64{4}, 11, 2) // 3 would be behind 5
	step("a larger lateness, at 15.9", nil, nil, 15)         // 7
	step("a larger lateness, at 17", []int64{4}, nil, 17)    // 9
	test.Replace(replacedJob("ticks", 0))
	step("a smaller one, with a batch before which it was 9", []int64{8, 12}, nil, 14) // 17 then
	step("a smaller one", nil, []int64{8}, 15)
	test.Replace(replacedJob("others", 0))
	step("another name", nil, []int64{9}, 2) // there is no watermark, but the window has closed
	step("another name, further", nil, nil, 17)
	test.Replace(replacedJob("ticks", 0))
	step("the first name again", nil, []int64{11}, 2) // its watermark went with it
	step("the first name, further", []int64{16}, nil, 20)
}

// TestUpgradedTimes has a build of a smaller lateness, and with an event time of its
// own, take over while the job runs.
func TestUpgradedTimes(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 5*time.Second)
	test.feed("0", 1, 5, 10)
	test.start()
	test.read(3)
	test.stands("before", 5)

	job := sluice.NewJob("times")
	ticks := job.From("ticks", test.pond)
	keyed := ticks.EventTime(tick.time, time.Second).KeyBy(tick.key).Window(sluice.Tumbling(4 * time.Second))
	keyed.Late().Map(func(t tick) lateTick { return lateTick{t.ID} }).To("late", file.Append[lateTick](test.dir+"/late"))
	keyed.Fold(bags, (*bag).add).Results().Map(closedOf).To("results", file.Append[closedWindow](test.dir+"/results"))
	ticks.EventTime(tick.time, 3*time.Second, sluice.TimeName("slower")).KeyBy(tick.key).Window(sluice.Tumbling(4*time.Second)).
		Fold(sluice.NewState[sluice.In[string], bag]("more"), (*bag).add).Results().
		Map(closedOf).To("slower", file.Append[closedWindow](test.dir+"/slower"))
	live := make(chan struct{})
	isLive := sync.OnceFunc(func() { close(live) })
	test.run(func(ctx context.Context, o sluice.Options) error {
		test.tell(func() { test.commits = nil })
		return job.Upgrade(ctx, o, sluice.Upgrade{Auto: true, Told: func(p sluice.UpgradeProgress) {
			if p.Stage == "live" {
				isLive()
			}
		}})
	})
	<-live
	test.stands("at the cut", 5)
	test.feed("0", 11, 6, 18)
	test.read(3)
	test.stands("after", 17)
	if got := test.head().Watermarks["slower"].Watermark; got != epoch.Moment(begun)+15*epoch.Moment(second) {
		t.Errorf("the new event time's watermark is %d, expected 15 s", got-epoch.Moment(begun))
	}
	test.expect([]string{"0: [0]", "4: [1 4]", "8: [2 3]"})
	var slower []string
	for _, r := range readRows[closedWindow](t, test.dir+"/slower") {
		slower = append(slower, fmt.Sprintf("%d: %v", r.Start, r.IDs))
	}
	if want := []string{"4: [4]", "8: [3]"}; !slices.Equal(slower, want) { // it has not seen what came before
		t.Errorf("by the new event time %v have closed, expected %v", slower, want)
	}
}
