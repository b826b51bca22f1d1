package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// The jobs of the scripts. They read orders*.jsonl and write to the folder out.

type order struct {
	User  string
	Shop  shop
	Cents int64
}

type shop struct {
	City   string
	Number int32
}

func (o order) byUser() string { return o.User }
func (o order) byShop() shop   { return o.Shop }
func (o order) paid() bool     { return o.Cents > 0 }

type spending struct {
	Orders int64
	Cents  int64
}

func (s *spending) add(o order) { s.Orders++; s.Cents += o.Cents }

type row struct {
	Orders int64
	Mean   float64
}

func rowOf(_ string, s spending) row { return row{s.Orders, float64(s.Cents) / float64(s.Orders)} }

var (
	spend  = sluice.NewState[string, spending]("spend")
	shops  = sluice.NewMapState[shop, string, spending]("shops")
	recent = sluice.NewListState[shop, int64]("recent")
)

func spendJob() *sluice.Job {
	job := sluice.NewJob("spend")
	orders := job.From("orders", file.JSONLines[order]("orders*.jsonl")).Filter(order.paid)
	orders.KeyBy(order.byUser).Fold(spend, (*spending).add).To("spend_by_user", file.Upsert("out/spend", rowOf))
	orders.KeyBy(order.byShop).Process(countShop).To("large", file.Append[order]("out/large", file.AsCSV()))
	return job
}

// countShop keeps what was spent in a shop by user, and the last orders.
func countShop(p *sluice.Setup[shop, order]) func(*sluice.Context[shop, order], order) {
	users, last := p.Map(shops), p.List(recent)
	return func(c *sluice.Context[shop, order], o order) {
		users.Update(o.User).add(o)
		last.Append(o.Cents)
		if last.Len() > 2 {
			last.RemoveFirst(1)
		}
		if o.Cents >= 1000 {
			c.Emit(o)
		}
	}
}

// spendLessJob is a later build, without a field and without the shops. Its rows
// are others, so that they go to a sink of a new name.
func spendLessJob() *sluice.Job {
	type spending struct{ Cents int64 }
	job := sluice.NewJob("spend")
	job.From("orders", file.JSONLines[order]("orders*.jsonl")).
		KeyBy(order.byUser).
		Fold(sluice.NewState[string, spending]("spend"), func(s *spending, o order) { s.Cents += o.Cents }).
		To("cents_by_user", file.Upsert("out/cents", func(_ string, s spending) spending { return s }))
	return job
}

// spendOtherJob is a build that can't go on from the stored state.
func spendOtherJob() *sluice.Job {
	type spending struct{ Orders string }
	job := sluice.NewJob("spend")
	job.From("orders", file.JSONLines[order]("orders*.jsonl")).
		KeyBy(order.byUser).
		Fold(sluice.NewState[string, spending]("spend"), func(s *spending, o order) { s.Orders += "I" }).
		To("spend_by_user", file.Upsert("out/spend", func(_ string, s spending) spending { return s }))
	return job
}

// spendMoreJob is a later build, whose rows have a larger mean.
func spendMoreJob() *sluice.Job {
	job := sluice.NewJob("spend")
	orders := job.From("orders", file.JSONLines[order]("orders*.jsonl")).Filter(order.paid)
	orders.KeyBy(order.byUser).Fold(spend, (*spending).add).To("spend_by_user", file.Upsert("out/spend", func(user string, s spending) row {
		r := rowOf(user, s)
		r.Mean++
		return r
	}))
	orders.KeyBy(order.byShop).Process(countShop).To("large", file.Append[order]("out/large", file.AsCSV()))
	return job
}

// spendAskedJob is spendJob's later build, whose first sink looks into the file
// answer for what to say when it is asked.
func spendAskedJob() *sluice.Job {
	job := sluice.NewJob("spend")
	orders := job.From("orders", file.JSONLines[order]("orders*.jsonl")).Filter(order.paid)
	orders.KeyBy(order.byUser).Fold(spend, (*spending).add).To("spend_by_user", askedSink{file.Upsert("out/spend", rowOf)})
	orders.KeyBy(order.byShop).Process(countShop).To("large", file.Append[order]("out/large", file.AsCSV()))
	return job
}

type askedSink struct {
	connector.TableSink[string, spending]
}

func (askedSink) Check(_ context.Context, o connector.Opening) error {
	if o.Job != "spend" || o.Name != "spend_by_user" || o.JobID == "" || o.TransactionPrefix != "spend/" {
		return fmt.Errorf("opened with %+v", o)
	}
	answer, err := os.ReadFile("answer")
	if err != nil {
		return nil // there is nothing to say
	}
	said := errors.New(strings.TrimSpace(string(answer)))
	if strings.HasPrefix(said.Error(), "away") {
		return connector.NotAsked(said)
	}
	return said
}

// spendStrictJob is a later build whose migration fails on some entries.
func spendStrictJob() *sluice.Job {
	job := sluice.NewJob("spend")
	orders := job.From("orders", file.JSONLines[order]("orders*.jsonl")).Filter(order.paid)
	orders.KeyBy(order.byUser).
		Fold(sluice.NewState[string, spendingText]("spend").Migrate(sluice.Migrate(strict)), func(s *spendingText, o order) { s.Orders += "I" }).
		To("spend_by_user", file.Upsert("out/spend", func(_ string, s spendingText) row { return row{} }))
	orders.KeyBy(order.byShop).Process(countShop).To("large", file.Append[order]("out/large", file.AsCSV()))
	return job
}

type spendingText struct{ Orders string }

func strict(s spending) (spendingText, error) {
	if s.Cents > 1000 {
		return spendingText{}, fmt.Errorf("too much: %d", s.Cents)
	}
	return spendingText{strings.Repeat("I", int(s.Orders))}, nil
}

// spendDearerJob is a later build whose rows say more than was spent.
func spendDearerJob() *sluice.Job {
	job := sluice.NewJob("spend")
	orders := job.From("orders", file.JSONLines[order]("orders*.jsonl")).Filter(order.paid)
	orders.KeyBy(order.byUser).Fold(spend, (*spending).add).To("spend_by_user", file.Upsert("out/spend", dearer))
	orders.KeyBy(order.byShop).Process(countShop).To("large", file.Append[order]("out/large", file.AsCSV()))
	return job
}

func dearer(user string, s spending) row {
	r := rowOf(user, s)
	r.Mean++
	return r
}

// followJob reads its file as it grows, until it is told to stop.
func followJob() *sluice.Job {
	job := sluice.NewJob("follow")
	job.From("orders", file.JSONLines[order]("orders.jsonl", file.Follow(), file.Poll(10*time.Millisecond))).
		KeyBy(order.byUser).
		Fold(spend, (*spending).add).
		To("spend_by_user", file.Upsert("out/spend", rowOf))
	return job
}

// clicksJob is another job for the same store.
func clicksJob() *sluice.Job {
	job := sluice.NewJob("clicks")
	job.From("orders", file.JSONLines[order]("orders*.jsonl")).
		KeyBy(func(o order) int64 { return o.Cents }).
		Fold(sluice.NewState[int64, int64]("amounts"), func(n *int64, _ order) { *n++ }).
		To("amounts", file.Upsert("out/amounts", func(cents int64, n int64) spending { return spending{n, cents} }))
	return job
}

func faultyJob() *sluice.Job {
	job := sluice.NewJob("faulty")
	job.From("orders", file.JSONLines[order]("orders*.jsonl")).Filter(order.paid)
	job.From("orders", file.JSONLines[order]("orders*.jsonl")).Discard()
	return job
}

// stuckJob has a sink that takes for ever.
func stuckJob() *sluice.Job {
	job := sluice.NewJob("stuck")
	job.From("orders", file.JSONLines[order]("orders.jsonl", file.Follow())).
		To("never", stuckSink[order]{file.Append[order]("out/never")})
	return job
}

type stuckSink[T any] struct{ connector.StreamSink[T] }

func (s stuckSink[T]) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	target, err := s.StreamSink.Open(ctx, o, key)
	return stuckTarget{target}, err
}

type stuckTarget struct{ connector.Target }

func (stuckTarget) Deliver(ctx context.Context, _ *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	<-ctx.Done()
	return connector.Disagree, nil, ctx.Err()
}
