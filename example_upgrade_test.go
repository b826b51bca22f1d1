package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// SpendAndLargest is what a newer build keeps for each user.
type SpendAndLargest struct {
	Orders  int64
	Cents   int64
	Largest int64 // new: of what the older build has counted it reads as 0
}

// Add counts an order in.
func (s *SpendAndLargest) Add(o Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Largest = max(s.Largest, o.Cents)
}

// A newer build takes the place of one that runs, in the same program here, and in
// another process as a rule. The older one's run ends by that; the newer one's goes
// on until it is told to stop.
func ExampleJob_Upgrade() {
	d := newDesk()
	defer d.clear()
	following := func() (*sluice.Job, *sluice.Keyed[string, Order]) {
		job := sluice.NewJob("spend")
		return job, job.From("orders", file.JSONLines[Order](d.path("orders.jsonl"), file.Follow(), file.Poll(5*time.Millisecond))).KeyBy(Order.UserID)
	}
	older, orders := following()
	orders.Fold(spend, (*Spend).Add).To("out", file.Upsert(d.path("out"), spendRow))
	newer, orders := following()
	orders.Fold(sluice.NewState[string, SpendAndLargest]("spend"), (*SpendAndLargest).Add).
		To("out", file.Upsert(d.path("out"), func(_ string, s SpendAndLargest) SpendAndLargest { return s }))

	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	o := sluice.Options{Store: store.NewMemory(), Epoch: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	committed := make(chan sluice.Committed, 10)
	ended := make(chan error, 1)
	go func() {
		o := o
		o.Committed = func(c sluice.Committed) { committed <- c }
		ended <- older.Run(ctx, o)
	}()
	<-committed // the older build has counted the first orders
	err := newer.Upgrade(ctx, upgraded(o, stop), sluice.Upgrade{
		Auto: true,
		Told: func(p sluice.UpgradeProgress) {
			if p.Stage != "live" {
				return
			}
			var superseded *sluice.SupersededError
			fmt.Println("the newer build is live; the older one is superseded:", errors.As(<-ended, &superseded))
			d.order(`{"ID":5,"User":"ann","Cents":700}`)
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	d.print("out")
	// Output:
	// the newer build is live; the older one is superseded: true
	// {"op":"put","key":"ann","row":{"Orders":3,"Cents":1250}}
	// {"op":"put","key":"bob","row":{"Orders":1,"Cents":300}}
	// {"op":"put","key":"ann","row":{"Orders":4,"Cents":1950,"Largest":700}}
}

// upgraded are options with which the run ends behind the next epoch.
func upgraded(o sluice.Options, stop func()) sluice.Options {
	o.Committed = func(sluice.Committed) { stop() }
	return o
}
