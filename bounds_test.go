package sluice_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// endless is a source of one partition that always has another record.
type endless struct{}

func (endless) Describe() connector.Description {
	return connector.Description{Connector: "endless", Contract: 1}
}

func (endless) Open(context.Context, connector.Opening) (connector.Reader, error) {
	return endless{}, nil
}

func (endless) NewDecoder() func(b *connector.Batch, i int, v *int64) error {
	return func(b *connector.Batch, i int, v *int64) error { *v = b.Records[i].Offset; return nil }
}

func (endless) Partitions(context.Context) ([]string, error) { return []string{"all"}, nil }
func (endless) Bounded() bool                                { return false }
func (endless) Close() error                                 { return nil }

func (endless) Partition(_ context.Context, _ string, from connector.Offset) (connector.Partition, error) {
	return &endlessPartition{from.Next}, nil
}

type endlessPartition struct{ next int64 }

func (p *endlessPartition) Next(_ context.Context, b *connector.Batch, _ int64) error {
	b.Records = append(b.Records, connector.Record{Offset: p.next})
	p.next++
	b.To = connector.Offset{Next: p.next}
	return nil
}

func (*endlessPartition) End() int64   { return 0 }
func (*endlessPartition) Close() error { return nil }

// stalling is a store whose data objects wait to be let through.
type stalling struct {
	store.Store
	through chan struct{} // closed when uploads may commit
}

func (s stalling) Upload(ctx context.Context, name string) (store.Upload, error) {
	up, err := s.Store.Upload(ctx, name)
	return stalledUpload{up, s.through}, err
}

func (s stalling) Create(ctx context.Context, name string, data []byte) error {
	if strings.Contains(name, "/data/") {
		<-s.through
	}
	return s.Store.Create(ctx, name, data)
}

type stalledUpload struct {
	store.Upload
	through chan struct{}
}

func (u stalledUpload) Commit(ctx context.Context) error {
	<-u.through
	return u.Upload.Commit(ctx)
}

// While the store stalls, the job goes on reading until three epochs are open or
// under way, and no further; when the store is back, it goes on.
func TestAStalledStoreStopsReadingAtTheBoundOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := stalling{store.NewMemory(), make(chan struct{})}
	var mu sync.Mutex
	epochs := map[sluice.Instant]bool{}
	changed := make(chan struct{}, 1)
	job := sluice.NewJob("stalled")
	out := job.From("numbers", endless{}).KeyBy(even).
		Process(func(p *sluice.Setup[bool, payment]) func(*sluice.Context[bool, payment], int64) {
			count := p.State(sluice.NewState[bool, int64]("count"))
			return func(c *sluice.Context[bool, payment], _ int64) {
				*count.Update()++
				mu.Lock()
				epochs[c.Now()] = true
				mu.Unlock()
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
	out.Discard()
	seen := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(epochs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- job.Run(ctx, sluice.Options{Store: s, Epoch: time.Millisecond, Shards: 1, Log: slog.New(slog.DiscardHandler)})
	}()
	for seen() < 3 {
		<-changed
	}
	if n := seen(); n != 3 {
		t.Errorf("%d epochs were read while none could be written, want 3", n)
	}
	close(s.through)
	for seen() < 6 {
		<-changed
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// stubborn is a sink that never gets anything done until it is let.
type stubborn struct {
	connector.Sink
	let chan struct{}
}

func (s stubborn) Open(ctx context.Context, o connector.Opening, k connector.RecordKey) (connector.Target, error) {
	target, err := s.Sink.Open(ctx, o, k)
	return stubbornTarget{target, s.let}, err
}

type stubbornTarget struct {
	connector.Target
	let chan struct{}
}

func (t stubbornTarget) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	select {
	case <-t.let:
		return t.Target.Deliver(ctx, d)
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// A stop with a sink that hangs ends after the grace, says what is pending, and
// loses nothing: the next run delivers it.
func TestAHangingSinkLeavesDeliveriesPending(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newDesk()
	defer d.clear()
	s := store.NewMemory()
	build := func() *sluice.Job {
		job := sluice.NewJob("pending")
		d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
		return job
	}
	o := sluice.Options{Store: s, Grace: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	hanging := build()
	if err := hanging.ReplaceSink("out", stubborn{hanging.Sinks()[0].Sink, make(chan struct{})}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Committed = func(sluice.Committed) { cancel() }
	err := hanging.Run(ctx, o)
	o.Committed = nil
	pending, ok := err.(*sluice.PendingError)
	if !ok || pending.Pending["out"] != 1 || pending.ExitCode() != 10 {
		t.Fatalf("the run's error is %v, want one delivery to out pending", err)
	}
	o.Grace = 0
	if err := build().Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := d.lines("out"); len(got) != 2 || got[0] != `{"op":"put","key":"ann","row":{"Orders":3,"Cents":1250}}` {
		t.Errorf("after the second run the sink has %v", got)
	}
}

// deaf is a sink that doesn't end its deliveries when it is told to.
type deaf struct {
	connector.Sink
	let chan struct{}
}

func (s deaf) Open(ctx context.Context, o connector.Opening, k connector.RecordKey) (connector.Target, error) {
	target, err := s.Sink.Open(ctx, o, k)
	return deafTarget{target, s.let}, err
}

type deafTarget struct {
	connector.Target
	let chan struct{}
}

func (t deafTarget) Deliver(context.Context, *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	<-t.let
	return 0, nil, context.Canceled
}

// A sink that doesn't listen doesn't keep the process: the run ends all the same.
func TestADeafSinkDoesNotKeepTheProcess(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newDesk()
	defer d.clear()
	world := env.Real()
	world.Clock = hurried{world.Clock}
	job := sluice.NewJob("deaf")
	d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	let := make(chan struct{})
	defer close(let)
	if err := job.ReplaceSink("out", deaf{job.Sinks()[0].Sink, let}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := job.Run(ctx, sluice.Options{
		Store: store.NewMemory(), Env: world, Log: slog.New(slog.DiscardHandler), Committed: func(sluice.Committed) { cancel() },
	})
	if pending, ok := err.(*sluice.PendingError); !ok || pending.Pending["out"] != 1 {
		t.Fatalf("the run's error is %v, want one delivery to out pending", err)
	}
}
