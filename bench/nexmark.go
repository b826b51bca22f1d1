package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sluicestream/sluice"
	nexmark "github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/examples/nexmark/queries"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// nexmarkEvents are those of the benchmark's queries: ten thousand a second of event
// time, a tenth of a second out of order.
func nexmarkEvents(count int64) nexmark.Config {
	return nexmark.Config{Seed: 1, OutOfOrder: 1000, Partitions: 2, Count: count}
}

const (
	nexmarkSize  = 10 * time.Second
	nexmarkSlide = 2 * time.Second
)

// nexmarkJob runs a query, and returns what an event takes.
func nexmarkJob(t task) (sample, error) {
	dir := filepath.Join(t.Dir, "nexmark", t.Variant)
	return perEvent(t, func(c nexmark.Config) error {
		into := filepath.Join(dir, fmt.Sprint(c.Count, "-", time.Now().UnixNano()))
		var job *sluice.Job
		switch t.Variant {
		case "q5":
			job = queries.HotItems(c, nexmarkSize, nexmarkSlide, file.Append[queries.HotItem](into))
		case "q7":
			job = queries.HighestBids(c, nexmarkSize, file.Append[queries.HighestBid](into))
		case "q11":
			job = queries.UserSessions(c, nexmarkSize, file.Append[queries.UserBids](into))
		default:
			return fmt.Errorf("no query is called %q", t.Variant)
		}
		return job.Run(context.Background(), sluice.Options{Store: store.NewMemory(), Log: quiet()})
	})
}

// nexmarkFloor makes the events, and does nothing with them.
func nexmarkFloor(t task) (sample, error) {
	return perEvent(t, func(c nexmark.Config) error {
		g, err := nexmark.New(c)
		if err != nil {
			return err
		}
		var cents int64
		for n := range c.Count {
			if e := g.Event(n); e.Bid != nil {
				cents += e.Bid.Price
			}
		}
		if cents == 0 {
			return fmt.Errorf("there was no bid")
		}
		return nil
	})
}

// perEvent runs f with few and with many events, and returns what one takes.
func perEvent(t task, f func(c nexmark.Config) error) (sample, error) {
	short, long := int64(1<<20), int64(9<<20)
	if t.Quick {
		long = 2 << 20
	}
	var took, wall [2]time.Duration
	for i, count := range []int64{short, long} {
		runtime.GC()
		began, at := cpu(), time.Now()
		if err := f(nexmarkEvents(count)); err != nil {
			return nil, err
		}
		took[i], wall[i] = cpu()-began, time.Since(at)
	}
	n := float64(long - short)
	return sample{cpuSeconds: (took[1] - took[0]).Seconds() / n, wallSeconds: (wall[1] - wall[0]).Seconds() / n}, nil
}

func (b *bench) measureQuery5() ([]Result, error) {
	return b.measureQuery("q5", "query 5 of Nexmark, hot items: windows of 10 s of which one begins every 2 s, by auction, then the most of each window")
}

func (b *bench) measureQuery7() ([]Result, error) {
	return b.measureQuery("q7", "query 7 of Nexmark, highest bid: one window of 10 s for all bids")
}

func (b *bench) measureQuery11() ([]Result, error) {
	return b.measureQuery("q11", "query 11 of Nexmark, user sessions: a gap of 10 s, by bidder")
}

// measureQuery tells how many events a query takes in a second of one core.
func (b *bench) measureQuery(query, what string) ([]Result, error) {
	s, floor, err := b.byTurns(turn{"nexmark", query}, turn{"nexmark.floor", ""}, cpuSeconds, b.turns())
	if err != nil {
		return nil, err
	}
	r := Result{
		Name: "nexmark." + query, Value: 1 / s[cpuSeconds], Unit: "events/s per core",
		What: what + "; one process, two cores, events made by the decoder; floor: making the events only", Target: "–", Reached: true,
	}.against(1 / floor[cpuSeconds])
	r.note("%.0f events/s in all, %.0f ns of CPU for one, of which making it takes %.0f", 1/s[wallSeconds], s[cpuSeconds]*1e9, floor[cpuSeconds]*1e9)
	return []Result{r}, nil
}
