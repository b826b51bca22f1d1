package sluice

import (
	"cmp"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// TimeOf is a function that gives the time of what a record tells of, to the
// microsecond. With a second result it may say that a record has none: such records go
// the way of late ones, and are counted apart.
type TimeOf[T any] interface {
	func(T) time.Time | func(T) Instant | func(T) (time.Time, bool) | func(T) (Instant, bool)
}

// EventTime gives each record the time of what it tells of, which windows and timers
// behind the next KeyBy go by. Records may come out of order: the watermark of a
// source's partition stays lateness behind the latest time in it, and that of the
// stream is the least of its partitions'. It moves at the ends of the batches in which
// the partitions were read, by the recorded order of reading, never goes back, and is
// kept with each epoch; so a replay has the same late records.
//
// The watermark is kept under the name of the stream's source, or the one given with
// [TimeName]. Event time belongs before the first KeyBy.
func (s *Stream[T]) EventTime[F TimeOf[T]](time F, lateness time.Duration, opts ...TimeOption) *Stream[T] {
	return s.timed(false, connector.FunctionName(time), timeFunction[T](time), lateness, opts)
}

// SourceTime is [Stream.EventTime] with the time that the source has for each record:
// with Kafka the record's timestamp.
func (s *Stream[T]) SourceTime(lateness time.Duration, opts ...TimeOption) *Stream[T] {
	return s.timed(true, "", func(in *engine.Instance, _ *T) (int64, bool) {
		t := in.RecordTime()
		return t, t != connector.NoTime
	}, lateness, opts)
}

// timeFunction takes the form of a user's function away.
func timeFunction[T any, F TimeOf[T]](f F) func(in *engine.Instance, v *T) (int64, bool) {
	switch f := any(f).(type) {
	case func(T) time.Time:
		return func(_ *engine.Instance, v *T) (int64, bool) { return f(*v).UnixMicro(), true }
	case func(T) Instant:
		return func(_ *engine.Instance, v *T) (int64, bool) { return int64(f(*v)), true }
	case func(T) (time.Time, bool):
		return func(_ *engine.Instance, v *T) (int64, bool) { t, ok := f(*v); return t.UnixMicro(), ok }
	case func(T) (Instant, bool):
		return func(_ *engine.Instance, v *T) (int64, bool) { t, ok := f(*v); return int64(t), ok }
	}
	panic("a function of another form") // the constraint has no other
}

func (s *Stream[T]) timed(ofSource bool, function string, timeOf func(*engine.Instance, *T) (int64, bool), lateness time.Duration, opts []TimeOption) *Stream[T] {
	spec := &engine.EventTime{Lateness: lateness.Microseconds(), MaxAhead: maxAhead.Microseconds(), OfSource: ofSource, Function: function, Inputs: s.from}
	if len(s.from) > 0 {
		spec.Name = s.from[0]
	}
	for _, o := range opts {
		o(spec)
	}
	if lateness < 0 {
		s.job.fault("EventTime of %s: a lateness of %s, expected at least 0", spec.Name, lateness)
	}
	if spec.IdleAfter < 0 {
		s.job.fault("EventTime of %s: IdleAfter %s, expected at least 0", spec.Name, time.Duration(spec.IdleAfter)*time.Microsecond)
	}
	if err := epoch.CheckName("event time", spec.Name); err != nil {
		s.job.fault("%v", err)
	}
	for _, t := range s.job.graph.EventTimes() {
		if t.Name == spec.Name {
			s.job.fault("two event times of the name %q: give one of them another with TimeName", spec.Name)
		}
	}
	out := streamAt(s.job, engine.AddEventTime(s.job.graph, s.node, spec, timeOf), s.from)
	out.times = []*engine.EventTime{spec}
	return out
}

// TimeOption is a setting of [Stream.EventTime].
type TimeOption func(*engine.EventTime)

// maxAhead is the bound of times that lie ahead.
const maxAhead = 24 * time.Hour

// TimeName gives the name that the watermark is kept under. Defaults to the name of the
// stream's source, the first of several.
func TimeName(name string) TimeOption { return func(e *engine.EventTime) { e.Name = name } }

// IdleAfter has a partition hold the watermark of the others back no more when it was
// read to its end and nothing has come in it for so long. That is decided when an epoch
// begins, and kept with it; one without records begins if the watermark moves by that,
// at most an eighth of the time or a second later, whichever is less. Records that come in it later may be late. Defaults to 0: a
// partition without records holds the watermark back for ever.
func IdleAfter(d time.Duration) TimeOption {
	return func(e *engine.EventTime) { e.IdleAfter = d.Microseconds() }
}

// MaxAhead bounds how far behind the epoch's clock a time may lie and move the
// watermark: one record with a time far in the future would make all others late. Such
// records are processed like others, and counted. Defaults to 24 hours; 0 and less: no
// bound.
func MaxAhead(d time.Duration) TimeOption {
	return func(e *engine.EventTime) { e.MaxAhead = max(0, d.Microseconds()) }
}

// RunTimes is what a batch of a partition, as it was first read, tells of its times.
type RunTimes struct {
	// Latest is the latest time in the batch, and Seen that of the partition so far,
	// the batch included. They are [NoTime] if there is none.
	Latest, Seen Instant
	// Watermark is the partition's before the batch, or [NoTime].
	Watermark Instant
	// Now is the epoch's frozen clock.
	Now Instant
}

// NoTime is the instant of what has none.
const NoTime = Instant(connector.NoTime)

// Watermarks has next give the watermark of a partition at the end of each batch that
// is read of it, instead of the lateness. next must be pure; a watermark that is less
// than the one before, or NoTime, leaves that where it is.
func Watermarks(next func(RunTimes) Instant) TimeOption {
	return func(e *engine.EventTime) {
		e.Generator = connector.FunctionName(next)
		e.Next = func(r engine.RunTimes) int64 {
			return int64(next(RunTimes{Instant(r.Latest), Instant(r.Seen), Instant(r.Watermark), Instant(r.Now)}))
		}
	}
}

// timePart is an event time as the version has it.
func timePart(t *engine.EventTime) epoch.Part {
	p := epoch.Part{Kind: epoch.TimeKind, Inputs: t.Inputs, Parameters: map[string]string{"from": "record"}}
	length := func(name string, micros int64) {
		p.Parameters[name] = (time.Duration(micros) * time.Microsecond).String()
	}
	if t.OfSource {
		p.Parameters["from"] = "source"
	}
	if t.Next != nil {
		p.Parameters["generator"] = cmp.Or(t.Generator, "function")
	} else {
		length("lateness", t.Lateness)
	}
	if t.MaxAhead > 0 {
		length("max ahead", t.MaxAhead)
	}
	if t.IdleAfter > 0 {
		length("idle after", t.IdleAfter)
	}
	return p
}

// faultIfUntimed notes a fault if something that goes by times is put behind records
// without them.
func (k *Keyed[K, T]) faultIfUntimed(at site, what string) bool {
	switch {
	case k.bad:
	case k.mixed:
		k.job.faultAt(at, "%s: some of the streams that were merged have no event time; give it to each with EventTime, or to the merged one", what)
	case len(k.keyed.Stage.Times()) == 0:
		k.job.faultAt(at, "%s: the records have no event time; give it to them with EventTime before KeyBy", what)
	default:
		return false
	}
	return true
}
