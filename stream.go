package sluice

import (
	"iter"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/engine"
)

// Stream is a flow of records of one type. Each method that returns a stream
// adds a step to the job; nothing runs before the job does. The functions given
// must be pure: what they return depends on their arguments alone, and they
// change nothing that another call can see.
type Stream[T any] struct {
	job  *Job
	node *engine.Node[T]
	from []string // the named parts that its records come from

	times []*engine.EventTime // where the records have got their times; none: they have none
	mixed bool                // some of them have got none
}

// newStream returns a stream that must come to an end somewhere, or the job is
// refused.
func newStream[T any](job *Job, from []string) *Stream[T] {
	return streamAt(job, new(engine.Node[T]), from)
}

// after returns a stream of what comes of s, whose records have its times.
func after[U, T any](s *Stream[T]) *Stream[U] {
	out := newStream[U](s.job, s.from)
	out.times, out.mixed = s.times, s.mixed
	return out
}

func streamAt[T any](job *Job, node *engine.Node[T], from []string) *Stream[T] {
	s := &Stream[T]{job: job, node: node, from: from}
	site := callSite()
	job.ends = append(job.ends, func() {
		if !s.node.Consumed() {
			job.faultAt(site, "a stream without an end: give it a sink with To, key it, or Discard it")
		}
	})
	requireCopies(job, site, s.node)
	return s
}

// Map turns each record into another.
func (s *Stream[T]) Map[U any](f func(T) U) *Stream[U] {
	out := after[U](s)
	engine.Through(s.node, out.node, func(_ *engine.Instance, next func(*U)) func(*T) {
		var u U
		return func(v *T) {
			u = f(*v)
			next(&u)
		}
	})
	return out
}

// TryMap turns each record into another, or says why it can't. An error stops
// the job, or sends the input record to the dead letters ([Job.DeadLetter]).
func (s *Stream[T]) TryMap[U any](f func(T) (U, error)) *Stream[U] {
	out := after[U](s)
	operator := label("TryMap", f)
	engine.Through(s.node, out.node, func(in *engine.Instance, next func(*U)) func(*T) {
		var u U
		return func(v *T) {
			var err error
			if u, err = f(*v); err != nil {
				in.Fail(operator, err)
				return
			}
			next(&u)
		}
	})
	return out
}

// FlatMap turns each record into any number of others, in their order.
func (s *Stream[T]) FlatMap[U any](f func(T) iter.Seq[U]) *Stream[U] {
	out := after[U](s)
	engine.Through(s.node, out.node, func(_ *engine.Instance, next func(*U)) func(*T) {
		var u U
		return func(v *T) {
			for u = range f(*v) {
				next(&u)
			}
		}
	})
	return out
}

// Filter keeps the records for which keep returns true.
func (s *Stream[T]) Filter(keep func(T) bool) *Stream[T] {
	out := after[T](s)
	engine.Through(s.node, out.node, func(_ *engine.Instance, next func(*T)) func(*T) {
		return func(v *T) {
			if keep(*v) {
				next(v)
			}
		}
	})
	return out
}

// Merge puts two streams of one type together. The order of what comes of one
// batch of input depends on the inputs alone.
func (s *Stream[T]) Merge(other *Stream[T]) *Stream[T] {
	out := newStream[T](s.job, union(s.from, other.from))
	if other.job != s.job {
		s.job.fault("Merge of streams of two jobs, %s and %s", s.job.name, other.job.name)
	}
	out.times = slices.Clone(s.times)
	for _, t := range other.times {
		if !slices.Contains(out.times, t) {
			out.times = append(out.times, t)
		}
	}
	out.mixed = s.mixed || other.mixed || (len(s.times) == 0) != (len(other.times) == 0)
	pass := func(_ *engine.Instance, next func(*T)) func(*T) { return next }
	engine.Through(s.node, out.node, pass)
	engine.Through(other.node, out.node, pass)
	return out
}

// KeyBy keys the records: those of one key come to one place, in an order that
// depends on the inputs alone. Keys are strings, integers, booleans, byte arrays,
// [Instant] and structs of these. Records that hold slices, maps or pointers are
// copied on their way.
func (s *Stream[T]) KeyBy[K comparable](key func(T) K) *Keyed[K, T] {
	out := &Keyed[K, T]{job: s.job, from: s.from, mixed: s.mixed}
	site := callSite()
	keys, err := keyOf[K]()
	if err == nil {
		out.keyed, err = engine.KeyBy(s.job.graph, s.node, keys, key, connector.FunctionName(key), s.times)
	} else {
		s.node.Consume(func(*engine.Instance) func(*T) { return func(*T) {} })
	}
	if err != nil {
		out.bad = true
		s.job.faultAt(site, "KeyBy: %v", err)
		return out
	}
	s.job.ends = append(s.job.ends, func() {
		if !out.keyed.Node.Consumed() {
			s.job.faultAt(site, "a keyed stream without an end: fold it, process it, or take its Values further")
		}
	})
	return out
}

// To ends the stream in a sink, to which each record is appended. The name is
// the sink's for good: what it remembers of deliveries is kept under it.
func (s *Stream[T]) To(name string, sink connector.StreamSink[T]) {
	s.job.claim("sink", name, s.from)
	s.job.refuseRivals(name, sink)
	if err := engine.AddStreamSink(s.job.graph, s.node, name, sink); err != nil {
		s.node.Consume(func(*engine.Instance) func(*T) { return func(*T) {} })
		s.job.fault("sink %q: %v", name, err)
	}
}

// Discard ends the stream: its records are dropped.
func (s *Stream[T]) Discard() {
	s.node.Consume(func(*engine.Instance) func(*T) { return func(*T) {} })
}
