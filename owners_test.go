package sluice_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// tally is a job that counts what an endless source gives, for tests of who
// runs it.
func tally() *sluice.Job {
	job := sluice.NewJob("tally")
	job.From("numbers", endless{}).KeyBy(even).Fold(sluice.NewState[bool, int64]("count"), sumInt64)
	return job
}

// process is a run of a job, as a process of its own would be one.
type process struct {
	t       *testing.T
	log     *lines
	stop    context.CancelFunc
	ended   chan error
	commits chan uint64
}

// starts runs a job until it is told to stop.
func starts(t *testing.T, job *sluice.Job, o sluice.Options) *process {
	t.Helper()
	p := &process{t: t, log: &lines{changed: make(chan struct{}, 1)}, ended: make(chan error, 1), commits: make(chan uint64, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	p.stop = cancel
	o.Log = slog.New(slog.NewTextHandler(p.log, nil))
	o.Epoch = time.Millisecond
	o.Committed = func(c sluice.Committed) {
		select {
		case p.commits <- c.Epoch:
		default:
		}
	}
	go func() { p.ended <- job.Run(ctx, o) }()
	return p
}

// says waits until the process has logged a text.
func (p *process) says(text string) {
	p.t.Helper()
	for !strings.Contains(p.log.String(), text) {
		select {
		case <-p.log.changed:
		case err := <-p.ended:
			p.t.Fatalf("it has ended (%v) without saying %q:\n%s", err, text, p.log)
		}
	}
}

// ends waits for the process's end.
func (p *process) ends() error {
	err := <-p.ended
	p.stop()
	return err
}

// stops tells the process to stop, which it must do well.
func (p *process) stops() {
	p.t.Helper()
	p.stop()
	if err := p.ends(); err != nil {
		p.t.Fatal(err)
	}
}

// lines are what a process has logged.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// asked makes a request, as the command stop does.
func asked(t *testing.T, s store.Store, job string, kind epoch.RequestKind) epoch.Request {
	t.Helper()
	j, err := epoch.FindJob(t.Context(), env.Real(), s, job)
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Ask(t.Context(), kind, "a test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// headOf is a job's newest manifest, and its owner's heartbeat.
func headOf(t *testing.T, s store.Store, job string) (epoch.Manifest, epoch.Heartbeat) {
	t.Helper()
	j, err := epoch.FindJob(t.Context(), env.Real(), s, job)
	if err != nil {
		t.Fatal(err)
	}
	beat, _, err := j.Heartbeat(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	head, err := j.Head(t.Context(), epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		t.Fatal(err)
	}
	return head.Manifest, beat
}

// A second run of a job stands by, and goes on at once when the first lets go.
// Nobody but the owner writes meanwhile.
func TestASecondRunStandsBy(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := store.NewMemory()
	first := starts(t, tally(), sluice.Options{Store: s})
	<-first.commits
	second := starts(t, tally(), sluice.Options{Store: s, Lease: time.Hour})
	second.says("standing by")
	owner, _ := headOf(t, s, "tally")
	for range 20 {
		<-first.commits
	}
	if m, _ := headOf(t, s, "tally"); m.Owner != owner.Owner {
		t.Error("another one owns the branch while the first lives")
	}
	first.stops()
	last, beat := headOf(t, s, "tally")
	if beat.Owner == owner.Owner && !beat.Released {
		t.Error("the first has stopped without letting go")
	}
	<-second.commits
	m, _ := headOf(t, s, "tally")
	if m.Owner == owner.Owner || m.Epoch <= last.Epoch {
		t.Errorf("epoch %d by %s follows epoch %d by %s", m.Epoch, m.Owner, last.Epoch, owner.Owner)
	}
	second.stops()
}

// With TakeOver the first is fenced and stops, with the reason; it does not come
// back by itself.
func TestTakeOver(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := store.NewMemory()
	first := starts(t, tally(), sluice.Options{Store: s})
	<-first.commits
	second := starts(t, tally(), sluice.Options{Store: s, TakeOver: true})
	var fenced *sluice.FencedError
	if err := first.ends(); !errors.As(err, &fenced) || fenced.ExitCode() != 11 {
		t.Errorf("the first ended with %v, want to be fenced", err)
	}
	<-second.commits
	second.stops()
}

// An owner that hangs, with its process alive, is taken for gone after a lease.
func TestStandbyOfAnOwnerThatHangs(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := &freezing{Store: store.NewMemory()}
	first := starts(t, tally(), sluice.Options{Store: s, Lease: 100 * time.Millisecond})
	<-first.commits
	s.freeze()
	second := starts(t, tally(), sluice.Options{Store: s.Store, Lease: 100 * time.Millisecond})
	second.says("standing by")
	<-second.commits
	s.thaw()
	var fenced *sluice.FencedError
	if err := first.ends(); !errors.As(err, &fenced) {
		t.Errorf("the first woke up and ended with %v, want to be fenced", err)
	}
	_, beat := headOf(t, s.Store, "tally")
	if beat.Released {
		t.Error("the fenced owner has let go of what is another's")
	}
	second.stops()
}

// freezing is a store whose writes can be made to hang.
type freezing struct {
	store.Store
	mu     sync.Mutex
	frozen chan struct{} // nil: it is not
}

func (f *freezing) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = make(chan struct{})
}

func (f *freezing) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.frozen)
	f.frozen = nil
}

func (f *freezing) wait() {
	f.mu.Lock()
	frozen := f.frozen
	f.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

func (f *freezing) Create(ctx context.Context, name string, data []byte) error {
	f.wait()
	return f.Store.Create(ctx, name, data)
}

func (f *freezing) Replace(ctx context.Context, name string, data []byte) error {
	f.wait()
	return f.Store.Replace(ctx, name, data)
}

// A request to stop ends whoever runs the job and whoever stands by, and is noted
// in the log; who starts later was not asked.
func TestStopRequest(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := store.NewMemory()
	o := sluice.Options{Store: s, Lease: 100 * time.Millisecond}
	first := starts(t, tally(), o)
	<-first.commits
	second := starts(t, tally(), o)
	second.says("standing by")
	request := asked(t, s, "tally", epoch.StopRequest)
	for _, p := range []*process{first, second} {
		if err := p.ends(); err != nil {
			t.Errorf("asked to stop, it ended with %v", err)
		}
		p.says("asked to stop")
	}
	if m, beat := headOf(t, s, "tally"); m.Request != request.N || !beat.Released {
		t.Errorf("request %d is noted as %d, released: %v", request.N, m.Request, beat.Released)
	}
	third := starts(t, tally(), o)
	<-third.commits
	for range 20 {
		<-third.commits
	}
	third.stops()
}

// A request to drain lets the job read what there is before it stops.
func TestDrainRequest(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newDesk()
	defer d.clear()
	s := store.NewMemory()
	job := sluice.NewJob("drain")
	d.add(t, "in.jsonl", strings.Repeat(`{"User":"ann","Cents":1}`+"\n", 10))
	job.From("orders", file.JSONLines[Order](d.path("in.jsonl"), file.Follow())).
		KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	p := starts(t, job, sluice.Options{Store: s, Lease: 100 * time.Millisecond, BatchRecords: 7})
	<-p.commits
	d.add(t, "in.jsonl", strings.Repeat(`{"User":"ann","Cents":1}`+"\n", 5000))
	info, err := os.Stat(d.path("in.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	asked(t, s, "drain", epoch.DrainRequest)
	if err := p.ends(); err != nil {
		t.Fatal(err)
	}
	m, _ := headOf(t, s, "drain")
	if next := m.Sources["orders"].Partitions["in.jsonl"].Next; next != info.Size() {
		t.Errorf("it has read up to %d of %d", next, info.Size())
	}
}

// A state that can't fit is refused with the figures before anything is taken or
// loaded, and the job goes on once there is room.
func TestAStateThatDoesNotFit(t *testing.T) {
	s := store.NewMemory()
	d := newDesk()
	defer d.clear()
	var in strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&in, `{"User":"user-%d","Cents":1}`+"\n", i)
	}
	d.add(t, "in.jsonl", in.String())
	build := func() *sluice.Job {
		job := sluice.NewJob("large")
		job.From("orders", file.JSONLines[Order](d.path("in.jsonl"))).KeyBy(Order.UserID).Fold(spend, (*Spend).Add)
		return job
	}
	o := sluice.Options{Store: s, Log: slog.New(slog.DiscardHandler), Epoch: time.Hour}
	if err := build().Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	before, _ := headOf(t, s, "large")
	segment := before.State["spend"].Segments[0]
	o.MemoryLimit = segment.Memory
	var large *sluice.TooLargeError
	err := build().Run(t.Context(), o)
	if !errors.As(err, &large) || large.ExitCode() != 17 || !strings.Contains(err.Error(), "200000 rows") {
		t.Errorf("in %d bytes: %v, want it to be refused", o.MemoryLimit, err)
	}
	if after, _ := headOf(t, s, "large"); after.Epoch != before.Epoch {
		t.Errorf("the refused run has written epoch %d", after.Epoch)
	}
	o.MemoryLimit = 0
	if err := build().Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// An idle job, its deliveries confirmed, writes nothing but its heartbeat.
func TestAnIdleJobWritesItsHeartbeatOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newDesk()
	defer d.clear()
	s := &watching{Store: store.NewMemory(), beats: make(chan struct{}, 1)}
	d.add(t, "in.jsonl", `{"User":"ann","Cents":1}`+"\n")
	job := sluice.NewJob("idle")
	job.From("orders", file.JSONLines[Order](d.path("in.jsonl"), file.Follow())).
		KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	world := env.Real()
	world.Clock = hurried{world.Clock}
	p := starts(t, job, sluice.Options{Store: s, Env: world})
	for {
		<-s.beats
		m, _ := headOf(t, s.Store, "idle")
		if m.Position == 1 && m.Sinks["out"].Confirmed == 1 {
			break
		}
	}
	s.reset()
	for range 200 { // heartbeats: 600 s by the job's own clock
		<-s.beats
	}
	if written := s.written(); len(written) > 0 {
		t.Errorf("the idle job wrote %v", written)
	}
	p.stops()
}

// hurried is a clock whose timers fire a thousand times as fast.
type hurried struct{ env.Clock }

func (h hurried) NewTimer(d time.Duration) env.Timer { return hurriedTimer{h.Clock.NewTimer(d / 1000)} }

type hurriedTimer struct{ env.Timer }

func (t hurriedTimer) Reset(d time.Duration) { t.Timer.Reset(d / 1000) }

// watching notes what is written besides heartbeats.
type watching struct {
	store.Store
	beats chan struct{}
	mu    sync.Mutex
	names []string
}

func (w *watching) note(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
}

func (w *watching) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = nil
}

func (w *watching) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names
}

func (w *watching) Create(ctx context.Context, name string, data []byte) error {
	w.note(name)
	return w.Store.Create(ctx, name, data)
}

func (w *watching) Upload(ctx context.Context, name string) (store.Upload, error) {
	w.note(name)
	return w.Store.Upload(ctx, name)
}

func (w *watching) Delete(ctx context.Context, name string) error {
	w.note(name)
	return w.Store.Delete(ctx, name)
}

func (w *watching) Replace(ctx context.Context, name string, data []byte) error {
	if !strings.HasSuffix(name, "/heartbeat.json") {
		w.note(name)
	}
	select {
	case w.beats <- struct{}{}:
	default:
	}
	return w.Store.Replace(ctx, name, data)
}

// add appends to a file of the desk.
func (d desk) add(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(d.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A request that can't be read stands in nobody's way.
func TestADamagedRequestIsPassed(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := store.NewMemory()
	o := sluice.Options{Store: s, Lease: 100 * time.Millisecond}
	first := starts(t, tally(), o)
	<-first.commits
	second := starts(t, tally(), o)
	second.says("standing by")
	if err := s.Create(t.Context(), "tally/"+epoch.ControlPath(1), []byte("{\n")); err != nil {
		t.Fatal(err)
	}
	asked(t, s, "tally", epoch.StopRequest)
	for _, p := range []*process{first, second} {
		if err := p.ends(); err != nil {
			t.Errorf("asked to stop, it ended with %v", err)
		}
	}
	first.says("a request that this release can't do")
}

// A job that is drained and meets a record that fails behind a KeyBy goes on to
// drain when it has gone back to the last epoch.
func TestDrainWithADeadLetter(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newDesk()
	defer d.clear()
	s := store.NewMemory()
	d.add(t, "in.jsonl", `{"User":"ann","Cents":1}`+"\n")
	draining := make(chan struct{})
	job := sluice.NewJob("drain")
	job.DeadLetter("bad", file.Append[sluice.DeadLetter](d.path("bad")))
	job.From("orders", file.JSONLines[Order](d.path("in.jsonl"), file.Follow(), file.Poll(time.Millisecond))).KeyBy(Order.UserID).
		Fold(spend, func(s *Spend, o Order) {
			if o.Cents == 13 {
				<-draining
				panic("thirteen")
			}
			s.Add(o)
		}).To("out", file.Upsert(d.path("out"), spendRow))
	p := starts(t, job, sluice.Options{Store: s, Lease: 100 * time.Millisecond})
	<-p.commits
	d.add(t, "in.jsonl", `{"User":"ann","Cents":13}`+"\n"+strings.Repeat(`{"User":"bob","Cents":1}`+"\n", 100))
	asked(t, s, "drain", epoch.DrainRequest)
	p.says("asked to stop")
	close(draining)
	if err := p.ends(); err != nil {
		t.Fatal(err)
	}
	if m, _ := headOf(t, s, "drain"); m.Sources["orders"].Partitions["in.jsonl"].Next != int64(25+26+100*25) {
		t.Errorf("it has read up to %v", m.Sources["orders"])
	}
}
