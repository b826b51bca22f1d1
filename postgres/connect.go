package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicestream/sluice/connector"
)

// addressVariable names the database where no option does.
const addressVariable = "SLUICE_POSTGRES"

// connectTimeout bounds each try to connect, if the address sets no bound.
const connectTimeout = 10 * time.Second

// keepAlive finds within half a minute that the other end is gone without a
// word.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}
}

// database is a connection that is made when it is needed, and thrown away
// after any error.
type database struct {
	config   *pgx.ConnConfig
	timeouts timeouts
	conn     *pgx.Conn
}

func newDatabase(s *settings, o connector.Opening) (*database, error) {
	address, from := s.database, "postgres.Database"
	if address == "" {
		address, from = os.Getenv(addressVariable), addressVariable
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The cause repeats the address, in which a password may stand anywhere.
		return nil, fmt.Errorf("%s can't be read: expected an address such as postgres://user@host:5432/database?sslmode=verify-full, or host=… dbname=… user=…, with files and variables that exist", from)
	}
	if config.ConnectTimeout <= 0 {
		config.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{KeepAliveConfig: keepAlive()}
	config.DialFunc = dialer.DialContext
	if s.dial != nil {
		config.DialFunc = s.dial(o)
	}
	// Nothing is prepared by name, so that a pooler in between does no harm.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "sluice " + o.Job + " " + o.Name
	}
	return &database{config: config, timeouts: s.timeouts}, nil
}

// run calls f with a connection.
func (d *database) run(ctx context.Context, f func(ctx context.Context, c *session) error) error {
	if d.conn == nil {
		if err := d.connect(ctx); err != nil {
			return err
		}
	}
	err := f(ctx, &session{d.conn, d.timeouts.statement + d.timeouts.patience})
	if err != nil {
		d.drop(ctx)
	}
	return explained(err)
}

// connect connects, and sets the bounds that the server is to keep.
func (d *database) connect(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return d.connectError(ctx, err)
	}
	d.conn = c
	if err := d.setUp(ctx, &session{c, d.timeouts.statement + d.timeouts.patience}); err != nil {
		d.drop(ctx)
		return d.connectError(ctx, err)
	}
	return nil
}

func (d *database) setUp(ctx context.Context, c *session) error {
	idle, statement := d.timeouts.idle.Milliseconds(), d.timeouts.statement.Milliseconds()
	err := c.script(ctx, fmt.Sprintf(`set idle_in_transaction_session_timeout = %d; set statement_timeout = %d; set lock_timeout = %d;
		select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`,
		idle, statement, d.timeouts.lock.Milliseconds()))
	if err != nil {
		return err
	}
	// How soon the server finds a client gone. Not every server has these.
	for _, set := range []string{
		fmt.Sprintf("set tcp_user_timeout = %d", idle),
		fmt.Sprintf("set client_connection_check_interval = %d", max(idle/5, 1)),
	} {
		var refused *pgconn.PgError
		if err := c.script(ctx, set); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}

// drop throws the connection away. The server rolls back what was open.
func (d *database) drop(ctx context.Context) {
	if d.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.conn.Close(ctx) // whatever it says, nothing uses it any more
	d.conn = nil
}

// connectError tells why there is no connection.
func (d *database) connectError(ctx context.Context, err error) error {
	host, user := d.config.Host, d.config.User
	if _, address := pgconn.NetworkAddress(host, d.config.Port); address != "" {
		host = address
	}
	e := &ConnectError{Host: host, Database: d.config.Database, User: user}
	var refused *pgconn.PgError
	var network *net.OpError
	var lookup *net.DNSError
	switch {
	case ctx.Err() != nil:
		e.Reason, e.Cause = "given up", ctx.Err()
	case errors.As(err, &refused):
		e.Reason, e.Cause = connectReason(refused, d.config.Database, user), refused
	case errors.As(err, &lookup):
		e.Reason, e.Cause = "the host isn't known: "+oneLine(lookup.Error())+"; mend its name in the address", lookup
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		e.Reason, e.Cause = fmt.Sprintf("no answer within %v; look whether the address is right, and whether a firewall lets it through", d.config.ConnectTimeout), context.DeadlineExceeded
	case errors.As(err, &network):
		e.Reason, e.Cause = "no server answers there: "+oneLine(network.Error())+"; start it, or mend the address", network
	default:
		// The driver's own error holds the configuration, so it isn't wrapped.
		var whole *pgconn.ConnectError
		if errors.As(err, &whole) {
			err = whole.Unwrap()
		}
		e.Reason = oneLine(err.Error()) + "; mend the address, or the server's settings"
	}
	return e
}

func connectReason(refused *pgconn.PgError, database, user string) string {
	switch refused.Code {
	case "28P01":
		return "the password is wrong, or there is none; put the right one into the address, PGPASSWORD or ~/.pgpass"
	case "28000":
		return "the server doesn't let this user in from here in this way: " + oneLine(refused.Message) + "; allow it in pg_hba.conf, or name another user"
	case "3D000":
		return fmt.Sprintf("there is no such database; run: create database %s", quote(database))
	case "42501":
		return fmt.Sprintf("the user may not connect; run: grant connect on database %s to %s", quote(database), quote(user))
	case "53300":
		return "the server has no connection left: " + oneLine(refused.Message) + "; allow more with max_connections"
	case "57P03":
		return "the server is starting up or shutting down; start again a little later"
	}
	return oneLine(refused.Message) + " (" + refused.Code + "); look into the server's log"
}

// explained adds what the server says beside its message.
func explained(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Detail == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, oneLine(refused.Detail[:min(len(refused.Detail), shownDetail)]))
}

// shownDetail bounds how much of a detail an error repeats; there may be a
// whole row in it.
const shownDetail = 300

// session is a connection in use. Each call has a bound somewhat wider than the
// server's own, for a server that is gone without a word.
type session struct {
	conn  *pgx.Conn
	bound time.Duration
}

// exec runs a statement and returns how many rows it touched.
func (c *session) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.bound)
	defer cancel()
	tag, err := c.conn.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// script runs statements without parameters.
func (c *session) script(ctx context.Context, sql string) error {
	_, err := c.answers(ctx, sql)
	return err
}

// answers runs statements without parameters and returns what they answer.
func (c *session) answers(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.bound)
	defer cancel()
	return c.conn.PgConn().Exec(ctx, sql).ReadAll()
}

// copy sends what a COPY takes, and returns how many rows that were.
func (c *session) copy(ctx context.Context, rows io.Reader, sql string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.bound)
	defer cancel()
	tag, err := c.conn.PgConn().CopyFrom(ctx, rows, sql)
	return tag.RowsAffected(), err
}

// query calls scan for each row of the answer.
func (c *session) query(ctx context.Context, scan func(row pgx.Rows) error, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, c.bound)
	defer cancel()
	rows, err := c.conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// transaction calls f inside of one, and commits if f says so. Unless it says
// that the end is known, an error leaves the outcome open.
func (c *session) transaction(ctx context.Context, f func(ctx context.Context) (commit bool, err error)) error {
	if err := c.script(ctx, "begin isolation level read committed read write"); err != nil {
		return err
	}
	commit, err := f(ctx)
	if err != nil {
		return err // the connection is thrown away, and the transaction with it
	}
	if !commit {
		return c.script(ctx, "rollback")
	}
	ctx, cancel := context.WithTimeout(ctx, c.bound)
	defer cancel()
	tag, err := c.conn.Exec(ctx, "commit")
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the transaction was not committed, but ended with %s", tag.String())
	}
	return err
}

// code is the server's code for an error, or empty.
func code(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}
