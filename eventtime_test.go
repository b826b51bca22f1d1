package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// pond is a source that never ends, of partitions that a test feeds while the job runs.
type pond struct {
	mu    sync.Mutex
	fed   map[string][]tick
	held  map[string]int // of a partition that is read no further than here
	moved chan struct{}  // closed and replaced with each change
}

func newPond() *pond {
	return &pond{fed: map[string][]tick{}, held: map[string]int{}, moved: make(chan struct{})}
}

func (p *pond) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.moved)
	p.moved = make(chan struct{})
}

// look tells how many records of a partition may be read, how many there are, and when
// to look again.
func (p *pond) look(partition string) (readable, end int64, moved chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end = int64(len(p.fed[partition]))
	readable = end
	if limit, held := p.held[partition]; held {
		readable = min(end, int64(limit))
	}
	return readable, end, p.moved
}

func (p *pond) Describe() connector.Description {
	return connector.Description{Connector: "pond", Contract: 1, Target: "pond"}
}

func (p *pond) Open(context.Context, connector.Opening) (connector.Reader, error) {
	return pondReader{p}, nil
}

func (p *pond) NewDecoder() func(b *connector.Batch, i int, v *tick) error {
	return func(b *connector.Batch, i int, v *tick) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		*v = p.fed[b.Partition][b.Records[i].Offset]
		return nil
	}
}

type pondReader struct{ *pond }

func (r pondReader) Partitions(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.fed)), nil
}

func (r pondReader) Partition(_ context.Context, name string, from connector.Offset) (connector.Partition, error) {
	return &pondPartition{r.pond, name, from.Next}, nil
}

func (r pondReader) Bounded() bool { return false }
func (r pondReader) Close() error  { return nil }

type pondPartition struct {
	of   *pond
	name string
	next int64
}

func (p *pondPartition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	if until >= 0 && p.next >= until {
		return io.EOF
	}
	for {
		readable, _, moved := p.of.look(p.name)
		if until >= 0 {
			readable = min(readable, until)
		}
		for p.next < readable && len(b.Records) < b.Limit {
			b.Records = append(b.Records, connector.Record{Offset: p.next, Time: connector.NoTime})
			p.next++
		}
		if len(b.Records) > 0 {
			b.To = connector.Offset{Next: p.next}
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *pondPartition) End() int64 {
	_, end, _ := p.of.look(p.name)
	return end
}

func (p *pondPartition) Close() error { return nil }

// setClock tells the time that a test has set; its timers are hasty.
type setClock struct {
	env.Clock
	micros atomic.Int64
	step   atomic.Int64 // by which it goes ahead whenever it is read
}

func (c *setClock) Now() time.Time { return time.UnixMicro(c.micros.Add(c.step.Load())) }

func (c *setClock) NewTimer(d time.Duration) env.Timer {
	return hurriedTimer{c.Clock.NewTimer(d / 1000)}
}

// timesTest runs a job that reads a pond, by a clock of its own. Times are in seconds
// since the clock's begin.
type timesTest struct {
	*testing.T
	pond  *pond
	clock *setClock
	world *env.Env
	store store.Store
	dir   string
	build func() *sluice.Job

	mu      sync.Mutex
	news    *sync.Cond
	commits []sluice.Committed
	running int

	next int64 // number of a record
	end  func()
}

// begun is the time at which the clocks of these tests begin.
const begun = 1_700_000_000 * sluice.Instant(second)

// lateTick is a record that came too late, and closedWindow a window that has closed.
type (
	lateTick     struct{ ID int64 }
	closedWindow struct {
		Start int64 // in seconds
		IDs   []int64
	}
)

func closedOf(r sluice.Result[string, bag]) closedWindow {
	return closedWindow{int64(r.Window.Start-begun) / second, slices.Sorted(slices.Values(r.Value.IDs))}
}

// newTimesTest tests a job of windows of 4 s, whose event time is called ticks.
func newTimesTest(t *testing.T, lateness time.Duration, opts ...sluice.TimeOption) *timesTest {
	test := &timesTest{T: t, pond: newPond(), clock: &setClock{Clock: env.Real().Clock}, store: store.NewMemory(), dir: t.TempDir(), end: func() {}}
	test.clock.micros.Store(int64(begun))
	test.news = sync.NewCond(&test.mu)
	test.world = env.Real()
	test.world.Clock = test.clock
	test.build = func() *sluice.Job {
		job := sluice.NewJob("times")
		keyed := job.From("ticks", test.pond).EventTime(tick.time, lateness, opts...).KeyBy(tick.key).Window(sluice.Tumbling(4 * time.Second))
		keyed.Late().Map(func(t tick) lateTick { return lateTick{t.ID} }).To("late", file.Append[lateTick](test.dir+"/late"))
		keyed.Fold(bags, (*bag).add).Results().Map(closedOf).To("results", file.Append[closedWindow](test.dir+"/results"))
		return job
	}
	return test
}

// start starts the job, which end ends.
func (test *timesTest) start() { test.run(test.build().Run) }

// run starts a process, beside those that run; end ends them all, and the test fails if
// one has failed, but for being replaced.
func (test *timesTest) run(do func(ctx context.Context, o sluice.Options) error) {
	ctx, cancel := context.WithCancel(context.Background())
	test.tell(func() { test.running++ })
	ended, others := make(chan error, 1), test.end
	go func() {
		ended <- do(ctx, sluice.Options{
			Store: test.store, Env: test.world, Log: slog.New(slog.DiscardHandler), TakeOver: true, Grace: 1000 * time.Minute, Shards: 2, Workers: 2,
			Committed: func(c sluice.Committed) { test.tell(func() { test.commits = append(test.commits, c) }) },
		})
		test.tell(func() { test.running-- })
	}()
	test.end = sync.OnceFunc(func() {
		others()
		cancel()
		var superseded *sluice.SupersededError
		if err := <-ended; err != nil && !errors.As(err, &superseded) {
			test.Error(err)
		}
	})
	test.Cleanup(test.end)
}

func (test *timesTest) tell(what func()) {
	test.mu.Lock()
	defer test.mu.Unlock()
	what()
	test.news.Broadcast()
}

// feed gives a partition records of the times given.
func (test *timesTest) feed(partition string, seconds ...float64) {
	test.pond.change(func() {
		for _, at := range seconds {
			test.pond.fed[partition] = append(test.pond.fed[partition], tick{ID: test.next, Key: "k", At: begun + sluice.Instant(at*float64(second))})
			test.next++
		}
	})
}

func (test *timesTest) pass(d time.Duration) { test.clock.micros.Add(d.Microseconds()) }

// await waits until something is so of what was committed.
func (test *timesTest) await(so func() bool) {
	test.Helper()
	test.mu.Lock()
	defer test.mu.Unlock()
	for !so() {
		if test.running == 0 {
			test.Fatalf("the job has ended after %d epochs", len(test.commits))
		}
		test.news.Wait()
	}
}

// read waits until so many records were read and committed, and returns the number of
// epochs that were.
func (test *timesTest) read(records int64) (epochs int) {
	test.Helper()
	test.await(func() bool {
		n := int64(0)
		for _, c := range test.commits {
			n += c.Records
		}
		epochs = len(test.commits)
		return n >= records
	})
	return epochs
}

// epoch waits for the epoch behind so many, and returns it.
func (test *timesTest) epoch(behind int) sluice.Committed {
	test.Helper()
	test.await(func() bool { return len(test.commits) > behind })
	return test.commits[behind]
}

// head is the newest manifest.
func (test *timesTest) head() epoch.Manifest {
	test.Helper()
	job, err := epoch.FindJob(context.Background(), test.world, test.store, "times")
	if err != nil {
		test.Fatal(err)
	}
	branch := epoch.MainBranch
	if live, ok, err := job.Live(context.Background()); err != nil {
		test.Fatal(err)
	} else if ok {
		branch = live.Branch
	}
	head, err := job.Head(context.Background(), branch, epoch.FirstTask)
	if err != nil {
		test.Fatal(err)
	}
	return head.Manifest
}

// stands compares the watermark, in seconds, and the idle partitions of the newest epoch.
func (test *timesTest) stands(when string, watermark float64, idle ...string) {
	test.Helper()
	m := test.head()
	want := epoch.Moment(begun) + epoch.Moment(watermark*float64(second))
	if got := m.Watermarks["ticks"].Watermark; got != want {
		test.Errorf("%s: the watermark is %.1f, expected %.1f", when, float64(got-epoch.Moment(begun))/float64(second), watermark)
	}
	if got := m.Idle["ticks"]; !slices.Equal(got, idle) {
		test.Errorf("%s: idle are %v, expected %v", when, got, idle)
	}
}

// closed are the windows that have closed, as start and records in seconds and numbers.
// It stops the job, so that all is delivered.
func (test *timesTest) closed() (windows []string) {
	test.end()
	for _, r := range readRows[closedWindow](test.T, test.dir+"/results") {
		windows = append(windows, fmt.Sprintf("%d: %v", r.Start, r.IDs))
	}
	return windows
}

// late are the numbers of the records that came too late.
func (test *timesTest) late() (ids []int64) {
	test.end()
	for _, r := range readRows[lateTick](test.T, test.dir+"/late") {
		ids = append(ids, r.ID)
	}
	return ids
}

// expect compares what has closed, and what was late, once the job has ended.
func (test *timesTest) expect(closed []string, late ...int64) {
	test.Helper()
	if got := test.closed(); !slices.Equal(got, closed) {
		test.Errorf("closed are %v, expected %v", got, closed)
	}
	if got := test.late(); !slices.Equal(got, late) {
		test.Errorf("late are %v, expected %v", got, late)
	}
}

// counts compares what all epochs so far have counted under a name, however the records
// have come to lie in them.
func (test *timesTest) counts(name string, want int64) {
	test.Helper()
	ctx := context.Background()
	job, err := epoch.FindJob(ctx, test.world, test.store, "times")
	if err != nil {
		test.Fatal(err)
	}
	got, head := int64(0), test.head()
	for m, err := range job.Manifests(ctx, head.Branch, head.Task, 1, head.Epoch) {
		if err != nil {
			test.Fatal(err)
		}
		got += m.Counts[name]
	}
	if got != want {
		test.Errorf("%d are counted as %s, expected %d", got, name, want)
	}
}

// replays processes all once more, with what was decided about idle partitions, and
// expects the same to come of it.
func (test *timesTest) replays() {
	test.Helper()
	replayed, err := test.build().Replay(context.Background(), sluice.Options{Store: test.store, Env: test.world, Log: slog.New(slog.DiscardHandler)}, 0)
	if err != nil {
		test.Error(err)
	}
	for _, d := range replayed.Differences {
		test.Error(d)
	}
	if replayed.Records != test.next {
		test.Errorf("%d records were replayed, expected %d", replayed.Records, test.next)
	}
}

// TestIdlePartitions has one partition of four go quiet: the windows of the others close
// by themselves, once, when its time is up and no sooner; after a restart it is not idle
// at once, and the watermark stays.
func TestIdlePartitions(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0, sluice.IdleAfter(10*time.Second))
	for _, p := range []string{"0", "1", "2", "3"} {
		test.feed(p, 1)
	}
	test.start()
	test.read(4)
	feed := func(at float64) {
		for _, p := range []string{"0", "1", "2"} {
			test.feed(p, at)
		}
	}
	feed(5) // whose epochs look at partition 3, which is quiet from now on
	test.read(7)
	test.stands("held back", 1)
	test.pass(9 * time.Second)
	feed(6)
	epochs := test.read(10)
	test.stands("a second before", 1)

	test.pass(2 * time.Second)
	if e := test.epoch(epochs); e.Records != 0 {
		t.Errorf("the epoch that has found the idle partition has %d records", e.Records)
	}
	test.stands("idle", 6, "ticks/3")
	test.pass(5 * time.Second)
	test.feed("0", 6.5)
	if got := test.read(11); got != epochs+2 {
		t.Errorf("%d epochs behind the idle one, expected that of a record alone", got-epochs-1)
	}
	test.stands("idle still", 6, "ticks/3")
	test.end()

	test.start()
	feed(9)
	test.read(14)
	test.stands("after a restart", 6)
	test.feed("3", 2, 5)
	test.read(16)
	test.stands("with a late record", 6)
	test.counts("late.bags", 1)
	test.feed("3", 9)
	test.read(17)
	test.stands("with all", 9)
	test.expect([]string{"0: [0 1 2 3]", "4: [4 5 6 7 8 9 10 15]"}, 14)
	test.replays()
}

// TestNothingComesAfterARestart has a partition be idle without any record since the job
// has begun once more.
func TestNothingComesAfterARestart(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0, sluice.IdleAfter(10*time.Second))
	test.feed("0", 1)
	test.feed("1", 1, 5)
	test.start()
	epochs := test.read(3)
	test.end()
	test.pond.change(func() { test.pond.held["1"] = 2 }) // it is read slowly, and isn't idle
	test.feed("1", 6)
	test.start()
	test.clock.step.Store(second / 10)
	if e := test.epoch(epochs); e.Records != 0 {
		t.Errorf("an epoch of %d records", e.Records)
	}
	test.stands("idle", 5, "ticks/0")
	test.expect([]string{"0: [0 1]"})
}

// TestSlowPartitions has a partition be read slowly: it is not idle.
func TestSlowPartitions(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0, sluice.IdleAfter(10*time.Second))
	test.pond.held["1"] = 1
	test.feed("0", 1)
	test.feed("1", 1, 2)
	test.start()
	test.read(2)
	for i, at := range []float64{9, 10, 11} {
		test.pass(100 * time.Second)
		test.feed("0", at)
		test.read(int64(3 + i))
		test.stands("slow", 1)
	}
	test.pond.change(func() { delete(test.pond.held, "1") })
	test.read(6)
	test.stands("read", 2)
	test.feed("1", 12)
	test.read(7)
	test.stands("further", 11)
	test.expect([]string{"0: [0 1 2]"})
}

// TestNewPartitions has a partition come up whose records are older than the watermark.
func TestNewPartitions(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0)
	test.feed("0", 1, 9)
	test.start()
	test.read(2)
	test.stands("before", 9)
	test.feed("1", 2, 9.5)
	test.read(4)
	test.stands("with it", 9)
	test.counts("late.bags", 1)
	test.feed("0", 20)
	test.read(5)
	test.stands("held by it", 9.5)
	test.feed("1", 13)
	test.read(6)
	test.stands("with both", 13)
	test.expect([]string{"0: [0]", "8: [1 3]"}, 2)
	test.replays()
}

// in2100 is the year's begin, in seconds since the tests' begin.
const in2100 = 4_102_444_800 - 1_700_000_000

// TestTimesAhead has a record of the year 2100, which moves the watermark only if the
// author says so.
func TestTimesAhead(t *testing.T) {
	t.Parallel()
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		test := newTimesTest(t, time.Second)
		test.feed("0", 1, in2100, 2, 6, 86400+1)
		test.start()
		test.read(5)
		test.stands("bounded", 5)
		test.counts("ahead.ticks", 2)
		test.feed("0", 86400)
		test.read(6)
		test.stands("a day ahead", 86399)
		test.counts("ahead.ticks", 2)
		test.expect([]string{"0: [0 2]", "4: [3]"})
	})
	t.Run("not bounded", func(t *testing.T) {
		t.Parallel()
		test := newTimesTest(t, time.Second, sluice.MaxAhead(0))
		test.feed("0", in2100)
		test.start()
		test.read(1)
		test.feed("0", 1)
		test.read(2)
		test.stands("not bounded", in2100-1)
		test.counts("late.bags", 1)
		test.expect(nil, 1)
	})
}

// TestWatermarksOfAFunction has a function give the watermark: the last full ten seconds.
func TestWatermarksOfAFunction(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := map[sluice.RunTimes]bool{}
	const ten = 10 * sluice.Instant(second)
	test := newTimesTest(t, 0, sluice.Watermarks(func(r sluice.RunTimes) sluice.Instant {
		mu.Lock()
		defer mu.Unlock()
		told[r] = true
		if r.Latest == sluice.NoTime {
			return sluice.NoTime
		}
		return begun + (r.Latest-begun)/ten*ten
	}))
	test.feed("0", 3)
	test.start()
	test.read(1)
	test.stands("at first", 0)
	test.feed("0", 12, 4)
	test.read(3)
	test.stands("ten", 10)
	test.feed("0", 5)
	test.read(4)
	test.stands("never back", 10)
	test.expect([]string{"0: [0]", "4: [2]"}, 3)
	at := func(seconds sluice.Instant) sluice.Instant { return begun + seconds*sluice.Instant(second) }
	want := map[sluice.RunTimes]bool{
		{Latest: at(3), Seen: at(3), Watermark: sluice.NoTime, Now: begun}: true,
		{Latest: at(12), Seen: at(12), Watermark: at(0), Now: begun}:       true,
		{Latest: at(5), Seen: at(12), Watermark: at(10), Now: begun}:       true,
	}
	if !maps.Equal(told, want) {
		t.Errorf("told was %v, expected %v", told, want)
	}
}

// TestOtherSourcesHoldNothingBack has a source without event time beside.
func TestOtherSourcesHoldNothingBack(t *testing.T) {
	t.Parallel()
	test := newTimesTest(t, 0, sluice.IdleAfter(time.Hour))
	build, other := test.build, newPond()
	other.fed["0"] = []tick{{ID: 100}}
	test.build = func() *sluice.Job {
		job := build()
		job.From("other", other).To("others", file.Append[tick](test.dir+"/others"))
		return job
	}
	test.feed("0", 1, 9)
	test.start()
	test.read(3)
	test.stands("beside another", 9)
	test.expect([]string{"0: [0]"})
}
