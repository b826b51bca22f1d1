package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/services"
)

// script runs one of the scripts, and returns what it prints.
func script(t *testing.T, name string, arguments ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command("../../../scripts/"+name, arguments...)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), complaints.String(), cmd.ProcessState.ExitCode()
}

// must runs a script that has to succeed.
func must(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	stdout, stderr, code := script(t, name, arguments...)
	if code != 0 {
		t.Fatalf("%s %v: exit code %d\n%s%s", name, arguments, code, stdout, stderr)
	}
	return stdout
}

// folder is one that the user postgres can get to.
func folder(t *testing.T) string {
	t.Helper()
	f, err := os.MkdirTemp("", "sluice-script-")
	if err == nil {
		err = os.Chmod(f, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(f) })
	return f
}

func TestKafkaScript(t *testing.T) {
	services.RequireKafka(t)
	dir := filepath.Join(folder(t), "k")
	t.Cleanup(func() { script(t, "kafka", "kill", dir) })
	address := must(t, "kafka", "start", "-set", "num.partitions=3", dir)
	if again := must(t, "kafka", "start", dir); again != address {
		t.Errorf("a second start says %s, the first said %s", again, address)
	}
	pid := must(t, "kafka", "pid", dir)
	must(t, "kafka", "topics", dir, "--create", "--topic", "kept")
	must(t, "kafka", "kill", dir)
	if _, stderr, code := script(t, "kafka", "address", dir); code != 1 || !strings.Contains(stderr, "no server runs in "+dir) {
		t.Errorf("after kill: exit code %d, %s", code, stderr)
	}
	if again := must(t, "kafka", "start", dir); again != address {
		t.Errorf("after kill it starts at %s, not at %s", again, address)
	}
	if must(t, "kafka", "pid", dir) == pid {
		t.Error("kill has ended nothing")
	}
	if got := must(t, "kafka", "topics", dir, "--describe", "--topic", "kept"); !strings.Contains(got, "PartitionCount: 3") {
		t.Errorf("the topic is gone, or the setting was not used: %s", got)
	}
	must(t, "kafka", "pause", dir)
	must(t, "kafka", "stop", dir) // also when it is paused
	must(t, "kafka", "stop", dir) // nothing to do
}

func TestPostgresScript(t *testing.T) {
	services.RequirePostgres(t)
	dir := filepath.Join(folder(t), "p")
	t.Cleanup(func() { script(t, "postgres", "kill", dir) })
	url := must(t, "postgres", "start", dir)
	must(t, "postgres", "psql", dir, "-c", "create table kept as select 42 as n")
	must(t, "postgres", "kill", dir)
	if again := must(t, "postgres", "start", "-set", "work_mem=5MB", dir); again != url {
		t.Errorf("after kill it starts at %s, not at %s", again, url)
	}
	if got := must(t, "postgres", "psql", dir, "-Atc", "select n, current_setting('work_mem') from kept"); got != "42|5MB" {
		t.Errorf("it holds %s", got)
	}
	must(t, "postgres", "stop", dir)
	if _, _, code := script(t, "postgres", "psql", dir, "-c", "select 1"); code != 1 {
		t.Errorf("psql without a server: exit code %d", code)
	}
}

func TestUsage(t *testing.T) {
	for _, arguments := range [][]string{{}, {"dance"}, {"start"}, {"start", "x", "port"}, {"start", "-set", "a", "x"}, {"stop"}} {
		if stdout, stderr, code := script(t, "postgres", arguments...); code != 2 || stdout != "" || !strings.Contains(stderr, "usage: postgres") {
			t.Errorf("%q: exit code %d, %s%s", arguments, code, stdout, stderr)
		}
	}
}
