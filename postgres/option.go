package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicestream/sluice/connector"
)

// Option is a setting of a sink.
type Option func(*settings)

type settings struct {
	database string
	schema   string
	key      string
	create   bool
	view     string
	timeouts timeouts
	// dial is how a sink that is opened reaches the server; nil: over the
	// network. Tests set it.
	dial func(connector.Opening) pgconn.DialFunc
}

// timeouts are bounds that the server keeps, also when the client is gone.
type timeouts struct {
	statement, lock, idle time.Duration
	// patience is how much longer than the statement's bound an answer is waited
	// for: the network's time, and the server's for ending the statement.
	patience time.Duration
}

// The defaults: a session that is lost gives its locks back within seconds, and
// a delivery of an epoch's size has the time it needs.
const (
	defaultStatementTimeout = 30 * time.Second
	defaultLockTimeout      = 10 * time.Second
	defaultIdleTimeout      = 5 * time.Second
	defaultPatience         = 15 * time.Second
	defaultSchema           = "public"
)

func newSettings(opts []Option) settings {
	s := settings{schema: defaultSchema, timeouts: timeouts{defaultStatementTimeout, defaultLockTimeout, defaultIdleTimeout, defaultPatience}}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// Database names the database by a URL, or by keywords and values, as libpq has
// them: "postgres://user@host/name?sslmode=verify-full". Defaults to the
// environment variable SLUICE_POSTGRES; without that, to libpq's own variables
// (PGHOST, PGDATABASE, PGUSER, PGPASSWORD, …). Keep passwords out of code: they
// can stand in one of these variables, or in ~/.pgpass.
func Database(url string) Option { return func(s *settings) { s.database = url } }

// Schema names the schema that the table is in, and the table sluice_delivery
// beside it. Defaults to public.
func Schema(name string) Option { return func(s *settings) { s.schema = name } }

// Key names the column of a table's key, if the key is one value rather than a
// struct, and no field of the row is tagged as key; for [Delete], the column of
// rows that are one value. Defaults to the tagged field's column.
func Key(column string) Option { return func(s *settings) { s.key = column } }

// CreateTable makes the table at the start if it isn't there: columns of the
// types that the package's documentation lists, and the key's columns as primary
// key. All others may be null, so that rows of builds that lack one can be
// written. Defaults to refusing to start without the table.
func CreateTable() Option { return func(s *settings) { s.create = true } }

// View keeps a view of that name over the table, in the table's schema, so that
// readers need not know which version of a job writes what they read. The first
// delivery of a version points the view at the version's table, in the transaction
// that brings the rows: readers in read committed transactions see all old rows, then
// all new ones. A rollback points it back. The view has the table's columns; one that
// is there already, and that no sink of the job has made, is refused. Defaults to
// none.
func View(name string) Option { return func(s *settings) { s.view = name } }

// StatementTimeout sets how long the server works on one statement, of which
// copying a delivery's rows is one and merging them another; it must be longer
// than the largest takes. Defaults to 30 s.
func StatementTimeout(d time.Duration) Option {
	return func(s *settings) { s.timeouts.statement = d }
}

// LockTimeout sets how long a statement waits for others that hold a lock.
// Defaults to 10 s.
func LockTimeout(d time.Duration) Option { return func(s *settings) { s.timeouts.lock = d } }

// IdleTimeout sets how long the server keeps a transaction open, and its locks,
// of which it hears nothing, because the process was suspended or the network
// cut. In the middle of copying rows the server itself does not see to that: there
// the next owner, which waits for the lock, ends the session, which takes the same
// role, or pg_signal_backend. Defaults to 5 s.
func IdleTimeout(d time.Duration) Option { return func(s *settings) { s.timeouts.idle = d } }

// maxTimeout is the most that the server takes: an int of milliseconds.
const maxTimeout = (1<<31 - 1) * time.Millisecond

// check lists the settings that make no sense.
func (s *settings) check() error {
	var faults []error
	for _, t := range []struct {
		name string
		d    time.Duration
	}{{"StatementTimeout", s.timeouts.statement}, {"LockTimeout", s.timeouts.lock}, {"IdleTimeout", s.timeouts.idle}} {
		if t.d < time.Millisecond || t.d > maxTimeout {
			faults = append(faults, fmt.Errorf("postgres.%s(%v): expected 1ms to %v; without a bound, a lost session would hold its locks for ever", t.name, t.d, maxTimeout))
		}
	}
	if err := checkName(s.schema); err != nil {
		faults = append(faults, fmt.Errorf("postgres.Schema: %w", err))
	}
	if s.view != "" {
		if err := checkName(s.view); err != nil {
			faults = append(faults, fmt.Errorf("postgres.View: %w", err))
		}
	}
	return together(faults...)
}

// splitTable takes "schema.table" apart.
func (s *settings) splitTable(table string) string {
	if before, name, ok := strings.Cut(table, "."); ok {
		s.schema = before
		return name
	}
	return table
}
