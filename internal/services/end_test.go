package services

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ownerVariable has the test binary start servers, say where they are, and wait.
const ownerVariable = "SLUICE_SERVICES_OWNER"

// found is where an owner's servers are.
type found struct {
	PIDs    []int
	Folders []string
}

// TestServersEndWithTheirOwner kills a process that has started servers.
func TestServersEndWithTheirOwner(t *testing.T) {
	if os.Getenv(ownerVariable) != "" {
		own(t)
		return
	}
	sharedBroker(t) // says that there is none before a process is started for nothing
	owner := exec.Command(os.Args[0], "-test.run=^TestServersEndWithTheirOwner$")
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	stdin, err := owner.StdinPipe() // it waits for what never comes
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	owner.Process.Kill()
	owner.Wait()
	var servers found
	if err != nil || json.Unmarshal([]byte(line), &servers) != nil || len(servers.PIDs) != 2 {
		t.Fatalf("the owner says %q, %v", line, err)
	}
	for i, pid := range servers.PIDs {
		if !within(patience, func() bool { return !runs(pid) }) {
			t.Errorf("process %d of the server in %s outlives its owner", pid, servers.Folders[i])
		}
		if !within(patience, func() bool { _, err := os.Stat(servers.Folders[i]); return os.IsNotExist(err) }) {
			t.Errorf("folder %s outlives its owner", servers.Folders[i])
		}
	}
}

func own(t *testing.T) {
	b, d := Kafka(t, KafkaOptions{}), Postgres(t, PostgresOptions{})
	json.NewEncoder(os.Stdout).Encode(found{[]int{b.PID(), d.PID()}, []string{b.Folder(), d.Folder()}})
	os.Stdin.Read(make([]byte, 1))
}

// recorder is a test that notes how it is ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, arguments ...any) {
	r.skipped = fmt.Sprintf(format, arguments...)
}

func (r *recorder) Fatalf(format string, arguments ...any) {
	r.failed = fmt.Sprintf(format, arguments...)
}

func (r *recorder) Fatal(arguments ...any) { r.failed = fmt.Sprint(arguments...) }

func TestMissingServersAreToldAloud(t *testing.T) {
	nowhere := t.TempDir()
	for name, start := range map[string]func() error{
		"java": func() error { _, err := StartKafka(KafkaOptions{}); return err },
		"mvn": func() error {
			_, err := KafkaJars()
			return err
		},
		"initdb": func() error { _, err := StartPostgres(PostgresOptions{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", nowhere)
			t.Setenv("JAVA_HOME", "")
			t.Setenv("KAFKA_JARS", "")
			t.Setenv("SLUICE_KAFKA_JARS", nowhere)
			t.Setenv("SLUICE_POSTGRES_BIN", nowhere)
			err := start()
			if _, missing := errors.AsType[*MissingError](err); !missing || !strings.Contains(err.Error(), name) {
				t.Fatalf("got %v", err)
			}
			t.Setenv(required, "")
			var skipped recorder
			give(&skipped, err)
			if !strings.HasPrefix(skipped.skipped, "not tried against a real ") || skipped.failed != "" {
				t.Errorf("skips with %q, fails with %q", skipped.skipped, skipped.failed)
			}
			t.Setenv(required, "1")
			var failed recorder
			give(&failed, err)
			if failed.skipped != "" || !strings.Contains(failed.failed, name) {
				t.Errorf("with %s=1 it skips with %q, fails with %q", required, failed.skipped, failed.failed)
			}
			var broken recorder
			give(&broken, errors.New("another fault"))
			if broken.skipped != "" || broken.failed == "" {
				t.Errorf("another error skips with %q", broken.skipped)
			}
		})
	}
}

func TestJavaVersion(t *testing.T) {
	for said, want := range map[string]int{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime": 17,
		"java version \"1.8.0_301\"":                              1,
		"openjdk version \"21\" 2023-09-19":                       21,
		"command not found":                                       0,
	} {
		if got := javaVersion(said); got != want {
			t.Errorf("%q is version %d", said, got)
		}
	}
}
