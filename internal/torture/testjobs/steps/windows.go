package main

import (
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// Dated is an order with a time, a line of the input of the job with windows.
type Dated struct {
	User  string
	Cents int64
	At    int64 // in seconds
}

// DatedUser is the key.
func DatedUser(d Dated) string { return d.User }

// Time is the event time.
func (d Dated) Time() sluice.Instant { return sluice.Instant(d.At * time.Second.Microseconds()) }

// AddDated adds an order to an account.
func (a *Account) AddDated(d Dated) { a.Orders++; a.Cents += d.Cents }

// AddClosed adds what a window has come to.
func (a *Account) AddClosed(c Closed) { a.Orders += c.Orders; a.Cents += c.Cents }

// Closed is a window that has closed.
type Closed struct {
	User          string
	Start         int64 // in seconds
	Orders, Cents int64
}

// ClosedUser is the key of what a window has come to.
func ClosedUser(c Closed) string { return c.User }

func closed(r sluice.Result[string, Account]) Closed {
	return Closed{r.Key, int64(r.Window.Start) / time.Second.Microseconds(), r.Value.Orders, r.Value.Cents}
}

// The folders of the job with windows: each order, and windows of two sizes, the larger
// ones of what the smaller ones come to.
const (
	seen  = "out/seen"
	short = "out/short"
	long  = "out/long"
)

func buildWindows(options ...file.Option) *sluice.Job {
	job := sluice.NewJob("steps")
	orders := job.From("orders", file.JSONLines[Dated](inputs+"/*.jsonl", options...)).EventTime(Dated.Time, 2*time.Second)
	keyed := orders.KeyBy(DatedUser)
	orders.To("seen", file.Append[Dated](seen))
	closings := keyed.Window(sluice.Tumbling(10*time.Second)).
		Fold(sluice.NewState[sluice.In[string], Account]("short"), (*Account).AddDated).Results().Map(closed)
	closings.To("short", file.Append[Closed](short))
	closings.KeyBy(ClosedUser).Window(sluice.Tumbling(30*time.Second)).
		Fold(sluice.NewState[sluice.In[string], Account]("long"), (*Account).AddClosed).Results().Map(closed).
		To("long", file.Append[Closed](long))
	return job
}
