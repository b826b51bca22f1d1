package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/postgres"
	"github.com/sluicestream/sluice/store"
)

const (
	allRows   = 4_000_000 // updates of a quarter as many keys
	epochRows = 50_000
	// recordBytes is what the engine takes a record of the source for: it ends an
	// epoch by bytes.
	recordBytes = 200
)

// customer has the columns besides the key.
type customer struct {
	Name   string
	Orders int64
	Amount float64
	At     time.Time
	VIP    bool
}

func rowKeys(s setting) int64 { return int64(s.scale(allRows) / 4) }

// customerOf is what update number i makes of a customer.
func customerOf(i int64) customer {
	return customer{fmt.Sprintf("name %d", i%977), i, float64(i) / 7, time.UnixMicro(1_770_000_000_000_000 + i), i%2 == 0}
}

func customerKey(s setting) func(i int64) string {
	keys := rowKeys(s)
	return func(i int64) string { return fmt.Sprintf("user %07d", i*7919%keys) }
}

func sameCustomer(_ string, c customer) customer { return c }

// upsertJob runs a job whose every record changes a row, and measures the time from
// the first to the last delivery's end.
func upsertJob(t task) (sample, error) {
	dir, err := os.MkdirTemp(t.Dir, "postgres-job-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	st, err := store.OpenFolder(env.Real(), filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	table := services.Unique("customers")
	defer dropTable(t, table)
	var began time.Time
	source := numbers[int64]{count: int64(t.scale(allRows)), partitions: 1, value: make([]byte, recordBytes), opened: func() error { began = time.Now(); return nil },
		decoder: func() func(*connector.Batch, int, *int64) error {
			return func(b *connector.Batch, i int, v *int64) error {
				*v = b.Records[i].Offset
				return nil
			}
		}}
	job := sluice.NewJob(services.Unique("customers"))
	job.From("updates", source).
		KeyBy(customerKey(t.setting)).
		Fold(sluice.NewState[string, customer]("customers"), func(c *customer, i int64) { *c = customerOf(i) }).
		To("customers", postgres.Upsert(table, sameCustomer, postgres.Database(t.Postgres), postgres.Key("k"), postgres.CreateTable()))
	epochs := 0
	o := sluice.Options{Store: st, Log: quiet(), EpochBytes: epochRows * recordBytes, Committed: func(sluice.Committed) { epochs++ }}
	if err := job.Run(context.Background(), o); err != nil {
		return nil, err
	}
	s := sample{wallSeconds: time.Since(began).Seconds(), "epochs": float64(epochs)}
	return s, checkCustomers(t, table)
}

// upsertFloor writes the same rows in the same batches by hand. What it copies is
// made ready before its clock runs.
func upsertFloor(t task) (sample, error) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, t.Postgres)
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	table := services.Unique("customers")
	if _, err := c.Exec(ctx, `create table `+table+` (k text primary key, name text, orders bigint, amount double precision, at timestamptz, vip boolean)`); err != nil {
		return nil, err
	}
	defer dropTable(t, table)
	key, wall := customerKey(t.setting), time.Duration(0)
	n := int64(t.scale(allRows))
	var b bytes.Buffer
	for from := int64(0); from < n; from += epochRows {
		b.Reset()
		b.WriteString("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		for i := from; i < min(n, from+epochRows); i++ {
			appendCustomer(&b, key(i), customerOf(i))
		}
		b.WriteString("\xff\xff")
		began := time.Now()
		if err := mergeByHand(ctx, c, table, &b); err != nil {
			return nil, err
		}
		wall += time.Since(began)
	}
	return sample{wallSeconds: wall.Seconds()}, checkCustomers(t, table)
}

// mergeByHand does what somebody would write for this table alone.
func mergeByHand(ctx context.Context, c *pgx.Conn, table string, rows *bytes.Buffer) error {
	if _, err := c.Exec(ctx, "begin; create temporary table hand (k text, name text, orders bigint, amount double precision, at timestamptz, vip boolean) on commit drop"); err != nil {
		return err
	}
	if _, err := c.PgConn().CopyFrom(ctx, rows, "copy hand from stdin with (format binary)"); err != nil {
		return err
	}
	_, err := c.Exec(ctx, `insert into `+table+` (k, name, orders, amount, at, vip) select k, name, orders, amount, at, vip from hand
		on conflict (k) do update set name = excluded.name, orders = excluded.orders, amount = excluded.amount, at = excluded.at, vip = excluded.vip; commit`)
	return err
}

// appendCustomer appends a row of COPY's binary format.
func appendCustomer(b *bytes.Buffer, key string, c customer) {
	var scratch []byte
	scratch = binary.BigEndian.AppendUint16(scratch, 6)
	text := func(s string) {
		scratch = append(binary.BigEndian.AppendUint32(scratch, uint32(len(s))), s...)
	}
	number := func(v uint64) {
		scratch = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(scratch, 8), v)
	}
	text(key)
	text(c.Name)
	number(uint64(c.Orders))
	number(math.Float64bits(c.Amount))
	number(uint64(c.At.UnixMicro() - 946_684_800_000_000))
	vip := byte(0)
	if c.VIP {
		vip = 1
	}
	scratch = append(scratch, 0, 0, 0, 1, vip)
	b.Write(scratch)
}

// checkCustomers looks whether the table has what the last updates made of it.
func checkCustomers(t task, table string) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, t.Postgres)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	n, keys := int64(t.scale(allRows)), rowKeys(t.setting)
	var rows, sum int64
	if err := c.QueryRow(ctx, "select count(*), sum(orders)::bigint from "+table).Scan(&rows, &sum); err != nil {
		return err
	}
	expected := keys * (n - keys + n - 1) / 2 // the last update of each key is one of the last so many
	if rows != keys || sum != expected {
		return fmt.Errorf("table %s: %d rows, whose orders add up to %d, expected %d and %d", table, rows, sum, keys, expected)
	}
	return nil
}

func dropTable(t task, table string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, t.Postgres)
	if err == nil {
		_, err = c.Exec(ctx, "drop table if exists "+table)
		err = errors.Join(err, c.Close(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "removing table", table, err)
	}
}

func measureUpsert(b *bench) ([]Result, error) {
	on, err := b.onPostgres()
	if err != nil {
		return nil, err
	}
	s, floor, err := on.compare("postgres.upsert", "postgres.upsert.floor", "", wallSeconds, 2)
	if err != nil {
		return nil, err
	}
	n := float64(b.setting.scale(allRows))
	r := Result{
		Name: "postgres.upsert", Value: n / s[wallSeconds], Unit: "rows/s",
		What: fmt.Sprintf("rows of 6 columns that a whole job writes, %.1fM updates of %.2fM keys, each epoch a delivery of %d rows: from the source's opening to the last delivery's end; floor: the same COPY and merge by hand, of bytes that are ready", n/1e6, float64(rowKeys(b.setting))/1e6, epochRows),
		Why:  "the server's own work on the rows, which takes a core here as in the floor",
	}.against(n / floor[wallSeconds]).atLeast(0.8)
	r.note("%.0f epochs, so %.0f rows in each", s["epochs"], n/s["epochs"])
	return []Result{r}, nil
}
