package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// refusedRow delivers to a table of spends that has one condition more, and
// expects that the job would stop, with a row and a way out, and nothing written;
// mend has the same delivery go through.
type refusedRow struct {
	name, condition, users string
	orders                 []int64
	code, row, says        string
	mend                   string
}

var refusedRows = []refusedRow{
	{"a condition", "alter table @.spend add constraint small check (orders < 10)", "abcde", []int64{1, 2, 30, 4, 50}, violatesCheck,
		"user_id = c", "constraint small, row user_id = c: ", "alter table @.spend drop constraint small"},
	{"the first row", "alter table @.spend add constraint small check (orders < 10)", "abc", []int64{10, 1, 1}, violatesCheck,
		"user_id = a", "drop constraint \"small\"; start again after that", "alter table @.spend drop constraint small"},
	{"the last row", "alter table @.spend add constraint small check (orders < 10)", "abc", []int64{1, 1, 10}, violatesCheck,
		"user_id = c", "Failing row contains", "alter table @.spend drop constraint small"},
	{"among deletes", "alter table @.spend add constraint small check (orders < 10)", "abcd", []int64{0, 1, 0, 10}, violatesCheck,
		"user_id = d", "", "alter table @.spend drop constraint small"},
	{"no null", "update @.spend set note = ''; alter table @.spend alter column note set not null", "ab", []int64{1, 2}, notNull,
		"user_id = a", "column note, row user_id = a: ", "alter table @.spend alter column note drop not null"},
	{"a condition that is looked at in the end", "create function @.late() returns trigger language plpgsql as 'begin if new.orders = 3 then raise check_violation using message = ''three'', constraint = ''late''; end if; return null; end'; create constraint trigger late after insert on @.spend deferrable initially deferred for each row execute function @.late()",
		"abc", []int64{1, 2, 3}, violatesCheck, "user_id = c", "three", "drop trigger late on @.spend"},
	{"a computed column", "alter table @.spend add column inverse bigint generated always as (100 / (orders - 3)) stored", "abc", []int64{1, 3, 4}, "22012",
		"user_id = b", "division by zero", "alter table @.spend drop column inverse"},
	{"a trigger's text", "create function @.cast() returns trigger language plpgsql as 'begin perform new.user_id::int; return new; end'; create trigger t before insert on @.spend for each row execute function @.cast()",
		"1x2", []int64{1, 1, 1}, "22P02", "user_id = x", "invalid input syntax", "drop trigger t on @.spend"},
}

func TestRefusedRows(t *testing.T) {
	for _, c := range refusedRows {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			target := openTarget(t, spendSink(p))
			deliverHard(t, target, spends(t, 1, "z", 1))
			p.exec(c.condition)
			d := spends(t, 2, c.users, c.orders...)
			_, _, err := target.Deliver(t.Context(), d)
			wantError(t, err, connector.ErrRejected, "delivering position 2: table "+p.schema+".spend", c.says, "; start again after that")
			rejected, ok := errors.AsType[*RejectedError](err)
			if !ok || rejected.Row != c.row || rejected.Code != c.code || rejected.Table != p.schema+".spend" {
				t.Errorf("got %+v, expected row %q and code %s", rejected, c.row, c.code)
			}
			p.expect("select user_id from @.spend", "z")
			p.expect("select position from @.sluice_delivery", "1")
			p.exec(c.mend)
			if verdict, _, err := target.Deliver(t.Context(), d); err != nil || verdict != connector.Apply {
				t.Errorf("once it is mended: %v, %v", verdict, err)
			}
		})
	}
}

// TestRefusedInserts: rows without a key are told by their number and columns.
func TestRefusedInserts(t *testing.T) {
	p := newPlace(t)
	sink := Insert[spend]("log", p.options(CreateTable())...)
	target := openTarget(t, sink)
	p.exec("alter table @.log add constraint small check (orders < 10)")
	rows, err := sink.Rows()
	if err != nil {
		t.Fatal(err)
	}
	var all []connector.Row
	appendRow, note := rows.NewAppend(), strings.Repeat("é", 80)
	for _, n := range []int64{1, 2, 33, 44} {
		data, err := appendRow(nil, &spend{Orders: n, Note: &note})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, connector.Row{Op: connector.Append, Row: data})
	}
	_, _, err = target.Deliver(t.Context(), delivery(1, nil, rows.Schema, all...))
	wantError(t, err, connector.ErrRejected, "constraint small, row 3 of the delivery: orders = 33, note = "+strings.Repeat("é", 50)+"…: ")
	p.expect("select count(*) from @.log", "0")
}

// TestRefusedDelete: a row that others refer to.
func TestRefusedDelete(t *testing.T) {
	p := newPlace(t)
	opened := openTarget(t, spendSink(p))
	opened.(*target).clock = &steps{Clock: env.Real().Clock}
	deliverHard(t, opened, spends(t, 1, "abc", 1, 1, 1))
	p.exec("create table @.refers (u text references @.spend); insert into @.refers values ('b')")
	d := spends(t, 2, "abc", 0, 0, 0)
	_, _, err := opened.Deliver(t.Context(), d)
	if err == nil || errors.Is(err, connector.ErrRejected) {
		t.Errorf("the first try: %v, expected one that can be tried again", err)
	}
	opened.(*target).clock.(*steps).gone = othersWithin
	_, _, err = opened.Deliver(t.Context(), d)
	wantError(t, err, connector.ErrRejected, "(and "+p.schema+".refers)", "row user_id = b", "bring the row that it refers to, or run: alter table \""+p.schema+"\".\"refers\" drop constraint ")
	p.expect("select count(*) from @.spend", "3")
}

// steps is a clock that a test sets ahead.
type steps struct {
	env.Clock
	gone time.Duration
}

func (s *steps) Now() time.Time { return time.Unix(1e9, 0).Add(s.gone) }

// TestOthersMayMendIt: what depends on other rows is tried again for a while, and
// anew for each delivery.
func TestOthersMayMendIt(t *testing.T) {
	for code, c := range map[string]struct{ condition, mend, says string }{
		foreignKey: {"create table @.users (id text primary key); alter table @.spend add constraint known foreign key (user_id) references @.users",
			"insert into @.users values ('a'), ('b')", "is not present in table"},
		notUnique: {"create table @.taken (o bigint); create unique index one on @.spend (orders); insert into @.spend values ('other', 1), ('another', 2)",
			"delete from @.spend where user_id in ('other', 'another')", "mend the row that stands in its way"},
		excluded: {"alter table @.spend add constraint one exclude using btree (orders with =); insert into @.spend values ('other', 1), ('another', 2)",
			"delete from @.spend where user_id in ('other', 'another')", "drop constraint \"one\""},
	} {
		t.Run(code, func(t *testing.T) {
			p := newPlace(t)
			opened := openTarget(t, spendSink(p))
			clock := &steps{Clock: env.Real().Clock}
			opened.(*target).clock = clock
			p.exec(c.condition)
			again := func(d *connector.Delivery, after time.Duration, final bool) {
				t.Helper()
				clock.gone += after
				_, _, err := opened.Deliver(t.Context(), d)
				if err == nil || errors.Is(err, connector.ErrRejected) != final {
					t.Errorf("after %v: %v", after, err)
				}
				if final {
					wantError(t, err, connector.ErrRejected, "row user_id = b", c.says)
				}
			}
			p.exec("alter table @.spend disable trigger user")
			d := spends(t, 1, "b", 2)
			again(d, 0, false)
			again(d, othersWithin-1, false)
			again(d, 1, true)
			p.exec(c.mend)
			deliverHard(t, opened, d)
			if opened.(*target).refused != nil {
				t.Error("a delivery that went through is remembered as refused")
			}
		})
	}
}

// TestTriggerThatRaises: what a trigger refuses may depend on other rows, so that it is
// tried again for a while, and no longer.
func TestTriggerThatRaises(t *testing.T) {
	p := newPlace(t)
	opened := openTarget(t, spendSink(p))
	clock := &steps{Clock: env.Real().Clock}
	opened.(*target).clock = clock
	p.exec("create table @.most (n bigint); insert into @.most values (5); create function @.check_most() returns trigger language plpgsql as " +
		"'begin if new.orders > (select n from " + p.schema + ".most) then raise exception ''more than the most''; end if; return new; end'; " +
		"create trigger most before insert or update on @.spend for each row execute function @.check_most()")
	d := spends(t, 1, "abc", 1, 6, 2)
	for _, after := range []time.Duration{0, othersWithin - 1} {
		clock.gone += after
		if _, _, err := opened.Deliver(t.Context(), d); err == nil || errors.Is(err, connector.ErrRejected) {
			t.Fatalf("after %v: %v, expected an error that can be tried again", after, err)
		}
	}
	clock.gone++
	_, _, err := opened.Deliver(t.Context(), d)
	wantError(t, err, connector.ErrRejected, "table "+p.schema+".spend", "row user_id = b: ", "more than the most", "change the trigger that raises this, or what it looks at; start again after that")
	p.expect("select count(*) from @.spend", "0")
	p.exec("update @.most set n = 6")
	deliverHard(t, opened, d)
	p.expect("select count(*) from @.spend", "3")
}

// TestPassingTroubleIsTriedAgain: a deadlock, a serialisation failure, a lock that
// isn't had and a server that ends are no fault of a row's.
func TestPassingTroubleIsTriedAgain(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	for _, code := range []string{"40P01", "40001", "55P03", "57P01", "53200"} {
		p.exec(fmt.Sprintf("create or replace function @.fail() returns trigger language plpgsql as 'begin raise using errcode = ''%s'', message = ''trouble''; end'; drop trigger if exists t on @.spend; create trigger t before insert on @.spend for each row execute function @.fail()", code))
		_, _, err := target.Deliver(t.Context(), spends(t, 1, "a", 1))
		if err == nil || errors.Is(err, connector.ErrRejected) || !strings.Contains(err.Error(), "trouble") {
			t.Errorf("%s: %v", code, err)
		}
	}
	p.exec("drop trigger t on @.spend")
	deliverHard(t, target, spends(t, 1, "a", 1))
}

// TestColumnThatShrank: a frozen value that the column can't take any more.
func TestColumnThatShrank(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	p.exec("alter table @.spend alter column orders type smallint")
	_, _, err := target.Deliver(t.Context(), spends(t, 1, "ab", 1, 40000))
	wantError(t, err, connector.ErrRejected, "column orders, row with the key \"b\": ", "give the column a type that holds it")
	p.exec("alter table @.spend alter column orders type bigint")
	deliverHard(t, target, spends(t, 1, "ab", 1, 40000))
}

// TestConstraintsAreTold: the log says at the start what a row could violate.
func TestConstraintsAreTold(t *testing.T) {
	p := newPlace(t)
	openTarget(t, spendSink(p))
	told := func() string {
		t.Helper()
		var log bytes.Buffer
		o := opening()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		target, err := spendSink(p).Open(t.Context(), o, ownKey())
		if err != nil {
			t.Fatal(err)
		}
		target.Close()
		return log.String()
	}
	if log := told(); strings.Contains(log, "constraints") {
		t.Errorf("only the key is unique: %s", log)
	}
	p.exec("alter table @.spend add constraint small check (orders < 10), add unique (note)")
	log := told()
	for _, want := range []string{"a row that violates one stops the job", "sink=out", p.schema + ".spend: small CHECK ((orders < 10)); spend_note_key UNIQUE (note)"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
}

// TestSeveralReasons: a table that doesn't fit in several ways is told of in one
// line, or as a list.
func TestSeveralReasons(t *testing.T) {
	p := newPlace(t)
	p.exec("create table @.spend (user_id text primary key, orders text, extra int not null, note bigint)")
	_, err := spendSink(p).Open(t.Context(), opening(), ownKey())
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || len(refused.Details()) != 3 {
		t.Fatalf("got %v, expected three reasons", err)
	}
	if strings.HasPrefix(err.Error(), "table "+p.schema+".spend: ") {
		t.Errorf("the table is named twice at the beginning: %v", err)
	}
	says(t, err, "table "+p.schema+".spend, column orders: ", "; table "+p.schema+".spend, column note: ", "column extra: ")
	for i, column := range []string{"orders", "note", "extra"} {
		if line := refused.Details()[i]; !strings.HasPrefix(line, "table "+p.schema+".spend, column "+column+": expected ") || strings.Contains(line, "\n") {
			t.Errorf("reason %d: %s", i, line)
		}
	}
	if !strings.Contains(refused.Summary(), "3 reasons") {
		t.Error(refused.Summary())
	}
	if _, ok := errors.AsType[*ColumnError](err); !ok {
		t.Error("no column's error within", err)
	}
	p.exec("alter table @.spend drop column orders, drop column note")
	_, err = spendSink(p).Open(t.Context(), opening(), ownKey())
	if _, ok := errors.AsType[*RefusedError](err); ok || err == nil {
		t.Errorf("one reason: %v, expected it alone", err)
	}
}
