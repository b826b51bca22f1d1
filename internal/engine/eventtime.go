package engine

import (
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/connector"
)

// EventTime describes a place in a graph at which records get the time of what they
// tell of. Times are in microseconds since 1970 UTC, lengths of time in microseconds.
type EventTime struct {
	// Name is what its watermarks are kept under.
	Name string
	// Lateness is how far a partition's watermark stays behind the latest time in it.
	Lateness int64
	// MaxAhead is how far behind the epoch's clock a time may lie and still move the
	// watermark; 0: no bound.
	MaxAhead int64
	// IdleAfter is how long nothing comes of a partition that was read to its end
	// until it holds the others back no more; 0: for ever.
	IdleAfter int64
	// Next, if set, gives a partition's watermark instead of Lateness.
	Next func(RunTimes) int64
	// OfSource tells that the time is the one that the source has for a record.
	OfSource bool
	// Function is the name of the function that gives the time, if it has one, and
	// Generator that of Next.
	Function, Generator string
	// Inputs are the sources that the records come from: their partitions hold the
	// watermark back.
	Inputs []string

	index int
}

// comesOf tells whether records of a source get their times here.
func (e *EventTime) comesOf(source string) bool { return slices.Contains(e.Inputs, source) }

// RunTimes is what a run of a partition, one batch as it was first read, tells of its
// times.
type RunTimes struct {
	// Latest is the latest time in the run, or [connector.NoTime].
	Latest int64
	// Seen is the latest time of the partition so far, the run included.
	Seen int64
	// Watermark is what the partition had before; [connector.NoTime]: none yet.
	Watermark int64
	// Now is the epoch's frozen clock.
	Now int64
}

// EventTimes describes the places at which records get times, in the order in which
// they were added.
func (g *Graph) EventTimes() []*EventTime { return g.times }

// Timed tells whether the graph has a notion of time: of events, or of its clock, whose
// passing does something by itself.
func (g *Graph) Timed() bool { return len(g.times) > 0 || g.ticks }

// AddEventTime gives the records of from their times; they arrive at the returned node.
// timeOf tells whether a record has one.
func AddEventTime[T any](g *Graph, from *Node[T], spec *EventTime, timeOf func(in *Instance, v *T) (time int64, ok bool)) *Node[T] {
	spec.index = len(g.times)
	g.times = append(g.times, spec)
	to := new(Node[T])
	Through(from, to, func(in *Instance, next func(*T)) func(*T) {
		if in.stage != 0 {
			in.build.faults = append(in.build.faults, fmt.Sprintf("event time %q: records get their time before the first KeyBy; what an operator puts out has the time of what it came from", spec.Name))
			return next
		}
		c := sharedPart(in, spec, "times", func() *runTimes {
			c := &runTimes{spec: spec, in: in, seen: connector.NoTime, record: noRecord}
			in.clocks = append(in.clocks, c)
			return c
		})
		return func(v *T) {
			t, ok := timeOf(in, v)
			if ok && t != connector.NoTime {
				c.see(t)
			} else {
				t = connector.NoTime
			}
			in.time = t
			next(v)
		}
	})
	return to
}

// runTimes gathers, in one worker, the times of a batch. What a record has told that
// becomes a dead letter is taken back.
type runTimes struct {
	spec   *EventTime
	in     *Instance
	seen   int64  // the latest time, of those that move the watermark
	before int64  // seen, without the record in hand
	record uint64 // the one in hand
	ahead  int64  // times that don't move it
	was    int64  // ahead, without the record in hand
}

const noRecord = ^uint64(0)

func (c *runTimes) see(t int64) {
	if r := c.in.base.record(); r != c.record {
		c.record, c.before, c.was = r, c.seen, c.ahead
	}
	if c.spec.MaxAhead > 0 && t > c.in.batch.now+c.spec.MaxAhead {
		c.ahead++
		return
	}
	c.seen = max(c.seen, t)
}

func (c *runTimes) drop(record uint64) {
	if c.record == record {
		c.seen, c.ahead, c.record = c.before, c.was, noRecord
	}
}

func (c *runTimes) flush(b *batch) {
	b.seen[c.spec.index] = c.seen
	if c.ahead > 0 {
		b.epoch.counts.ahead[c.spec.index].Add(c.ahead)
	}
	c.seen, c.ahead, c.record = connector.NoTime, 0, noRecord
}

// RecordTime is the time that the source gives the record in hand of a worker.
func (in *Instance) RecordTime() int64 { return in.recordTime }

// Time is the time of the record or timer in hand, or [connector.NoTime].
func (in *Instance) Time() int64 { return in.time }

// Watermark is the watermark of the shard's stage: what is before it is not expected
// any more. [connector.NoTime]: there is none yet.
func (in *Instance) Watermark() int64 { return in.mark }
