package main

import (
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// Order is a line of the input.
type Order struct {
	User  string
	Cents int64
}

// UserOf is the key.
func UserOf(o Order) string { return o.User }

// Receipt is put out for each order.
type Receipt struct {
	User string
	Nth  int64 // of the user's orders
	Sum  int64 // of all of them, in cents
}

// Account is what a user has ordered, as the first version keeps it.
type Account struct{ Orders, Cents int64 }

// Add adds an order.
func (a *Account) Add(o Order) { a.Orders++; a.Cents += o.Cents }

// Ranked is the account of the second version.
type Ranked struct{ Orders, Cents, Largest int64 }

// Add adds an order.
func (r *Ranked) Add(o Order) { r.Orders++; r.Cents += o.Cents; r.Largest = max(r.Largest, o.Cents) }

// Counted is the account of the third version.
type Counted struct{ Orders, Cents, Largest, Counted int64 }

// Add adds an order.
func (c *Counted) Add(o Order) { c.Orders++; c.Cents += o.Cents; c.Counted++ }

// Row is what the table's sink gets from the first version.
type Row struct{ Orders, Cents int64 }

// RankedRow is what it gets from the second, which writes all rows anew, and the third.
type RankedRow struct {
	Orders, Cents int64
	Largest       int64 `avro:",default=0"`
}

// The folders, in the working directory.
const (
	inputs   = "in"
	receipts = "out/receipts"
	accounts = "out/accounts"
	ledger   = "out/ledger"
)

// pollEvery is short: a test waits for what is followed.
const pollEvery = 5 * time.Millisecond

// shape is what differs between builds of the job.
type shape struct {
	second, third, fourth bool // the version; none: the first one
	windows               bool // another job of the same name
	follow                bool
	// hanging is a sink that never ends a delivery, waiting one that does so only
	// when it is told to.
	hanging, waiting bool
}

func build(s shape) *sluice.Job {
	var options []file.Option
	if s.follow {
		options = append(options, file.Follow(), file.Poll(pollEvery))
	}
	if s.windows {
		return buildWindows(options...)
	}
	job := sluice.NewJob("steps")
	keyed := job.From("orders", file.JSONLines[Order](inputs+"/*.jsonl", options...)).KeyBy(UserOf)
	var sink connector.StreamSink[Receipt] = file.Append[Receipt](receipts)
	if s.hanging || s.waiting {
		sink = hangs{sink, s.waiting}
	}
	keyed.Process(receiptFor).To("receipts", sink)
	if s.third {
		table := keyed.Fold(sluice.NewState[string, Counted]("accounts"), (*Counted).Add)
		table.To("accounts", file.Upsert(accounts, func(_ string, c Counted) RankedRow { return RankedRow{c.Orders, c.Cents, c.Largest} }))
		return job
	}
	if s.second || s.fourth {
		table := keyed.Fold(sluice.NewState[string, Ranked]("accounts"), (*Ranked).Add)
		table.To("accounts", file.Upsert(accounts, func(_ string, r Ranked) RankedRow { return RankedRow(r) }))
		if s.fourth {
			table.To("ledger", file.Upsert(ledger, func(_ string, r Ranked) RankedRow { return RankedRow(r) }))
		}
		return job
	}
	table := keyed.Fold(sluice.NewState[string, Account]("accounts"), (*Account).Add)
	table.To("accounts", file.Upsert(accounts, func(_ string, a Account) Row { return Row(a) }))
	return job
}

func receiptFor(p *sluice.Setup[string, Receipt]) func(*sluice.Context[string, Receipt], Order) {
	sums := p.State(sluice.NewState[string, Account]("sums"))
	return func(c *sluice.Context[string, Receipt], o Order) {
		a := sums.Update()
		a.Add(o)
		c.Emit(Receipt{User: o.User, Nth: a.Orders, Sum: a.Cents})
	}
}
