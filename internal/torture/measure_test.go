package torture

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// runMeasured is runJob with the most memory that the process has had, in bytes.
// The tests' own at its start counts, so they must not hold much themselves.
func runMeasured(t *testing.T, folder, binary string, args ...string) (r result, peak int64) {
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
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, usage.Maxrss << 10
}
