package sluice_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

type payment struct {
	ID    int64
	User  string
	Cents int64
}

type balance struct {
	Payments int64
	Cents    int64
}

func (b *balance) add(p payment) { b.Payments++; b.Cents += p.Cents }

type bracketCount struct{ Users, Cents int64 }

type receipt struct {
	ID    int64
	User  string
	Total int64 // of the user, this payment included
}

var (
	balances = sluice.NewState[string, balance]("balance")
	brackets = sluice.NewState[int64, bracketCount]("bracket")
	running  = sluice.NewState[string, balance]("running")
)

func paymentsJob(dir string) *sluice.Job {
	job := sluice.NewJob("payments")
	keyed := job.From("payments", file.JSONLines[payment]("unused.jsonl")).KeyBy(func(p payment) string { return p.User })
	keyed.Fold(balances, (*balance).add).
		To("balances", file.Upsert(dir+"/balances", func(_ string, b balance) balance { return b })).
		Regroup(brackets, func(_ string, b balance) int64 { return b.Payments / 2 },
			func(c *bracketCount, b balance) { c.Users++; c.Cents += b.Cents },
			func(c *bracketCount, b balance) bool { c.Users--; c.Cents -= b.Cents; return c.Users > 0 }).
		To("brackets", file.Upsert(dir+"/brackets", func(_ int64, c bracketCount) bracketCount { return c }))
	keyed.Process(func(p *sluice.Setup[string, receipt]) func(*sluice.Context[string, receipt], payment) {
		sum := p.State(running)
		return func(c *sluice.Context[string, receipt], p payment) {
			b := sum.Update()
			b.add(p)
			c.Emit(receipt{p.ID, c.Key(), b.Cents})
		}
	}).To("receipts", file.Append[receipt](dir+"/receipts"))
	return job
}

// The n-th write to the store is the last that happens, for each n until the job
// gets through: what comes out in the end is what an uninterrupted run gives.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		test := sluicetest.New(t, paymentsJob(t.TempDir()))
		test.Options(func(o *sluice.Options) { o.Shards, o.BatchRecords = 3, 2 })
		want := map[string]balance{}
		feed := func(from, to int64) {
			for id := from; id < to; id++ {
				p := payment{id, fmt.Sprintf("user-%d", id*id%7), id * 10}
				sluicetest.FeedPartition(test, "payments", fmt.Sprint(id%2), p)
				b := want[p.User]
				b.Payments++
				b.Cents += p.Cents
				want[p.User] = b
			}
		}
		feed(0, 10)
		test.Step()
		feed(10, 25)
		crashed := test.Crash(n)
		feed(25, 30)
		test.Step()
		checkPayments(t, n, test, want, 30)
		if !crashed {
			if n < 8 {
				t.Fatalf("the job makes %d writes; a step must make more", n-1)
			}
			return
		}
	}
}

func checkPayments(t *testing.T, n int, test *sluicetest.Test, want map[string]balance, payments int64) {
	t.Helper()
	if got := sluicetest.Table[string, balance](test, "balances"); !maps.Equal(got, want) {
		t.Fatalf("crash at write %d: balances are %v, want %v", n, got, want)
	}
	groups := map[int64]bracketCount{}
	for _, b := range want {
		c := groups[b.Payments/2]
		c.Users++
		c.Cents += b.Cents
		groups[b.Payments/2] = c
	}
	if got := sluicetest.Table[int64, bracketCount](test, "brackets"); !maps.Equal(got, groups) {
		t.Fatalf("crash at write %d: brackets are %v, want %v", n, got, groups)
	}
	var ids []int64
	totals := map[string]int64{}
	for _, r := range sluicetest.Rows[receipt](test, "receipts") {
		ids = append(ids, r.ID)
		totals[r.User] += r.ID * 10
		if r.Total != totals[r.User] {
			t.Fatalf("crash at write %d: receipt %v, want a total of %d", n, r, totals[r.User])
		}
	}
	slices.Sort(ids)
	for i := range payments {
		if int64(len(ids)) != payments || ids[i] != i {
			t.Fatalf("crash at write %d: receipts of payments %v, want each of 0 to %d once", n, ids, payments-1)
		}
	}
}

// Runs that last for one epoch each still merge what they leave, and restore it.
func TestManyShortRunsMerge(t *testing.T) {
	t.Parallel()
	test := sluicetest.New(t, paymentsJob(t.TempDir()))
	want := map[string]balance{}
	for id := range int64(40) {
		p := payment{id, fmt.Sprintf("user-%d", id%9), id * 10}
		sluicetest.Feed(test, "payments", p)
		want[p.User] = balance{want[p.User].Payments + 1, want[p.User].Cents + p.Cents}
		test.Step()
	}
	checkPayments(t, 0, test, want, 40)
	test.Replay(nil)
}
