package sqlsink_test

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/examples/sqlsink"
	"github.com/sluicestream/sluice/schema"
)

type seat struct {
	Row  int32
	Side string
}

type booking struct {
	Name  string
	Price float64
	Miles uint64
	Tags  []string
}

// openBookings opens a table that is kept by seat, with its record made.
func openBookings(t *testing.T, db *sql.DB) connector.Target {
	t.Helper()
	target, err := sqlsink.Upsert[seat, booking](db, "booking").Open(t.Context(), connector.Opening{}, connector.RecordKey{JobID: "5fe2", Task: "0.0", Sink: "bookings"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Make(t.Context(), connector.SinkRecord{ID: "id", Job: "flights", Target: "booking"}); err != nil {
		t.Fatal(err)
	}
	return target
}

// bookings freezes changes of that table.
func bookings(t *testing.T, position connector.Position, rows func(yield func(seat, *booking) bool)) *connector.Delivery {
	t.Helper()
	key, err := schema.KeyOf[seat]("key")
	if err != nil {
		t.Fatal(err)
	}
	row, err := schema.Of[booking]("row")
	if err != nil {
		t.Fatal(err)
	}
	return &connector.Delivery{
		Record: connector.SinkRecord{Position: position, ID: "id", Job: "flights", Target: "booking"},
		Key:    key.Schema(), Schema: row.Schema(),
		Decide: func(found *connector.SinkRecord) connector.Verdict {
			switch {
			case found == nil || found.Position+1 < position:
				return connector.Disagree
			case found.Position >= position:
				return connector.Skip
			}
			return connector.Apply
		},
		Rows: func(yield func(connector.Row, error) bool) {
			rows(func(s seat, b *booking) bool {
				r := connector.Row{Op: connector.Delete, Key: key.Append(nil, s)}
				if b == nil {
					return yield(r, nil)
				}
				r.Op = connector.Put
				r.Row, err = row.Append(nil, b)
				return yield(r, err)
			})
		},
	}
}

func (d *database) bookings(t *testing.T) (all []string) {
	d.each(t, `select "Row", "Side", "Name", "Price", "Miles", coalesce("Tags"::text, '-') from booking order by 1, 2`, func(rows *sql.Rows) error {
		var row int
		var side, name, price, miles, tags string
		err := rows.Scan(&row, &side, &name, &price, &miles, &tags)
		all = append(all, fmt.Sprint(row, side, " ", name, " ", price, " ", miles, " ", tags))
		return err
	})
	return all
}

const bookingTable = `create table booking ("Row" int, "Side" text, "Name" text, "Price" float8, "Miles" numeric, "Tags" json, primary key ("Row", "Side"))`

func TestKeysOfSeveralColumns(t *testing.T) {
	d := newDatabase(t)
	d.run(t, bookingTable)
	target := openBookings(t, d.db)
	deliver := func(position connector.Position, rows func(yield func(seat, *booking) bool)) {
		t.Helper()
		if verdict, _, err := target.Deliver(t.Context(), bookings(t, position, rows)); err != nil || verdict != connector.Apply {
			t.Fatalf("position %d: verdict %v, %v", position, verdict, err)
		}
	}
	deliver(1, func(yield func(seat, *booking) bool) {
		_ = yield(seat{1, "A"}, &booking{"ann", 0.1, math.MaxUint64, []string{"window", `"`}}) &&
			yield(seat{1, "B"}, &booking{"bob", math.NaN(), 0, nil}) &&
			yield(seat{2, "A"}, &booking{"cid", math.Inf(-1), 1, nil})
	})
	deliver(2, func(yield func(seat, *booking) bool) {
		_ = yield(seat{1, "A"}, &booking{"ann", 0.2, math.MaxInt64, nil}) &&
			yield(seat{1, "B"}, nil) && yield(seat{9, "Z"}, nil)
	})
	want := []string{"1A ann 0.2 9223372036854775807 []", "2A cid -Inf 1 []"}
	if got := d.bookings(t); !slices.Equal(got, want) {
		t.Fatalf("the table holds\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStoppedProcess has a process stop in the middle of a delivery, with the
// record's row locked: the server ends its session, and another goes on.
func TestStoppedProcess(t *testing.T) {
	d := newDatabase(t)
	d.run(t, bookingTable)
	stopped, other := openBookings(t, d.db), openBookings(t, d.db)
	one := func(yield func(seat, *booking) bool) { yield(seat{1, "A"}, &booking{Name: "ann"}) }
	verdict, _, err := stopped.Deliver(t.Context(), bookings(t, 1, func(yield func(seat, *booking) bool) {
		verdict, _, err := other.Deliver(t.Context(), bookings(t, 1, one))
		if err != nil || verdict != connector.Apply {
			t.Errorf("another process, which waits for the lock: verdict %v, %v", verdict, err)
		}
		one(yield)
	}))
	if err == nil {
		t.Errorf("the process that was stopped: verdict %v, expected an error", verdict)
	}
	if verdict, _, err := stopped.Deliver(t.Context(), bookings(t, 1, one)); err != nil || verdict != connector.Skip {
		t.Errorf("when it looks again: verdict %v, %v, expected that it skips", verdict, err)
	}
	if got := d.bookings(t); len(got) != 1 {
		t.Errorf("the table holds %q", got)
	}
}

func TestRefuses(t *testing.T) {
	d := newDatabase(t)
	d.run(t, bookingTable+`; alter table booking drop column "Miles"`)
	expect := func(what string, err error, says ...string) {
		t.Helper()
		for _, s := range says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v, expected %q in it", what, err, s)
			}
		}
	}
	_, err := sqlsink.Append[struct{ Hash [32]byte }](d.db, "blob").Rows()
	expect("bytes", err, "table blob", "field Hash is bytes")
	_, err = sqlsink.Append[int64](d.db, "number").Rows()
	expect("no struct", err, "table number", "found a long")
	_, err = sqlsink.Append[booking](d.db, "nowhere").Open(t.Context(), connector.Opening{}, connector.RecordKey{})
	expect("no table", err, "opening table nowhere", "does not exist")
	target := openBookings(t, d.db)
	_, _, err = target.Deliver(t.Context(), bookings(t, 1, func(yield func(seat, *booking) bool) { yield(seat{1, "A"}, &booking{}) }))
	expect("no column", err, "delivering position 1", d.schema+".booking", `"Miles"`)
	d.run(t, "update sluice_records set format = 2")
	_, err = target.Record(t.Context())
	expect("a later format", err, connector.ErrRecord.Error(), "format 2", "bookings")
}
