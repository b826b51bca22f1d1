package memory

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMain runs the test's own executable as a process that loads more than it
// may have.
func TestMain(m *testing.M) {
	if procs, ok := os.LookupEnv("LOADS_TOO_MUCH"); ok {
		os.Exit(loadTooMuch(procs))
	}
	os.Exit(m.Run())
}

// rowBytes is the size of a row of that process.
const rowBytes = 4 << 10

// loadTooMuch joins a cgroup, by its file of processes, and loads rows until it
// is refused.
func loadTooMuch(procs string) int {
	if procs != "" {
		if err := os.WriteFile(procs, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			fmt.Println(err)
			return 3
		}
	}
	limit, _ := Find(os.DirFS("/"), os.Getenv)
	Tune(limit, DefaultGCPercent, false, os.Getenv)
	guard := NewGuard(limit)
	const rows = 1 << 20 // 4 GiB
	table := map[int][]byte{}
	for i := range rows {
		if i%1024 == 0 {
			if err := guard.Loading(at(), "spend", int64(i), rows); err != nil {
				fmt.Println(limit, i, err)
				return err.(*TooLargeError).ExitCode()
			}
		}
		row := make([]byte, rowBytes)
		for j := range row {
			row[j] = byte(i)
		}
		table[i] = bytes.Clone(row) // and as much garbage
	}
	fmt.Println("loaded all of", len(table))
	return 0
}

// TestStoppedBeforeTheKernelKills loads, under real limits, more than fits: the
// process must end by itself, with the figures, and use most of the limit first.
func TestStoppedBeforeTheKernelKills(t *testing.T) {
	const limit = 192 * mib
	t.Run("GOMEMLIMIT", func(t *testing.T) {
		loads(t, limit, FromGo, "LOADS_TOO_MUCH=", "GOMEMLIMIT=192MiB")
	})
	t.Run("cgroup", func(t *testing.T) {
		procs, source := cgroup(t, limit)
		loads(t, limit, source, "LOADS_TOO_MUCH="+procs, "GOMEMLIMIT=")
	})
}

func loads(t *testing.T, limit int64, source string, environment ...string) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 17 {
		t.Fatalf("it ended with %v: %s", err, out)
	}
	if want := (Limit{limit, source}).String(); !strings.HasPrefix(string(out), want) || !strings.Contains(string(out), "of the 1048576 rows of state spend the process needs") {
		t.Errorf("it says %s", out)
	}
	rows, _ := strconv.ParseInt(strings.Fields(strings.TrimPrefix(string(out), (Limit{limit, source}).String()))[0], 10, 64)
	if loaded := rows * rowBytes; loaded < limit*3/4 || loaded > limit {
		t.Errorf("it loaded %s of %s", size(loaded), size(limit))
	}
}

// cgroup makes a cgroup below this process's own, and returns its file of
// processes. It skips the test where that isn't allowed.
func cgroup(t *testing.T, limit int64) (procs, source string) {
	for _, f := range limitFiles(os.DirFS("/")) {
		folder := filepath.Join("/", filepath.Dir(f.path), "sluice-test-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(folder, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(folder) })
		if os.WriteFile(filepath.Join(folder, filepath.Base(f.path)), []byte(strconv.FormatInt(limit, 10)), 0o644) == nil {
			return filepath.Join(folder, "cgroup.procs"), f.source
		}
	}
	t.Skip("SKIPPED: this process may not make a cgroup with a limit of memory (it needs root and a writable /sys/fs/cgroup)")
	return "", ""
}
