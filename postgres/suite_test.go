package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
)

var errCrashed = errors.New("the process has crashed")

// wire counts what a process writes to the server, and ends it at a call.
type wire struct {
	call int64
	how  connectortest.Crash
	n    atomic.Int64
}

func (w *wire) over() bool { return w.n.Load() >= w.call }

// dial connects through the wire.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if w.over() {
		return nil, errCrashed
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wiredConn{Conn: c, wire: w}, nil
}

type wiredConn struct {
	net.Conn
	*wire
}

// replyTime is how long a crashed write's reply is waited for, which many writes
// don't have.
const replyTime = 10 * time.Millisecond

func (c *wiredConn) Write(p []byte) (int, error) {
	n := c.n.Add(1)
	switch {
	case n < c.call:
		return c.Conn.Write(p)
	case n == c.call && c.how == connectortest.After:
		_, _ = c.Conn.Write(p)
		_ = c.Conn.SetReadDeadline(time.Now().Add(replyTime))
		_, _ = c.Conn.Read(make([]byte, 1)) // the server has taken it in
	}
	_ = c.Conn.Close()
	return 0, errCrashed
}

// wires are the ways of a fixture's openings to the server, by their name.
type wires struct{ byName sync.Map }

func (w *wires) option() Option {
	return func(s *settings) {
		s.dial = func(o connector.Opening) pgconn.DialFunc {
			if found, ok := w.byName.Load(o.Name); ok {
				return found.(*wire).dial
			}
			return (&net.Dialer{}).DialContext
		}
	}
}

// crash is a [connectortest.Faults.Crash].
func (w *wires) crash(o connector.Opening, call int, how connectortest.Crash) (_ connector.Opening, crashed func() bool) {
	one := &wire{call: int64(call), how: how}
	o.Name = fmt.Sprintf("crash %d %v", call, how)
	w.byName.Store(o.Name, one)
	return o, one.over
}

func sameRow(_ string, r connectortest.Row) connectortest.Row { return r }

// suiteRows reads the suite's rows; what an older build left out is null. A newer
// one's column is there once it is delivered.
func suiteRows(t *testing.T, p *place, key, order string) (keys []string, all []connectortest.NewerRow) {
	t.Helper()
	if p.lines("select to_regclass('@.suite')")[0] == "∅" {
		return nil, nil
	}
	rows, err := p.conn.Query(context.Background(), p.in("select "+key+", id, name, note, coalesce(amount, 0), coalesce(at, '0001-01-01 00:00:00+00'), coalesce(ok, false), coalesce(to_jsonb(s)->>'Extra', '') from @.suite s order by "+order))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r connectortest.NewerRow
		var key string
		if err := rows.Scan(&key, &r.ID, &r.Name, &r.Note, &r.Amount, &r.At, &r.OK, &r.Extra); err != nil {
			t.Fatal(err)
		}
		keys, all = append(keys, key), append(all, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return keys, all
}

// older are the rows without what a newer build has besides.
func older(newer []connectortest.NewerRow) (all []connectortest.Row) {
	for _, r := range newer {
		all = append(all, r.Row)
	}
	return all
}

// system is the schema in which a suite's sink writes.
func system(p *place) connectortest.System {
	return connectortest.System{
		Elsewhere: func(*testing.T) connector.Sink {
			return Insert[connectortest.Row]("elsewhere", p.options(CreateTable())...)
		},
		Damage: func(*testing.T) { p.exec("update @.sluice_delivery set format = 99") },
		Lose:   func(*testing.T) { p.exec("delete from @.sluice_delivery") },
		Refuse: func(t *testing.T, name string) (allow func()) {
			p.exec("alter table @.suite add constraint names check (name <> '" + name + "')")
			return func() { p.exec("alter table @.suite drop constraint names") }
		},
	}
}

// What this sink leaves out of the suite: it has no limits of parts, no wire and no
// groups, which other sinks have; a delivery holds the record's row, so that none
// comes in between; and a call that fails in a living process is a connection that
// breaks, which TestCutsOfAnUpsert breaks behind each byte.
func TestSinkSuite(t *testing.T) {
	needServer(t)
	connectortest.TestSink(t, connectortest.SinkSetup{
		Stream: func(t *testing.T) connectortest.StreamFixture {
			p, w := newPlace(t), &wires{}
			// The heap is in the order of the writes: nothing is vacuumed.
			read := func(t *testing.T) []connectortest.NewerRow {
				_, rows := suiteRows(t, p, "''", "ctid")
				return rows
			}
			return connectortest.StreamFixture{
				Sink:    Insert[connectortest.Row]("suite", p.options(CreateTable(), w.option())...),
				Opening: opening(), Faults: connectortest.Faults{Crash: w.crash, Exclusive: true}, System: system(p),
				Read:      func(t *testing.T) []connectortest.Row { return older(read(t)) },
				ReadNewer: read,
			}
		},
		Table: func(t *testing.T) connectortest.TableFixture {
			p, w := newPlace(t), &wires{}
			read := func(t *testing.T) map[string]connectortest.NewerRow {
				all := map[string]connectortest.NewerRow{}
				keys, rows := suiteRows(t, p, "k", "k")
				for i, k := range keys {
					all[k] = rows[i]
				}
				return all
			}
			return connectortest.TableFixture{
				Sink:    Upsert("suite", sameRow, p.options(CreateTable(), Key("k"), w.option())...),
				Opening: opening(), Faults: connectortest.Faults{Crash: w.crash, Exclusive: true}, System: system(p),
				Read: func(t *testing.T) map[string]connectortest.Row {
					all := map[string]connectortest.Row{}
					for k, r := range read(t) {
						all[k] = r.Row
					}
					return all
				},
				ReadNewer: read,
			}
		},
	})
}
