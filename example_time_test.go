package sluice_test

import (
	"fmt"
	"os"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// Visit is what the examples of event time read.
type Visit struct {
	User string
	At   time.Time
	Page string
}

// Time is when the visit was.
func (v Visit) Time() time.Time { return v.At }

// Visitor is who made it.
func (v Visit) Visitor() string { return v.User }

// Pages is what the examples count in windows.
type Pages struct{ N int64 }

// Add counts a visit in.
func (p *Pages) Add(Visit) { p.N++ }

// Merge puts two counts together.
func (p *Pages) Merge(other *Pages) { p.N += other.N }

var pages = sluice.NewState[sluice.In[string], Pages]("pages")

// VisitCount is a row of the examples.
type VisitCount struct {
	User       string
	Start, End string
	N          int64
}

func visitCount(r sluice.Result[string, Pages]) VisitCount {
	clock := func(i sluice.Instant) string { return i.Time().UTC().Format("15:04:05") }
	return VisitCount{r.Key, clock(r.Window.Start), clock(r.Window.End), r.Value.N}
}

// visits is a desk with some visits, one of which comes late.
func visits() desk {
	d := newDesk()
	err := os.WriteFile(d.path("visits.jsonl"), []byte(`{"User":"ann","At":"2026-03-01T10:00:05Z","Page":"/"}
{"User":"bob","At":"2026-03-01T10:00:40Z","Page":"/"}
{"User":"ann","At":"2026-03-01T10:00:50Z","Page":"/tea"}
{"User":"ann","At":"2026-03-01T10:01:05Z","Page":"/cup"}
{"User":"bob","At":"2026-03-01T10:00:55Z","Page":"/tea"}
{"User":"ann","At":"2026-03-01T10:03:00Z","Page":"/"}
{"User":"bob","At":"2026-03-01T10:00:59Z","Page":"/cup"}
{"User":"bob","At":"2026-03-01T10:04:00Z","Page":"/"}
`), 0o644)
	if err != nil {
		panic(err)
	}
	return d
}

func (d desk) visits(job *sluice.Job) *sluice.Stream[Visit] {
	return job.From("visits", file.JSONLines[Visit](d.path("visits.jsonl")))
}

// runByRecord runs the job with one record to a batch, so that the watermark moves with
// each of them.
func (d desk) runByRecord(job *sluice.Job) {
	d.runWith(job, func(o *sluice.Options) { o.BatchRecords = 1 })
}

// Each user's visits are counted by the minute. The watermark stays ten seconds behind
// the latest visit: bob's of 10:00:55 is in time, and that of 10:00:59 is not.
func ExampleKeyed_Window() {
	d := visits()
	defer d.clear()
	job := sluice.NewJob("visits")
	windowed := d.visits(job).
		EventTime(Visit.Time, 10*time.Second).
		KeyBy(Visit.Visitor).
		Window(sluice.Tumbling(time.Minute))
	windowed.Late().To("late", file.Append[Visit](d.path("late")))
	windowed.Fold(pages, (*Pages).Add).
		Results().
		Map(visitCount).
		To("counted", file.Append[VisitCount](d.path("counted")))
	d.runByRecord(job)
	d.print("counted")
	fmt.Println("late:")
	d.print("late")
	// Output:
	// {"User":"bob","Start":"10:00:00","End":"10:01:00","N":2}
	// {"User":"ann","Start":"10:00:00","End":"10:01:00","N":2}
	// {"User":"ann","Start":"10:01:00","End":"10:02:00","N":1}
	// late:
	// {"User":"bob","At":"2026-03-01T10:00:59Z","Page":"/cup"}
}

// A session ends when its user has made no visit for half a minute.
func ExampleSession() {
	d := visits()
	defer d.clear()
	job := sluice.NewJob("visits")
	d.visits(job).
		EventTime(Visit.Time, 30*time.Second).
		KeyBy(Visit.Visitor).
		Window(sluice.Session(30*time.Second)).
		FoldMerge(pages, (*Pages).Add, (*Pages).Merge).
		Results().
		Map(visitCount).
		To("counted", file.Append[VisitCount](d.path("counted")))
	d.runByRecord(job)
	d.print("counted")
	// Output:
	// {"User":"ann","Start":"10:00:05","End":"10:00:35","N":1}
	// {"User":"bob","Start":"10:00:40","End":"10:01:25","N":2}
	// {"User":"ann","Start":"10:00:50","End":"10:01:35","N":2}
	// {"User":"ann","Start":"10:03:00","End":"10:03:30","N":1}
}

// Whoever watches doesn't want to wait for a minute's end: what it has come to so far is
// put out each half a minute of event time, and again when a late visit changes it.
func ExampleWindowTable_Firings() {
	d := visits()
	defer d.clear()
	job := sluice.NewJob("visits")
	d.visits(job).
		EventTime(Visit.Time, 10*time.Second).
		KeyBy(Visit.Visitor).
		Window(sluice.Tumbling(time.Minute), sluice.AllowedLateness(time.Hour)).
		Fold(pages, (*Pages).Add).
		Firings(30*time.Second).
		Map(func(f sluice.Firing[string, Pages]) string {
			return fmt.Sprintf("%s since %s: %d, %s", f.Key, f.Window.Start.Time().UTC().Format("15:04"), f.Value.N, f.Timing)
		}).
		To("counted", file.Append[string](d.path("counted")))
	d.runByRecord(job)
	d.print("counted")
	// Output:
	// {"value":"bob since 10:00: 1, early"}
	// {"value":"ann since 10:00: 1, early"}
	// {"value":"bob since 10:00: 2, on time"}
	// {"value":"ann since 10:00: 2, on time"}
	// {"value":"ann since 10:01: 1, on time"}
	// {"value":"ann since 10:03: 1, early"}
	// {"value":"bob since 10:00: 3, late"}
	// {"value":"bob since 10:04: 1, early"}
	// {"value":"ann since 10:03: 1, early"}
}

// Ann makes most of the visits: those of a minute that are read together are counted where
// they are read, and only the counts go to where hers are kept.
func ExampleMergeAhead() {
	d := visits()
	defer d.clear()
	job := sluice.NewJob("visits")
	d.visits(job).
		EventTime(Visit.Time, 10*time.Second).
		KeyBy(Visit.Visitor).
		Window(sluice.Tumbling(time.Minute), sluice.MergeAhead()).
		FoldMerge(pages, (*Pages).Add, (*Pages).Merge).
		Results().
		Map(visitCount).
		To("counted", file.Append[VisitCount](d.path("counted")))
	d.run(job)
	d.print("counted")
	// Output:
	// {"User":"bob","Start":"10:00:00","End":"10:01:00","N":3}
	// {"User":"ann","Start":"10:00:00","End":"10:01:00","N":2}
	// {"User":"ann","Start":"10:01:00","End":"10:02:00","N":1}
}

// Days are those of a time zone: where clocks are put back, one has 25 hours.
func ExampleDays() {
	d := newDesk()
	defer d.clear()
	err := os.WriteFile(d.path("visits.jsonl"), []byte(`{"User":"ann","At":"2026-11-01T04:00:00Z"}
{"User":"ann","At":"2026-11-02T04:59:59Z"}
{"User":"ann","At":"2026-11-02T05:00:00Z"}
`), 0o644)
	if err != nil {
		panic(err)
	}
	job := sluice.NewJob("visits")
	d.visits(job).
		EventTime(Visit.Time, 0).
		KeyBy(Visit.Visitor).
		Window(sluice.Days(1, "America/New_York")).
		Fold(pages, (*Pages).Add).
		Results().
		Map(func(r sluice.Result[string, Pages]) string {
			return fmt.Sprintf("%s: %d visits in %.0f hours", r.Key, r.Value.N, r.Window.End.Time().Sub(r.Window.Start.Time()).Hours())
		}).
		To("counted", file.Append[string](d.path("counted")))
	d.runByRecord(job)
	d.print("counted")
	// Output:
	// {"value":"ann: 2 visits in 25 hours"}
}

// Whoever has made no visit for a minute is said to have left. Ann comes back before the
// watermark has passed that minute.
func ExampleSetup_OnTimer() {
	d := visits()
	defer d.clear()
	job := sluice.NewJob("visits")
	last := sluice.NewState[string, string]("last_page")
	d.visits(job).
		EventTime(Visit.Time, 10*time.Second).
		KeyBy(Visit.Visitor).
		Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], Visit) {
			page := p.State(last)
			left := p.OnTimer("left", func(c *sluice.Context[string, string]) {
				at, _ := page.Read()
				c.Emit(fmt.Sprintf("%s has left at %s, %s", c.Key(), c.Time().Time().UTC().Format("15:04:05"), at))
				page.Delete()
			})
			return func(c *sluice.Context[string, string], v Visit) {
				page.Set(v.Page)
				left.Set(c.Time() + sluice.Instant(time.Minute/time.Microsecond))
			}
		}).
		To("left", file.Append[string](d.path("left")))
	d.runByRecord(job)
	d.print("left")
	// Output:
	// {"value":"bob has left at 10:01:55, /tea"}
	// {"value":"bob has left at 10:01:59, /cup"}
}
