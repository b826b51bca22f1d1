package sqlsink_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/examples/sqlsink"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

type order struct {
	ID    int64
	User  string
	Cents int64
}

type spend struct{ Orders, Cents int64 }

func (s *spend) add(o order) { s.Orders++; s.Cents += o.Cents }

// shop is a job that writes orders to one table, and what users spend to another.
func shop(db *sql.DB, in string) *sluice.Job {
	job := sluice.NewJob("shop")
	orders := job.From("orders", file.JSONLines[order](in))
	orders.To("log", sqlsink.Append[order](db, "orders"))
	orders.KeyBy(func(o order) string { return o.User }).
		Fold(sluice.NewState[string, spend]("spend"), (*spend).add).
		To("spend", sqlsink.Upsert[string, spend](db, "spend"))
	return job
}

func runShop(t *testing.T, db *sql.DB, in, kept string) error {
	t.Helper()
	s, err := store.OpenFolder(env.Real(), kept)
	if err != nil {
		t.Fatal(err)
	}
	return shop(db, in).Run(t.Context(), sluice.Options{Store: s, Volatile: true, Log: slog.New(slog.DiscardHandler)})
}

// addOrders adds n orders behind the first that are there.
func addOrders(t *testing.T, in string, first, n int) {
	t.Helper()
	f, err := os.OpenFile(in, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&lines, `{"ID":%d,"User":"user %d","Cents":%d}`+"\n", i, i%7, i%10)
	}
	if _, err := f.Write(lines.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

const shopTables = `create table orders ("ID" bigint, "User" text, "Cents" bigint);
	create table spend (key text primary key, "Orders" bigint, "Cents" bigint)`

// counted holds the tables to n orders: each once, and added up.
func (d *database) counted(t *testing.T, n int) {
	t.Helper()
	type sums struct{ rows, ids, cents, users, orders, spent int64 }
	var got sums
	d.each(t, `select * from (select count(*), count(distinct "ID"), sum("Cents") from orders) o, (select count(*), sum("Orders"), sum("Cents") from spend) s`,
		func(rows *sql.Rows) error {
			return rows.Scan(&got.rows, &got.ids, &got.cents, &got.users, &got.orders, &got.spent)
		})
	var cents int64
	for i := range n {
		cents += int64(i % 10)
	}
	if want := (sums{int64(n), int64(n), cents, 7, int64(n), cents}); got != want {
		t.Fatalf("the tables add up to %+v, expected %+v", got, want)
	}
}

func TestJob(t *testing.T) {
	d := newDatabase(t)
	d.run(t, shopTables)
	in, kept := filepath.Join(t.TempDir(), "in.jsonl"), filepath.Join(t.TempDir(), "kept")
	for i, n := range []int{25_000, 1, 5_000} { // the first needs several parts
		first := []int{0, 25_000, 25_001}[i]
		addOrders(t, in, first, n)
		if err := runShop(t, d.db, in, kept); err != nil {
			t.Fatal(err)
		}
		d.counted(t, first+n)
	}
	err := runShop(t, d.db, in, filepath.Join(t.TempDir(), "lost"))
	if err == nil || !strings.Contains(err.Error(), connector.ErrRecord.Error()) {
		t.Fatalf("a job with a new store: %v, expected that the record of the old one is in its way", err)
	}
	d.counted(t, 30_001)
}

// TestJobWithBrokenCalls breaks a call of a job that goes on, after it took effect.
func TestJobWithBrokenCalls(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	addOrders(t, in, 0, 100)
	for call := 1; call < 40; call += 2 {
		d := newDatabase(t)
		d.run(t, shopTables)
		p := &process{call: call, how: connectortest.After, lives: true}
		db, kept := d.open(t, p.wrap), filepath.Join(t.TempDir(), "kept")
		err := runShop(t, db, in, kept)
		// A start ends with what breaks before the first delivery, and one more may get
		// the broken connection from the pool. A supervisor starts again.
		for range 2 {
			if err != nil && p.broken.Load() {
				err = runShop(t, db, in, kept)
			}
		}
		if err != nil {
			t.Fatalf("call %d: %v", call, err)
		}
		t.Logf("call %d of %d", call, p.calls.Load())
		d.counted(t, 100)
	}
}
