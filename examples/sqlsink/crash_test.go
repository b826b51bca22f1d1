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

var errCrashed = errors.New("the process has crashed")

// process is one that crashes at a call to the database, before or after that
// takes effect. The server outlives it, so that a power loss is no more than
// that. Its connections break, as those of a process that ends do.
type process struct {
	call    int
	how     connectortest.Crash
	calls   atomic.Int64
	crashed atomic.Bool

	mu    sync.Mutex
	conns []*stdlib.Conn
}

// step makes a call, unless the process has crashed or does so now.
func (p *process) step(do func() error) error {
	n := int(p.calls.Add(1))
	if n < p.call {
		return do()
	}
	if n == p.call && p.how == connectortest.After {
		_ = do() // its reply is lost, whatever it is
	}
	p.crashed.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Conn().PgConn().Conn().Close()
	}
	return errCrashed
}

func (p *process) wrap(c driver.Connector) driver.Connector { return mortalConnector{c, p} }

type mortalConnector struct {
	driver.Connector
	process *process
}

func (c mortalConnector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	err = c.process.step(func() error {
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
	err = c.process.step(func() error {
		tx, err = c.Conn.BeginTx(ctx, o)
		return err
	})
	return mortalTx{tx, c.process}, err
}

func (c mortalConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.process.step(func() error {
		r, err = c.Conn.ExecContext(ctx, query, args)
		return err
	})
	return r, err
}

func (c mortalConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.process.step(func() error {
		r, err = c.Conn.QueryContext(ctx, query, args)
		return err
	})
	return r, err
}

type mortalTx struct {
	driver.Tx
	process *process
}

func (t mortalTx) Commit() error   { return t.process.step(t.Tx.Commit) }
func (t mortalTx) Rollback() error { return t.process.step(t.Tx.Rollback) }
