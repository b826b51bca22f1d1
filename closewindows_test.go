package sluice_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
)

// closing is a job of windows of windows: those of 4 s, and of what these come to windows
// of 12 s that begin every 6; and of sessions.
func closing(test *timesTest) *sluice.Job {
	job := sluice.NewJob("times")
	ticks := job.From("ticks", test.pond).EventTime(tick.time, 2*time.Second).KeyBy(tick.key)
	first := ticks.Window(sluice.Tumbling(4*time.Second), sluice.AllowedLateness(time.Second)).Fold(bags, (*bag).add).Results()
	first.Map(closedOf).To("results", file.Append[closedWindow](test.dir+"/results"))
	late := ticks.Window(sluice.Session(5 * time.Second))
	late.Late().Map(func(t tick) lateTick { return lateTick{t.ID} }).To("late", file.Append[lateTick](test.dir+"/late"))
	late.FoldMerge(sluice.NewState[sluice.In[string], bag]("sessions"), (*bag).add, (*bag).merge).
		Results().Map(closedOf).To("sessions", file.Append[closedWindow](test.dir+"/sessions"))
	first.KeyBy(func(r sluice.Result[string, bag]) string { return r.Key }).
		Window(sluice.Hopping(12*time.Second, 6*time.Second)).
		FoldMerge(sluice.NewState[sluice.In[string], bag]("more"), (*bag).collect, (*bag).merge).
		Results().Map(closedOf).To("more", file.Append[closedWindow](test.dir+"/more"))
	return job
}

func (b *bag) collect(r sluice.Result[string, bag]) { b.IDs = append(b.IDs, r.Value.IDs...) }

// TestDrainClosesWindows has a job stop with all windows closed: those too that get what
// others come to. What comes afterwards is late for them, and begins new ones behind them.
// A replay does the same.
func TestDrainClosesWindows(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0)
	test.build = func() *sluice.Job { return closing(test) }
	test.feed("0", 1, 2, 5, 9, 3) // 0 to 4; the watermark comes to 7
	test.start()
	test.read(5)
	job, err := epoch.FindJob(t.Context(), env.Real(), test.store, "times")
	if err != nil {
		t.Fatal(err)
	}
	drain := func() {
		t.Helper()
		if _, err := job.AskDrainTo(t.Context(), nil, true, "a test"); err != nil {
			t.Fatal(err)
		}
		test.mu.Lock()
		for test.running > 0 {
			test.news.Wait()
		}
		test.mu.Unlock()
		test.end()
	}
	drain()
	rows := func(sink string) (windows []string) {
		for _, r := range readRows[closedWindow](t, test.dir+"/"+sink) {
			windows = append(windows, fmt.Sprintf("%d: %v", r.Start, r.IDs))
		}
		return windows
	}
	expect := func(when string, want map[string][]string, late ...int64) {
		t.Helper()
		for sink, want := range want {
			if got := rows(sink); !slices.Equal(got, want) {
				t.Errorf("%s: %s are %v, expected %v", when, sink, got, want)
			}
		}
		if got := test.late(); !slices.Equal(got, late) {
			t.Errorf("%s: late are %v, expected %v", when, got, late)
		}
	}
	// begun is a multiple of 4 s, and two seconds behind one of 6: windows begin at -8, -2,
	// 4 and so on.
	want := map[string][]string{
		"results":  {"0: [0 1 4]", "4: [2]", "8: [3]"},
		"sessions": {"1: [0 1 2 3 4]"},
		"more":     {"-8: [0 1 4]", "-2: [0 1 2 4]", "4: [2 3]", "10: [3]"},
	}
	expect("drained", want)
	epochs := len(test.commits)

	test.start()
	test.feed("0", 13, 30) // 13 would have been in the session
	test.read(7)
	test.end()
	expect("afterwards", want, 5)

	test.start()
	test.feed("0", 31)
	test.read(8)
	drain()
	want["results"] = append(want["results"], "28: [6 7]")
	want["sessions"] = append(want["sessions"], "30: [6 7]")
	want["more"] = append(want["more"], "22: [6 7]", "28: [6 7]")
	expect("drained once more", want, 5)
	if n := len(test.commits); n <= epochs {
		t.Errorf("%d epochs were made, %d of them before", n, epochs)
	}
	test.replays()

	test.start() // nothing is open, and what comes is late
	test.feed("0", 1)
	test.read(9)
	drain()
	if m := test.head(); m.Advanced != nil {
		t.Errorf("with nothing open, watermarks move to %v", m.Advanced)
	}
	expect("drained with nothing open", want, 5, 8)
}
