// Package orders is what the builds of the job spend have in common. They
// differ in their state.
package orders

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// Order is a line of the input.
type Order struct {
	User   string
	Number int64 // of the user
	Cents  int64
	Weight float64
	Note   string
	Code   string
}

// UserOf is the key.
func UserOf(o Order) string { return o.User }

// Row is what the sink gets, whatever the state looks like.
type Row struct {
	Orders, Cents int64
	Weight        float64
	Note          string
	Status        string
	Code          string
	VIP           bool
}

// Main runs the job with a build's state, key, fold and row.
func Main[K comparable, S any](state sluice.State[K, S], key func(Order) K, fold func(*S, Order), row func(S) Row) {
	job := sluice.NewJob("spend")
	job.From("orders", file.JSONLines[Order]("in/*.jsonl")).
		KeyBy(key).
		Fold(state, fold).
		To("rows", file.Upsert("out/rows", func(_ K, s S) Row { return row(s) }))
	sluice.Main(job)
}

// Status is an enum.
type Status string

// The symbols of Status.
const (
	New     Status = "new"
	Regular Status = "regular"
)

// Symbols lists them.
func (Status) Symbols() []string { return []string{string(New), string(Regular)} }

// StatusOf is the status after a number of orders.
func StatusOf(orders int64) Status {
	if orders > 2 {
		return Regular
	}
	return New
}
