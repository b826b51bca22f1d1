package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/store"
)

// visit is a record of the jobs with windows, which has been decoded.
type visit struct {
	User  string
	At    sluice.Instant
	Cents int64
}

func (v visit) at() sluice.Instant { return v.At }
func (v visit) user() string       { return v.User }

// takings is what windows hold.
type takings struct{ Visits, Cents int64 }

func (t *takings) add(v visit) {
	t.Visits++
	t.Cents += v.Cents
}

func (t *takings) merge(other *takings) {
	t.Visits += other.Visits
	t.Cents += other.Cents
}

// The visits of a window of 10 s, and how far times lie behind the latest at most.
const (
	visitsPerWindow = 1 << 20
	windowLength    = 10 * time.Second
	visitLateness   = time.Second
)

// visitsOf makes visits of their numbers: their times go on evenly, each up to the
// lateness behind, and their users are drawn evenly.
type visitsOf struct {
	users []string
	draws []int32 // of the users
	back  []int32 // microseconds
}

func newVisits(users int) *visitsOf {
	r, v := newRandom(7), &visitsOf{}
	for i := range users {
		v.users = append(v.users, userName(i))
	}
	for range visitsPerWindow {
		v.draws = append(v.draws, int32(r.IntN(users)))
		v.back = append(v.back, int32(r.IntN(int(visitLateness.Microseconds()))))
	}
	return v
}

func (v *visitsOf) make(n int64, into *visit) {
	i := n & (visitsPerWindow - 1)
	at := n*windowLength.Microseconds()/visitsPerWindow - int64(v.back[i])
	*into = visit{v.users[v.draws[i]], sluice.Instant(at), i % 1000}
}

func (v *visitsOf) source(count int64) numbers[visit] {
	return numbers[visit]{count: count, partitions: 1, decoder: func() func(*connector.Batch, int, *visit) error {
		return func(b *connector.Batch, i int, into *visit) error {
			v.make(b.Records[i].Offset, into)
			return nil
		}
	}}
}

// windowUsers are the keys of the windows that are measured.
var windowUsers = map[string]int{"tumbling": 100_000, "session": 100_000, "hopping": 10_000, "hopping.floor": 10_000}

// windowJob folds visits into windows of the variant's kind.
func windowJob(t task) (sample, error) {
	visits := newVisits(windowUsers[t.Variant])
	return perVisit(t, func(count int64) error {
		job := sluice.NewJob("windows")
		keyed := job.From("visits", visits.source(count)).
			EventTime(visit.at, visitLateness, sluice.MaxAhead(0)).
			KeyBy(visit.user)
		state := sluice.NewState[sluice.In[string], takings]("takings")
		switch t.Variant {
		case "hopping":
			keyed.Window(sluice.Hopping(time.Minute, time.Second)).FoldMerge(state, (*takings).add, (*takings).merge).Results().Discard()
		case "tumbling", "hopping.floor":
			keyed.Window(sluice.Tumbling(windowLength)).Fold(state, (*takings).add).Results().Discard()
		case "session":
			keyed.Window(sluice.Session(windowLength/8)).FoldMerge(state, (*takings).add, (*takings).merge).Results().Discard()
		default:
			return fmt.Errorf("no windows are called %q", t.Variant)
		}
		return job.Run(context.Background(), sluice.Options{Store: store.NewMemory(), Log: quiet()})
	})
}

// windowFloor is a loop over one map, of users and windows, out of which windows go when
// their time has passed.
func windowFloor(t task) (sample, error) {
	visits := newVisits(windowUsers["tumbling"])
	return perVisit(t, func(count int64) error {
		type in struct {
			user  string
			start int64
		}
		open, closed := map[in]*takings{}, int64(0)
		size, watermark, next := windowLength.Microseconds(), int64(-1<<62), int64(-1<<62)
		var v visit
		for n := range count {
			visits.make(n, &v)
			at := int64(v.At)
			start := at - ((at%size)+size)%size
			if start+size <= watermark {
				continue
			}
			key := in{v.User, start}
			s := open[key]
			if s == nil {
				s = new(takings)
				open[key] = s
			}
			s.add(v)
			if mark := at - visitLateness.Microseconds(); mark > watermark {
				watermark = mark
			}
			if watermark < next {
				continue
			}
			for key, s := range open {
				if key.start+size <= watermark {
					closed += s.Visits
					delete(open, key)
				}
			}
			next = watermark - ((watermark%size)+size)%size + size
		}
		if closed == 0 && count > 4*visitsPerWindow {
			return fmt.Errorf("no window was closed")
		}
		return nil
	})
}

// perVisit runs f for few and for many records, and returns what one takes.
func perVisit(t task, f func(count int64) error) (sample, error) {
	short, long := int64(3*visitsPerWindow), int64(15*visitsPerWindow)
	if t.Quick {
		long = 5 * visitsPerWindow
	}
	var took [2]time.Duration
	for i, count := range []int64{short, long} {
		runtime.GC()
		began := cpu()
		if err := f(count); err != nil {
			return nil, err
		}
		took[i] = cpu() - began
	}
	return sample{cpuSeconds: (took[1] - took[0]).Seconds() / float64(long-short)}, nil
}

func measureTumbling(b *bench) ([]Result, error) {
	s, floor, err := b.byTurns(turn{"window", "tumbling"}, turn{"window.floor", ""}, cpuSeconds, b.turns())
	if err != nil {
		return nil, err
	}
	return []Result{Result{
		Name: "window.tumbling", Value: s[cpuSeconds] * 1e9, Unit: "ns",
		What: "CPU per record of a job that folds records into tumbling windows of 10 s by event time, 100k keys, a window's records 2^20, decoded beforehand; the store is memory, and an epoch a second long; floor: a loop over the same records and one map of keys and windows",
	}.against(floor[cpuSeconds] * 1e9).atMost(1.5)}, nil
}

func measureHopping(b *bench) ([]Result, error) {
	s, floor, err := b.byTurns(turn{"window", "hopping"}, turn{"window", "hopping.floor"}, cpuSeconds, b.turns())
	if err != nil {
		return nil, err
	}
	return []Result{Result{
		Name: "window.hopping", Value: s[cpuSeconds] * 1e9, Unit: "ns",
		What: "CPU per record of a job that folds records into windows of 60 s of which one begins each second, 10k keys with about 10 records a second each, by a fold that can be merged; floor: the job of window.tumbling over the same records",
		Why:  "each second all keys put out a window, which is one result for 10 records; the tumbling job has one for 105",
	}.against(floor[cpuSeconds] * 1e9).atMost(2)}, nil
}

func measureSession(b *bench) ([]Result, error) {
	s, floor, err := b.byTurns(turn{"window", "session"}, turn{"window", "tumbling"}, cpuSeconds, b.turns())
	if err != nil {
		return nil, err
	}
	return []Result{Result{
		Name: "window.session", Value: s[cpuSeconds] * 1e9, Unit: "ns",
		What: "CPU per record of a job that folds records into sessions with a gap of 1.25 s, 100k keys; floor: the job of window.tumbling",
	}.against(floor[cpuSeconds] * 1e9).atMost(2)}, nil
}

// turns is how often each of two is measured.
func (b *bench) turns() int {
	if b.setting.Quick {
		return 1
	}
	return 3
}

// timersJob sets a timer for each record, each of a key of its own, which is fired when
// the watermark comes to it.
func timersJob(t task) (sample, error) {
	const timers = 1 << 20
	set := t.Variant == "set"
	type alarm struct{ Key int64 }
	run := func(count int64) error {
		source := numbers[alarm]{count: count, partitions: 1, decoder: func() func(*connector.Batch, int, *alarm) error {
			return func(b *connector.Batch, i int, into *alarm) error {
				into.Key = b.Records[i].Offset
				return nil
			}
		}}
		job := sluice.NewJob("timers")
		job.From("alarms", source).
			EventTime(func(a alarm) sluice.Instant { return sluice.Instant(a.Key * 10) }, 0, sluice.MaxAhead(0)).
			KeyBy(func(a alarm) int64 { return a.Key }).
			Process(func(p *sluice.Setup[int64, int64]) func(*sluice.Context[int64, int64], alarm) {
				rings := p.OnTimer("rings", func(c *sluice.Context[int64, int64]) { c.Emit(c.Key()) })
				return func(c *sluice.Context[int64, int64], a alarm) {
					if set {
						rings.Set(c.Time() + sluice.Instant(time.Second/time.Microsecond))
					} else {
						c.Emit(a.Key)
					}
				}
			}).Discard()
		return job.Run(context.Background(), sluice.Options{Store: store.NewMemory(), Log: quiet()})
	}
	var took [2]time.Duration
	for i, count := range []int64{timers, 4 * timers} {
		runtime.GC()
		began := cpu()
		if err := run(count); err != nil {
			return nil, err
		}
		took[i] = cpu() - began
	}
	return sample{cpuSeconds: (took[1] - took[0]).Seconds() / (3 * timers)}, nil
}

func measureTimers(b *bench) ([]Result, error) {
	s, floor, err := b.byTurns(turn{"timers", "set"}, turn{"timers", "none"}, cpuSeconds, b.turns())
	if err != nil {
		return nil, err
	}
	r := Result{
		Name: "timers", Value: (s[cpuSeconds] - floor[cpuSeconds]) * 1e9, Unit: "ns",
		What: "CPU for a timer of event time that is set, each of a key of its own, and fired a second of event time later, without that of the job around it; kept with each epoch like a state",
	}.within(400)
	r.note("the job: %.0f ns for each record with its timer, %.0f ns without", s[cpuSeconds]*1e9, floor[cpuSeconds]*1e9)
	return []Result{r}, nil
}
