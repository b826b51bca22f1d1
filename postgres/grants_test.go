package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/postgres"
	"github.com/sluicestream/sluice/store"
)

// privilege is one that docs/operations.md says a sink's user needs.
type privilege struct{ neededBy, name, on, says string }

func (p privilege) String() string { return p.name + " on " + p.on }

func grantsSection(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(content), "\n## What PostgreSQL must allow\n")
	if !ok {
		t.Fatal("docs/operations.md has no section on what PostgreSQL must allow")
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// documentedGrants are the privileges of the docs' table.
func documentedGrants(t *testing.T) (all []privilege) {
	t.Helper()
	for line := range strings.Lines(grantsSection(t)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "-") || strings.Contains(cells[1], "needed by") {
			continue
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			all = append(all, privilege{strings.TrimSpace(cells[1]), strings.TrimSpace(name), strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])})
		}
	}
	return all
}

// TestGrantStatements holds the docs' statements against their table.
func TestGrantStatements(t *testing.T) {
	var want, got []string
	for _, p := range documentedGrants(t) {
		if s := p.String(); !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^grant ([a-z, ]+) on ([a-z_. ]+) to spend;$`).FindAllStringSubmatch(grantsSection(t), -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			got = append(got, privilege{name: name, on: m[2]}.String())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the statements grant\n%q\nand the table\n%q", got, want)
	}
}

// office is a database, and the schema reports in it, for a user who may do
// nothing there by itself.
type office struct {
	t           *testing.T
	boss        *pgx.Conn
	name, user  string // of the database and the user
	url, folder string
	store       store.Store
	input       int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	address, err := url.Parse(postgres.ServerForExample(t))
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, name: services.Unique("shop"), user: services.Unique("spend"), folder: t.TempDir(), store: store.NewMemory()}
	connect := func(database string) *pgx.Conn {
		at := *address
		at.Path = "/" + database
		c, err := pgx.Connect(t.Context(), at.String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	server := connect("postgres")
	o.boss = server
	o.exec("create database " + o.name)
	o.exec("create role " + o.user + " login password 'dbS3cret'")
	o.boss = connect(o.name)
	t.Cleanup(func() {
		ctx := context.Background()
		o.boss.Close(ctx)
		for _, sql := range []string{"drop database " + o.name + " with (force)", "drop role " + o.user} {
			if _, err := server.Exec(ctx, sql); err != nil {
				t.Error(err)
			}
		}
		server.Close(ctx)
	})
	o.exec("revoke all on database " + o.name + " from public")
	o.exec("create schema reports; create table reports.spend (user_id text primary key, cents bigint)")
	address.User, address.Path = url.UserPassword(o.user, "dbS3cret"), "/"+o.name
	o.url = address.String()
	return o
}

func (o *office) exec(sql string) {
	o.t.Helper()
	if _, err := o.boss.PgConn().Exec(o.t.Context(), sql).ReadAll(); err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
}

// on names what a privilege is about.
func (o *office) on(p privilege) string {
	return strings.ReplaceAll(p.on, "database shop", "database "+o.name)
}

func (o *office) grant(p privilege) {
	o.t.Helper()
	o.exec("grant " + p.name + " on " + o.on(p) + " to " + o.user)
}

func (o *office) revoke(p privilege) {
	o.t.Helper()
	o.exec("revoke " + p.name + " on " + o.on(p) + " from " + o.user)
}

// payment is a record of the office's input.
type payment struct {
	User  string `pg:"user_id,key"`
	Cents int64
}

// run runs the sink's job over one more line of input.
func (o *office) run(kind string) error {
	o.t.Helper()
	o.input++
	path := filepath.Join(o.folder, "payments.jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		o.t.Fatal(err)
	}
	fmt.Fprintf(f, "{\"User\":\"user%d\",\"Cents\":%d}\n", o.input, o.input)
	f.Close()
	job := sluice.NewJob("spend")
	payments := job.From("payments", file.JSONLines[payment](path))
	opts := []postgres.Option{postgres.Database(o.url)}
	switch kind {
	case "postgres.Upsert":
		payments.KeyBy(func(p payment) string { return p.User }).
			FoldKeep(sluice.NewState[string, payment]("users"), func(s *payment, p payment) bool { *s = p; return p.Cents%2 == 0 }).
			To("out", postgres.Upsert("reports.spend", func(_ string, p payment) payment { return p }, opts...))
	case "postgres.Insert":
		payments.To("out", postgres.Insert[payment]("reports.spend", opts...))
	case "postgres.Delete":
		payments.Map(func(p payment) string { return p.User }).
			To("out", postgres.Delete[string]("reports.spend", append(opts, postgres.Key("user_id"))...))
	default:
		o.t.Fatalf("no sink %s", kind)
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	err = job.Run(ctx, sluice.Options{Store: o.store, Log: slog.New(slog.DiscardHandler), Grace: time.Second})
	if ctx.Err() != nil {
		o.t.Fatalf("the job had to be stopped: %v", err)
	}
	return err
}

// TestExactGrants grants what the docs say, and a job runs; takes one away at a
// time, and the start says which is missing.
func TestExactGrants(t *testing.T) {
	documented := documentedGrants(t)
	tried := map[string]bool{}
	for _, kind := range []string{"postgres.Upsert", "postgres.Insert", "postgres.Delete"} {
		t.Run(kind, func(t *testing.T) {
			o := newOffice(t)
			refuses := func(p privilege) {
				t.Helper()
				err := o.run(kind)
				if err == nil || !strings.Contains(err.Error(), p.says) || !strings.Contains(err.Error(), p.name) {
					t.Errorf("without %s: got %v, expected %q and the privilege in it", p, err, p.says)
					return
				}
				t.Logf("without %s: %v", p, err)
				if strings.Contains(err.Error(), "S3cret") {
					t.Errorf("the password is in %v", err)
				}
				if _, coded := errors.AsType[interface {
					error
					ExitCode() int
				}](err); coded {
					t.Errorf("without %s: the exit code isn't that of an error", p)
				}
			}
			var always, first, records []privilege
			for _, p := range documented {
				switch {
				case p.neededBy == "a schema's first sink":
					first = append(first, p)
				case strings.HasSuffix(p.on, ".sluice_delivery"):
					records = append(records, p)
				case p.neededBy == "each sink" || p.neededBy == kind:
					always = append(always, p)
				default:
					continue
				}
				tried[p.neededBy] = true
			}
			if len(always) < 4 || len(first) != 1 || len(records) != 3 {
				t.Fatalf("the table has %v, %v, %v", always, first, records)
			}
			for _, p := range always {
				o.grant(p)
			}
			refuses(first[0])
			o.grant(first[0])
			if err := o.run(kind); err != nil {
				t.Fatalf("with all: %v", err)
			}
			o.revoke(first[0])
			// From here on the table of records is somebody else's.
			o.exec("alter table reports.sluice_delivery owner to current_user; revoke all on reports.sluice_delivery from " + o.user)
			for _, p := range records {
				o.grant(p)
			}
			if err := o.run(kind); err != nil {
				t.Fatalf("with all but create: %v", err)
			}
			for _, p := range slices.Concat(always, records) {
				o.revoke(p)
				refuses(p)
				o.grant(p)
			}
			if err := o.run(kind); err != nil {
				t.Fatalf("with all again: %v", err)
			}
		})
	}
	for _, p := range documented {
		if !tried[p.neededBy] {
			t.Errorf("nothing tries what is needed by %s", p.neededBy)
		}
	}
}
