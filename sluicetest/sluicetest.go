// Package sluicetest runs a job in memory, in a test of its own: records are fed
// to its sources, epochs are stepped, outputs and states are read, and the job
// can be crashed, replaced by a newer one, and replayed.
//
//	test := sluicetest.New(t, job())
//	sluicetest.Feed(test, "orders", Order{User: "ann", Cents: 1200})
//	test.Step()
//	rows := sluicetest.Table[string, Row](test, "spend_by_user")
//
// All that matters runs as it does in production: the engine, the epoch log, the
// state's files (in a store that is memory), deliveries and recovery, which each
// step goes through.
package sluicetest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// Test is a job in a test.
type Test struct {
	t       testing.TB
	job     *sluice.Job
	store   *crashing
	sources map[string]any // *source
	sinks   map[string]*sink
	options sluice.Options
}

// New prepares a job for a test. Its sinks are replaced by ones in memory; its
// sources must be fed with [Feed] before they are read. The test fails at once
// if the job has faults.
func New(t testing.TB, job *sluice.Job) *Test {
	t.Helper()
	test := &Test{t: t, store: &crashing{Store: store.NewMemory()}, sources: map[string]any{}, sinks: map[string]*sink{}}
	world := env.Real()
	world.Clock = hastyClock{world.Clock}
	test.options = sluice.Options{Store: test.store, Env: world, Epoch: haste * time.Hour, Log: slog.New(slog.DiscardHandler)}
	test.options.TakeOver = true // what ran before has crashed, and its process is this one
	test.options.KeepEpochs = -1 // a replay begins with the first
	test.Replace(job)
	return test
}

// Options changes how the job is run: its shards, workers, batches, consents.
// The store, and where epochs end, are the test's.
func (test *Test) Options(change func(*sluice.Options)) {
	change(&test.options)
	test.options.Store = test.store
}

// Replace goes on with another build of the job from the next step on.
func (test *Test) Replace(job *sluice.Job) {
	test.t.Helper()
	if err := job.Check(); err != nil {
		test.t.Fatal(err)
	}
	test.job = job
	for _, name := range job.Sinks() {
		if test.sinks[name.Name] == nil {
			test.sinks[name.Name] = &sink{}
		}
		test.sinks[name.Name].of = name.Sink
		if err := job.ReplaceSink(name.Name, test.sinks[name.Name]); err != nil {
			test.t.Fatal(err)
		}
	}
	for _, attach := range test.sources {
		if err := attach.(attacher).attach(job); err != nil {
			test.t.Fatal(err)
		}
	}
}

// attacher is a source of any type.
type attacher interface{ attach(job *sluice.Job) error }

func (s *source[T]) attach(job *sluice.Job) error { return job.ReplaceSource(s.name, s) }

func sourceOf[T any](test *Test, name string) *source[T] {
	test.t.Helper()
	if s, ok := test.sources[name]; ok {
		typed, ok := s.(*source[T])
		if !ok {
			test.t.Fatalf("source %s was fed with records of another type before", name)
		}
		return typed
	}
	s := &source[T]{name: name, fed: map[string][]T{}, bad: map[string]map[int]string{}}
	test.sources[name] = s
	if err := s.attach(test.job); err != nil {
		test.t.Fatal(err)
	}
	return s
}

// Feed gives a source records, in partition "0".
func Feed[T any](test *Test, source string, records ...T) {
	test.t.Helper()
	FeedPartition(test, source, "0", records...)
}

// FeedPartition gives a source records in a partition of its own.
func FeedPartition[T any](test *Test, source, partition string, records ...T) {
	test.t.Helper()
	sourceOf[T](test, source).feed(partition, records)
}

// FeedBad gives a source, in partition "0", a record that can't be decoded.
func FeedBad[T any](test *Test, source, why string) {
	test.t.Helper()
	sourceOf[T](test, source).feedBad("0", why)
}

// Step starts the job from its last epoch, lets it process all that has been
// fed, commit that as one epoch and deliver it, and stops it. The test fails if
// the job does.
func (test *Test) Step() {
	test.t.Helper()
	if err := test.Try(); err != nil {
		test.t.Fatal(err)
	}
}

// Try is [Test.Step] that returns what stopped the job.
func (test *Test) Try() error {
	return test.job.Run(context.Background(), test.options)
}

// Crash starts the job and stops it, as SIGKILL would, at its n-th write to the
// store, from 1: what was not committed before is lost. It returns false if the
// job ended before that, with everything committed.
func (test *Test) Crash(n int) bool {
	test.t.Helper()
	test.store.arm(n)
	err := test.Try()
	crashed := test.store.disarm()
	if !crashed && err != nil {
		test.t.Fatal(err)
	}
	if crashed && err == nil {
		test.t.Fatal("the job ended well although its store crashed")
	}
	return crashed
}

// Replay processes everything once more and fails the test if anything comes
// out otherwise: then a function of the job isn't pure. change may set other
// shards, workers and batches; it may be nil.
func (test *Test) Replay(change func(*sluice.Options)) {
	test.t.Helper()
	o := test.options
	if change != nil {
		change(&o)
	}
	replayed, err := test.job.Replay(context.Background(), o, 0)
	if err != nil {
		test.t.Fatal(err)
	}
	for _, d := range replayed.Differences {
		test.t.Error(d)
	}
}

// Rows returns what the job has put out to a sink, in order: a stream's records,
// or the rows that a table has put.
func Rows[R any](test *Test, sink string) []R {
	test.t.Helper()
	var out []R
	for _, r := range test.delivered(sink) {
		if r.Op != connector.Delete {
			out = append(out, decode[R](test, r))
		}
	}
	return out
}

// Table returns the rows of a table's sink as they stand, by key.
func Table[K comparable, R any](test *Test, sink string) map[K]R {
	test.t.Helper()
	keys, err := schema.KeyOf[K]("key")
	if err != nil {
		test.t.Fatal(err)
	}
	out := map[K]R{}
	for _, r := range test.delivered(sink) {
		if r.key == nil {
			test.t.Fatalf("sink %s is a stream's, not a table's", sink)
		}
		k, _, err := keys.Decode(r.Key)
		switch {
		case err != nil:
			test.t.Fatal(err)
		case r.Op == connector.Delete:
			delete(out, k)
		default:
			out[k] = decode[R](test, r)
		}
	}
	return out
}

func (test *Test) delivered(name string) []row {
	test.t.Helper()
	s := test.sinks[name]
	if s == nil {
		test.t.Fatalf("the job has no sink %s", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}

func decode[R any](test *Test, r row) (v R) {
	test.t.Helper()
	typ, err := schema.Of[R]("row")
	if err != nil {
		test.t.Fatal(err)
	}
	read, err := typ.Reader(r.schema)
	if err == nil {
		_, err = read.Decode(r.Row.Row, &v)
	}
	if err != nil {
		test.t.Fatal(err)
	}
	return v
}

// errCrashed is what a store answers after a crash.
var errCrashed = errors.New("crashed, as the test wanted")
