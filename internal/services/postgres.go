package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// PostgresOptions say how a server is.
type PostgresOptions struct {
	// Folder is where the server keeps everything; one that holds a server is
	// started again with its data and its port. Where root starts it, the user
	// postgres has to be able to get there. Defaults to a new one among the
	// temporary files, which Close removes.
	Folder string
	// Port defaults to the one used last in Folder, else to a free one.
	Port int
	// Settings are the server's, such as max_prepared_transactions. Defaults to
	// those that the server has by itself.
	Settings map[string]string
	// Encrypted lets clients use TLS, with a certificate of the server's Authority.
	Encrypted bool
	// Access are the lines of pg_hba.conf. Defaults to letting everybody in
	// without a password.
	Access []string
	// Detached lets the server outlive this process.
	Detached bool
}

// Database is a PostgreSQL server, with the superuser postgres. Its methods may
// be called from several goroutines.
type Database struct {
	server
	options   PostgresOptions
	binaries  string
	account   *syscall.Credential // who the server runs as; nil: as this process
	authority *Authority          // nil if not encrypted
}

// postgresReady is what the log says once the server takes connections.
const postgresReady = "database system is ready to accept connections"

// StartPostgres starts a server, and returns when it takes connections: after 1
// to 2 s for a new folder, 0.2 s for one that holds a server, up to 2 s after it
// was killed. Its error is a *[MissingError] where there is no PostgreSQL.
func StartPostgres(o PostgresOptions) (*Database, error) {
	binaries, account, err := findPostgres()
	if err != nil {
		return nil, err
	}
	folder, err := openFolder(o.Folder, "sluice-postgres-")
	if err != nil {
		return nil, err
	}
	d := &Database{server: server{folder: folder, detached: o.Detached, ready: postgresReady}, options: o, binaries: binaries, account: account}
	if o.Encrypted {
		if d.authority, err = NewAuthority(); err != nil {
			return nil, err
		}
	}
	if err := d.Start(); err != nil {
		folder.remove()
		return nil, err
	}
	return d, nil
}

// OpenPostgres finds the detached server that runs in a folder; it is nil if none does.
func OpenPostgres(path string) (*Database, error) {
	folder, err := openFolder(path, "")
	if err != nil {
		return nil, err
	}
	run := folder.running(folder.in(dataFolder))
	if run == nil {
		return nil, nil
	}
	binaries, account, err := findPostgres()
	if err != nil {
		return nil, err
	}
	folder.ports = folder.numbers(portsFile)
	return &Database{server: server{folder: folder, detached: true, ready: postgresReady, run: run}, binaries: binaries, account: account}, nil
}

// findPostgres finds the newest server's programs, and who is to run them.
func findPostgres() (binaries string, account *syscall.Credential, err error) {
	binaries = os.Getenv("SLUICE_POSTGRES_BIN")
	if binaries == "" {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
		slices.SortFunc(found, func(a, b string) int { return majorOf(a) - majorOf(b) })
		if len(found) > 0 {
			binaries = found[len(found)-1]
		} else if initdb, err := exec.LookPath("initdb"); err == nil {
			binaries = filepath.Dir(initdb)
		}
	}
	if _, err := os.Stat(filepath.Join(binaries, "initdb")); binaries == "" || err != nil {
		return "", nil, &MissingError{"PostgreSQL", "there is no initdb in SLUICE_POSTGRES_BIN, /usr/lib/postgresql/*/bin or PATH", "put Debian's package postgresql on it, or name the folder of the server's programs in SLUICE_POSTGRES_BIN"}
	}
	if os.Getuid() != 0 {
		return binaries, nil, nil
	}
	// The server refuses to run as root.
	found, err := user.Lookup("postgres")
	if err != nil {
		return "", nil, &MissingError{"PostgreSQL", "root needs a user called postgres to run the server as", "run the tests as another user, or make that one"}
	}
	uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		return "", nil, fmt.Errorf("user postgres has the ids %q and %q, which are no numbers", found.Uid, found.Gid)
	}
	return binaries, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// majorOf is the version in a path such as /usr/lib/postgresql/15/bin.
func majorOf(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	return n
}

// command is a run of one of the server's programs, as the server's user.
func (d *Database) command(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.binaries, program), arguments...)
	cmd.Dir = d.folder.path
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: d.account}
	return cmd
}

// Start starts a server that was stopped or killed, with its data, at its
// address. One that runs is left alone.
func (d *Database) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runsNow() {
		return nil
	}
	if err := d.folder.claim(d.options.Port, 1); err != nil {
		return err
	}
	if err := d.create(); err != nil {
		return err
	}
	if err := d.forgetDead(); err != nil {
		return err
	}
	log, err := d.folder.newLog()
	if err != nil {
		return err
	}
	defer log.Close()
	settings := map[string]string{
		"listen_addresses":        loopback,
		"unix_socket_directories": "",
		"port":                    strconv.Itoa(d.folder.ports[0]),
	}
	if d.options.Encrypted {
		settings["ssl"] = "on"
	}
	maps.Copy(settings, d.options.Settings)
	arguments := []string{"-D", d.folder.in(dataFolder)}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	cmd := d.command(context.Background(), "postgres", arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	run, err := spawn(cmd, !d.detached, d.folder.litter())
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	return d.await(run, d.folder.ports[0])
}

// forgetDead removes the lock of a killed server whose end nobody has taken note
// of: the next server would believe it alive.
func (d *Database) forgetDead() error {
	lock := filepath.Join(dataFolder, "postmaster.pid")
	pids := d.folder.numbers(lock)
	if len(pids) == 0 || runs(pids[0]) {
		return nil
	}
	return os.Remove(d.folder.in(lock))
}

// create makes the data folder, once, and puts the files of the options into it.
func (d *Database) create() error {
	data := d.folder.in(dataFolder)
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err != nil {
		if d.account != nil {
			if err := os.Chown(d.folder.path, int(d.account.Uid), int(d.account.Gid)); err != nil {
				return err
			}
		}
		out, err := d.command(context.Background(), "initdb",
			"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput()
		if err != nil {
			return fmt.Errorf("make %s a server's (each folder above must let the user postgres pass): %s: %w", data, complaintIn(string(out)), err)
		}
	}
	if len(d.options.Access) > 0 {
		if err := d.put("pg_hba.conf", []byte(strings.Join(d.options.Access, "\n")+"\n")); err != nil {
			return err
		}
	}
	if d.authority == nil {
		return nil
	}
	certificate, err := d.authority.Issue("postgres")
	if err != nil {
		return err
	}
	if err := d.put("server.key", certificate.Key); err != nil {
		return err
	}
	return d.put("server.crt", certificate.Chain)
}

// put writes a file that the server alone may read.
func (d *Database) put(name string, text []byte) error {
	path := filepath.Join(d.folder.in(dataFolder), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	if d.account == nil {
		return nil
	}
	return os.Chown(path, int(d.account.Uid), int(d.account.Gid))
}

// Addr is the server's host and port.
func (d *Database) Addr() string { return address(d.folder.ports[0]) }

// URL is the address of a database of the server; the empty name is the database
// postgres.
func (d *Database) URL(database string) string {
	if database == "" {
		database = "postgres"
	}
	mode := "disable"
	if d.options.Encrypted {
		mode = "require"
	}
	return "postgres://postgres@" + d.Addr() + "/" + database + "?sslmode=" + mode
}

// Authority vouches for the server's certificate; nil if it has none.
func (d *Database) Authority() *Authority { return d.authority }

// Create makes a database of a name that begins with base, and returns its URL.
func (d *Database) Create(ctx context.Context, base string) (string, error) {
	name := Unique(base)
	_, err := d.Run(ctx, "", "create database "+name)
	return d.URL(name), err
}

// Run has psql run SQL in a database, and returns the rows, one on a line with |
// between columns.
func (d *Database) Run(ctx context.Context, database, sql string) (string, error) {
	return d.runAt(ctx, d.URL(database), sql)
}

func (d *Database) runAt(ctx context.Context, url, sql string) (string, error) {
	cmd := d.psql(ctx, url, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("psql: %s: %w", complaintIn(string(exit.Stderr)), err)
	}
	return strings.TrimSpace(string(out)), err
}

// ClientCommand is a run of psql in the database postgres, to be started.
func (d *Database) ClientCommand(ctx context.Context, arguments ...string) *exec.Cmd {
	return d.psql(ctx, d.URL(""), arguments...)
}

func (d *Database) psql(ctx context.Context, url string, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(d.binaries, "psql"), append([]string{url}, arguments...)...)
}
