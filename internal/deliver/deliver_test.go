package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// fakeSink remembers positions, and answers as a test wants.
type fakeSink struct {
	mu      sync.Mutex
	record  *connector.SinkRecord
	applied []connector.Position
	fail    []error // of the next deliveries; a nil one goes through
	after   bool    // failing deliveries are applied all the same
}

func (f *fakeSink) Describe() connector.Description { return connector.Description{Target: "fake"} }

func (f *fakeSink) Open(context.Context, connector.Opening, connector.RecordKey) (connector.Target, error) {
	return f, nil
}

func (f *fakeSink) Record(context.Context) (*connector.SinkRecord, error) { return f.record, nil }

func (f *fakeSink) Make(context.Context, connector.SinkRecord) (connector.SinkRecord, error) {
	return *f.record, nil
}

func (f *fakeSink) Close() error { return nil }

func (f *fakeSink) Deliver(_ context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fail error
	if len(f.fail) > 0 {
		fail, f.fail = f.fail[0], f.fail[1:]
	}
	if fail != nil && !f.after {
		return 0, nil, fail
	}
	found := f.record
	verdict := d.Decide(found)
	if verdict == connector.Apply {
		f.record = &d.Record
		f.applied = append(f.applied, d.Record.Position)
	}
	return verdict, found, fail
}

// hasty is a clock whose timers fire at once.
type hasty struct{ env.Clock }

func (h hasty) NewTimer(time.Duration) env.Timer { return h.Clock.NewTimer(0) }

func newDeliverer(t *testing.T, f *fakeSink, newer func(context.Context) error) *Deliverer {
	explain := func(ctx context.Context, _ bool) error { return newer(ctx) }
	t.Helper()
	world := env.Real()
	world.Clock = hasty{world.Clock}
	return New(Options{
		Env: world, Log: slog.New(slog.DiscardHandler), Store: store.NewMemory(), Job: "job", Task: "0.0",
		Name: "out", Sink: f, Target: f, Record: "made", Newer: explain,
	})
}

func owed(p epoch.Position) Owed {
	return Owed{From: p - 1, To: p, Branch: "main", Epoch: epoch.Epoch(p) + 3, Manifest: string(rune('a' + p))}
}

func noneNewer(context.Context) error { return nil }

func at(p connector.Position) *connector.SinkRecord {
	return &connector.SinkRecord{Position: p, ID: "made"}
}

// Deliveries whose outcome is unknown are tried again until the sink says where
// it stands: each is applied once, in order.
func TestDoubtfulDeliveriesAreAppliedOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	doubt := errors.New("connection lost")
	for name, after := range map[string]bool{"before it was applied": false, "after it was applied": true} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSink{record: at(0), fail: []error{nil, doubt, doubt, nil, doubt}, after: after}
			d := newDeliverer(t, f, noneNewer)
			for p := range epoch.Position(4) {
				d.Add(owed(p + 1))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- d.Run(ctx) }()
			if err := d.Wait(ctx, 0); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if want := []connector.Position{1, 2, 3, 4}; !slices.Equal(f.applied, want) {
				t.Errorf("applied %v, want %v", f.applied, want)
			}
			if d.Confirmed() != 4 {
				t.Errorf("confirmed up to %d, want 4", d.Confirmed())
			}
		})
	}
}

// A sink that knows less than the log, or more, is never written to.
func TestDisagreementStops(t *testing.T) {
	for name, c := range map[string]struct {
		record    *connector.SinkRecord
		confirmed epoch.Position
	}{
		"no record":                          {nil, 0},
		"another record":                     {&connector.SinkRecord{Position: 0, ID: "another"}, 0},
		"a record from before what is known": {at(3), 4},
		"a record beyond the log":            {at(9), 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSink{record: c.record}
			d := newDeliverer(t, f, noneNewer)
			d.o.Confirmed, d.confirmed = c.confirmed, c.confirmed
			d.Add(owed(c.confirmed + 1))
			var disagrees *DisagreeError
			if err := d.Run(t.Context()); !errors.As(err, &disagrees) {
				t.Fatalf("the error is %v, want a DisagreeError", err)
			}
			if disagrees.Sink != "out" || disagrees.ExitCode() != 15 || len(f.applied) > 0 {
				t.Errorf("%v, exit code %d, applied %v", disagrees, disagrees.ExitCode(), f.applied)
			}
		})
	}
}

// A row that the sink refuses for what it holds ends the deliveries, without one
// more try, and stays owed; unless somebody else owns the branch by now.
func TestRejectedRowStops(t *testing.T) {
	refuses := func() *fakeSink {
		return &fakeSink{record: at(0), fail: []error{fmt.Errorf("row 3: %w", connector.ErrRejected)}}
	}
	f := refuses()
	d := newDeliverer(t, f, noneNewer)
	d.Add(owed(1))
	err := d.Run(t.Context())
	rejected, ok := errors.AsType[*RejectedError](err)
	if !ok || rejected.Position != 1 || rejected.Sink != "out" || !errors.Is(err, connector.ErrRejected) {
		t.Fatalf("the error is %v, want a RejectedError at position 1", err)
	}
	if len(f.applied) > 0 || d.Pending() != 1 || d.Confirmed() != 0 {
		t.Errorf("applied %v, %d pending, confirmed up to %d", f.applied, d.Pending(), d.Confirmed())
	}
	fenced := &epoch.FencedError{}
	d = newDeliverer(t, refuses(), func(context.Context) error { return fenced })
	d.Add(owed(1))
	if err := d.Run(t.Context()); !errors.Is(err, fenced) {
		t.Errorf("the error is %v, want %v", err, fenced)
	}
}

// A log that went back to an older copy, and has grown beyond what the sink has
// since: the positions fit, and the manifests don't. Nothing is delivered behind
// what another history has left there.
func TestAnotherHistoryThatIsLongerStops(t *testing.T) {
	f := &fakeSink{record: &connector.SinkRecord{Position: 3, ID: "made", Manifest: "another"}}
	d := newDeliverer(t, f, noneNewer)
	d.o.Confirmed, d.confirmed = 1, 1
	for p := range epoch.Position(4) {
		d.Add(owed(p + 2))
	}
	err := d.Run(t.Context())
	if disagrees, ok := errors.AsType[*DisagreeError](err); !ok || disagrees.Position != 3 {
		t.Fatalf("the error is %v, want a DisagreeError at position 3", err)
	}
	if len(f.applied) > 0 {
		t.Errorf("applied %v", f.applied)
	}
}

// A sink that is away for an hour is told of at once, and then ever more rarely.
func TestFailuresAreToldRarely(t *testing.T) {
	var c complaint
	var told []time.Duration
	start := time.Unix(1_000, 0)
	for after := time.Duration(0); after <= time.Hour; after += lastPause {
		if c.due(start.Add(after)) {
			told = append(told, after)
		}
	}
	want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 150 * time.Second, 310 * time.Second}
	for at := 610 * time.Second; at <= time.Hour; at += 5 * time.Minute {
		want = append(want, at)
	}
	if !slices.Equal(told, want) {
		t.Errorf("told after %v, want %v", told, want)
	}
}

// What a newer owner explains is no disagreement: this process is the zombie.
func TestANewerOwnerExplainsADisagreement(t *testing.T) {
	fenced := &epoch.FencedError{At: epoch.At{Job: "job", Branch: "main", Task: "0.0", Epoch: 9}, Owner: "other"}
	f := &fakeSink{record: at(9)}
	d := newDeliverer(t, f, func(context.Context) error { return fenced })
	d.Add(owed(1))
	if err := d.Run(t.Context()); !errors.Is(err, fenced) {
		t.Fatalf("the error is %v, want %v", err, fenced)
	}
}

// boxOf freezes an outbox of n objects with a row each.
func boxOf(t *testing.T, s store.Store, n int) (objects []epoch.Object) {
	t.Helper()
	var rows outbox.Rows
	for i := range n {
		rows.Begin(uint64(i), 0, connector.Append, 0)
		rows.Row(true)
		rows.Buf = append(rows.Buf, byte(2*i)) // a long of Avro
		rows.Wire(false)
		rows.End()
	}
	form := outbox.Form{Sink: "out", Contract: 1, Row: schema.Record("row", schema.Field{Name: "n", Type: schema.Long()}), MaxRows: 1}
	objects, err := outbox.Write(t.Context(), s, "job", form, []outbox.Batch{{Rows: &rows}}, func() (string, error) {
		n--
		return fmt.Sprint("box", n), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// partsSink is a sink that keeps the places and the rows that it got.
type partsSink struct {
	fakeSink
	got   []string
	told  []string
	fails int // the delivery that fails after it was applied, from 1
}

func (f *partsSink) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	verdict, found, err := f.fakeSink.Deliver(ctx, d)
	if verdict != connector.Apply {
		return verdict, found, err
	}
	rows := ""
	for row, err := range d.Rows {
		if err != nil {
			return verdict, found, err
		}
		rows += fmt.Sprint(row.Row[0] / 2)
	}
	f.got = append(f.got, fmt.Sprintf("%d/%d: %s", d.Record.Position, d.Record.Part, rows))
	for _, o := range d.Offsets {
		f.told = append(f.told, fmt.Sprintf("%d/%d: %s %d", d.Record.Position, d.Record.Part, o.Group, o.Offsets["p"].Next))
	}
	if f.fails--; f.fails == 0 {
		return verdict, found, errors.New("the reply is lost")
	}
	return verdict, found, nil
}

// A delivery in parts is applied part by part, each once, wherever it is cut
// short, and the group's offsets go with the last.
func TestPartsAreAppliedOnce(t *testing.T) {
	s := store.NewMemory()
	objects := boxOf(t, s, 3)
	for fails := range 4 {
		f := &partsSink{fakeSink: fakeSink{record: at(4)}, fails: fails}
		d := newDeliverer(t, &f.fakeSink, noneNewer)
		d.o.Store, d.o.Target, d.o.Confirmed, d.confirmed = s, f, 4, 4
		d.o.Groups = map[string]string{"in": "people"}
		d.Add(Owed{
			From: 4, To: 5, Branch: "main", Epoch: 8, Manifest: "hash", Outbox: objects, Parted: true,
			Sources: map[string]epoch.SourceState{"in": {Partitions: map[string]epoch.Offset{"p": {Next: 77}}}},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		if err := d.Wait(ctx, 0); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if want := []string{"4/1: 0", "4/2: 1", "5/0: 2"}; !slices.Equal(f.got, want) {
			t.Errorf("failing at %d: got %q, want %q", fails, f.got, want)
		}
		if want := []string{"5/0: people 77"}; !slices.Equal(f.told, want) {
			t.Errorf("failing at %d: the group was told %q, want %q", fails, f.told, want)
		}
	}
}

// A deliverer that was shut out by a newer owner looks into the log before it
// would shut that one out in its turn (H18).
func TestADuelEndsAfterOneBlow(t *testing.T) {
	fenced := &epoch.FencedError{At: epoch.At{Job: "job", Branch: "main", Task: "0.0", Epoch: 9}, Owner: "other"}
	f := &fakeSink{record: at(0), fail: []error{errors.New("a newer producer has fenced this one")}}
	d := newDeliverer(t, f, func(context.Context) error { return fenced })
	d.Add(owed(1))
	if err := d.Run(t.Context()); !errors.Is(err, fenced) {
		t.Fatalf("the error is %v, want %v", err, fenced)
	}
	if len(f.applied) > 0 {
		t.Error("it was delivered again")
	}
}

// slowSink tells when a delivery is under way, and ends it when it is told to.
type slowSink struct {
	*fakeSink
	began, end chan struct{}
}

func (s slowSink) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	s.began <- struct{}{}
	select {
	case <-s.end:
		return s.fakeSink.Deliver(ctx, d)
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// Who is to cease brings the delivery to its end that is under way, and begins none.
func TestCeaseEndsBehindWhatIsUnderWay(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, failing := range map[string]error{"it succeeds": nil, "it fails": errors.New("connection lost")} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSink{record: at(0)}
			if failing != nil {
				f.fail = []error{failing}
			}
			slow := slowSink{f, make(chan struct{}), make(chan struct{})}
			d := newDeliverer(t, f, noneNewer)
			d.o.Target = slow
			d.Add(owed(1))
			d.Add(owed(2))
			ended := make(chan error)
			go func() { ended <- d.Run(t.Context()) }()
			<-slow.began
			d.Cease()
			slow.end <- struct{}{}
			if err := <-ended; err != nil { // a second delivery would hang at its beginning
				t.Fatal(err)
			}
			want := epoch.Position(1)
			if failing != nil {
				want = 0
			}
			if d.Confirmed() != want || len(f.applied) != int(want) {
				t.Errorf("confirmed up to %d, applied %v, want %d", d.Confirmed(), f.applied, want)
			}
		})
	}
}

// Who is to cease doesn't wait any more for what holds a first delivery back.
func TestCeaseEndsAHold(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := &fakeSink{record: at(0)}
	d := newDeliverer(t, f, noneNewer)
	holds := make(chan struct{})
	d.o.Hold = func(ctx context.Context) {
		close(holds)
		<-ctx.Done()
	}
	d.Add(owed(1))
	ended := make(chan error)
	go func() { ended <- d.Run(t.Context()) }()
	<-holds
	d.Cease()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(f.applied) != 0 {
		t.Errorf("applied %v, want nothing", f.applied)
	}
}
