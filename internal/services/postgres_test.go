package services

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/cutproxy"
)

func sql(t *testing.T, d *Database, statement string) string {
	t.Helper()
	out, err := d.Run(t.Context(), "", statement)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestKilledDatabaseKeepsItsData(t *testing.T) {
	begun := time.Now()
	d := Postgres(t, PostgresOptions{Settings: map[string]string{"max_prepared_transactions": "7"}})
	t.Logf("started after %v", time.Since(begun))
	url := d.URL("")
	if got := sql(t, d, "show max_prepared_transactions"); got != "7" {
		t.Fatalf("the setting is %s", got)
	}
	sql(t, d, "create table t (n int); insert into t select generate_series(1, 1000)")
	for _, end := range []func() error{d.Kill, d.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), "", "select 1"); err == nil {
			t.Fatal("the server runs on")
		}
		begun = time.Now()
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		t.Logf("started again after %v", time.Since(begun))
		if d.URL("") != url {
			t.Fatalf("the server came back at %s, not at %s", d.URL(""), url)
		}
		if got := sql(t, d, "select count(*), sum(n) from t"); got != "1000|500500" {
			t.Fatalf("the table holds %s", got)
		}
	}
}

func TestPausedDatabaseAnswersAfterwards(t *testing.T) {
	d := Postgres(t, PostgresOptions{})
	url, err := d.Create(t.Context(), "paused")
	if err != nil || !strings.Contains(url, "/paused_") {
		t.Fatalf("%s, %v", url, err)
	}
	if err := d.Pause(); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { _, err := d.Run(t.Context(), "", "select 1"); got <- err }()
	select {
	case err := <-got:
		t.Fatalf("a paused server answers: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := d.Resume(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the resumed server does not answer")
	}
}

func TestEncryptedDatabaseWithPasswords(t *testing.T) {
	d := Postgres(t, PostgresOptions{Encrypted: true, Access: []string{
		"hostssl all postgres 127.0.0.1/32 trust",
		"hostssl all all 127.0.0.1/32 scram-sha-256",
	}})
	if got := sql(t, d, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"); got != "t" {
		t.Fatalf("encrypted: %s", got)
	}
	sql(t, d, "create user alice password 'right'")
	for password, accepted := range map[string]bool{"right": true, "wrong": false} {
		url := strings.Replace(d.URL(""), "postgres@", "alice:"+password+"@", 1)
		out, err := d.runAt(t.Context(), url, "select 1")
		if accepted && (err != nil || out != "1") {
			t.Errorf("the right password: %q, %v", out, err)
		}
		if !accepted && (err == nil || !strings.Contains(err.Error(), "password authentication failed")) {
			t.Errorf("the wrong password: %q, %v", out, err)
		}
	}
	plain := strings.Replace(d.URL(""), "sslmode=require", "sslmode=disable", 1)
	if _, err := d.runAt(t.Context(), plain, "select 1"); err == nil || !strings.Contains(err.Error(), "no encryption") {
		t.Errorf("without TLS: %v", err)
	}
}

// TestDatabaseBehindProxy cuts an answer: the server has done what the client
// hears nothing of.
func TestDatabaseBehindProxy(t *testing.T) {
	d := Postgres(t, PostgresOptions{})
	sql(t, d, "create table t (n int)")
	p := cutproxy.Start(t, cutproxy.Options{Target: d.Addr(), Protocol: cutproxy.Postgres, Record: true})
	// the client asks for TLS first, which this server hasn't
	url := "postgres://postgres@" + p.Addr() + "/postgres?sslmode=prefer"
	if out, err := d.runAt(t.Context(), url, "insert into t values (1) returning n"); err != nil || out != "1" {
		t.Fatalf("%q, %v", out, err)
	}
	var kinds []byte
	for _, m := range p.Messages() {
		if m.Way == cutproxy.ToClient {
			kinds = append(kinds, m.Type)
		}
	}
	// no TLS; authentication, parameters, key, ready; columns, a row, complete, ready
	if got := string(bytes.Trim(bytes.ReplaceAll(kinds, []byte("S"), nil), "N")); got != "RKZTDCZ" {
		t.Errorf("the server's messages are %q", kinds)
	}
	p.SetFate(func(int) cutproxy.Fate {
		return cutproxy.Fate{When: func(m cutproxy.Message) (cutproxy.Act, int64) {
			if m.Way == cutproxy.ToClient && m.Type == 'C' {
				return cutproxy.Cut, 3
			}
			return cutproxy.Pass, 0
		}}
	})
	if out, err := d.runAt(t.Context(), url, "insert into t values (2)"); err == nil {
		t.Errorf("the client hears %q", out)
	}
	if got := sql(t, d, "select string_agg(n::text, ' ' order by n) from t"); got != "1 2" {
		t.Errorf("the table holds %s", got)
	}
}
