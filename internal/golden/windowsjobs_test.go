package golden

import (
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// tick is a record of what the job windows reads.
type tick struct {
	Key string
	At  sluice.Instant // zero: it has no time
	N   int64
}

func (t tick) time() (sluice.Instant, bool) { return t.At, t.At != 0 }
func (t tick) key() string                  { return t.Key }

func (t *total) tick(k tick)        { t.Readings++; t.Sum += k.N }
func (t *total) merge(other *total) { t.Readings += other.Readings; t.Sum += other.Sum }

// span is a row of the job: of an operator's window what it has come to, and of a timer
// when it was due.
type span struct {
	Of, Key       string
	Start, End    sluice.Instant
	Readings, Sum int64
}

func spanOf(operator string) func(sluice.Result[string, total]) span {
	return func(r sluice.Result[string, total]) span {
		return span{operator, r.Key, r.Window.Start, r.Window.End, r.Value.Readings, r.Value.Sum}
	}
}

const (
	idleAfter = 100 * time.Millisecond
	silence   = 10 * sluice.Instant(1e6) // after a key's tick, when its timer is due
	century   = 100 * 365 * 86_400 * sluice.Instant(1e6)
)

// ticking is a build of the job windows: its state counted is of such windows, and its
// sessions have such a gap. One that follows reads on until it is told to stop.
func ticking(counted sluice.Windows, gap time.Duration, follow bool) *sluice.Job {
	var options []file.Option
	if follow {
		options = []file.Option{file.Follow(), file.Poll(5 * time.Millisecond)}
	}
	job := sluice.NewJob("windows")
	ticks := job.From("ticks", file.JSONLines[tick]("in/windows/*.jsonl", options...)).
		EventTime(tick.time, 2*time.Second, sluice.IdleAfter(idleAfter)).KeyBy(tick.key)

	windows := ticks.Window(counted, sluice.AllowedLateness(time.Second))
	windows.Late().To("late", file.Append[tick]("out/windows-late"))
	table := windows.Fold(sluice.NewState[sluice.In[string], total]("counted"), (*total).tick)
	table.To("open", file.Upsert("out/windows-open", func(_ sluice.In[string], t total) total { return t }))
	sessions := ticks.Window(sluice.Session(gap)).
		FoldMerge(sluice.NewState[sluice.In[string], total]("sessions"), (*total).tick, (*total).merge)
	shared := ticks.Window(sluice.Hopping(8*time.Second, 4*time.Second)).
		FoldMerge(sluice.NewState[sluice.In[string], total]("shared"), (*total).tick, (*total).merge)

	table.Results().Map(spanOf("counted")).
		Merge(sessions.Results().Map(spanOf("sessions"))).
		Merge(shared.Results().Map(spanOf("shared"))).
		Merge(ticks.Process(awaited).Stream).
		To("spans", file.Append[span]("out/windows-spans"))
	return job
}

// awaited keeps a key's latest ticks, and tells when it has had none for a while. Its
// other timer is one of the clock, and due in a century.
func awaited(p *sluice.Setup[string, span]) func(*sluice.Context[string, span], tick) {
	latest := p.Sorted(sluice.NewSortedState[string, sluice.Instant, int64]("latest", 2).Descending())
	quiet := p.OnTimer("quiet", func(c *sluice.Context[string, span]) {
		c.Emit(span{Of: "quiet", Key: c.Key(), Start: c.Time() - silence, End: c.Time()})
	})
	never := p.OnClock("never", func(c *sluice.Context[string, span]) {
		c.Emit(span{Of: "never", Key: c.Key(), End: c.Time()})
	})
	return func(c *sluice.Context[string, span], t tick) {
		if _, timed := t.time(); !timed {
			return
		}
		latest.Put(t.At, t.N)
		quiet.Set(t.At + silence)
		never.Set(t.At + century)
	}
}

// The builds: what windows are counted in changes twice, and the gap of sessions once.
func ticking1(follow bool) *sluice.Job {
	return ticking(sluice.Tumbling(4*time.Second), 5*time.Second, follow)
}

func ticking2() *sluice.Job {
	return ticking(sluice.Hopping(6*time.Second, 2*time.Second), 3*time.Second, false)
}

func ticking3() *sluice.Job { return ticking(sluice.Tumbling(5*time.Second), 3*time.Second, false) }
