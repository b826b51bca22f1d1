package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/postgres"
	"github.com/sluicestream/sluice/store"
)

// desk is a job's folder, with a schema of its own in the tests' database.
type desk struct {
	t       *testing.T
	schema  string
	address string
	orders  string
	store   store.Store
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, address: postgres.ServerForExample(t), schema: strings.ToLower(t.Name()), orders: filepath.Join(t.TempDir(), "orders.jsonl"), store: store.NewMemory()}
	d.lines("drop schema if exists " + d.schema + " cascade; create schema " + d.schema)
	return d
}

// lines runs SQL, in which "@." stands for the desk's schema.
func (d *desk) lines(sql string) (lines []string) {
	d.t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close(ctx)
	results, err := c.PgConn().Exec(ctx, strings.ReplaceAll(sql, "@.", d.schema+".")).ReadAll()
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	for _, row := range results[len(results)-1].Rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, string(cell))
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return lines
}

func (d *desk) expect(sql string, want ...string) {
	d.t.Helper()
	if got := d.lines(sql); !slices.Equal(got, want) {
		d.t.Errorf("%s\n got %q\nwant %q", sql, got, want)
	}
}

func (d *desk) options(more ...postgres.Option) []postgres.Option {
	return append([]postgres.Option{postgres.Database(d.address), postgres.Schema(d.schema), postgres.CreateTable()}, more...)
}

// add writes lines to the input.
func (d *desk) add(lines ...string) {
	d.t.Helper()
	f, err := os.OpenFile(d.orders, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) run(job *sluice.Job) error {
	return job.Run(d.t.Context(), sluice.Options{Store: d.store, Log: slog.New(slog.DiscardHandler)})
}

// level is an enum.
type level string

func (level) Symbols() []string { return []string{"low", "high"} }

// seat is a key of two columns.
type seat struct {
	User string
	Day  sluice.Instant
}

// seatRow has types that a schema has names for.
type seatRow struct {
	Level  level
	Total  *big.Rat `avro:",precision=12,scale=2"`
	ID     [16]byte
	Levels []level
	Last   Order
	Count  uint64
}

// Rows of all kinds of types go through a job's outboxes, and a table's rows
// that go are deleted.
func TestJob(t *testing.T) {
	d := newDesk(t)
	d.add(`{"User":"ann","Cents":500}`, `{"User":"bob","Cents":100}`)
	job := func() *sluice.Job {
		job := sluice.NewJob("seats")
		job.From("orders", file.JSONLines[Order](d.orders)).
			KeyBy(func(o Order) seat { return seat{o.User, sluice.Instant(86_400_000_000)} }).
			FoldKeep(sluice.NewState[seat, Spend]("seats"), func(s *Spend, o Order) bool { s.Add(o); return s.Cents > 0 }).
			To("seats", postgres.Upsert("seats", func(_ seat, s Spend) seatRow {
				return seatRow{"high", big.NewRat(s.Cents, 100), [16]byte{15: byte(s.Orders)}, []level{"low", "high"}, Order{"x", s.Cents}, uint64(s.Orders)}
			}, d.options()...))
		return job
	}
	if err := d.run(job()); err != nil {
		t.Fatal(err)
	}
	const ask = "set timezone = 'UTC'; select * from @.seats order by 1"
	ann := `ann|1970-01-02 00:00:00+00|high|%s|00000000-0000-0000-0000-00000000000%[2]d|{low,high}|{"User": "x", "Cents": %[3]d}|%[2]d`
	d.expect(ask, fmt.Sprintf(ann, "5.00", 1, 500), strings.Replace(fmt.Sprintf(ann, "1.00", 1, 100), "ann", "bob", 1))
	d.add(`{"User":"bob","Cents":-100}`, `{"User":"ann","Cents":1}`)
	if err := d.run(job()); err != nil {
		t.Fatal(err)
	}
	d.expect(ask, fmt.Sprintf(ann, "5.01", 2, 501))
	d.expect("select job, target, branch from @.sluice_delivery", "seats|"+d.schema+".seats|main")
}

// A record that the table can't take is a bad record: it goes to the dead
// letters, and no delivery is stuck with it.
func TestBadRecord(t *testing.T) {
	d := newDesk(t)
	d.add(`{"User":"ann","Cents":500}`, `{"User":"b\u0000b","Cents":100}`, `{"User":"cat","Cents":1}`)
	job := func() *sluice.Job {
		job := sluice.NewJob("orders")
		job.From("orders", file.JSONLines[Order](d.orders)).To("out", postgres.Insert[Order]("orders", d.options()...))
		return job
	}
	var bad *postgres.ValueError
	if err := d.run(job()); !errors.As(err, &bad) || bad.Column != "user" || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("the run ended with %v", err)
	}
	d.store = store.NewMemory()
	d.lines("drop table @.orders, @.sluice_delivery")
	with := job()
	with.DeadLetter("dead", postgres.Insert[sluice.DeadLetter]("dead", d.options()...))
	if err := d.run(with); err != nil {
		t.Fatal(err)
	}
	d.expect("select * from @.orders", "ann|500", "cat|1")
	d.expect("select source, convert_from(bytes, 'UTF8') from @.dead", `orders|{"User":"b\u0000b","Cents":100}`)
}

// A table that another job writes to stops the second one.
func TestSecondJob(t *testing.T) {
	d := newDesk(t)
	d.add(`{"User":"ann","Cents":500}`)
	job := func(name string) *sluice.Job {
		job := sluice.NewJob(name)
		job.From("orders", file.JSONLines[Order](d.orders)).To("out", postgres.Insert[Order]("orders", d.options()...))
		return job
	}
	if err := d.run(job("one")); err != nil {
		t.Fatal(err)
	}
	d.store = store.NewMemory()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := job("two").Run(ctx, sluice.Options{Store: d.store, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "two jobs would mix their rows") {
		t.Errorf("the second job ended with %v", err)
	}
	d.expect("select * from @.orders", "ann|500")
}

// A build that takes over in place with a sink of a new name points the view at that
// one's table; the sink that it lacks has delivered all it had. Two sinks of one job
// can't have one view.
func TestViewOfAJob(t *testing.T) {
	d := newDesk(t)
	job := func(sinks ...string) *sluice.Job {
		job := sluice.NewJob("spend")
		table := job.From("orders", file.JSONLines[Order](d.orders)).KeyBy(Order.UserID).
			Fold(sluice.NewState[string, Spend]("spend"), (*Spend).Add)
		for _, name := range sinks {
			table.To(name, postgres.Upsert(name, spendRow, d.options(postgres.View("spend_now"))...))
		}
		return job
	}
	for i, sink := range []string{"spend_v1", "spend_v2", "spend_v3"} {
		d.add(fmt.Sprintf(`{"User":"ann","Cents":%d}`, i+1))
		if err := d.run(job(sink)); err != nil {
			t.Fatal(err)
		}
		d.expect("select sink from @.sluice_view", sink)
		d.expect("select user_id, orders from @.spend_now", fmt.Sprintf("ann|%d", i+1))
	}
	d.expect("select user_id, orders from @.spend_v1", "ann|1")
	err := job("spend_v1", "spend_v2").Check()
	var faults *sluice.FaultsError
	if !errors.As(err, &faults) || len(faults.Faults) != 1 || !strings.Contains(err.Error(), `sinks "spend_v1" and "spend_v2": postgres.View("spend_now")`) || !strings.Contains(err.Error(), "job_test.go:") {
		t.Errorf("got %v, expected one fault", err)
	}
}
