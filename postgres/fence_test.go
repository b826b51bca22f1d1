package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// Two owners deliver the same position at once, and the first one's record is
// made before either: one of them applies it, the other finds it applied (H6a).
func TestTheRecordIsLockedBeforeItIsBelieved(t *testing.T) {
	p := newPlace(t)
	first, second := openTarget(t, spendSink(p)), openTarget(t, spendSink(p))
	p.exec("create table @.seen (n bigint); create function @.note() returns trigger language plpgsql as 'begin insert into " +
		p.schema + ".seen values (new.orders); return new; end'; create trigger t after insert or update on @.spend for each row execute function @.note()")

	deciding, decided := make(chan bool), make(chan connector.Verdict, 2)
	slow := spends(t, 1, "a", 5)
	decide := slow.Decide
	slow.Decide = func(found *connector.SinkRecord) connector.Verdict {
		close(deciding)
		// The other waits for the lock before this one goes on.
		p.until("the second waits for the first", "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%"+p.schema+"%for update'", "1")
		return decide(found)
	}
	var wg sync.WaitGroup
	deliver := func(target connector.Target, d *connector.Delivery) {
		verdict, _, err := target.Deliver(t.Context(), d)
		if err != nil {
			t.Error(err)
		}
		decided <- verdict
	}
	wg.Go(func() { deliver(first, slow) })
	<-deciding
	wg.Go(func() { deliver(second, spends(t, 1, "a", 5)) })
	wg.Wait()
	if one, other := <-decided, <-decided; one+other != connector.Apply+connector.Skip {
		t.Errorf("verdicts %v and %v", one, other)
	}
	p.expect("select * from @.seen", "5")
	p.expect("select position from @.sluice_delivery", "1")
}

// until waits until an answer is as it should be.
func (p *place) until(what, sql, want string) {
	p.t.Helper()
	c := p.connect() // the place's own session may be in use
	defer c.Close(context.Background())
	deadline := time.Now().Add(20 * time.Second)
	for {
		results, err := c.PgConn().Exec(context.Background(), p.in(sql)).ReadAll()
		if err != nil {
			p.t.Error(err)
			return
		}
		if string(results[0].Rows[0][0]) == want {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("%s: %s is %s, expected %s", what, sql, results[0].Rows[0][0], want)
			return
		}
	}
}

// A process that is suspended with the record locked holds up the next owner for
// no longer than the server's own bound (H6b).
func TestASuspendedOwnerLosesItsLock(t *testing.T) {
	p := newPlace(t)
	const idle = 300 * time.Millisecond
	suspended, next := openTarget(t, spendSink(p, IdleTimeout(idle))), openTarget(t, spendSink(p))
	locked, awake := make(chan bool), make(chan bool)
	d := spends(t, 1, "ab", 1, 1)
	decide := d.Decide
	d.Decide = func(found *connector.SinkRecord) connector.Verdict {
		close(locked)
		<-awake
		return decide(found)
	}
	failed := make(chan error)
	go func() {
		_, _, err := suspended.Deliver(t.Context(), d)
		failed <- err
	}()
	<-locked
	before := time.Now()
	mustDeliver(t, next, spends(t, 1, "a", 7), connector.Apply)
	took := time.Since(before)
	close(awake)
	if err := <-failed; err == nil {
		t.Error("the suspended process delivered")
	}
	t.Logf("the next owner got through after %v", took)
	if took < idle/2 || took > 20*idle {
		t.Errorf("the next owner got through after %v, expected about %v", took, idle)
	}
	mustDeliver(t, suspended, spends(t, 1, "ab", 1, 1), connector.Skip)
	p.expect("select user_id, orders from @.spend", "a|7")
}

// A process that is suspended while it sends rows holds up the next owner for no longer
// either: the server sees it work, and the next owner ends its session (H6b).
func TestAnOwnerSuspendedAmongRowsLosesItsLock(t *testing.T) {
	p := newPlace(t)
	const idle = 400 * time.Millisecond
	suspended, next := openTarget(t, spendSink(p)), openTarget(t, spendSink(p, IdleTimeout(idle), LockTimeout(time.Second)))
	sending, awake := make(chan bool), make(chan bool)
	d := spends(t, 1, "ab", 1, 1)
	rows := d.Rows
	d.Rows = func(yield func(connector.Row, error) bool) {
		n := 0
		for row, err := range rows {
			if n++; n == 2 {
				close(sending)
				<-awake
			}
			if !yield(row, err) {
				return
			}
		}
	}
	failed := make(chan error)
	go func() {
		_, _, err := suspended.Deliver(t.Context(), d)
		failed <- err
	}()
	<-sending
	p.until("it waits for rows", "select count(*) from pg_stat_progress_copy where datname = current_database()", "1")
	// The wait for the lock is shorter than it takes to be sure at times: then it is tried again.
	var err error
	for range 5 {
		if _, _, err = next.Deliver(t.Context(), spends(t, 1, "a", 7)); code(err) != lockTimedOut {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	close(awake)
	if err := <-failed; err == nil {
		t.Error("the suspended process delivered")
	}
	mustDeliver(t, suspended, spends(t, 1, "ab", 1, 1), connector.Skip)
	p.expect("select user_id, orders from @.spend", "a|7")
}

// A lock that somebody else holds on for long ends a delivery with an error,
// which can be tried again.
func TestLocksHaveABound(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p, LockTimeout(50*time.Millisecond)))
	p.exec("begin; lock table @.spend")
	if _, _, err := target.Deliver(t.Context(), spends(t, 1, "a", 1)); code(err) != "55P03" {
		t.Errorf("delivered with %v", err)
	}
	p.exec("rollback")
	mustDeliver(t, target, spends(t, 1, "a", 1), connector.Apply)

	slow := openTarget(t, spendSink(p, StatementTimeout(300*time.Millisecond)))
	p.exec("create function @.slow() returns trigger language plpgsql as 'begin perform pg_sleep(5); return new; end'; create trigger t before insert on @.spend for each row execute function @.slow()")
	if _, _, err := slow.Deliver(t.Context(), spends(t, 2, "b", 1)); code(err) != "57014" {
		t.Errorf("delivered with %v", err)
	}
	p.expect("select position from @.sluice_delivery", "1")
}

// A record that is lost reads as none, and no delivery makes another (H6c). One
// that went back, with the table, reads as what it is.
func TestALostRecord(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	mustDeliver(t, target, spends(t, 1, "a", 1), connector.Apply)
	mustDeliver(t, target, spends(t, 2, "a", 2), connector.Apply)
	p.exec("update @.sluice_delivery set position = 1")
	found, err := target.Record(t.Context())
	if err != nil || found.Position != 1 || found.ID != "id" || found.Job != "shop" || found.Branch != "main" || found.Manifest != "9c1f" {
		t.Fatalf("record %+v, %v", found, err)
	}
	for _, lose := range []string{"delete from @.sluice_delivery", "drop table @.sluice_delivery"} {
		p.exec(lose)
		if found, err := target.Record(t.Context()); found != nil || err != nil {
			t.Errorf("%s: record %+v, %v", lose, found, err)
		}
		mustDeliver(t, target, spends(t, 3, "a", 3), connector.Disagree)
		d := spends(t, 3, "a", 3)
		d.Decide = func(*connector.SinkRecord) connector.Verdict { return connector.Apply } // which no engine says
		mustDeliver(t, target, d, connector.Disagree)
	}
	p.expect("select orders from @.spend", "2")
}

// A damaged record stops the sink, and says what is damaged.
func TestADamagedRecord(t *testing.T) {
	for damage, says := range map[string]string{
		"update @.sluice_delivery set format = 2":                                                                  "format 2, this build knows format 1",
		"alter table @.sluice_delivery alter id drop not null; update @.sluice_delivery set id = null":             "a text in it is missing",
		"alter table @.sluice_delivery alter position drop not null; update @.sluice_delivery set position = null": "a number in it is missing",
		"update @.sluice_delivery set part = -1":                                                                   "negative",
		"alter table @.sluice_delivery drop column manifest":                                                       "no table of records",
		"alter table @.sluice_delivery alter position type text":                                                   "other types",
	} {
		p := newPlace(t)
		target := openTarget(t, spendSink(p))
		p.exec(damage)
		_, err := target.Record(t.Context())
		wantError(t, err, connector.ErrRecord, says, "sluice_delivery")
		_, _, err = target.Deliver(t.Context(), spends(t, 1, "a", 1))
		wantError(t, err, connector.ErrRecord, says)
		_, err = target.Make(t.Context(), connector.SinkRecord{ID: "other", Target: p.schema + ".spend"})
		wantError(t, err, connector.ErrRecord, says)
		p.expect("select * from @.spend")
	}
}

// wantError expects an error that matches is and says something.
func wantError(t *testing.T, err, is error, texts ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Errorf("got %v, expected it to match %v", err, is)
		return
	}
	says(t, err, texts...)
}
