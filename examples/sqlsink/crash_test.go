package sqlsink_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluicestream/sluice/connector/connectortest"
)

var errBroken = errors.New("the call is broken")

// process is one whose call to the database of that number breaks, before or after
// it takes effect. Either it crashes there, and all its connections are gone, or it
// lives on, and that call's is. The server outlives it, so that a power loss is no
// more than a crash.
type process struct {
	call   int
	how    connectortest.Crash
	lives  bool
	calls  atomic.Int64
	broken atomic.Bool

	mu    sync.Mutex
	conns []*stdlib.Conn
}

// step makes a call by a connection, unless it is to break.
func (p *process) step(by *stdlib.Conn, do func() error) error {
	n := int(p.calls.Add(1))
	if n < p.call || n > p.call && p.lives {
		return do()
	}
	if n == p.call && p.how == connectortest.After {
		_ = do() // its reply is lost, whatever it is
	}
	p.broken.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if c == by || !p.lives {
			_ = c.Conn().PgConn().Conn().Close()
		}
	}
	return errBroken
}

func (p *process) wrap(c driver.Connector) driver.Connector { return mortalConnector{c, p} }

type mortalConnector struct {
	driver.Connector
	process *process
}

func (c mortalConnector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	err = c.process.step(nil, func() error {
		conn, err = c.Connector.Connect(ctx)
		if err != nil {
			return err
		}
		c.process.mu.Lock()
		defer c.process.mu.Unlock()
		c.process.conns = append(c.process.conns, conn.(*stdlib.Conn))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mortalConn{conn.(*stdlib.Conn), c.process}, nil
}

type mortalConn struct {
	*stdlib.Conn
	process *process
}

func (c mortalConn) BeginTx(ctx context.Context, o driver.TxOptions) (tx driver.Tx, err error) {
	err = c.process.step(c.Conn, func() error {
		tx, err = c.Conn.BeginTx(ctx, o)
		return err
	})
	return mortalTx{tx, c}, err
}

func (c mortalConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.process.step(c.Conn, func() error {
		r, err = c.Conn.ExecContext(ctx, query, args)
		return err
	})
	return r, err
}

func (c mortalConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.process.step(c.Conn, func() error {
		r, err = c.Conn.QueryContext(ctx, query, args)
		return err
	})
	return r, err
}

type mortalTx struct {
	driver.Tx
	by mortalConn
}

func (t mortalTx) Commit() error   { return t.by.process.step(t.by.Conn, t.Tx.Commit) }
func (t mortalTx) Rollback() error { return t.by.process.step(t.by.Conn, t.Tx.Rollback) }
