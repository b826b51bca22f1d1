package sluice_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// rang is what the timers of the clock put out: when it was due, and when the epoch was
// that fired it, in seconds.
type rang struct{ Due, Fired int64 }

// TestClock has timers and windows that go by the clock of the epochs: without any input
// an epoch begins for what is due, and for nothing else; after a restart each is fired
// once, and none before its time.
func TestClock(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0)
	test.build = func() *sluice.Job {
		job := sluice.NewJob("times")
		keyed := job.From("ticks", test.pond).EventTime(tick.time, 0).KeyBy(tick.key)
		keyed.Process(func(p *sluice.Setup[string, rang]) func(*sluice.Context[string, rang], tick) {
			rings := p.OnClock("rings", func(c *sluice.Context[string, rang]) {
				c.Emit(rang{int64(c.Time()-begun) / second, int64(c.Now()-begun) / second})
			})
			return func(c *sluice.Context[string, rang], _ tick) {
				if _, set := rings.At(); !set {
					rings.Set(c.Now() + 5*sluice.Instant(second))
				}
			}
		}).To("rang", file.Append[rang](test.dir+"/rang"))
		keyed.Window(sluice.Tumbling(4*time.Second).OnClock()).
			Fold(bags, (*bag).add).
			Results().
			Map(closedOf).
			To("results", file.Append[closedWindow](test.dir+"/results"))
		return job
	}
	test.start()
	test.feed("0", 1) // at 0 s: due are the window at 4, the timer at 5
	epochs := test.read(1)
	test.pass(3 * time.Second)
	test.feed("0", 1, 1)
	if got := test.read(3); got != epochs+1 {
		t.Errorf("%d epochs behind the first, expected that of two records alone", got-epochs)
	}
	test.pass(time.Second)
	if e := test.epoch(epochs + 1); e.Records != 0 {
		t.Errorf("the epoch in which the window closes has %d records", e.Records)
	}
	test.pass(3 * time.Second) // it is 7
	if e := test.epoch(epochs + 2); e.Records != 0 {
		t.Errorf("the epoch in which the timer is fired has %d records", e.Records)
	}
	test.feed("0", 1) // the window of 4 to 8, and another timer, at 12
	epochs = test.read(4)
	test.end()
	test.pass(4 * time.Second) // it is 11
	test.start()
	test.epoch(epochs) // in which the window closes
	test.pass(2 * time.Second)
	test.epoch(epochs + 1)
	if closed, want := test.closed(), []string{"0: [0 1 2]", "4: [3]"}; !slices.Equal(closed, want) {
		t.Errorf("closed are %v, expected %v", closed, want)
	}
	fired := fmt.Sprint(readRows[rang](t, test.dir+"/rang"))
	if want := "[{5 7} {12 13}]"; fired != want {
		t.Errorf("fired are %s, expected %s", fired, want)
	}
	test.replays()
}

// TestEarlyByTheClock has windows of the clock be put out early: an epoch begins for it
// without any input.
func TestEarlyByTheClock(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0)
	test.build = func() *sluice.Job {
		job := sluice.NewJob("times")
		job.From("ticks", test.pond).EventTime(tick.time, 0).KeyBy(tick.key).
			Window(sluice.Tumbling(4*time.Second).OnClock()).
			Fold(bags, (*bag).add).
			Firings(2*time.Second).
			Map(func(f sluice.Firing[string, bag]) string {
				return fmt.Sprintf("%s %v", f.Timing, f.Value.IDs)
			}).
			To("results", file.Append[string](test.dir+"/fired"))
		return job
	}
	test.start()
	test.feed("0", 1)
	epochs := test.read(1)
	for i, d := range []time.Duration{3 * time.Second, 2 * time.Second} {
		test.pass(d)
		if e := test.epoch(epochs + i); e.Records != 0 {
			t.Errorf("an epoch of the clock alone has %d records", e.Records)
		}
	}
	test.end()
	if fired, want := fmt.Sprint(readRows[struct{ Value string }](t, test.dir+"/fired")), "[{early [0]} {on time [0]}]"; fired != want {
		t.Errorf("fired are %s, expected %s", fired, want)
	}
	test.replays()
}
