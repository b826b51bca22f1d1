package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// What a delivery does with its view, for each way in which the two can stand.
func TestDecideView(t *testing.T) {
	own := pointing{jobID: "j", sink: "new", target: "p.t2", live: 2, position: 20}
	old := func(live, position uint64) *pointing {
		return &pointing{jobID: "j", sink: "old", target: "p.t1", live: live, position: position}
	}
	same := &pointing{jobID: "j", sink: "new", target: "p.t2", live: 7, position: 70}
	stranger := &pointing{jobID: "k", sink: "old", target: "p.t1"}
	a, b, c := viewColumn{name: "a"}, viewColumn{name: "b"}, viewColumn{name: "c"}
	table := []viewColumn{a, b}
	for name, v := range map[string]struct {
		found viewState
		want  viewStep
	}{
		"none yet":                             {viewState{}, pointView},
		"a newer generation comes":             {viewState{oid: 1, last: old(1, 19)}, pointView},
		"the generation at its start":          {viewState{oid: 1, last: old(1, 20)}, pointView},
		"a build in place comes":               {viewState{oid: 1, last: old(2, 19)}, pointView},
		"the rest of a build before, in place": {viewState{oid: 1, last: old(2, 21)}, leaveView},
		"the very same":                        {viewState{oid: 1, last: old(2, 20)}, leaveView},
		"the rest of a generation before":      {viewState{oid: 1, last: old(3, 15)}, leaveView},
		"a rest, and the view is gone":         {viewState{last: old(3, 30)}, leaveView},
		"ours, and it is gone":                 {viewState{last: same}, pointView},
		"older, and it is gone":                {viewState{last: old(1, 9)}, pointView},
		"ours":                                 {viewState{oid: 1, last: same, columns: table}, leaveView},
		"ours, and the table has grown":        {viewState{oid: 1, last: same, columns: []viewColumn{b}}, pointView},
		"ours, changed by a person":            {viewState{oid: 1, last: same, columns: []viewColumn{a, b, c}}, leaveView},
		"ours, of other columns":               {viewState{oid: 1, last: same, columns: []viewColumn{c}}, leaveView},
		"nobody's":                             {viewState{oid: 1}, refuseView},
		"another job's":                        {viewState{oid: 1, last: stranger}, refuseView},
		"another job's, and gone":              {viewState{last: stranger}, pointView},
		"a table":                              {viewState{other: "table t", last: same}, refuseView},
	} {
		if got := decideView(v.found, own, table); got != v.want {
			t.Errorf("%s: step %d, expected %d", name, got, v.want)
		}
	}
}

// shown is a version of a job: a sink of its own name, with a table of its own.
type shown struct {
	t      *testing.T
	p      *place
	sink   connector.TableSink[string, int64]
	key    connector.RecordKey
	target connector.Target
	rows   connector.TableRows[string, int64]
}

// The rows of versions: wideShown has those of plainShown, and one more; otherShown
// has none of them.
type (
	plainShown struct{ N int64 }
	wideShown  struct {
		More string
		N    int64
	}
	otherShown struct{ Total int64 }
)

func plainRow(_ string, n int64) plainShown { return plainShown{n} }
func wideRow(_ string, n int64) wideShown   { return wideShown{"more", n} }
func otherRow(_ string, n int64) otherShown { return otherShown{n} }

// shownBy is a version whose table and sink are called table, with the view v.
func shownBy[R any](t *testing.T, p *place, table string, row func(string, int64) R, more ...Option) *shown {
	t.Helper()
	v := &shown{t: t, p: p, key: connector.RecordKey{JobID: "5fe2", Task: "0.0", Sink: table}}
	v.sink = Upsert(table, row, p.options(append([]Option{Key("k"), CreateTable(), View("v")}, more...)...)...)
	var err error
	if v.rows, err = v.sink.TableRows(); err != nil {
		t.Fatal(err)
	}
	return v
}

// open opens the version at a position.
func (v *shown) open(start connector.Position) *shown {
	v.t.Helper()
	var err error
	if v.target, err = v.sink.Open(v.t.Context(), v.opening(), v.key); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { v.target.Close() })
	if _, err := v.target.Make(v.t.Context(), connector.SinkRecord{ID: "id", Job: "shop", Target: v.sink.Describe().Target, Position: start}); err != nil {
		v.t.Fatal(err)
	}
	return v
}

func (v *shown) opening() connector.Opening {
	o := opening()
	o.JobID, o.Name = v.key.JobID, v.key.Sink
	return o
}

// refused expects that neither a plan nor a start lets the version be.
func (v *shown) refused(texts ...string) {
	v.t.Helper()
	says(v.t, v.sink.(connector.Checker).Check(v.t.Context(), v.opening()), texts...)
	target, err := v.sink.Open(v.t.Context(), v.opening(), v.key)
	if err == nil {
		target.Close()
	}
	says(v.t, err, texts...)
}

// of is a delivery under a generation that puts n for each key.
func (v *shown) of(live uint64, position connector.Position, n int64, keys int) *connector.Delivery {
	v.t.Helper()
	k, appendRow := textKey(v.t), v.rows.NewAppend()
	var rows []connector.Row
	for i := range keys {
		key := fmt.Sprintf("k%04d", i)
		row, err := appendRow(nil, key, &n)
		if err != nil {
			v.t.Fatal(err)
		}
		rows = append(rows, connector.Row{Op: connector.Put, Key: k.Append(nil, key), Row: row})
	}
	d := delivery(position, k.Schema(), v.rows.Schema, rows...)
	d.Record.Live = live
	return d
}

func (v *shown) deliver(live uint64, position connector.Position, n int64) {
	v.t.Helper()
	mustDeliver(v.t, v.target, v.of(live, position, n, 2), connector.Apply)
}

// A reader in a loop sees all rows of the old version, then all of the new one, and
// again on the way back, whether the view can be replaced or has to be dropped.
func TestReadersSeeAllOldOrAllNew(t *testing.T) {
	const keys = 500
	for name, next := range map[string]func(t *testing.T, p *place) *shown{
		"replaced": func(t *testing.T, p *place) *shown { return shownBy(t, p, "two", plainRow) },
		"extended": func(t *testing.T, p *place) *shown { return shownBy(t, p, "two", wideRow) },
		"dropped":  func(t *testing.T, p *place) *shown { return shownBy(t, p, "two", otherRow) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			one := shownBy(t, p, "one", plainRow).open(0)
			mustDeliver(t, one.target, one.of(0, 1, 1, keys), connector.Apply)
			two := next(t, p).open(1)

			var seen atomic.Int64   // what the reader saw last
			read := make(chan bool) // after each time that it has looked
			failed := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			reader := p.connect()
			go func() {
				defer close(failed)
				for ctx.Err() == nil {
					results, err := reader.PgConn().Exec(context.Background(),
						p.in("select count(*), min(n), max(n) from (select coalesce(to_jsonb(v)->>'n', to_jsonb(v)->>'total')::bigint from @.v v) as r (n)")).ReadAll()
					if err != nil {
						failed <- err
						return
					}
					var count, least, most int64
					row := results[0].Rows[0]
					if _, err := fmt.Sscan(fmt.Sprintf("%s %s %s", row[0], row[1], row[2]), &count, &least, &most); err != nil || count != keys || least != most || least < seen.Load() {
						failed <- fmt.Errorf("the reader saw %s rows of %s to %s after %d (%v)", row[0], row[1], row[2], seen.Load(), err)
						return
					}
					seen.Store(least)
					select {
					case read <- true:
					default:
					}
				}
			}()
			sees := func(want int64) {
				t.Helper()
				for range 2 { // the first may have begun to look before
					select {
					case err := <-failed:
						t.Fatal(err)
					case <-read:
					}
				}
				if got := seen.Load(); got != want {
					t.Errorf("the reader sees version %d, expected %d", got, want)
				}
			}
			sees(1)
			mustDeliver(t, two.target, two.of(1, 2, 2, keys), connector.Apply)
			sees(2)
			mustDeliver(t, two.target, two.of(1, 3, 3, keys), connector.Apply)
			sees(3)
			mustDeliver(t, one.target, one.of(2, 2, 4, keys), connector.Apply)
			sees(4)
			mustDeliver(t, two.target, two.of(3, 4, 5, keys), connector.Apply)
			sees(5)
			stop()
			if err := <-failed; err != nil {
				t.Error(err)
			}
			p.expect("select job_id, job, sink, target, live, position from @.sluice_view", fmt.Sprintf("5fe2|shop|two|%s.two|3|4", p.schema))
		})
	}
}

// An old process that delivers its rest leaves the view where the newer generation
// has pointed it, and so does one that fills its table.
func TestALateDeliveryLeavesTheView(t *testing.T) {
	p := newPlace(t)
	one := shownBy(t, p, "one", plainRow).open(0)
	one.deliver(0, 1, 1)
	two := shownBy(t, p, "two", plainRow).open(0)
	for i := range 2 {
		d := two.of(1, connector.Position(i+1), 2, 2)
		d.Filling = true
		mustDeliver(t, two.target, d, connector.Apply)
		p.expect("select k, n from @.v order by k", "k0000|1", "k0001|1")
	}
	two.deliver(1, 3, 3)
	p.expect("select k, n from @.v order by k", "k0000|3", "k0001|3")
	one.deliver(0, 2, 4)
	one.deliver(0, 3, 5)
	p.expect("select k, n from @.v order by k", "k0000|3", "k0001|3")
	p.expect("select k, n from @.one order by k", "k0000|5", "k0001|5")
	p.exec("drop view @.v")
	one.deliver(0, 4, 6)
	p.expect("select to_regclass('@.v')", "∅")
	two.deliver(1, 4, 7)
	p.expect("select k, n from @.v order by k", "k0000|7", "k0001|7")
	// What fails after the rows were written takes the view back as well.
	d := one.of(2, 5, 8, 2)
	d.Record.Epoch = 1 << 63
	if _, _, err := one.target.Deliver(t.Context(), d); err == nil {
		t.Error("a record was written that can't be")
	}
	p.expect("select k, n from @.v order by k", "k0000|7", "k0001|7")
	one.deliver(2, 5, 9)
	p.expect("select k, n from @.v order by k", "k0000|9", "k0001|9")
}

// A column that a build adds to its table shows in the view.
func TestAViewGrowsWithItsTable(t *testing.T) {
	p := newPlace(t)
	shownBy(t, p, "one", plainRow).open(0).deliver(0, 1, 1)
	p.exec("create view @.above as select * from @.v")
	shownBy(t, p, "one", wideRow).open(1).deliver(0, 2, 2)
	p.expect("select k, n, \"more\" from @.v order by k", "k0000|2|more", "k0001|2|more")
	p.expect("select live, position from @.sluice_view", "0|2")
}

// A view that has to be dropped keeps its owner, grants, comments and options.
func TestAViewKeepsWhatItHas(t *testing.T) {
	p := newPlace(t)
	role := func(name string) string { return p.schema + "_" + name }
	for _, name := range []string{"owner", "reader", "clerk"} {
		p.exec("create role " + role(name))
		t.Cleanup(func() { p.exec("drop owned by " + role(name) + "; drop role " + role(name)) })
	}
	p.exec("alter default privileges in schema " + p.schema + " grant delete on tables to public")
	shownBy(t, p, "one", plainRow).open(0).deliver(0, 1, 1)
	p.exec("revoke all on @.v from public; grant create, usage on schema " + p.schema + " to " + role("owner") + "; alter view @.v owner to " + role("owner") +
		"; grant select on @.v to " + role("reader") + " with grant option; grant select (k), update (n) on @.v to " + role("clerk") +
		"; comment on view @.v is 'it''s ours'; comment on column @.v.k is 'the key'; alter view @.v set (security_barrier = true)")
	const kept = `select pg_get_userbyid(relowner), relacl, reloptions, obj_description(oid, 'pg_class'), col_description(oid, 1),
		(select attacl from pg_attribute where attrelid = c.oid and attname = 'k') from pg_class c where oid = '@.v'::regclass`
	before := p.lines(kept)
	two := shownBy(t, p, "two", otherRow)
	p.exec("create table @.two (k text primary key, total bigint)")
	two.refused("its owner "+role("owner")+" may not read table", "run: grant select on ")
	p.exec("grant select on @.two to " + role("owner"))
	two.open(1).deliver(1, 2, 2)
	p.expect("select * from @.v order by k", "k0000|2", "k0001|2")
	p.expect(kept, before...)
	if len(before) != 1 || !strings.Contains(before[0], role("reader")+"=r*/") || !strings.Contains(before[0], "security_barrier=true") || !strings.Contains(before[0], "it's ours|the key|") {
		t.Errorf("the view had %q", before)
	}
	// Replaced, it keeps all of that too.
	p.exec("alter table @.two add more int")
	two.deliver(1, 3, 3)
	p.expect("select * from @.v order by k", "k0000|3|∅", "k0001|3|∅")
	p.expect(kept, before...)
}

// What depends on a view whose columns change is listed before anything happens.
func TestDependentsOfAView(t *testing.T) {
	p := newPlace(t)
	one := shownBy(t, p, "one", plainRow).open(0)
	one.deliver(0, 1, 1)
	p.exec("create view @.above as select n from @.v;" +
		"create function @.rows() returns setof @.v language plpgsql as 'begin end'; create function @.f() returns trigger language plpgsql as 'begin return new; end';" +
		"create trigger tr instead of insert on @.v for each row execute function @.f(); create materialized view @.m as select n from @.v; alter view @.v alter n set default 5")
	other := shownBy(t, p, "two", otherRow)
	other.refused("view "+p.schema+".above", "function "+p.schema+".rows()", "trigger tr on view", "materialized view "+p.schema+".m", "default value for column n of view", "columns change to those of table "+p.schema+".two")
	p.expect("select to_regclass('@.two')", "∅")
	var dependents *DependentsError
	if err := other.sink.(connector.Checker).Check(t.Context(), other.opening()); !errors.As(err, &dependents) || len(dependents.Dependents) != 5 {
		t.Errorf("got %v, expected 5 dependents", err)
	}
	// Those that come after the start end up in the delivery's error.
	p.exec("drop view @.above; drop materialized view @.m; drop function @.rows(); drop trigger tr on @.v; alter view @.v alter n drop default")
	other.open(1)
	p.exec("create view @.above as select n from @.v")
	_, _, err := other.target.Deliver(t.Context(), other.of(1, 2, 2, 2))
	if !errors.As(err, &dependents) || !slices.Equal(dependents.Dependents, []string{"view " + p.schema + ".above"}) {
		t.Errorf("delivered with %v", err)
	}
	p.expect("select * from @.two")
	// The columns may be more, in any order.
	shownBy(t, p, "three", wideRow).open(1).deliver(1, 2, 3)
	p.expect("select n from @.above", "3", "3")
}

// A view that waits says for whom.
func TestAViewThatWaits(t *testing.T) {
	p := newPlace(t)
	shownBy(t, p, "one", plainRow).open(0).deliver(0, 1, 1)
	two := shownBy(t, p, "two", plainRow, LockTimeout(2*time.Second)).open(1)
	p.exec("set application_name = 'monthly report'; begin; select * from @.v")
	_, _, err := two.target.Deliver(t.Context(), two.of(1, 2, 2, 2))
	var blocked *BlockedError
	if !errors.As(err, &blocked) || len(blocked.Blockers) != 1 {
		t.Fatalf("delivered with %v", err)
	}
	if b := blocked.Blockers[0]; b.PID != int32(p.conn.PgConn().PID()) || b.User != "postgres" || b.Application != "monthly report" || b.State != "idle in transaction" || b.Since.IsZero() {
		t.Errorf("blocker %+v", b)
	}
	says(t, err, fmt.Sprintf("it waits for process %d (user postgres, application monthly report, idle in transaction, its query of 2", p.conn.PgConn().PID()), "pg_terminate_backend")
	p.exec("commit")
	p.expect("select n from @.v", "1", "1")
	p.expect("select * from @.two")
	two.deliver(1, 2, 2)
	p.expect("select n from @.v", "2", "2")
}

// What has the view's name, and isn't the job's, is refused.
func TestStrangeViews(t *testing.T) {
	for name, c := range map[string]struct{ sql, says string }{
		"a table":             {"create table @.v (n int)", "something else has that name, table "},
		"an index":            {"create table @.x (n int); create index v on @.x (n)", "something else has that name, index "},
		"a type":              {"create type @.v as enum ('a')", "something else has that name, type "},
		"a person's view":     {"create view @.v as select 1 as n", "no job has made it"},
		"a view no one keeps": {createViews("@.sluice_view") + "; create view @.v as select 1 as n", "no job has made it"},
		"another job's": {createViews("@.sluice_view") + "; create view @.v as select 1 as n; insert into @.sluice_view values ('v', 1, '77', 'other', 'out', 't', 0, 1)",
			"it is that of job_id 77 (other, sink out), and this is job_id 5fe2"},
		"another format": {createViews("@.sluice_view") + "; insert into @.sluice_view values ('v', 2, '5fe2', 'shop', 'one', 't', 0, 1)", "expected format 1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.exec(c.sql)
			shownBy(t, p, "one", plainRow).refused(c.says)
			p.expect("select to_regclass('@.one')", "∅")
		})
	}
	p := newPlace(t)
	one := shownBy(t, p, "one", plainRow).open(0)
	p.exec("create view @.v as select 1 as n")
	_, _, err := one.target.Deliver(t.Context(), one.of(0, 1, 1, 2))
	says(t, err, "no job has made it")
	p.expect("select * from @.one")
}

// Versions that begin at once make one view.
func TestViewsAtOnce(t *testing.T) {
	p := newPlace(t)
	done := make(chan error)
	var versions []*shown
	for i := range 6 {
		versions = append(versions, shownBy(t, p, fmt.Sprint("t", i), plainRow).open(0))
	}
	for i, v := range versions {
		d := v.of(uint64(i), 1, int64(i), 2)
		go func() {
			_, _, err := v.target.Deliver(t.Context(), d)
			done <- err
		}()
	}
	for range versions {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	p.expect("select n from @.v", "5", "5")
	p.expect("select sink, live from @.sluice_view", "t5|5")
}

// The settings of a view are part of a version, and senseless ones a fault.
func TestViewSettings(t *testing.T) {
	d := Upsert("reports.spend_v2", plainRow, Key("k"), View("spend")).Describe()
	if !slices.Contains(d.Parameters, connector.Parameter{Name: "view", Value: "reports.spend"}) {
		t.Errorf("parameters %v", d.Parameters)
	}
	_, err := Upsert("spend", plainRow, Key("k"), View("spend")).TableRows()
	says(t, err, `postgres.View("spend"): the table has that name`)
	_, err = Delete[string]("spend", View("v")).Rows()
	says(t, err, "has none of its own to show")

	t.Setenv(addressVariable, "postgres://h/a")
	one := Upsert("spend_v1", plainRow, Key("k"), View("spend")).(connector.RivalSink)
	for _, c := range []struct {
		other  connector.Sink
		rivals bool
	}{
		{Insert[plainShown]("spend_v2", View("spend")), true},
		{Insert[plainShown]("spend_v2", View("spend"), Database("host=h dbname=a user=x")), true},
		{Insert[plainShown]("spend_v2", View("spend"), Database("postgres://h/b")), false},
		{Insert[plainShown]("reports.spend_v2", View("spend")), false},
		{Insert[plainShown]("spend_v2", View("spends")), false},
		{Insert[plainShown]("spend_v2"), false},
		{nil, false},
	} {
		if err := one.Rivals(c.other); (err != nil) != c.rivals {
			t.Errorf("beside %+v: %v", c.other, err)
		}
	}
}
