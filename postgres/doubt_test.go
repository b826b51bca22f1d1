package postgres

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicestream/sluice/connector"
)

// cutter cuts a connection at the write that holds a text: before it, in the
// middle of it, or after the server has done what it says.
type cutter struct {
	text  string
	where string
	armed atomic.Bool
}

func (k *cutter) option() Option {
	return func(s *settings) {
		s.dial = func(connector.Opening) pgconn.DialFunc {
			return func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &cutConn{c, k}, err
			}
		}
	}
}

type cutConn struct {
	net.Conn
	*cutter
}

func (c *cutConn) Write(p []byte) (int, error) {
	if !bytes.Contains(p, []byte(c.text)) || !c.armed.CompareAndSwap(true, false) {
		return c.Conn.Write(p)
	}
	switch c.where {
	case "in":
		_, _ = c.Conn.Write(p[:len(p)/2])
	case "after":
		_, _ = c.Conn.Write(p)
		_ = c.Conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Conn.Read(make([]byte, 1))
	}
	_ = c.Conn.Close()
	return 0, errCrashed
}

// Connections are cut before, in and after a commit, and elsewhere: whatever the
// outcome, trying again makes it one delivery.
func TestCutConnections(t *testing.T) {
	for _, text := range []string{"begin isolation", "for update", "create temporary", "copy ", "PGCOPY", "insert into", "update ", "commit\x00"} {
		for _, where := range []string{"before", "in", "after"} {
			t.Run(where+" "+text, func(t *testing.T) {
				p, cut := newPlace(t), &cutter{text: text, where: where}
				// Only inserts, so that a delivery applied twice would show.
				p.exec("create view @.rows as select 0::bigint as n; create table @.kept (n bigint); create rule r as on insert to @.rows do instead insert into " + p.schema + ".kept values (new.n)")
				s := Insert[struct{ N int64 }]("rows", p.options(cut.option())...)
				typed, err := s.Rows()
				if err != nil {
					t.Fatal(err)
				}
				target := openTarget(t, s)
				deliver := func(n connector.Position) *connector.Delivery {
					row, err := typed.NewAppend()(nil, &struct{ N int64 }{int64(n)})
					if err != nil {
						t.Fatal(err)
					}
					return delivery(n, nil, typed.Schema, connector.Row{Op: connector.Append, Row: row})
				}
				mustDeliver(t, target, deliver(1), connector.Apply)
				cut.armed.Store(true)
				if _, _, err := target.Deliver(t.Context(), deliver(2)); err == nil {
					t.Fatal("delivered over a connection that was cut")
				}
				want := connector.Apply
				if strings.Contains(text, "commit") && where == "after" {
					want = connector.Skip
				}
				mustDeliver(t, target, deliver(2), want)
				mustDeliver(t, target, deliver(2), connector.Skip)
				mustDeliver(t, target, deliver(3), connector.Apply)
				p.expect("select n from @.kept order by n", "1", "2", "3")
				p.expect("select position from @.sluice_delivery", "3")
			})
		}
	}
}

// Deadlocks and serialisation failures are errors; trying again succeeds.
func TestDeadlock(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	mustDeliver(t, target, spends(t, 1, "ab", 1, 1), connector.Apply)
	p.exec("set deadlock_timeout = '60s'; begin; update @.spend set orders = 7 where user_id = 'b'")
	failed := make(chan error)
	go func() {
		_, _, err := target.Deliver(t.Context(), spends(t, 2, "ab", 2, 2))
		failed <- err
	}()
	p.until("the delivery waits for b", "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into \""+p.schema+"\"%'", "1")
	p.exec("update @.spend set orders = 7 where user_id = 'a'")
	if err := <-failed; code(err) != "40P01" {
		t.Fatalf("delivered with %v", err)
	}
	p.exec("commit")
	mustDeliver(t, target, spends(t, 2, "ab", 2, 2), connector.Apply)
	p.expect("select * from @.spend order by 1", "a|2|∅", "b|2|∅")
}

func TestSerialisationFailure(t *testing.T) {
	p := newPlace(t)
	target := openTarget(t, spendSink(p))
	p.exec(`create sequence @.tries; create function @.fail() returns trigger language plpgsql as
		'begin if nextval(''` + p.schema + `.tries'') < 3 then raise exception using errcode = ''40001''; end if; return new; end';
		create trigger t before insert on @.spend for each row execute function @.fail()`)
	for range 2 {
		if _, _, err := target.Deliver(t.Context(), spends(t, 1, "a", 1)); code(err) != "40001" {
			t.Fatalf("delivered with %v", err)
		}
	}
	mustDeliver(t, target, spends(t, 1, "a", 1), connector.Apply)
	p.expect("select position from @.sluice_delivery", "1")
}

// A server that is killed in the middle of a delivery, and started again, has
// all of it or nothing.
func TestTheServerIsKilled(t *testing.T) {
	needServer(t)
	runtime.LockOSThread() // the server ends with the thread that started it
	own, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.remove)
	p := newPlaceOn(t, own)
	target := openTarget(t, spendSink(p))
	mustDeliver(t, target, spends(t, 1, "ab", 1, 1), connector.Apply)

	d := spends(t, 2, "abc", 2, 0, 2)
	whole := d.Rows
	d.Rows = func(yield func(connector.Row, error) bool) {
		n := 0
		for r, err := range whole {
			if n++; n == 2 {
				own.kill()
			}
			if !yield(r, err) {
				return
			}
		}
	}
	if _, _, err := target.Deliver(t.Context(), d); err == nil {
		t.Fatal("delivered to a server that was killed")
	}
	_, _, err = target.Deliver(t.Context(), spends(t, 2, "abc", 2, 0, 2))
	says(t, err, "no server answers there", "127.0.0.1", "database postgres", "user postgres")
	if err := own.start(); err != nil {
		t.Fatal(err)
	}
	p.conn = p.connect()
	p.expect("select user_id, orders from @.spend order by 1", "a|1", "b|1")
	mustDeliver(t, target, spends(t, 2, "abc", 2, 0, 2), connector.Apply)
	p.expect("select user_id, orders from @.spend order by 1", "a|2", "c|2")
}
