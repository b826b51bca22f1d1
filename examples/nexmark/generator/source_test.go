package generator

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/schema"
)

func opening() connector.Opening {
	return connector.Opening{Env: env.Real(), Log: slog.New(slog.DiscardHandler), Job: "auctions", JobID: "1", Name: "events"}
}

// changing is a source that can become another one.
type changing struct{ connector.Source[Event] }

// want are the events of each of three partitions.
func want(g *Generator, count int64) map[string][]Event {
	all := map[string][]Event{}
	for n, e := range g.Events(0, count) {
		name := []string{"0", "1", "2"}[n%3]
		all[name] = append(all[name], e)
	}
	return all
}

func TestSource(t *testing.T) {
	config := Config{Seed: 5, OutOfOrder: 7, Partitions: 3, Count: 20}
	for name, live := range map[string]bool{"all there": false, "live, long past": true} {
		t.Run(name, func(t *testing.T) {
			connectortest.TestSource(t, func(t *testing.T) connectortest.SourceFixture[Event] {
				c := config
				c.Live = live
				source := &changing{Source(c)}
				return connectortest.SourceFixture[Event]{
					Source: source, Opening: opening(), Want: want(made(t, c), c.Count),
					Replace: func(*testing.T, string) {
						other := c
						other.Seed++
						source.Source = Source(other)
					},
					Shorten: func(*testing.T, string) {
						shorter := c
						shorter.Count -= 3
						source.Source = Source(shorter)
					},
				}
			})
		})
	}
}

// TestIdentity expects offsets to be refused by events of another Config, and taken by
// those that only are more, or come at another time.
func TestIdentity(t *testing.T) {
	base := Config{Partitions: 2, Count: 10}
	read := func(c Config, from connector.Offset) (connector.Offset, error) {
		r, err := Source(c).Open(t.Context(), opening())
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Partition(t.Context(), "1", from)
		if err != nil {
			return connector.Offset{}, err
		}
		b := &connector.Batch{Limit: 2, LimitBytes: 100}
		err = p.Next(t.Context(), b, -1)
		return b.To, err
	}
	to, err := read(base, connector.Offset{})
	if err != nil || to.Next != 5 { // behind 1 and 3
		t.Fatalf("read to %+v, %v", to, err)
	}
	for name, c := range map[string]Config{
		"seed":       {Partitions: 2, Count: 10, Seed: 1},
		"start":      {Partitions: 2, Count: 10, Start: 1},
		"rate":       {Partitions: 2, Count: 10, Rate: 1},
		"disorder":   {Partitions: 2, Count: 10, OutOfOrder: 5},
		"auctions":   {Partitions: 2, Count: 10, HotAuctions: 3},
		"sellers":    {Partitions: 2, Count: 10, HotSellers: 3},
		"bidders":    {Partitions: 2, Count: 10, HotBidders: 3},
		"in flight":  {Partitions: 2, Count: 10, InFlightAuctions: 3},
		"active":     {Partitions: 2, Count: 10, ActivePeople: 3},
		"person":     {Partitions: 2, Count: 10, PersonBytes: 3},
		"auction":    {Partitions: 2, Count: 10, AuctionBytes: 3},
		"bid":        {Partitions: 2, Count: 10, BidBytes: 3},
		"partitions": {Partitions: 4, Count: 10},
	} {
		if _, err := read(c, to); err == nil || !strings.Contains(err.Error(), "of other events") {
			t.Errorf("%s: read on with %v", name, err)
		}
	}
	for _, c := range []Config{{Partitions: 2, Count: 20}, {Partitions: 2}, {Partitions: 2, Count: 10, Live: true}} {
		if on, err := read(c, to); err != nil || on.Next != 9 {
			t.Errorf("%+v: read on to %+v, %v", c, on, err)
		}
	}
	// A partition reads from a number that is another's, and stops at one.
	if on, err := read(base, connector.Offset{Next: 4}); err != nil || on.Next != 9 {
		t.Errorf("from 4: read to %+v, %v", on, err)
	}
}

// TestUnbounded expects a source without a Count to be read from anywhere, and never
// to be ahead of who reads it.
func TestUnbounded(t *testing.T) {
	c := Config{Partitions: 2}
	r, err := Source(c).Open(t.Context(), opening())
	if err != nil {
		t.Fatal(err)
	}
	if r.Bounded() {
		t.Fatal("it is bounded")
	}
	const far = 1_000_000_000_001
	p, err := r.Partition(t.Context(), "0", connector.Offset{Next: far})
	if err != nil {
		t.Fatal(err)
	}
	if end := p.End(); end != far+1 {
		t.Errorf("ends at %d before it is read", end)
	}
	b := &connector.Batch{Limit: 3, LimitBytes: 100}
	if err := p.Next(t.Context(), b, -1); err != nil {
		t.Fatal(err)
	}
	if len(b.Records) != 3 || b.Records[0].Offset != far+1 || b.Records[2].Offset != far+5 || b.To.Next != far+7 || p.End() != far+7 {
		t.Errorf("read %+v to %+v, ends at %d", b.Records, b.To, p.End())
	}
	if got, want := b.Records[2].Time, int64(made(t, c).Event(far+5).DateTime()); got != want {
		t.Errorf("the last record's time is %d, expected %d", got, want)
	}
	// Told to stop within a gap of the partition's numbers, it stops there.
	if err := p.Next(t.Context(), b, far+8); err != nil || len(b.Records) != 1 || b.To.Next != far+8 {
		t.Errorf("read %+v to %+v, %v, expected one to %d", b.Records, b.To, err, int64(far+8))
	}
	if err := p.Next(t.Context(), b, far+8); !errors.Is(err, io.EOF) || b.To.Next != far+8 {
		t.Errorf("behind that: %v, at %+v", err, b.To)
	}
}

// steppedClock moves when somebody waits for it: by what they wait for.
type steppedClock struct {
	env.Clock
	mu    sync.Mutex
	now   schema.Instant
	waits []time.Duration
}

func (c *steppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Time()
}

func (c *steppedClock) NewTimer(d time.Duration) env.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += schema.Instant(d.Microseconds())
	c.waits = append(c.waits, d)
	return c.Clock.NewTimer(0)
}

// TestLive expects events to be there from their times on, and not before.
func TestLive(t *testing.T) {
	clock := &steppedClock{Clock: env.Real().Clock, now: 999_500_000}
	o := opening()
	o.Env = &env.Env{Clock: clock}
	r, err := Source(Config{Live: true, Start: 1_000_000_000, Rate: 100, Partitions: 2}).Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Partition(t.Context(), "1", connector.Offset{})
	if err != nil {
		t.Fatal(err)
	}
	offsets := func(until int64) (all []int64) {
		t.Helper()
		b := &connector.Batch{Limit: 100, LimitBytes: 100}
		if err := p.Next(t.Context(), b, until); err != nil {
			t.Fatal(err)
		}
		for _, record := range b.Records {
			all = append(all, record.Offset)
		}
		return all
	}
	equal := func(what string, got, want []int64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: read %v, expected %v", what, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: read %v, expected %v", what, got, want)
			}
		}
	}
	if end := p.End(); end != 1 {
		t.Fatalf("ends at %d before the start, expected its first number, 1", end)
	}
	// The first one of partition 1 is event 1, at 10 ms: it waits for that alone.
	equal("at the start", offsets(-1), []int64{1})
	if clock.now != 1_000_010_000 || len(clock.waits) != 1 || clock.waits[0] != 510*time.Millisecond {
		t.Fatalf("the clock is at %d after %v", clock.now, clock.waits)
	}
	clock.now = 1_000_089_999 // just before event 9
	if end := p.End(); end != 9 {
		t.Fatalf("ends at %d, expected 9", end)
	}
	equal("80 ms later", offsets(-1), []int64{3, 5, 7})
	// Event 9 comes in a microsecond: waited for at least 5 ms.
	equal("then", offsets(-1), []int64{9})
	if clock.now != 1_000_094_999 {
		t.Fatalf("the clock is at %d", clock.now)
	}
	clock.now = 1_001_000_000
	equal("a second from the start, to event 14", offsets(14), []int64{11, 13})

	// A clock that lies an hour behind is looked at each second, and a stop isn't late.
	clock.now -= 3600 * microseconds
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &connector.Batch{Limit: 100, LimitBytes: 100}
	if err := p.Next(ctx, b, -1); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	clock.waits = nil
	equal("an hour later", offsets(-1)[:1], []int64{15})
	if len(clock.waits) < 3600-10 || clock.waits[0] != time.Second {
		t.Fatalf("waited %d times, first for %v", len(clock.waits), clock.waits[0])
	}
}
