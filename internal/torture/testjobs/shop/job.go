package main

import (
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// Order is a line of the input. Close ends the user's account.
type Order struct {
	ID, User, Shop string
	Cents          int64
	Close          bool
}

// UserOf is the first key.
func UserOf(o Order) string { return o.User }

// Account is what a user has ordered since the account was opened.
type Account struct {
	Orders, Cents int64
	Last          string
}

// Take takes an order, and tells whether the account stays.
func (a *Account) Take(o Order) bool {
	a.Orders++
	a.Cents += o.Cents
	a.Last = o.ID
	return !o.Close
}

// ordersPerLevel is small, so that accounts change their group often.
const ordersPerLevel = 5

// Level is the account's group.
func (a Account) Level() int64 { return a.Orders / ordersPerLevel }

// Receipt is put out for each order.
type Receipt struct {
	ID, User, Shop string
	Nth            int64 // of the user's orders
	Cents          int64 // of all of them
	Recent         int64 // of the last three
}

// ShopOf is the second key.
func ShopOf(r Receipt) string { return r.Shop }

// Entry is a line of a shop's ledger.
type Entry struct {
	Shop, ID string
	Nth      int64 // of the shop's orders
	Visits   int64 // of this user in this shop
	Chain    int64 // depends on everything before, in its order
}

// Till is what a shop keeps.
type Till struct{ Entries, Chain int64 }

// Promotion is a user's change of level at an epoch's end; none is -1.
type Promotion struct {
	User     string
	From, To int64
}

// Level is what the accounts of one level come to.
type Level struct{ Users, Cents int64 }

// Visits is what a user has ordered, closed accounts included.
type Visits struct{ Orders, Cents int64 }

func shop(s settings, seen *counter) *sluice.Job {
	out := func(name string) string { return filepath.Join(s.folder, "out", name) }
	var options []file.Option
	if s.follow {
		options = append(options, file.Follow(), file.Poll(2*time.Millisecond))
	}
	job := sluice.NewJob("shop")
	users := job.From("orders", file.JSONLines[Order](filepath.Join(s.folder, "in", "*.jsonl"), options...)).
		Filter(seen.see).
		KeyBy(UserOf)

	receipts := users.Process(keepReceipts)
	receipts.To("receipts", file.Append[Receipt](out("receipts")))
	receipts.KeyBy(ShopOf).Process(keepLedger).To("ledger", file.Append[Entry](out("ledger")))

	accounts := users.FoldKeep(sluice.NewState[string, Account]("accounts"), (*Account).Take)
	accounts.To("accounts", file.Upsert(out("accounts"), func(_ string, a Account) Account { return a }))
	accounts.Changes().Map(promotion).Filter(Promotion.changes).To("promotions", file.Append[Promotion](out("promotions")))
	accounts.Regroup(sluice.NewState[int64, Level]("levels"), func(_ string, a Account) int64 { return a.Level() }, (*Level).add, (*Level).remove).
		To("levels", file.Upsert(out("levels"), func(_ int64, l Level) Level { return l }))
	return job
}

func keepReceipts(p *sluice.Setup[string, Receipt]) func(*sluice.Context[string, Receipt], Order) {
	visits := p.State(sluice.NewState[string, Visits]("visits"))
	recent := p.List(sluice.NewListState[string, int64]("recent"))
	return func(c *sluice.Context[string, Receipt], o Order) {
		v := visits.Update()
		v.Orders++
		v.Cents += o.Cents
		recent.Append(o.Cents)
		if recent.Len() > 3 {
			recent.RemoveFirst(1)
		}
		r := Receipt{ID: o.ID, User: o.User, Shop: o.Shop, Nth: v.Orders, Cents: v.Cents}
		for _, cents := range recent.All() {
			r.Recent += cents
		}
		c.Emit(r)
	}
}

func keepLedger(p *sluice.Setup[string, Entry]) func(*sluice.Context[string, Entry], Receipt) {
	till := p.State(sluice.NewState[string, Till]("tills"))
	regulars := p.Map(sluice.NewMapState[string, string, int64]("regulars"))
	return func(c *sluice.Context[string, Entry], r Receipt) {
		t, visits := till.Update(), regulars.Update(r.User)
		*visits++
		t.Entries++
		t.Chain = t.Chain*31 + r.Nth*1_000_003 + r.Recent
		c.Emit(Entry{Shop: r.Shop, ID: r.ID, Nth: t.Entries, Visits: *visits, Chain: t.Chain})
	}
}

func promotion(c sluice.Change[string, Account]) Promotion {
	p := Promotion{User: c.Key, From: -1, To: -1}
	if c.HadOld {
		p.From = c.Old.Level()
	}
	if c.HasNew {
		p.To = c.New.Level()
	}
	return p
}

func (p Promotion) changes() bool { return p.From != p.To }

func (l *Level) add(a Account) {
	l.Users++
	l.Cents += a.Cents
}

func (l *Level) remove(a Account) bool {
	l.Users--
	l.Cents -= a.Cents
	return l.Users > 0
}
