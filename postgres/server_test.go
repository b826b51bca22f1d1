package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// startTimeout bounds how long a server may take to start.
const startTimeout = 60 * time.Second

// server is a PostgreSQL server of the tests' own, whose superuser is postgres,
// without a password.
type server struct {
	binaries, dir string
	port          int
	process       *exec.Cmd
	ended         chan struct{}
}

// shared is the server of all tests that leave it as it is; nil: there are no
// binaries.
var shared *server

func TestMain(m *testing.M) {
	// The server ends with the thread that started it, which is this one.
	runtime.LockOSThread()
	os.Exit(testAll(m))
}

func testAll(m *testing.M) int {
	s, err := startServer()
	switch {
	case errors.Is(err, errNoBinaries) && os.Getenv("SLUICE_REAL") != "1":
		fmt.Fprintln(os.Stderr, "WITHOUT POSTGRESQL: what needs a server is not tried, since", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, "no PostgreSQL server:", err)
		return 1
	default:
		shared = s
		defer s.remove()
	}
	return m.Run()
}

var errNoBinaries = errors.New("no PostgreSQL binaries under /usr/lib/postgresql (Debian's package is called postgresql)")

// startServer makes a server in a temporary folder.
func startServer() (_ *server, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, errNoBinaries
	}
	slices.Sort(found)
	s := &server{binaries: filepath.Dir(found[len(found)-1])}
	if s.dir, err = os.MkdirTemp("", "sluice-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	if who := credential(); who != nil {
		if err := os.Chown(s.dir, int(who.Uid), int(who.Gid)); err != nil {
			return nil, err
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if said, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, said)
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	return s, s.start()
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// credential is whom the server runs as: the user postgres, if this is root.
func credential() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.binaries, name), args...)
	c.Dir = s.dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: credential(), Pdeathsig: syscall.SIGQUIT}
	return c
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start starts the server and waits till it answers. One that still holds what a
// killed one left is tried again.
func (s *server) start() error {
	deadline := time.Now().Add(startTimeout)
	for {
		log, err := os.Create(filepath.Join(s.dir, "log"))
		if err != nil {
			return err
		}
		c := s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum=off",
			"-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB")
		c.Stdout, c.Stderr = log, log
		err = c.Start()
		log.Close()
		if err != nil {
			return err
		}
		s.process, s.ended = c, make(chan struct{})
		go func(ended chan struct{}) { c.Wait(); close(ended) }(s.ended)
		err = s.ready(deadline)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// ready waits till the server answers; an error means that it has ended.
func (s *server) ready(deadline time.Time) error {
	for {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		c, err := pgx.Connect(ctx, s.url())
		cancel()
		if err == nil {
			return c.Close(context.Background())
		}
		select {
		case <-s.ended:
			said, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server ended: %s", said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// kill ends the server and all its processes without notice. It is stopped
// first, so that it starts no more meanwhile.
func (s *server) kill() {
	pid := s.process.Process.Pid
	_ = s.process.Process.Signal(syscall.SIGSTOP)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for field := range strings.FieldsSeq(string(children)) {
		if child, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	}
	_ = s.process.Process.Kill()
	<-s.ended
}

func (s *server) remove() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.ended:
		case <-time.After(10 * time.Second):
			s.kill()
		}
	}
	_ = os.RemoveAll(s.dir)
}

func (s *server) url() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// needServer leaves out a test that needs a server where there is none.
func needServer(t testing.TB) *server {
	t.Helper()
	if shared == nil {
		t.Skip("nothing is tried against a real server:", errNoBinaries)
	}
	return shared
}

// place is a schema of a test's own.
type place struct {
	t      testing.TB
	server *server
	schema string
	conn   *pgx.Conn
}

var places atomic.Int64

func newPlace(t testing.TB) *place { return newPlaceOn(t, needServer(t)) }

func newPlaceOn(t testing.TB, s *server) *place {
	t.Helper()
	p := &place{t: t, server: s, schema: fmt.Sprint("test", places.Add(1))}
	p.conn = p.connect()
	p.exec("create schema " + p.schema)
	return p
}

// connect makes a session of its own.
func (p *place) connect() *pgx.Conn {
	p.t.Helper()
	c, err := pgx.Connect(context.Background(), p.server.url())
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
	return append([]Option{Database(p.server.url()), Schema(p.schema)}, more...)
}

func opening() connector.Opening {
	return connector.Opening{Env: env.Real(), Log: slog.New(slog.DiscardHandler), Job: "shop", Name: "out"}
}

// ownKey is whose record the tests make.
func ownKey() connector.RecordKey {
	return connector.RecordKey{JobID: "5fe2", Task: "0.0", Sink: "out"}
}

// ServerForExample is the address of the tests' server, for the examples, which
// see only what the package exports; empty if there is none.
func ServerForExample() string {
	if shared == nil {
		return ""
	}
	return shared.url()
}
