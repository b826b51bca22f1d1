package cli_test

import (
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// visit is what the jobs with event time read, from visits*.jsonl.
type visit struct {
	User string
	At   sluice.Instant // zero: it has no time
	N    int64
}

func (v visit) time() (sluice.Instant, bool) { return v.At, v.At != 0 }
func (v visit) byUser() string               { return v.User }

type visited struct{ Visits, Sum int64 }

func (s *visited) add(v visit)          { s.Visits++; s.Sum += v.N }
func (s *visited) merge(other *visited) { s.Visits += other.Visits; s.Sum += other.Sum }

type (
	visitWindow = sluice.In[string]
	visitResult = sluice.Result[string, visited]
)

// visitsJob has all that goes by times: windows, sessions, windows that share panes,
// timers of both kinds, and a sorted state.
func visitsJob(windows sluice.Windows, allowed time.Duration) *sluice.Job {
	job := sluice.NewJob("visits")
	visits := job.From("visits", file.JSONLines[visit]("visits*.jsonl")).EventTime(visit.time, 10*time.Second).KeyBy(visit.byUser)
	counted := visits.Window(windows, sluice.AllowedLateness(allowed))
	counted.Late().To("late", file.Append[visit]("out/late"))
	table := counted.Fold(sluice.NewState[visitWindow, visited]("counted"), (*visited).add)
	table.Firings(time.Second).Discard()
	table.To("counted", file.Upsert("out/counted", func(_ visitWindow, s visited) visited { return s }))
	visits.Window(sluice.Session(30*time.Second)).
		FoldMerge(sluice.NewState[visitWindow, visited]("sessions"), (*visited).add, (*visited).merge).
		Results().To("sessions", file.Append[visitResult]("out/sessions"))
	visits.Window(sluice.Hopping(time.Minute, 30*time.Second)).
		FoldMerge(sluice.NewState[visitWindow, visited]("hops"), (*visited).add, (*visited).merge).
		Results().To("hops", file.Append[visitResult]("out/hops"))
	visits.Window(sluice.Days(1, "UTC").OnClock()).
		Fold(sluice.NewState[visitWindow, visited]("today"), (*visited).add)
	visits.Process(leaving).To("left", file.Append[string]("out/left"))
	return job
}

// leaving keeps a user's latest visits, and tells a minute after the last that there was
// none since. Its other timer is one of the clock, and due in a century.
func leaving(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], visit) {
	const minute = sluice.Instant(time.Minute / time.Microsecond)
	latest := p.Sorted(sluice.NewSortedState[string, sluice.Instant, int64]("latest", 2).Descending())
	first := p.Sorted(sluice.NewSortedState[string, sluice.Instant, int64]("first", 2))
	left := p.OnTimer("left", func(c *sluice.Context[string, string]) { c.Emit(c.Key()) })
	expires := p.OnClock("expires", func(c *sluice.Context[string, string]) { c.Emit(c.Key()) })
	return func(c *sluice.Context[string, string], v visit) {
		if _, timed := v.time(); !timed {
			return
		}
		latest.Put(v.At, v.N)
		first.Put(v.At, v.N)
		left.Set(v.At + minute)
		expires.Set(v.At + 100*365*24*60*minute)
	}
}
