package sqlsink_test

import (
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/examples/sqlsink"
	"github.com/sluicestream/sluice/internal/services"
)

var server = services.SharedPostgres(services.PostgresOptions{Settings: map[string]string{"fsync": "off"}})

// database is a schema of its own in the server.
type database struct {
	url, schema string
	db          *sql.DB
}

func newDatabase(t *testing.T) *database {
	d := &database{url: server(t).URL(""), schema: services.Unique("suite")}
	d.db = d.open(t, func(c driver.Connector) driver.Connector { return c })
	d.run(t, "create schema "+d.schema)
	return d
}

// open opens connections of a process of its own.
func (d *database) open(t *testing.T, wrap func(driver.Connector) driver.Connector) *sql.DB {
	config, err := pgx.ParseConfig(d.url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["search_path"] = d.schema
	db := sql.OpenDB(wrap(stdlib.GetConnector(*config)))
	t.Cleanup(func() { db.Close() })
	return db
}

func (d *database) run(t *testing.T, statement string) {
	t.Helper()
	if _, err := d.db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// each calls scan for each row of a query.
func (d *database) each(t *testing.T, query string, scan func(*sql.Rows) error) {
	t.Helper()
	rows, err := d.db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// What builds of another version lack is null, which the suite has as zero.
const (
	suiteColumns = `"ID" bigint, "Name" text, "Note" text, "Amount" float8, "At" timestamptz, "OK" boolean, "Extra" text`
	readColumns  = `"ID", "Name", "Note", coalesce("Amount", 0), coalesce("At", '0001-01-01 00:00:00Z'), coalesce("OK", false), coalesce("Extra", '')`
)

func scanRow(rows *sql.Rows, before ...any) (r connectortest.NewerRow, err error) {
	return r, rows.Scan(append(before, &r.ID, &r.Name, &r.Note, &r.Amount, &r.At, &r.OK, &r.Extra)...)
}

func (d *database) faults(o connector.Opening, sink func(*sql.DB) connector.Sink) connectortest.Faults {
	start := func(t *testing.T, p *process) (connector.Sink, func() bool) {
		return sink(d.open(t, p.wrap)), p.broken.Load
	}
	return connectortest.Faults{
		Exclusive: true,
		CrashSink: func(t *testing.T, call int, how connectortest.Crash) (connector.Sink, func() bool) {
			return start(t, &process{call: call, how: how})
		},
		Break: func(t *testing.T, call int, how connectortest.Crash) (connector.Sink, connector.Opening, func() bool) {
			s, broken := start(t, &process{call: call, how: how, lives: true})
			return s, o, broken
		},
	}
}

func (d *database) system(sink func(*sql.DB, string) connector.Sink, columns string) connectortest.System {
	return connectortest.System{
		Elsewhere: func(t *testing.T) connector.Sink {
			d.run(t, "create table elsewhere ("+columns+")")
			return sink(d.db, "elsewhere")
		},
		Damage: func(t *testing.T) { d.run(t, "update sluice_records set record = '[]'") },
	}
}

func TestSuite(t *testing.T) {
	opening := connector.Opening{Env: env.Real(), Job: "suite", Name: "suite"}
	connectortest.TestSink(t, connectortest.SinkSetup{
		Stream: func(t *testing.T) connectortest.StreamFixture {
			d := newDatabase(t)
			d.run(t, "create table visit (nr bigserial primary key, "+suiteColumns+")")
			read := func(t *testing.T) (all []connectortest.NewerRow) {
				d.each(t, "select "+readColumns+" from visit order by nr", func(rows *sql.Rows) error {
					r, err := scanRow(rows)
					all = append(all, r)
					return err
				})
				return all
			}
			sink := func(db *sql.DB, table string) connector.Sink { return sqlsink.Append[connectortest.Row](db, table) }
			return connectortest.StreamFixture{
				Sink: sqlsink.Append[connectortest.Row](d.db, "visit"), Opening: opening,
				Read: func(t *testing.T) (all []connectortest.Row) {
					for _, r := range read(t) {
						all = append(all, r.Row)
					}
					return all
				},
				ReadNewer: read,
				Faults:    d.faults(opening, func(db *sql.DB) connector.Sink { return sink(db, "visit") }),
				System:    d.system(sink, suiteColumns),
			}
		},
		Table: func(t *testing.T) connectortest.TableFixture {
			d := newDatabase(t)
			d.run(t, "create table visitor (key text primary key, "+suiteColumns+")")
			read := func(t *testing.T) map[string]connectortest.NewerRow {
				all := map[string]connectortest.NewerRow{}
				d.each(t, "select key, "+readColumns+" from visitor", func(rows *sql.Rows) error {
					var key string
					r, err := scanRow(rows, &key)
					all[key] = r
					return err
				})
				return all
			}
			sink := func(db *sql.DB, table string) connector.Sink {
				return sqlsink.Upsert[string, connectortest.Row](db, table)
			}
			return connectortest.TableFixture{
				Sink: sqlsink.Upsert[string, connectortest.Row](d.db, "visitor"), Opening: opening,
				Read: func(t *testing.T) map[string]connectortest.Row {
					all := map[string]connectortest.Row{}
					for key, r := range read(t) {
						all[key] = r.Row
					}
					return all
				},
				ReadNewer: read,
				Faults:    d.faults(opening, func(db *sql.DB) connector.Sink { return sink(db, "visitor") }),
				System:    d.system(sink, "key text primary key, "+suiteColumns),
			}
		},
	})
}
