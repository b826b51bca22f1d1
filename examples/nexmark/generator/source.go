package generator

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/schema"
)

// Source is a source of a Config's events. An event's offset is its number; records
// have no bytes, since the offset says all, and the event's time. What of the Config
// can't be is told when the source is opened.
//
// How far a job is behind is counted in numbers, those of other partitions among
// them; an unbounded source that isn't live makes what it is asked for, and is never
// ahead.
func Source(c Config) connector.Source[Event] {
	g, err := New(c)
	if err != nil {
		return &source{fault: err}
	}
	return &source{g: g, identity: g.c.identity()}
}

// identity tells the events of other Configs from these. Those that differ in Count
// alone are the same ones.
func (c *Config) identity() string {
	h := fnv.New64a()
	for _, p := range c.parameters() {
		fmt.Fprintf(h, "%s=%s\n", p.Name, p.Value)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

type source struct {
	g        *Generator
	identity string
	fault    error
}

// Describe implements [connector.Source].
func (s *source) Describe() connector.Description {
	d := connector.Description{Connector: "nexmark", Contract: 1}
	if s.fault == nil {
		d.Parameters = s.g.c.parameters()
	}
	return d
}

// NewDecoder implements [connector.Source].
func (s *source) NewDecoder() func(b *connector.Batch, i int, v *Event) error {
	return func(b *connector.Batch, i int, v *Event) error {
		if s.fault != nil {
			return s.fault
		}
		*v = s.g.Event(b.Records[i].Offset)
		return nil
	}
}

// Open implements [connector.Source].
func (s *source) Open(ctx context.Context, o connector.Opening) (connector.Reader, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	return &reader{s, o.Env.Clock}, ctx.Err()
}

type reader struct {
	*source
	clock env.Clock
}

// Partitions implements [connector.Reader].
func (r *reader) Partitions(context.Context) (names []string, err error) {
	for p := range r.g.c.Partitions {
		names = append(names, strconv.FormatInt(p, 10))
	}
	return names, nil
}

// Partition implements [connector.Reader].
func (r *reader) Partition(_ context.Context, name string, from connector.Offset) (connector.Partition, error) {
	c := &r.g.c
	number, err := strconv.ParseInt(name, 10, 64)
	if err != nil || number < 0 || number >= c.Partitions || name != strconv.FormatInt(number, 10) {
		return nil, fmt.Errorf("there is no partition %q of events, there are 0 to %d", name, c.Partitions-1)
	}
	p := &partition{reader: r, name: name, number: number, end: c.align(c.end(), number)}
	switch {
	case from.Identity != "" && from.Identity != r.identity:
		return nil, fmt.Errorf("offset %d of partition %s is of other events, %s, the generator's are %s: one of its parameters is another", from.Next, name, from.Identity, r.identity)
	case from.Next > p.end:
		return nil, fmt.Errorf("partition %s ends at offset %d, it was read to %d: Count was larger", name, p.end, from.Next)
	}
	p.next.Store(c.align(from.Next, number))
	return p, nil
}

// align is the first number of a partition's, from n on.
func (c *Config) align(n, partition int64) int64 {
	n = max(n, 0)
	return n + ((partition-n)%c.Partitions+c.Partitions)%c.Partitions
}

// Bounded implements [connector.Reader].
func (r *reader) Bounded() bool { return r.g.c.Count > 0 }

// Close implements [connector.Reader].
func (r *reader) Close() error { return nil }

type partition struct {
	*reader
	name   string
	number int64
	next   atomic.Int64 // to be read, of the partition's numbers
	end    int64        // behind the last one, of the partition's numbers
}

// Next implements [connector.Partition]. A record has no bytes, and counts as one, so
// that a limit of bytes limits as well.
func (p *partition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	stop := p.end
	if until >= 0 {
		stop = min(stop, until)
	}
	next := p.next.Load()
	b.Partition, b.Records = p.name, b.Records[:0]
	b.To = connector.Offset{Next: min(next, stop), Identity: p.identity}
	if next >= stop {
		return io.EOF
	}
	there, err := p.wait(ctx, next)
	if err != nil {
		return err
	}
	c := &p.g.c
	for limit := max(1, min(b.Limit, b.LimitBytes)); next < min(stop, there) && len(b.Records) < limit; next += c.Partitions {
		b.Records = append(b.Records, connector.Record{Offset: next, Time: int64(c.time(c.place(next)))})
	}
	p.next.Store(next)
	b.To.Next = min(next, stop)
	return nil
}

// wait returns how many events there are, of all partitions, as soon as that of the
// number is there.
func (p *partition) wait(ctx context.Context, next int64) (there int64, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		now := schema.InstantOf(p.clock.Now())
		if there = p.there(now); next < there {
			return there, nil
		}
		if err := env.Pause(ctx, p.clock, pause(now, p.g.c.time(next))); err != nil {
			return 0, err
		}
	}
}

// there is how many events there are, of all partitions.
func (p *partition) there(now schema.Instant) int64 {
	if !p.g.c.Live {
		return p.g.c.end()
	}
	return p.g.c.due(now)
}

// pause is for how long to wait for an event: not so short that each comes in a batch
// of its own, nor so long that a clock that was set goes unnoticed.
func pause(now, at schema.Instant) time.Duration {
	const least, utmost = 5 * time.Millisecond, time.Second
	micros := min(int64(at-now), utmost.Microseconds())
	return max(time.Duration(micros)*time.Microsecond, least)
}

// End implements [connector.Partition].
func (p *partition) End() int64 {
	c := &p.g.c
	switch next := p.next.Load(); {
	case c.Live:
		return max(next, c.align(c.due(schema.InstantOf(p.clock.Now())), p.number))
	case c.Count > 0:
		return p.end
	default:
		return next
	}
}

// Close implements [connector.Partition].
func (p *partition) Close() error { return nil }
