package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// withPasswords makes the server ask for passwords, until the test ends, of
// users whose name begins with "asked".
func withPasswords(t *testing.T, s *server) {
	t.Helper()
	p := newPlaceOn(t, s)
	hba := p.lines("show hba_file")[0]
	edit := func(line string) {
		p.exec(fmt.Sprintf("copy (select '%s' union all select 'host all all 127.0.0.1/32 trust') to '%s'; select pg_reload_conf()", line, hba))
	}
	edit(`host all asked 127.0.0.1/32 scram-sha-256`)
	t.Cleanup(func() { edit("# nobody is asked") })
}

func (s *server) address(user, password, database string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", user, password, s.port, database)
}

// A start without a connection says to which host and database, as whom, and
// why, within a bounded time, and never tells the password.
func TestNoConnection(t *testing.T) {
	s := needServer(t)
	p := newPlace(t)
	withPasswords(t, s)
	p.exec("create role asked login password 'right'; create role nobody login")
	p.exec("create database closed")
	p.exec("revoke connect on database closed from public")
	t.Cleanup(func() {
		p.exec("drop database closed")
		p.exec("drop role asked; drop role nobody")
	})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	free, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("PostgreSQL at 127.0.0.1:%d, ", s.port)
	// The new settings count once a connection is refused.
	p.until("passwords are asked for", "select count(*) from pg_hba_file_rules where 'asked' = any (user_name)", "1")
	for _, c := range []struct {
		address string
		says    []string
	}{
		{s.address("asked", secret, "postgres"), []string{host, "database postgres, user asked: the password is wrong"}},
		{s.address("postgres", secret, "nowhere"), []string{host, "database nowhere, user postgres: there is no such database", "create database"}},
		{s.address("nobody", secret, "closed"), []string{host, "database closed, user nobody: the user may not connect", "grant connect"}},
		{s.address("stranger", secret, "postgres"), []string{host, "user stranger", "stranger"}},
		{fmt.Sprintf("postgres://me:%s@127.0.0.1:%d/db?sslmode=disable", secret, free), []string{fmt.Sprintf("127.0.0.1:%d, database db, user me: no server answers there", free), "connection refused"}},
		{fmt.Sprintf("postgres://me:%s@%s/db?sslmode=disable&connect_timeout=1", secret, silent.Addr()), []string{"no answer within 1s"}},
		{"postgres://me:" + secret + "@nowhere.invalid/db?connect_timeout=1", []string{"nowhere.invalid:5432, database db, user me: "}},
		{"postgres://me:" + secret + "@127.0.0.1:port/db", []string{"postgres.Database can't be read"}},
		{"postgres://me:" + secret + "/word@127.0.0.1/db?sslmode=none", []string{"postgres.Database can't be read"}},
		{"host=127.0.0.1 password='" + secret, []string{"postgres.Database can't be read"}},
		{s.address("postgres", secret, "postgres") + "&sslmode=require", []string{host}},
	} {
		before := time.Now()
		_, err := Insert[int]("t", Database(c.address), CreateTable()).Open(t.Context(), opening(), ownKey())
		says(t, err, c.says...)
		if took := time.Since(before); took > 20*time.Second {
			t.Errorf("%v came after %v", err, took)
		}
		if found, ok := errors.AsType[*ConnectError](err); ok && strings.Contains(fmt.Sprintf("%+v", found), secret) {
			t.Errorf("%+v holds the password", found)
		}
	}
}

// The address comes from the environment where no option names it, and the
// variables of PostgreSQL's own tools fill in what it leaves out.
func TestTheAddress(t *testing.T) {
	s := needServer(t)
	p := newPlace(t)
	t.Setenv("SLUICE_POSTGRES", p.server.url())
	var log bytes.Buffer
	o := opening()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	open := func(opts ...Option) error {
		target, err := Insert[int]("t", append(opts, Schema(p.schema), CreateTable())...).Open(t.Context(), o, ownKey())
		if err != nil {
			return err
		}
		return target.Close()
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	t.Setenv("SLUICE_POSTGRES", "host=127.0.0.1 port=1 password="+secret)
	says(t, open(), "127.0.0.1:1")
	t.Setenv("SLUICE_POSTGRES", "postgres://"+secret+"@:x")
	says(t, open(), "SLUICE_POSTGRES can't be read")
	t.Setenv("SLUICE_POSTGRES", "")
	t.Setenv("PGHOST", "127.0.0.1")
	t.Setenv("PGPORT", fmt.Sprint(s.port))
	t.Setenv("PGUSER", "postgres")
	t.Setenv("PGDATABASE", "postgres")
	t.Setenv("PGPASSWORD", secret)
	if err := open(); err != nil {
		t.Error(err)
	}
	p.exec("alter table @.t rename value to old")
	if err := open(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "columns were added") || strings.Contains(log.String(), secret) {
		t.Errorf("the log is %s", &log)
	}
	if d := fmt.Sprintf("%+v", Insert[int]("t", Database("postgres://me:"+secret+"@h/d")).Describe()); strings.Contains(d, secret) || !strings.Contains(d, "Target:public.t") {
		t.Errorf("described as %s", d)
	}
	p.until("sessions end", "select count(*) from pg_stat_activity where application_name like 'sluice%'", "0")
}

// Privileges that are missing are named at the start.
func TestPrivileges(t *testing.T) {
	s := needServer(t)
	p := newPlace(t)
	p.exec("create role clerk login")
	t.Cleanup(func() { p.exec("drop owned by clerk; drop role clerk") })
	p.exec(wideTable)
	as := func(more ...Option) *sink {
		return wideSink(p, append([]Option{Database(s.address("clerk", "", "postgres"))}, more...)...)
	}
	for _, step := range []struct {
		grant string
		says  []string
	}{
		{"select 1", []string{"schema " + p.schema + ": user clerk may not create table sluice_delivery", "grant create on schema"}},
		{"grant create on schema " + p.schema + " to clerk", []string{"the privilege usage on schema", "the privilege delete", "column k: expected the privilege insert, found none", "column k: expected the privilege select", "column n: expected the privilege update"}},
		{"grant usage on schema " + p.schema + " to clerk; grant insert, delete on @.t to clerk", []string{"column n: expected the privilege update"}},
		{"grant update (n, name, note, at, price, tags, mood, doc), select (k) on @.t to clerk; revoke temporary on database postgres from public", []string{"user clerk may not make temporary tables", "run: grant temporary"}},
	} {
		p.exec(step.grant)
		_, err := as().Open(t.Context(), opening(), ownKey())
		says(t, err, step.says...)
	}
	p.exec("grant temporary on database postgres to public")
	target := openTarget(t, as())
	if _, err := target.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := textKey(t)
	rows, err := Upsert("t", func(string, wide) wide { return wide{} }, Key("k")).TableRows()
	if err != nil {
		t.Fatal(err)
	}
	appendRow := rows.NewAppend()
	var w wide
	w.Mood = "ok"
	_, err = appendRow(nil, "a", &w)
	says(t, err, "Mood")
	mustDeliver(t, target, delivery(1, k.Schema(), rows.Schema, connector.Row{Op: connector.Delete, Key: k.Append(nil, "a")}), connector.Apply)
	p.exec("alter table @.sluice_delivery owner to postgres; revoke all on @.sluice_delivery from clerk")
	_, err = as().Open(t.Context(), opening(), ownKey())
	says(t, err, "sluice_delivery", "grant select, insert, update")
	p.exec("grant select, insert, update on @.sluice_delivery to clerk; alter table @.t drop n")
	_, err = as().Open(t.Context(), opening(), ownKey())
	says(t, err, "lacks n", "only its owner may", `add column if not exists "n" bigint`)
}

// What the server keeps of a session that is lost is bounded by the session
// itself.
func TestSessionSettings(t *testing.T) {
	p := newPlace(t)
	p.exec("alter role postgres set synchronous_commit = off; alter role postgres set statement_timeout = 0")
	t.Cleanup(func() { p.exec("alter role postgres reset all") })
	d, err := newDatabase(&wideSink(p, LockTimeout(1500*time.Millisecond)).settings, opening())
	if err != nil {
		t.Fatal(err)
	}
	defer d.drop(t.Context())
	if err := d.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"idle_in_transaction_session_timeout": "5s", "statement_timeout": "30s", "lock_timeout": "1500ms",
		"tcp_user_timeout": "5000", "client_connection_check_interval": "1s", "synchronous_commit": "on", "application_name": "sluice shop out",
	} {
		var got string
		if err := d.conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s (%v), expected %s", name, got, err, want)
		}
	}
}

// A delivery to a database in another encoding is refused at the start.
func TestEncodings(t *testing.T) {
	p := newPlace(t)
	p.exec("create database latin template template0 encoding latin1 locale 'C'")
	t.Cleanup(func() { p.exec("drop database latin") })
	_, err := Insert[int]("t", Database(p.server.address("postgres", "", "latin")), CreateTable()).Open(t.Context(), opening(), ownKey())
	says(t, err, "database latin: expected the encoding UTF8, found LATIN1")
	_, err = Insert[int]("t", p.options(Schema("nowhere"), CreateTable())...).Open(t.Context(), opening(), ownKey())
	says(t, err, "has no schema nowhere", "create schema")
}
