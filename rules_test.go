package sluice_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
	"github.com/sluicestream/sluice/store"
)

type stamped struct {
	ID int64
	At sluice.Instant
}

// The clock stands still within an epoch, never goes back, and is the same when
// the epoch is replayed on another day.
func TestTheClockIsFrozenAndReplayed(t *testing.T) {
	job := sluice.NewJob("clock")
	job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User }).
		Process(func(p *sluice.Setup[string, stamped]) func(*sluice.Context[string, stamped], payment) {
			last := p.State(sluice.NewState[string, stamped]("last"))
			return func(c *sluice.Context[string, stamped], p payment) {
				s := stamped{p.ID, c.Now()}
				last.Set(s)
				c.Emit(s)
			}
		}).To("stamped", file.Append[stamped]("unused"))
	test := sluicetest.New(t, job)
	for step := range int64(3) {
		for id := range int64(20) {
			sluicetest.Feed(test, "payments", payment{20*step + id, string(rune('a' + id%7)), 1})
		}
		test.Step()
	}
	rows := sluicetest.Rows[stamped](test, "stamped")
	for i, r := range rows {
		if first := rows[i/20*20]; r.At != first.At {
			t.Errorf("record %d of an epoch saw %v, the first %v", i, r.At.Time(), first.At.Time())
		}
		if i > 0 && r.At < rows[i-1].At {
			t.Errorf("the clock went back at record %d", i)
		}
	}
	if age := time.Since(rows[0].At.Time()); age < 0 || age > time.Hour {
		t.Errorf("the clock is %v from now", age)
	}
	test.Replay(func(o *sluice.Options) { o.Env = env.Real(); o.Shards = 4 })
}

// Two jobs in one process share nothing but their types.
func TestTwoJobsInOneProcess(t *testing.T) {
	var desks [2]desk
	var both sync.WaitGroup
	for i := range desks {
		desks[i] = newDesk()
		defer desks[i].clear()
		both.Go(func() {
			d := desks[i]
			job := sluice.NewJob("spend")
			keep := d.orders(job)
			if i == 1 {
				keep = keep.Filter(Order.Paid)
			}
			keep.KeyBy(Order.UserID).Fold(spend, (*Spend).Add).To("spend_by_user", file.Upsert(d.path("spend"), spendRow))
			if err := job.Run(t.Context(), sluice.Options{Store: store.NewMemory(), Log: slog.New(slog.DiscardHandler)}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for i, want := range []string{
		`{"op":"put","key":"ann","row":{"Orders":3,"Cents":1250}}`,
		`{"op":"put","key":"ann","row":{"Orders":2,"Cents":1250}}`,
	} {
		if got := desks[i].lines("spend"); len(got) != 2 || got[0] != want {
			t.Errorf("job %d has put out %v, want %s first", i, got, want)
		}
	}
}
