package sluice_test

import (
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// order appends an order to those of the desk.
func (d desk) order(line string) {
	f, err := os.OpenFile(d.path("orders.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// What the examples kept for each user before, and will.
type (
	// SpendEuros has an amount such as "12.50".
	SpendEuros struct {
		Orders int64
		Euros  string
	}
	// SpendLevel has a level besides.
	SpendLevel struct {
		Orders, Cents int64
		Level         string
	}
)

// Add counts an order in.
func (s *SpendEuros) Add(o Order) {
	s.Orders++
	cents, _ := strconv.ParseInt(strings.Replace(s.Euros, ".", "", 1), 10, 64)
	cents += o.Cents
	s.Euros = fmt.Sprintf("%d.%02d", cents/100, cents%100)
}

// Add counts an order in.
func (s *SpendLevel) Add(o Order) {
	s.Orders++
	s.Cents += o.Cents
	s.Level = levelOf(s.Cents)
}

func levelOf(cents int64) string {
	if cents >= 1000 {
		return "gold"
	}
	return "new"
}

// centsOf and withLevel lead from the first type to the second and the third.
func centsOf(s SpendEuros) (Spend, error) {
	cents, err := strconv.ParseInt(strings.Replace(s.Euros, ".", "", 1), 10, 64)
	return Spend{s.Orders, cents}, err
}

func withLevel(s Spend) (SpendLevel, error) {
	return SpendLevel{s.Orders, s.Cents, levelOf(s.Cents)}, nil
}

// spendingInto folds the desk's orders into a state, for each user.
func spendingInto[S any](d desk, state sluice.State[string, S], add func(*S, Order)) *sluice.Job {
	job := sluice.NewJob("spend")
	d.orders(job).KeyBy(Order.UserID).Fold(state, add)
	return job
}

// What is stored goes through the functions from its type on: here through both,
// and through the second alone if the build in between has run.
func ExampleMigrate() {
	d := newDesk()
	defer d.clear()
	d.run(spendingInto(d, sluice.NewState[string, SpendEuros]("spend"), (*SpendEuros).Add))

	d.order(`{"ID":5,"User":"bob","Cents":900}`)
	now := sluice.NewState[string, SpendLevel]("spend").Migrate(sluice.Migrate(centsOf).Then(withLevel))
	job := sluice.NewJob("spend")
	d.orders(job).KeyBy(Order.UserID).Fold(now, (*SpendLevel).Add).
		To("levels", file.Upsert(d.path("levels"), func(_ string, s SpendLevel) SpendLevel { return s }))
	d.run(job)
	d.print("levels")
	// Output:
	// {"op":"put","key":"bob","row":{"Orders":2,"Cents":1200,"Level":"gold"}}
}

// Account is a key with a field more than the user's name.
type Account struct{ Country, User string }

// accounts gives the users that there were a country.
func accounts(user string, s Spend) iter.Seq2[Account, Spend] {
	return func(yield func(Account, Spend) bool) { yield(Account{"no", user}, s) }
}

// Users become accounts, each with what it had.
func ExampleState_MigrateKeys() {
	d := newDesk()
	defer d.clear()
	d.run(spendingInto(d, spend, (*Spend).Add))

	d.order(`{"ID":5,"User":"bob","Cents":900}`)
	byAccount := sluice.NewState[Account, Spend]("spend").MigrateKeys(accounts, nil)
	job := sluice.NewJob("spend")
	d.orders(job).KeyBy(func(o Order) Account { return Account{"no", o.User} }).Fold(byAccount, (*Spend).Add).
		To("accounts", file.Upsert(d.path("accounts"), func(_ Account, s Spend) Spend { return s }))
	d.run(job)
	d.print("accounts")
	// Output:
	// {"op":"put","key":{"Country":"no","User":"bob"},"row":{"Orders":2,"Cents":1200}}
}

// Count and Sum are the two halves of Spend.
type (
	Count struct{ Orders int64 }
	Sum   struct{ Cents int64 }
)

func countOf(s Spend) (Count, error) { return Count{s.Orders}, nil }
func sumOf(s Spend) (Sum, error)     { return Sum{s.Cents}, nil }

// halves has a state for each half of what was one.
func halves(d desk) *sluice.Job {
	counts := sluice.NewState[string, Count]("counts").TakesOver("spend", sluice.Migrate(countOf))
	sums := sluice.NewState[string, Sum]("sums").TakesOver("spend", sluice.Migrate(sumOf))
	job := sluice.NewJob("spend")
	byUser := d.orders(job).KeyBy(Order.UserID)
	byUser.Fold(counts, func(c *Count, _ Order) { c.Orders++ }).
		To("counts", file.Upsert(d.path("counts"), func(_ string, c Count) Count { return c }))
	byUser.Fold(sums, func(s *Sum, o Order) { s.Cents += o.Cents }).
		To("sums", file.Upsert(d.path("sums"), func(_ string, s Sum) Sum { return s }))
	return job
}

// A state is split: two others begin with a part of it each.
func ExampleState_TakesOver() {
	d := newDesk()
	defer d.clear()
	d.run(spendingInto(d, spend, (*Spend).Add))

	d.order(`{"ID":5,"User":"bob","Cents":900}`)
	d.run(halves(d))
	d.print("counts")
	d.print("sums")
	// Output:
	// {"op":"put","key":"bob","row":{"Orders":2}}
	// {"op":"put","key":"bob","row":{"Cents":1200}}
}

// fromCount and fromSum make a whole of each half, and whole puts two together.
func fromCount(c Count) (Spend, error) { return Spend{Orders: c.Orders}, nil }
func fromSum(s Sum) (Spend, error)     { return Spend{Cents: s.Cents}, nil }

func whole(earlier *Spend, later Spend) {
	earlier.Orders += later.Orders
	earlier.Cents += later.Cents
}

// Two states become one: the values of a key that is in both are put together.
func ExampleState_TakesOver_merge() {
	d := newDesk()
	defer d.clear()
	d.run(spendingInto(d, spend, (*Spend).Add))
	d.run(halves(d))

	d.order(`{"ID":5,"User":"bob","Cents":900}`)
	both := sluice.NewState[string, Spend]("totals").
		TakesOver("counts", sluice.Migrate(fromCount)).TakesOver("sums", sluice.Migrate(fromSum)).Merge(whole)
	job := sluice.NewJob("spend")
	d.orders(job).KeyBy(Order.UserID).Fold(both, (*Spend).Add).To("totals", file.Upsert(d.path("totals"), spendRow))
	d.run(job)
	d.print("totals")
	// Output:
	// {"op":"put","key":"bob","row":{"Orders":2,"Cents":1200}}
}

// inMills makes tenths of cents of cents.
func inMills(s Spend) (Spend, error) { s.Cents *= 10; return s, nil }

// The type stays, and its numbers mean something else: from version 1 on they are
// tenths of cents.
func ExampleState_Meaning() {
	d := newDesk()
	defer d.clear()
	d.run(spendingInto(d, spend, (*Spend).Add))

	d.order(`{"ID":5,"User":"bob","Cents":900}`)
	mills := spend.Meaning(1).Migrate(sluice.Migrate(inMills).From(0))
	job := sluice.NewJob("spend")
	d.orders(job).KeyBy(Order.UserID).Fold(mills, func(s *Spend, o Order) { s.Orders++; s.Cents += 10 * o.Cents }).
		To("mills", file.Upsert(d.path("mills"), spendRow))
	d.run(job)
	d.print("mills")
	// Output:
	// {"op":"put","key":"bob","row":{"Orders":2,"Cents":12000}}
}
