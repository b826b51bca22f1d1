package torture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/internal/torture/sources"
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "torture-")
	if err != nil {
		panic(err)
	}
	binaries.folder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// binaries are the jobs that were built in this run of the tests.
var binaries struct {
	folder                     string
	shop, spend, visits, steps sync.Once
	windows, sluice            sync.Once
}

// build builds the jobs in a folder under testjobs, once, and returns the folder
// of their binaries, which have the names of their packages' folders.
func build(t *testing.T, once *sync.Once, jobs string) string {
	t.Helper()
	name, _, _ := strings.Cut(jobs, "/")
	target := filepath.Join(binaries.folder, name)
	once.Do(func() {
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		sources.Read(t)
		// Without symbols linking takes half the time; without the revision two
		// builds of one source are one file.
		args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", target + "/"}
		if race {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "./testjobs/"+jobs)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building testjobs/%s: %v\n%s", jobs, err, out)
		}
	})
	return target
}

// result is how a process has ended.
type result struct {
	code           int // -1: by a signal
	stdout, stderr string
	// peak is the most memory that it has had, in bytes. The tests' own at its
	// start counts, so they must not hold much themselves.
	peak int64
}

// runJob runs a binary in a folder until it ends. One that does not end is made
// to print where it stands.
func runJob(t *testing.T, folder, binary string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(patience, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	cmd.Wait()
	if !hung.Stop() {
		t.Fatalf("%s %v has not ended after %v:\n%s", filepath.Base(binary), args, patience, shown(stderr.String()))
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), usage.Maxrss << 10}
}
