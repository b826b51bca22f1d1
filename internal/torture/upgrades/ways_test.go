package upgrades

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/internal/torture/topics"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/kafka/embedded"
	"github.com/sluicestream/sluice/store"
)

// way is a job of which builds take over from each other in this process. Builds are
// told apart by their versions here, since they have one executable.
type way struct {
	t       *testing.T
	rng     *rand.Rand
	cluster *topics.Cluster
	folder  string // of the store
	job     *epoch.Job
	fed     []placed  // in the order in which they were written
	at      time.Time // of those that are written next; zero: now
	meeting *meeting  // of those that begin branches; nil: there is none
}

// placed is an input and where it stands.
type placed struct {
	input
	partition int32
	offset    int64
}

const (
	wayJob   = "ways"
	wayKeys  = 12
	wayLease = 500 * time.Millisecond
	odd      = "key-3" // the key that some builds count otherwise
)

// Counts is what builds count of each key.
type Counts struct{ Count, Sum int64 }

func (c *Counts) counts() *Counts { return c }

// The states of builds: each of the later two counts in a field that the others lack,
// from where its state was taken over.
type (
	Plain  struct{ Counts }
	Second struct {
		Counts
		Since2 int64
	}
	Third struct {
		Counts
		Since3 int64
	}
)

func (*Plain) since() *int64    { return new(int64) }
func (s *Second) since() *int64 { return &s.Since2 }
func (s *Third) since() *int64  { return &s.Since3 }

// build is what a build is made of.
type build struct {
	version int64             // stands in each row of the tables
	meaning int               // of the state, which can't be carried over to another
	weigh   func(input) int64 // what an input comes to; nil: its amount
	tables  []string          // the sinks that are tables; nil: totals
	rows    []string          // the sinks that get a row for each input
	files   []string          // those of them that are folders
}

// row is a row of a sink that gets one for each input.
type row struct {
	Key, ID string
	Amount  int64
}

// the builds that most tests need.
func first(w *way, b build) *sluice.Job  { return assemble[Plain](w, b) }
func second(w *way, b build) *sluice.Job { return assemble[Second](w, b) }
func third(w *way, b build) *sluice.Job  { return assemble[Third](w, b) }

// assemble makes a build whose state is an S. The sinks' topics have their names.
func assemble[S any, P interface {
	*S
	counts() *Counts
	since() *int64
}](w *way, b build) *sluice.Job {
	on := kafka.On(kafka.Connect(kafka.Brokers(w.cluster.Addr)))
	if b.weigh == nil {
		b.weigh = func(i input) int64 { return i.Amount }
	}
	if b.tables == nil {
		b.tables = []string{"totals"}
	}
	job := sluice.NewJob(wayJob)
	inputs := job.From("inputs", kafka.Topic("inputs", codec.JSON[input](), on))
	keyed := inputs.KeyBy(func(i input) string { return i.Key })
	table := keyed.Fold(sluice.NewState[string, S]("totals").Meaning(b.meaning), func(s *S, i input) {
		c := P(s).counts()
		c.Count++
		c.Sum += b.weigh(i)
		*P(s).since()++
	})
	for _, name := range b.tables {
		table.To(name, kafka.Upsert(name, func(_ string, s S) total {
			c := P(&s).counts()
			return total{Count: c.Count, Sum: c.Sum, Version: b.version, Since: *P(&s).since()}
		}, codec.String(), codec.JSON[total](), on))
	}
	for _, name := range b.rows {
		inputs.Map(func(i input) row { return row{i.Key, i.ID, b.weigh(i)} }).
			To(name, kafka.Append(name, codec.JSON[row](), on).Key(func(r row) []byte { return []byte(r.Key) }))
	}
	for _, name := range b.files {
		inputs.Map(func(i input) row { return row{i.Key, i.ID, b.weigh(i)} }).To(name, file.Append[row](filepath.Join(w.folder, name)))
	}
	return job
}

// ownColumns are the columns in which each build differs.
func ownColumns(tables ...string) map[string]map[string]sluice.ColumnRule {
	all := map[string]map[string]sluice.ColumnRule{}
	for _, name := range tables {
		all[name] = map[string]sluice.ColumnRule{"Version": {Ignore: true}, "Since": {Ignore: true}}
	}
	return all
}

// newWay makes the topics: the inputs, and one for each sink.
func newWay(t *testing.T, sinks ...string) *way {
	t.Helper()
	t.Parallel()
	seed, _ := seedOf(t)
	t.Logf("the choices again: SLUICE_TORTURE_SEED=%d go test -run '%s'", seed, t.Name())
	broker, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	w := &way{t: t, rng: rand.New(rand.NewPCG(seed, 1)), cluster: topics.Open(t, broker.Addr()), folder: quickFolder(t)}
	w.cluster.Create(t, "inputs", partitions)
	for _, sink := range append(sinks, "totals") {
		w.cluster.Create(t, sink, partitions)
	}
	return w
}

// feed writes so many inputs of random keys.
func (w *way) feed(n int) {
	w.t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", w.rng.IntN(wayKeys))
	}
	w.feedKeys(keys...)
}

// feedAll writes an input of each key.
func (w *way) feedAll() {
	w.t.Helper()
	var keys []string
	for n := range wayKeys {
		keys = append(keys, fmt.Sprint("key-", n))
	}
	w.feedKeys(keys...)
}

func (w *way) feedKeys(keys ...string) {
	w.t.Helper()
	records := make([]*kgo.Record, len(keys))
	for i, key := range keys {
		in := input{fmt.Sprint("input-", len(w.fed)+i), key, 1 + w.rng.Int64N(1000)}
		value, err := json.Marshal(in)
		if err != nil {
			w.t.Fatal(err)
		}
		records[i] = &kgo.Record{Topic: "inputs", Key: []byte(key), Value: value, Timestamp: w.at}
	}
	if err := w.cluster.Client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		w.fed = append(w.fed, placed{decode[input](w.t, r.Value), r.Partition, r.Offset})
	}
}

// recount counts inputs as a build is to.
func recount(inputs []placed, weigh func(input) int64) map[string]Counts {
	all := map[string]Counts{}
	for _, i := range inputs {
		c := all[i.Key]
		c.Count++
		if weigh == nil {
			c.Sum += i.Amount
		} else {
			c.Sum += weigh(i.input)
		}
		all[i.Key] = c
	}
	return all
}

// table is what a topic says last of each key.
func (w *way) table(topic string) map[string]total {
	all := map[string]total{}
	for _, r := range w.cluster.Read(w.t, topic) {
		if len(r.Value) == 0 {
			delete(all, string(r.Key))
			continue
		}
		all[string(r.Key)] = decode[total](w.t, r.Value)
	}
	return all
}

// counted is what a topic's last rows count.
func (w *way) counted(topic string) map[string]Counts {
	all := map[string]Counts{}
	for key, row := range w.table(topic) {
		all[key] = Counts{row.Count, row.Sum}
	}
	return all
}

// awaitTable waits until a topic's last rows count what they have to.
func (w *way) awaitTable(topic string, want map[string]Counts) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s has the right rows", topic), func() bool { return maps.Equal(w.counted(topic), want) }, func() string {
		return fmt.Sprintf("found %v\nwant  %v", w.counted(topic), want)
	})
}

// versions are those that a topic's last rows are of.
func (w *way) versions(topic string) map[int64]int {
	all := map[int64]int{}
	for _, row := range w.table(topic) {
		all[row.Version]++
	}
	return all
}

// checkRows holds a topic that has a row for each input against some of the inputs: each
// stands there once.
func (w *way) checkRows(topic string, want []placed) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s has as many rows as it has to", topic), func() bool { return len(w.cluster.Read(w.t, topic)) >= len(want) }, nil)
	left := map[string]int{}
	for _, i := range want {
		left[i.ID]++
	}
	for _, r := range w.cluster.Read(w.t, topic) {
		left[decode[row](w.t, r.Value).ID]--
	}
	for id, n := range left {
		switch {
		case n > 0:
			w.t.Errorf("topic %s lacks the row of %s", topic, id)
		case n < 0:
			w.t.Errorf("topic %s has %d rows of %s too many", topic, -n, id)
		}
	}
}

// await waits until something holds; a failure tells what found says as well.
func (w *way) await(what string, holds func() bool, found func() string) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if holds() {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-w.t.Context().Done():
		}
	}
	if found != nil {
		what += "\n" + found()
	}
	w.t.Fatalf("waited in vain: %s", what)
}

// open opens the store.
func (w *way) open() store.Store {
	w.t.Helper()
	s, err := store.OpenFolder(env.Real(), w.folder)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// log is the job's log, once it has run.
func (w *way) log() *epoch.Job {
	w.t.Helper()
	if w.job == nil {
		job, err := epoch.FindJob(w.t.Context(), env.Real(), w.open(), wayJob)
		if err != nil {
			w.t.Fatal(err)
		}
		w.job = job
	}
	return w.job
}

// live is the newest live record.
func (w *way) live() epoch.LiveRecord {
	w.t.Helper()
	record, _, err := w.log().Live(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return record
}

// awaitLive waits until a generation is live, and returns its record.
func (w *way) awaitLive(n epoch.Generation, kind epoch.BranchKind) epoch.LiveRecord {
	w.t.Helper()
	w.await(fmt.Sprintf("generation %d is live", n), func() bool { return w.live().N >= n }, nil)
	record := w.live()
	if record.N != n || record.Kind != kind {
		w.t.Fatalf("generation %d of kind %q is live, want %d of kind %q", record.N, record.Kind, n, kind)
	}
	return record
}

// head is a branch's newest epoch.
func (w *way) head(branch string) epoch.Head {
	w.t.Helper()
	head, err := w.log().Head(w.t.Context(), branch, epoch.FirstTask)
	if err != nil {
		w.t.Fatal(err)
	}
	return head
}

// branchFile is the record of a branch.
func (w *way) branchFile(branch string) epoch.BranchFile {
	w.t.Helper()
	file, err := w.log().BranchFile(w.t.Context(), branch)
	if err != nil {
		w.t.Fatal(err)
	}
	return file
}

// process is a run of a build, as a process of its own would be one.
type process struct {
	w      *way
	what   string
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // once it has ended
	last   atomic.Pointer[sluice.UpgradeProgress]
	cutOff atomic.Bool
	diesAt atomic.Value // the end of an object's name: it is cut off where it makes that

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements [io.Writer], for the log.
func (p *process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(data)
}

// said is what it has logged.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// start starts a process.
func (w *way) start(what string, o sluice.Options, run func(ctx context.Context, o sluice.Options, p *process) error) *process {
	w.t.Helper()
	p := &process{w: w, what: what, ended: make(chan struct{})}
	p.diesAt.Store("nowhere")
	failing := faultstore.New(w.open(), func(call faultstore.Call) faultstore.Fault {
		if w.meeting != nil && call.Operation == "create" && strings.HasSuffix(call.Name, "/branch.json") {
			w.meeting.arrive()
		}
		if call.Operation == "create" && strings.HasSuffix(call.Name, p.diesAt.Load().(string)) {
			p.cutOff.Store(true)
		}
		if p.cutOff.Load() {
			return faultstore.Fail
		}
		return faultstore.None
	})
	o.Store, o.Volatile, o.Log = failing, true, slog.New(slog.NewTextHandler(p, nil))
	if o.Epoch == 0 {
		o.Epoch = 40 * time.Millisecond
	}
	o.Lease, o.Shards, o.Workers = wayLease, 1+w.rng.IntN(3), 2
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.ended)
		p.err = run(ctx, o, p)
	}()
	w.t.Cleanup(func() {
		p.stop()
		<-p.ended
		if w.t.Failed() {
			w.t.Logf("=== %s: %v\n%s", p.what, p.err, p.said())
		}
	})
	return p
}

// meeting has processes wait for each other.
type meeting struct {
	missing atomic.Int32
	all     chan struct{}
}

// upgradesMeet has two upgrades begin their branches at once: each has looked for others,
// of which the later one would be refused, before either is there.
func (w *way) upgradesMeet() {
	w.meeting = &meeting{all: make(chan struct{})}
	w.meeting.missing.Store(2)
}

// arrive waits for the others, at most as long as tests wait for anything.
func (m *meeting) arrive() {
	if m.missing.Add(-1) == 0 {
		close(m.all)
	}
	select {
	case <-m.all:
	case <-time.After(patience):
	}
}

// run runs a build.
func (w *way) run(what string, job *sluice.Job, o sluice.Options) *process {
	w.t.Helper()
	return w.start(what, o, func(ctx context.Context, o sluice.Options, _ *process) error { return job.Run(ctx, o) })
}

// upgrade upgrades to a build.
func (w *way) upgrade(what string, job *sluice.Job, o sluice.Options, u sluice.Upgrade) *process {
	w.t.Helper()
	return w.start(what, o, func(ctx context.Context, o sluice.Options, p *process) error {
		u.Told = func(progress sluice.UpgradeProgress) { p.last.Store(&progress) }
		return job.Upgrade(ctx, o, u)
	})
}

// kill cuts a process off from its store: nothing of it comes any more, and it says no
// word of that.
func (p *process) kill() {
	p.cutOff.Store(true)
	p.stop()
	<-p.ended
}

// ends waits for a process's end.
func (p *process) ends() error {
	p.w.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.w.t.Fatalf("%s has not ended", p.what)
	}
	return p.err
}

// stops tells a process to stop, which it must do well.
func (p *process) stops() {
	p.w.t.Helper()
	p.stop()
	if err := p.ends(); err != nil {
		p.w.t.Fatalf("%s: %v", p.what, err)
	}
}

// endsWith waits for the end, which must have an exit code, and an error that says all
// that.
func (p *process) endsWith(code int, says ...string) {
	p.w.t.Helper()
	err := p.ends()
	coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err)
	if !ok || coded.ExitCode() != code {
		p.w.t.Fatalf("%s has ended with %v, want exit code %d", p.what, err, code)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			p.w.t.Errorf("%s has ended with an error that does not say %q: %v", p.what, s, err)
		}
	}
}

// goesOn fails the test if a process has ended.
func (p *process) goesOn() {
	p.w.t.Helper()
	select {
	case <-p.ended:
		p.w.t.Fatalf("%s has ended: %v", p.what, p.err)
	default:
	}
}

// awaits waits until what a process has told of its following is so.
func (p *process) awaits(what string, holds func(sluice.UpgradeProgress) bool) sluice.UpgradeProgress {
	p.w.t.Helper()
	p.w.await(p.what+": "+what, func() bool {
		told := p.last.Load()
		if told != nil && holds(*told) {
			return true
		}
		p.goesOn()
		return false
	}, func() string { return fmt.Sprintf("told last: %+v", p.last.Load()) })
	return *p.last.Load()
}

// caughtUp waits until it has caught up.
func (p *process) caughtUp() sluice.UpgradeProgress {
	p.w.t.Helper()
	return p.awaits("caught up", func(u sluice.UpgradeProgress) bool { return u.Stage == "caught up" && u.Lag == 0 })
}

// sinkOf is what was compared for a sink.
func sinkOf(u sluice.UpgradeProgress, sink string) sluice.SinkComparison {
	i := slices.IndexFunc(u.Sinks, func(s sluice.SinkComparison) bool { return s.Sink == sink })
	if i < 0 {
		return sluice.SinkComparison{}
	}
	return u.Sinks[i]
}
