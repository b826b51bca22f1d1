package upgrades

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
)

// deaf is a sink to which no delivery comes to its end.
type deaf struct{ connector.Sink }

// Open implements [connector.Sink].
func (s deaf) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	t, err := s.Sink.Open(ctx, o, key)
	return deafTarget{t}, err
}

type deafTarget struct{ connector.Target }

// Deliver implements [connector.Target].
func (deafTarget) Deliver(ctx context.Context, _ *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	<-ctx.Done()
	return 0, nil, ctx.Err()
}

// TestDeliver brings a sink what it is owed whose owner has died, and which the build that
// is live lacks: once, although two processes do it in the same moment, and another one
// has been told to stop before.
func TestDeliver(t *testing.T) {
	w := newWay(t, "rows")
	before := func() *sluice.Job { return first(w, build{version: 1, rows: []string{"rows"}}) }
	job := before()
	for _, s := range job.Sinks() {
		if s.Name == "rows" {
			if err := job.ReplaceSink("rows", deaf{s.Sink}); err != nil {
				t.Fatal(err)
			}
		}
	}
	old := w.run("the first build", job, sluice.Options{Grace: time.Millisecond}) // none of its deliveries ends
	w.feedEpochs(3, nil)
	old.kill()
	u := w.upgrade("the second build", second(w, build{version: 2}), sluice.Options{}, sluice.Upgrade{Auto: true})
	record := w.awaitLive(1, epoch.Upgrade)
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	owed := w.ended("rows")
	if n := len(w.cluster.Read(t, "rows")); n > 0 || owed.Pending < 3 || owed.Live != 1 || owed.Ended != epoch.MainBranch {
		t.Fatalf("the sink has %d rows, and is owed %+v", n, owed)
	}
	deliver := func(ctx context.Context, job *sluice.Job) []sluice.Rest {
		all, err := job.Deliver(ctx, sluice.Options{Store: w.open(), Lease: wayLease, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
		}
		return all
	}
	if all := deliver(t.Context(), second(w, build{version: 2})); len(all) != 1 || !all[0].Lacks || all[0].Pending != int(owed.Pending) {
		t.Errorf("a build without the sink tells %+v", all)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if all := deliver(stopped, before()); len(all) != 1 || all[0].Pending != int(owed.Pending) {
		t.Errorf("one that is stopped at once tells %+v, and %d are owed", all, owed.Pending)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if all := deliver(t.Context(), before()); len(all) > 1 || len(all) == 1 && (all[0].Pending != 0 || all[0].Delivered > int(owed.Pending)) {
				t.Errorf("it tells %+v, and %d were owed", all, owed.Pending)
			}
		})
	}
	both.Wait()
	rows, _ := w.cuts(record.Ends.Branch)
	w.checkRows("rows", rows)
	if ended := w.ended("rows"); ended.Pending != 0 {
		t.Errorf("the sink has ended so: %+v", ended)
	}
	if all := deliver(t.Context(), before()); len(all) != 0 {
		t.Errorf("once more it tells %+v", all)
	}
	u.goesOn()
	u.stops()
}
