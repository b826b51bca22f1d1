package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// topic is a source that is like a broker's: where reading begins is looked up,
// partitions are added, and a group is told how far they have been read.
type topic struct {
	mu     sync.Mutex
	parts  map[string][2]int64 // the first offset that is there, and the end
	latest bool                // a new job begins at the end
	opens  []string
	told   []map[string]connector.Offset
	fails  int // tells of offsets that fail
	closed int // readers
}

func newTopic() *topic {
	return &topic{parts: map[string][2]int64{}}
}

func (s *topic) set(part string, first, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[part] = [2]int64{first, end}
}

func (*topic) Describe() connector.Description { return connector.Description{Connector: "topic"} }

func (*topic) NewDecoder() func(b *connector.Batch, i int, v *int64) error {
	return func(b *connector.Batch, i int, v *int64) error {
		*v = b.Records[i].Offset
		return nil
	}
}

func (s *topic) Open(_ context.Context, o connector.Opening) (connector.Reader, error) {
	return &topicReader{topic: s, begun: o.Begun}, nil
}

type topicReader struct {
	*topic
	begun, isClosed bool
}

func (r *topicReader) Partitions(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.parts)), nil
}

func (r *topicReader) Partition(_ context.Context, name string, from connector.Offset) (connector.Partition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opens = append(r.opens, fmt.Sprint(name, " ", from.Next, from.Identity != "", " ", r.begun))
	if from == (connector.Offset{}) {
		from = connector.Offset{Next: r.parts[name][0], Identity: "id"}
		if r.latest && !r.begun {
			from.Next = r.parts[name][1]
		}
	}
	return &topicPartition{r.topic, name, from, from.Next}, nil
}

func (*topicReader) Bounded() bool { return false }

func (r *topicReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isClosed = true
	r.closed++
	return nil
}

func (*topicReader) Cluster() string { return "one" }
func (*topicReader) Group() string   { return "people" }

func (r *topicReader) CommitOffsets(_ context.Context, offsets map[string]connector.Offset) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed {
		return errors.New("the client is closed")
	}
	if r.fails--; r.fails >= 0 {
		return errors.New("the coordinator has moved")
	}
	r.told = append(r.told, offsets)
	return nil
}

type topicPartition struct {
	*topic
	name string
	from connector.Offset
	next int64
}

func (p *topicPartition) From() connector.Offset { return p.from }

func (p *topicPartition) Next(ctx context.Context, b *connector.Batch, _ int64) error {
	for {
		p.mu.Lock()
		end := p.parts[p.name][1]
		p.mu.Unlock()
		for ; p.next < end && len(b.Records) < b.Limit; p.next++ {
			b.Records = append(b.Records, connector.Record{Offset: p.next, Value: []byte("x")})
		}
		if len(b.Records) > 0 {
			b.To = connector.Offset{Next: p.next, LeaderEpoch: 3, Identity: "id"}
			return nil
		}
		if err := env.Pause(ctx, env.Real().Clock, time.Millisecond); err != nil {
			return err
		}
	}
}

func (p *topicPartition) End() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parts[p.name][1]
}

func (*topicPartition) Close() error { return nil }

// topicJob counts a topic's records, with the numbers as they come to a sink.
func topicJob(t *testing.T, s *topic, sink connector.Sink) *sluice.Job {
	t.Helper()
	job := sluice.NewJob("tally")
	numbers := job.From("numbers", s)
	if sink != nil {
		numbers.To("out", file.Append[int64]("nowhere"))
		if err := job.ReplaceSink("out", sink); err != nil {
			t.Fatal(err)
		}
	}
	numbers.KeyBy(func(int64) string { return "all" }).
		Fold(sluice.NewState[string, int64]("count"), func(n *int64, _ int64) { *n++ })
	return job
}

// kept are the offsets that a job has in its newest manifest.
func kept(t *testing.T, s store.Store) map[string]epoch.Offset {
	t.Helper()
	j, err := epoch.FindJob(t.Context(), env.Real(), s, "tally")
	if err != nil {
		return nil // it begins just now
	}
	head, err := j.Head(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		return nil
	}
	return head.Manifest.Sources["numbers"].Partitions
}

// gate is a sink that takes nothing before it is open.
type gate struct {
	box
	open chan struct{}
}

func (g *gate) Describe() connector.Description { return connector.Description{Target: "gate"} }

func (g *gate) Open(context.Context, connector.Opening, connector.RecordKey) (connector.Target, error) {
	g.box = box{boxed: &boxed{}, open: true}
	return g, nil
}

func (g *gate) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	select {
	case <-g.open:
		return g.box.Deliver(ctx, d)
	case <-ctx.Done():
		return connector.Disagree, nil, ctx.Err()
	}
}

// runs runs the job until stop is called, which waits for its end.
func runs(t *testing.T, job *sluice.Job, o sluice.Options) (stop func()) {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- job.Run(ctx, o) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits until something holds, for at most a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 60_000 {
		if holds() {
			return
		}
		if err := env.Pause(t.Context(), env.Real().Clock, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

// TestWhereAJobBegins: where a new job begins is kept before it reads, so that a
// restart begins there too, although the topic has grown by then; a partition that
// is added is read from its beginning, and is kept with the epoch in which it is
// found.
func TestWhereAJobBegins(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, st := newTopic(), store.NewMemory()
	s.latest = true
	s.set("0", 5, 100)
	stop := runs(t, topicJob(t, s, nil), sluice.Options{Store: st, Epoch: time.Millisecond})
	eventually(t, "the beginning is kept", func() bool { _, ok := kept(t, st)["0"]; return ok })
	stop()
	if at := kept(t, st)["0"]; at != (epoch.Offset{Next: 100, Identity: "id"}) {
		t.Fatalf("kept %+v before the first record", at)
	}
	s.set("0", 5, 130)
	stop = runs(t, topicJob(t, s, nil), sluice.Options{Store: st, Epoch: time.Millisecond})
	eventually(t, "all is read", func() bool { return kept(t, st)["0"].Next == 130 })
	s.set("1", 7, 7) // nothing in it yet
	s.mu.Lock()
	opens := len(s.opens)
	s.mu.Unlock()
	eventually(t, "the partition is found", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.opens) > opens })
	s.set("0", 5, 140)
	eventually(t, "the partition is kept", func() bool { return kept(t, st)["0"].Next == 140 })
	if at := kept(t, st)["1"]; at != (epoch.Offset{Next: 7, Identity: "id"}) {
		t.Errorf("the empty partition is kept as %+v", at)
	}
	s.set("1", 7, 10)
	eventually(t, "its records are read", func() bool { return kept(t, st)["1"].Next == 10 })
	stop()
	want := []string{"0 0 false false", "0 100 true true", "1 0 false true"}
	if !slices.Equal(s.opens, want) {
		t.Errorf("opened %q, want %q", s.opens, want)
	}
	checkCount(t, st, 40+3)
}

// checkCount reads the only entry of the job's state.
func checkCount(t *testing.T, s store.Store, want int64) {
	t.Helper()
	checkTally(t, s, 1, want)
}

// TestGroupsAreTold: the group of a source is told how far the job has read once
// every sink has what came of it, again after an error, and never before.
func TestGroupsAreTold(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, fails := range []int{0, 2} {
		s, st := newTopic(), store.NewMemory()
		s.fails = fails
		s.set("0", 0, 10)
		out := &gate{open: make(chan struct{})}
		stop := runs(t, topicJob(t, s, out), sluice.Options{Store: st, Epoch: time.Millisecond})
		eventually(t, "it is read", func() bool { return kept(t, st)["0"].Next == 10 })
		newest := func() int64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.told) == 0 {
				return -1
			}
			return s.told[len(s.told)-1]["0"].Next
		}
		if n := newest(); n > 0 {
			t.Fatalf("told %d before anything was delivered", n)
		}
		close(out.open)
		eventually(t, "the group is told", func() bool { return newest() == 10 })
		s.set("0", 0, 25)
		eventually(t, "the group is told more", func() bool { return newest() == 25 })
		stop()
	}
}

// TestGroupsAreToldAtTheEnd stops a job whose last epoch is delivered only then: its
// group stands where the job does.
func TestGroupsAreToldAtTheEnd(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, st := newTopic(), store.NewMemory()
	s.set("0", 0, 10)
	out := &gate{open: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- topicJob(t, s, out).Run(ctx, sluice.Options{Store: st, Epoch: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	}()
	eventually(t, "it is read", func() bool { return kept(t, st)["0"].Next == 10 })
	cancel()
	for range 200 { // whoever closed the source by now could tell nothing of what is delivered next
		s.mu.Lock()
		closed := s.closed > 0
		s.mu.Unlock()
		if closed || env.Pause(t.Context(), env.Real().Clock, time.Millisecond) != nil {
			break
		}
	}
	close(out.open)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(s.told) == 0 || s.told[len(s.told)-1]["0"].Next != 10 {
		t.Errorf("the group was told %v, want 10 at the end", s.told)
	}
}
