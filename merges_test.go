package sluice_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// calledBy tells whether a function of the given name is on the caller's stack.
func calledBy(name string) bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, name) {
			return true
		}
		if !more {
			return false
		}
	}
}

// slowMerges is a store in which the outputs of merges wait, and which looks at
// every manifest.
type slowMerges struct {
	store.Store
	t *testing.T

	mu       sync.Mutex
	changed  *sync.Cond
	stuck    bool // merges wait until it is false
	lag      int  // and then until so many epochs have been committed meanwhile, or there is no room for more
	waiting  int  // merges that wait
	epochs   int  // data epochs that were committed
	segments int  // of the newest manifest
	most     int  // segments of a manifest
	beats    int  // heartbeats
	paced    int  // times that reading was slowed
	opened   map[sluice.Instant]bool
	over     bool // the run has ended
}

func newSlowMerges(t *testing.T, s store.Store) *slowMerges {
	m := &slowMerges{Store: s, t: t, stuck: true, opened: map[sluice.Instant]bool{}}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// until waits for something that is told, or for the run's end.
func (s *slowMerges) until(done func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !done() && !s.over {
		s.changed.Wait()
	}
}

func (s *slowMerges) seen(what func() int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return what()
}

func (s *slowMerges) committed() int { return s.seen(func() int { return s.epochs }) }

// tell notes something.
func (s *slowMerges) tell(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note()
	s.changed.Broadcast()
}

func (s *slowMerges) Create(ctx context.Context, name string, data []byte) error {
	s.hold(ctx)
	err := s.Store.Create(ctx, name, data)
	n, ok := epoch.ParsePath(strings.TrimPrefix(name, "tally/"))
	if err != nil || !ok || n.Kind != epoch.ManifestObject {
		return err
	}
	var m struct {
		Kind  string
		State map[string]struct{ Segments []struct{} }
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	s.tell(func() {
		s.segments = len(m.State["count"].Segments)
		s.most = max(s.most, s.segments)
		if m.Kind == "data" {
			s.epochs++
		}
	})
	return nil
}

func (s *slowMerges) Replace(ctx context.Context, name string, data []byte) error {
	s.tell(func() { s.beats++ })
	return s.Store.Replace(ctx, name, data)
}

func (s *slowMerges) Upload(ctx context.Context, name string) (store.Upload, error) {
	up, err := s.Store.Upload(ctx, name)
	return slowUpload{up, s}, err
}

type slowUpload struct {
	store.Upload
	s *slowMerges
}

func (u slowUpload) Commit(ctx context.Context) error {
	u.s.hold(ctx)
	return u.Upload.Commit(ctx)
}

// hold lets a merge wait before its output is made.
func (s *slowMerges) hold(ctx context.Context) {
	if !calledBy("internal/state.Merge") {
		return
	}
	s.tell(func() { s.waiting++ })
	defer s.tell(func() { s.waiting-- })
	from := 0
	s.until(func() bool { from = s.epochs; return !s.stuck || ctx.Err() != nil })
	s.until(func() bool { return s.epochs >= from+s.lag || s.segments >= 11 || ctx.Err() != nil })
}

// pacedClock fires the timers that slow reading down at once, once they are let.
type pacedClock struct {
	env.Clock
	s   *slowMerges
	let chan time.Time
}

func (c pacedClock) NewTimer(d time.Duration) env.Timer {
	if !calledBy("committer).admit") {
		return c.Clock.NewTimer(d)
	}
	c.s.tell(func() { c.s.paced++ })
	return pacedTimer{c.let}
}

type pacedTimer struct{ let chan time.Time }

func (t pacedTimer) C() <-chan time.Time { return t.let }
func (pacedTimer) Reset(time.Duration)   {}
func (pacedTimer) Stop()                 {}

// inTurn is a source that gives the records of the next epoch once the one before
// is committed, as long as merges are stuck; then, all that it has.
type inTurn struct {
	counted
	s     *slowMerges
	epoch int64
}

func (c inTurn) Open(context.Context, connector.Opening) (connector.Reader, error) { return c, nil }

func (c inTurn) Partition(context.Context, string, connector.Offset) (connector.Partition, error) {
	return &inTurnPartition{countedPartition{counted: c.counted}, c}, nil
}

type inTurnPartition struct {
	countedPartition
	turn inTurn
}

func (p *inTurnPartition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	s := p.turn.s
	s.until(func() bool { return !s.stuck || p.next/p.turn.epoch <= int64(s.epochs) || ctx.Err() != nil })
	return p.countedPartition.Next(ctx, b, until)
}

// mergesJob counts the records of each of many keys: first each once, then some
// of them in each epoch.
func mergesJob(s *slowMerges, keys, epoch, until int64) *sluice.Job {
	job := sluice.NewJob("tally")
	job.From("numbers", inTurn{counted{until: until}, s, epoch}).
		KeyBy(func(n int64) int64 {
			if n < keys {
				return n
			}
			return int64(uint64(n) * 0x9E3779B97F4A7C15 % uint64(keys))
		}).
		Process(func(p *sluice.Setup[int64, int64]) func(*sluice.Context[int64, int64], int64) {
			count := p.State(sluice.NewState[int64, int64]("count"))
			var last sluice.Instant
			return func(c *sluice.Context[int64, int64], _ int64) {
				*count.Update()++
				if now := c.Now(); now != last {
					last = now
					s.tell(func() { s.opened[now] = true })
				}
			}
		}).Discard()
	return job
}

// TestCommitsNeverWaitForMerges lets a state's merges get stuck, at full input:
// each epoch that was opened is committed, reading slows down from ten segments
// on and stops at twelve, which no manifest passes, and goes on with the merges.
func TestCommitsNeverWaitForMerges(t *testing.T) {
	defer goleak.VerifyNone(t)
	const most, slow = 12, 10
	keys, perEpoch, epochs := int64(200_000), int64(5*2048), 40 // an epoch is whole batches
	inner := store.Store(store.NewMemory())
	if os.Getenv("SLUICE_TORTURE") == "1" {
		keys, perEpoch, epochs = 10_000_000, 500*2048, 100
		folder, err := store.OpenFolder(env.Real(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		inner = folder
	}
	s := newSlowMerges(t, inner)
	world := env.Real()
	clock := pacedClock{world.Clock, s, make(chan time.Time)}
	world.Clock = clock
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	until := keys + int64(epochs)*perEpoch
	ended := make(chan error, 1)
	go func() {
		err := mergesJob(s, keys, perEpoch, until).Run(ctx, sluice.Options{
			Store: s, Env: world, Log: slog.New(slog.DiscardHandler), Lease: 100 * time.Millisecond,
			Epoch: time.Hour, EpochBytes: perEpoch, KeepEpochs: -1,
		})
		s.tell(func() { s.over = true })
		ended <- err
	}()

	// Reading is slowed down once there are ten segments, and not before: it waits
	// for a turn. Each turn opens an epoch, which is committed, up to twelve.
	for turn := 1; turn <= most-slow; turn++ {
		s.until(func() bool { return s.paced == turn && s.waiting > 0 || s.epochs >= most })
		if s.seen(func() int { return s.paced }) < turn {
			stop()
			t.Fatalf("turn %d: reading was not slowed down, and the run has ended: %v", turn, <-ended)
		}
		if want := slow + turn - 1; s.committed() != want {
			t.Fatalf("turn %d: reading was slowed down with %d epochs committed, want %d", turn, s.committed(), want)
		}
		clock.let <- time.Time{}
	}
	s.until(func() bool { return s.epochs == most })
	beats := s.seen(func() int { return s.beats })
	s.until(func() bool { return s.beats >= beats+5 })
	if opened := s.seen(func() int { return len(s.opened) }); opened != most || s.committed() != most {
		t.Errorf("%d epochs were opened and %d committed, while merges were stuck; want %d of both", opened, s.committed(), most)
	}

	// The merges go on, slowly, and with them all else.
	paced := make(chan struct{})
	go func() {
		defer close(paced)
		for {
			select {
			case clock.let <- time.Time{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	s.tell(func() { s.stuck, s.lag = false, 3 })
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	stop()
	<-paced
	if s.most != most {
		t.Errorf("a manifest has %d segments, want at most %d, and that many while merges were stuck", s.most, most)
	}
	if s.epochs != len(s.opened) || s.epochs < epochs {
		t.Errorf("%d epochs were opened, %d committed, want at least %d", len(s.opened), s.epochs, epochs)
	}
	checkTally(t, inner, keys, until)
}

// checkTally reads the state as it is stored: each record has been counted.
func checkTally(t *testing.T, s store.Store, keys, records int64) {
	t.Helper()
	m, _ := headOf(t, s, "tally")
	entry := m.State["count"]
	form, err := state.FormOf("count", entry)
	if err != nil {
		t.Fatal(err)
	}
	var entries, sum int64
	for e, err := range state.Read(t.Context(), s, "tally", form, entry.Segments, epoch.AllSlots) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
		n, shift := uint64(0), 0 // a long of Avro: 7 bits a byte, zigzag
		for _, b := range e.Value {
			n |= uint64(b&0x7f) << shift
			shift += 7
		}
		sum += int64(n>>1) ^ -int64(n&1)
	}
	if entries != keys || sum != records {
		t.Errorf("the state has %d entries, which count %d records; want %d and %d", entries, sum, keys, records)
	}
}
