package postgres

import (
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// frozen freezes a row for a user as a build had it.
func frozen[R any](t *testing.T, position connector.Position, user string, r R) *connector.Delivery {
	t.Helper()
	rows, err := Upsert("spend", func(string, R) R { return r }, Key("user_id")).TableRows()
	if err != nil {
		t.Fatal(err)
	}
	b, err := rows.NewAppend()(nil, user, &r)
	if err != nil {
		t.Fatal(err)
	}
	k := textKey(t)
	return delivery(position, k.Schema(), rows.Schema, connector.Row{Op: connector.Put, Key: k.Append(nil, user), Row: b})
}

// Outboxes are delivered by the columns that they were frozen with, whichever
// build delivers them.
func TestOutboxesOfOtherBuilds(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	mustDeliver(t, target, frozen(t, 1, "a", spend{1, nil}), connector.Apply)

	// An older build lacks a column: what stands there stays.
	p.exec("update @.spend set note = 'kept'; alter table @.spend alter note set default 'default'")
	type older struct{ Orders int64 }
	mustDeliver(t, target, frozen(t, 2, "a", older{2}), connector.Apply)
	mustDeliver(t, target, frozen(t, 3, "b", older{3}), connector.Apply)
	p.expect("select user_id, orders, note from @.spend order by 1", "a|2|kept", "b|3|default")

	// A newer one has more, which this one knows nothing of.
	type newer struct {
		Orders int64
		VIP    bool
		Tags   []string
		UserID string // is the key's column
	}
	mustDeliver(t, target, frozen(t, 4, "c", newer{4, true, []string{"x"}, "not looked at"}), connector.Apply)
	p.expect("select user_id, orders, note, vip, tags from @.spend order by 1", "a|2|kept|∅|∅", "b|3|default|∅|∅", "c|4|default|t|{x}")
	p.expect("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = '@.spend'::regclass and attname in ('vip', 'tags') order by attnum", "boolean", "text[]")

	// The table changes between two deliveries of one session.
	p.exec("alter table @.spend drop column vip; alter table @.spend alter orders type numeric")
	mustDeliver(t, target, frozen(t, 5, "c", newer{5, true, nil, ""}), connector.Apply)
	p.expect("select user_id, orders, vip from @.spend order by 1", "a|2|∅", "b|3|∅", "c|5|t")

	// What doesn't fit any more is told, and goes on once it is mended.
	p.exec("alter table @.spend alter orders type smallint")
	_, _, err := target.Deliver(t.Context(), frozen(t, 6, "c", older{1 << 20}))
	says(t, err, `row with the key "c"`, "column orders", "1048576 is out of range for smallint", "position 6")
	p.exec("alter table @.spend alter orders type bigint; alter table @.spend add column must bigint not null default 0; alter table @.spend alter must drop default")
	_, _, err = target.Deliver(t.Context(), frozen(t, 6, "c", older{1 << 20}))
	says(t, err, "column must", "not null", "drop not null")
	p.exec("alter table @.spend alter must drop not null")
	mustDeliver(t, target, frozen(t, 6, "c", older{1 << 20}), connector.Apply)
	p.exec("drop table @.spend cascade")
	_, _, err = target.Deliver(t.Context(), frozen(t, 7, "c", older{1}))
	says(t, err, "isn't there any more")
}

// Rows that another connector froze have the names of the type's fields.
func TestOutboxesOfOtherConnectors(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	row, err := schema.Of[spend]("row")
	if err != nil {
		t.Fatal(err)
	}
	b, err := row.Append(nil, &spend{Orders: 9})
	if err != nil {
		t.Fatal(err)
	}
	k := textKey(t)
	mustDeliver(t, target, delivery(1, k.Schema(), row.Schema(), connector.Row{Op: connector.Put, Key: k.Append(nil, "a"), Row: b}), connector.Apply)
	p.expect("select * from @.spend", "a|9|∅")
}

// Damaged outboxes, and operations that don't belong there, are errors that name
// the row.
func TestDamagedOutboxes(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	for text, damage := range map[string]func(r *connector.Row){
		"ends in the middle":           func(r *connector.Row) { r.Row = r.Row[:1] },
		"bytes are left over":          func(r *connector.Row) { r.Row = append(r.Row, 0) },
		"an index is out of range":     func(r *connector.Row) { r.Row[len(r.Row)-1] = 8 },
		"column user_id":               func(r *connector.Row) { r.Key = r.Key[:1] },
		"a table's row says append":    func(r *connector.Row) { r.Op = connector.Append },
		"a table's row says operation": func(r *connector.Row) { r.Op = 9 },
	} {
		d := frozen(t, 1, "a", spend{Orders: 1})
		for r := range d.Rows {
			damage(&r)
			d.Rows = func(yield func(connector.Row, error) bool) { yield(r, nil) }
			break
		}
		_, _, err := target.Deliver(t.Context(), d)
		says(t, err, text, "row 0", "delivering position 1 to table "+p.schema+".spend")
	}
	other, err := schema.KeyOf[int64]("key")
	if err != nil {
		t.Fatal(err)
	}
	d := frozen(t, 1, "a", spend{})
	d.Key = other.Schema()
	_, _, err = target.Deliver(t.Context(), d)
	says(t, err, "column user_id", "text", "long")
	p.expect("select * from @.spend")
}

// Of changes of one key only the last counts, and what can't stand in the table
// is deleted without a word.
func TestTheLastChangeCounts(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	mustDeliver(t, target, spends(t, 1, "aabbbccd", 1, 2, 1, 0, 3, 4, 0, 5), connector.Apply)
	p.expect("select user_id, orders from @.spend order by 1", "a|2", "b|3", "d|5")
	d := spends(t, 2, "abd\x00\x00d", 0, 0, 0, 0, 0, 6)
	mustDeliver(t, target, d, connector.Apply)
	p.expect("select user_id, orders from @.spend order by 1", "d|6")

	many := spends(t, 3, strings.Repeat("a", 20_000)+"z", append(make([]int64, 20_000), 1)...)
	mustDeliver(t, target, many, connector.Apply)
	p.expect("select user_id, orders from @.spend order by 1", "d|6", "z|1")
}

// airport is a key of two columns.
type airport struct {
	Code string `pg:"airport"`
	Gate int32
}

type delay struct {
	Gate  int32 // the key's
	Mean  float64
	Count uint64
}

func TestKeysOfSeveralColumns(t *testing.T) {
	p := newPlace(t)
	s := Upsert("delays", func(k airport, d delay) delay { return d }, p.options(CreateTable())...)
	rows, err := s.TableRows()
	if err != nil {
		t.Fatal(err)
	}
	k, err := schema.KeyOf[airport]("key")
	if err != nil {
		t.Fatal(err)
	}
	put := func(at airport, d delay) connector.Row {
		b, err := rows.NewAppend()(nil, at, &d)
		if err != nil {
			t.Fatal(err)
		}
		return connector.Row{Op: connector.Put, Key: k.Append(nil, at), Row: b}
	}
	target := openTarget(t, s)
	mustDeliver(t, target, delivery(1, k.Schema(), rows.Schema, put(airport{"EWR", 1}, delay{99, 1.5, 2}), put(airport{"EWR", 2}, delay{99, 2.5, 3}), put(airport{"JFK", 1}, delay{99, 0, 1<<64 - 1})), connector.Apply)
	gone := connector.Row{Op: connector.Delete, Key: k.Append(nil, airport{"EWR", 1})}
	mustDeliver(t, target, delivery(2, k.Schema(), rows.Schema, gone, put(airport{"JFK", 1}, delay{0, 7, 0})), connector.Apply)
	p.expect("select airport, gate, mean, count from @.delays order by 1, 2", "EWR|2|2.5|3", "JFK|1|7|0")
	if d := s.Describe(); d.Target != p.schema+".delays" || d.Connector != "postgres" || d.Parameters[1] != (connector.Parameter{Name: "key", Value: "airport gate"}) {
		t.Errorf("described as %+v", d)
	}
}

func TestDelete(t *testing.T) {
	p := newPlace(t)
	p.exec("create table @.seats (airport text, gate int, seat text); insert into @.seats values ('EWR', 1, 'a'), ('EWR', 1, 'b'), ('EWR', 2, 'a'), ('JFK', 1, 'a')")
	deliverRows(t, Delete[airport]("seats", p.options()...), &airport{"EWR", 1}, &airport{"EWR", 1}, &airport{"LGA", 1})
	p.expect("select * from @.seats order by 1, 2", "EWR|2|a", "JFK|1|a")

	type event struct {
		At      schema.Instant
		Airport string `pg:",key"`
	}
	p.exec("drop table @.sluice_delivery")
	deliverRows(t, Delete[event]("seats", p.options()...), &event{5, "JFK"})
	p.expect("select * from @.seats", "EWR|2|a")

	p.exec("drop table @.sluice_delivery")
	two := int32(2)
	deliverRows(t, Delete[int32]("seats", p.options(Key("gate"))...), &two)
	p.expect("select * from @.seats")
}
