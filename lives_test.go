package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

// sinksJob is a job whose builds have its second sink, or don't.
func sinksJob(second bool) *sluice.Job {
	job := sluice.NewJob("sinks")
	table := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User }).
		Fold(balances, (*balance).add)
	row := func(_ string, b balance) balance { return b }
	table.To("first", file.Upsert("unused", row))
	if second {
		table.To("second", file.Upsert("unused", row))
	}
	return job
}

// A sink that a build lacks is left alone, however long; one that is back goes
// on with consent, from the record that it has, and what it missed is a gap.
func TestASinkGoesAndComesBack(t *testing.T) {
	test := sluicetest.New(t, sinksJob(true))
	pay := func(user string) error {
		sluicetest.Feed(test, "payments", payment{1, user, 5})
		return test.Try()
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(pay("ann"))
	test.Replace(sinksJob(false))
	for range 3 {
		must(pay("bob"))
	}
	test.Replace(sinksJob(true))
	test.Options(func(o *sluice.Options) { o.Replace = true })
	var refused *sluice.RefusedError
	if err := pay("eve"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "--gap second") {
		t.Fatalf("a sink is back without consent: %v", err)
	}
	test.Options(func(o *sluice.Options) { o.Gap = []string{"second"} })
	must(test.Try())
	must(pay("ann"))
	if got := sluicetest.Table[string, balance](test, "second"); len(got) != 2 || got["ann"] != (balance{2, 10}) || got["eve"] != (balance{1, 5}) {
		t.Errorf("the sink that was away has %v, want ann and eve", got)
	}
	if got := sluicetest.Table[string, balance](test, "first"); len(got) != 3 || got["bob"] != (balance{3, 15}) {
		t.Errorf("the sink that stayed has %v", got)
	}
}

// A sink that was away and has missed nothing is back without a word.
func TestASinkThatMissedNothingIsBack(t *testing.T) {
	test := sluicetest.New(t, sinksJob(true))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sluicetest.Feed(test, "payments", payment{1, "ann", 5})
	must(test.Try())
	test.Replace(sinksJob(false))
	must(test.Try())
	test.Replace(sinksJob(true))
	test.Options(func(o *sluice.Options) { o.Replace = true })
	sluicetest.Feed(test, "payments", payment{2, "ann", 5})
	must(test.Try())
	if got := sluicetest.Table[string, balance](test, "second"); len(got) != 1 || got["ann"] != (balance{2, 10}) {
		t.Errorf("the sink that was away has %v, want ann", got)
	}
}

// elsewhere is a sink that says of itself that it is another.
type elsewhere struct {
	connector.Sink
	is connector.Description
}

func (e elsewhere) Describe() connector.Description { return e.is }

// A build whose sink writes to another place, or under other keys, is refused: what
// the sink has written stands where it was.
func TestASinkThatMovesIsRefused(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(in, []byte(`{"N":1,"User":"ann","Cents":5}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	was := connector.Description{Connector: "broker", Contract: 1, Target: "totals", Parameters: []connector.Parameter{{Name: "mode", Value: "upsert"}, {Name: "key", Value: "json"}}}
	job := func(is connector.Description) *sluice.Job {
		job := sluice.NewJob("moves")
		job.From("payments", file.JSONLines[payment](in)).To("out", file.Append[payment]("unused"))
		if err := job.ReplaceSink("out", elsewhere{&gate{open: passes}, is}); err != nil {
			t.Fatal(err)
		}
		return job
	}
	o := sluice.Options{Store: store.NewMemory(), Log: slog.New(slog.DiscardHandler), Replace: true}
	if err := job(was).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	change := func(f func(d *connector.Description)) connector.Description {
		d := was
		d.Parameters = slices.Clone(was.Parameters)
		f(&d)
		return d
	}
	for says, is := range map[string]connector.Description{
		`target: "totals" → "others"`:   change(func(d *connector.Description) { d.Target = "others" }),
		`connector: "broker" → "table"`: change(func(d *connector.Description) { d.Connector = "table" }),
		`key: "json" → "string"`:        change(func(d *connector.Description) { d.Parameters[1].Value = "string" }),
		`mode: "upsert" → "append"`:     change(func(d *connector.Description) { d.Parameters[0].Value = "append" }),
	} {
		var refused *sluice.RefusedError
		if err := job(is).Run(t.Context(), o); !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want one that says %s", err, says)
		}
	}
	if err := job(change(func(d *connector.Description) {
		d.Parameters = append(d.Parameters, connector.Parameter{Name: "retries", Value: "3"})
	})).Run(t.Context(), o); err != nil {
		t.Errorf("a parameter that no earlier release knew: %v", err)
	}
}

// passes is a gate that is open.
var passes = func() chan struct{} {
	open := make(chan struct{})
	close(open)
	return open
}()

// Nothing is owed of a gap, so that the epochs in it need not be there.
func TestAGapIsCleanedUp(t *testing.T) {
	test := sluicetest.New(t, sinksJob(true))
	var s store.Store
	test.Options(func(o *sluice.Options) { s, o.Replace, o.Gap = o.Store, true, []string{"second"} })
	pay := func() {
		t.Helper()
		sluicetest.Feed(test, "payments", payment{1, "ann", 5})
		test.Step()
	}
	pay()
	test.Replace(sinksJob(false))
	for range 5 {
		pay()
	}
	cleanUp := func() {
		t.Helper()
		found, err := epoch.FindJob(t.Context(), env.Real(), s, "sinks")
		if err == nil {
			_, err = clean.New(found, clean.Options{Keep: -1, KeepEpochs: 1}).All(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cleanUp()
	test.Replace(sinksJob(true))
	test.Step()
	cleanUp()
	pay()
	if got := sluicetest.Table[string, balance](test, "second"); len(got) != 1 || got["ann"] != (balance{7, 35}) {
		t.Errorf("the sink that was away has %v, want what came after the gap", got)
	}
}

// A record behind a KeyBy may fail in any epoch of a process, also when the
// state came into being after the process started.
func TestDeadLettersInALaterEpoch(t *testing.T) {
	d := newDesk()
	defer d.clear()
	var lines strings.Builder
	for id := range 3000 {
		cents := 1
		if id == 2500 {
			cents = 13
		}
		fmt.Fprintf(&lines, `{"ID":%d,"User":"u%d","Cents":%d}`+"\n", 2*id+1, id%7, cents)
	}
	if err := os.WriteFile(d.path("payments.jsonl"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	job := failingJob(d.dir, true, false)
	if err := job.ReplaceSource("payments", file.JSONLines[payment](d.path("payments.jsonl"))); err != nil {
		t.Fatal(err)
	}
	var epochs, dead atomic.Int64
	err := job.Run(t.Context(), sluice.Options{
		Store: store.NewMemory(), EpochBytes: 1 << 13, BatchRecords: 100, Log: slog.New(slog.DiscardHandler),
		Committed: func(c sluice.Committed) { epochs.Add(1); dead.Add(c.DeadLetters) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if epochs.Load() < 3 || dead.Load() != 1 {
		t.Errorf("%d epochs with %d dead letters, want several with one", epochs.Load(), dead.Load())
	}
}

// failingMerges is a store in which, once told, nothing that was written can be
// opened any more: a merge is what opens it while a job runs.
type failingMerges struct {
	store.Store
	fails atomic.Bool
}

func (f *failingMerges) Open(ctx context.Context, name string) (store.Object, error) {
	if f.fails.Load() && strings.Contains(name, "-balance.avro") {
		return nil, store.ErrNotFound
	}
	return f.Store.Open(ctx, name)
}

// A merge that finds a segment gone stops the job with its name; Run returns.
func TestAMergeThatFailsStopsTheJob(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := &failingMerges{Store: store.NewMemory()}
	s.fails.Store(true)
	job := sluice.NewJob("merging")
	job.From("numbers", endless{}).KeyBy(even).Fold(sluice.NewState[bool, int64]("balance"), func(n *int64, _ int64) { *n++ })
	err := job.Run(t.Context(), sluice.Options{Store: s, Epoch: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	var damaged *sluice.DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(damaged.Object, "balance.avro") {
		t.Fatalf("the run's error is %v, want one that names the segment", err)
	}
}

// However a context ends, and whenever, a run that it stops has no error; its
// goroutines end, and the next run goes on.
func TestStoppedAtAnyMoment(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newDesk()
	defer d.clear()
	s := store.NewMemory()
	for i := range 20 {
		job := sluice.NewJob("stopped")
		job.From("numbers", endless{}).KeyBy(even).Fold(sluice.NewState[bool, int64]("n"), func(n *int64, _ int64) { *n++ })
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
		if err := job.Run(ctx, sluice.Options{Store: s, Epoch: time.Millisecond, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Errorf("stopped after %d half milliseconds: %v", i, err)
		}
		cancel()
	}
}

// Grace is for a job that is told to stop; one whose input ends delivers all.
func TestInputThatEndsIsDelivered(t *testing.T) {
	d := newDesk()
	defer d.clear()
	job := sluice.NewJob("grace")
	d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	if err := job.Run(t.Context(), sluice.Options{Store: store.NewMemory(), Grace: 1, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if got := d.lines("out"); len(got) != 2 {
		t.Errorf("the sink has %v", got)
	}
}

// A manifest that is lost in the middle is damage, and its name is not taken.
func TestAManifestLostInTheMiddleIsNamed(t *testing.T) {
	t.Parallel()
	d := newDesk()
	defer d.clear()
	s, err := store.OpenFolder(env.Real(), d.path("sluice-data"))
	if err != nil {
		t.Fatal(err)
	}
	build := func() *sluice.Job {
		job := sluice.NewJob("lost")
		d.orders(job).KeyBy(Order.UserID).Fold(spend, (*Spend).Add)
		return job
	}
	for range 4 {
		d.run(build())
	}
	const lost = "lost/branches/main/0.0/00000000000000000003.json"
	data, err := s.Read(t.Context(), lost, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	err = build().Run(t.Context(), sluice.Options{Store: s, Volatile: true, Log: slog.New(slog.DiscardHandler)})
	var damaged *sluice.DamagedError
	if !errors.As(err, &damaged) || damaged.Object != lost {
		t.Fatalf("the run's error is %v, want one that names %s", err, lost)
	}
	if err := s.Create(t.Context(), lost, data); err != nil {
		t.Fatal(err)
	}
	if err := build().Run(t.Context(), sluice.Options{Store: s, Volatile: true, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatalf("with the manifest restored: %v", err)
	}
}
