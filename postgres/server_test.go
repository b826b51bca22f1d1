package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
)

// quick are the settings of the tests' servers, which lose nothing of worth.
func quick() map[string]string {
	return map[string]string{"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "shared_buffers": "256MB", "max_wal_size": "4GB"}
}

// needServer is the server of all tests that leave it as it is. Where there can
// be none, it skips the test.
var needServer = services.SharedPostgres(services.PostgresOptions{Settings: quick()})

// place is a schema of a test's own.
type place struct {
	t      testing.TB
	server *services.Database
	schema string
	conn   *pgx.Conn
}

var places atomic.Int64

func newPlace(t testing.TB) *place { return newPlaceOn(t, needServer(t)) }

func newPlaceOn(t testing.TB, s *services.Database) *place {
	t.Helper()
	p := &place{t: t, server: s, schema: fmt.Sprint("test", places.Add(1))}
	p.conn = p.connect()
	p.exec("create schema " + p.schema)
	return p
}

// connect makes a session of its own.
func (p *place) connect() *pgx.Conn {
	p.t.Helper()
	c, err := pgx.Connect(context.Background(), p.server.URL(""))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// exec runs statements; "@." stands for the test's schema.
func (p *place) exec(sql string) {
	p.t.Helper()
	if _, err := p.conn.PgConn().Exec(context.Background(), p.in(sql)).ReadAll(); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p *place) in(sql string) string { return strings.ReplaceAll(sql, "@.", p.schema+".") }

// lines returns an answer as the server writes it: a line for each row, with
// bars between the columns.
func (p *place) lines(sql string) (lines []string) {
	p.t.Helper()
	results, err := p.conn.PgConn().Exec(context.Background(), p.in(sql)).ReadAll()
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	for _, row := range results[len(results)-1].Rows {
		var cells []string
		for _, cell := range row {
			text := string(cell)
			if cell == nil {
				text = "∅"
			}
			cells = append(cells, text)
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return lines
}

// expect compares an answer.
func (p *place) expect(sql string, want ...string) {
	p.t.Helper()
	if got := p.lines(sql); !slices.Equal(got, want) {
		p.t.Errorf("%s\n got %q\nwant %q", sql, got, want)
	}
}

// options are those of a sink in this place.
func (p *place) options(more ...Option) []Option {
	return append([]Option{Database(p.server.URL("")), Schema(p.schema)}, more...)
}

func opening() connector.Opening {
	return connector.Opening{Env: env.Real(), Log: slog.New(slog.DiscardHandler), Job: "shop", Name: "out"}
}

// ownKey is whose record the tests make.
func ownKey() connector.RecordKey {
	return connector.RecordKey{JobID: "5fe2", Task: "0.0", Sink: "out"}
}

// ServerForExample is the address of the tests' server, for the examples, which
// see only what the package exports.
func ServerForExample(t testing.TB) string { return needServer(t).URL("") }

// address is that of a database of a server, for a user.
func address(s *services.Database, user, password, database string) string {
	u := url.URL{Scheme: "postgres", Host: s.Addr(), Path: "/" + database, User: url.UserPassword(user, password), RawQuery: "sslmode=disable"}
	return u.String()
}
