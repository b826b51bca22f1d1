package cli_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runningJob is a job that was started with `run --json`.
type runningJob struct {
	t      *testing.T
	cmd    *exec.Cmd
	events *bufio.Scanner
}

func startJob(t *testing.T, name string, args ...string) *runningJob {
	t.Helper()
	dir := t.TempDir()
	line := `{"User":"ann","Shop":{"City":"Oslo","Number":1},"Cents":1200}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "orders.jsonl"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	return startIn(t, dir, name, args...)
}

// another starts a job in the folder of one.
func (j *runningJob) another(name string, args ...string) *runningJob {
	j.t.Helper()
	return startIn(j.t, j.cmd.Dir, name, args...)
}

func startIn(t *testing.T, dir, name string, args ...string) *runningJob {
	t.Helper()
	cmd := exec.Command(name, append([]string{"run", "--json"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return &runningJob{t, cmd, bufio.NewScanner(out)}
}

// wait waits for an event, and returns its line.
func (j *runningJob) wait(event string) string {
	j.t.Helper()
	for j.events.Scan() {
		if line := j.events.Text(); strings.Contains(line, `"event":"`+event) {
			return line
		}
	}
	j.t.Fatalf("the job has ended without the event %s", event)
	return ""
}

func (j *runningJob) signal(s syscall.Signal) {
	j.t.Helper()
	if err := j.cmd.Process.Signal(s); err != nil {
		j.t.Fatal(err)
	}
}

// end waits for the process's end.
func (j *runningJob) end() syscall.WaitStatus {
	j.t.Helper()
	for j.events.Scan() {
	}
	var exit *exec.ExitError
	if err := j.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	return j.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func TestASignalStopsTheJob(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			job := startJob(t, "follow", "--epoch", "1h") // the signal alone ends the epoch
			job.wait("opened")
			job.signal(signal)
			job.wait("stopping")
			if line := job.wait("stopped"); !strings.Contains(line, `"why":"signal"`) || !strings.Contains(line, `"exit_code":0`) {
				t.Errorf("the last event is %s", line)
			}
			if end := job.end(); end.ExitStatus() != 0 {
				t.Errorf("it has ended with %v", end)
			}
		})
	}
}

func TestWhatWasReadIsCommittedOnASignal(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--epoch", "10ms")
	job.wait("committed")
	job.signal(syscall.SIGTERM)
	if line := job.wait("stopped"); !strings.Contains(line, `"records":1,`) {
		t.Errorf("the last event is %s", line)
	}
	if end := job.end(); end.ExitStatus() != 0 {
		t.Errorf("it has ended with %v", end)
	}
	if _, err := os.Stat(filepath.Join(job.cmd.Dir, "out/spend/00000000000000000001.jsonl")); err != nil {
		t.Error(err)
	}
}

func TestDeliveriesThatOutlastTheGraceArePending(t *testing.T) {
	t.Parallel()
	job := startJob(t, "stuck", "--epoch", "10ms", "--grace", "10ms")
	job.wait("committed")
	job.signal(syscall.SIGTERM)
	if line := job.wait("stopped"); !strings.Contains(line, `"exit_code":10`) {
		t.Errorf("the last event is %s", line)
	}
	if end := job.end(); end.ExitStatus() != 10 {
		t.Errorf("it has ended with %v", end)
	}
}

func TestASecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	job := startJob(t, "stuck", "--epoch", "10ms", "--grace", "1h")
	job.wait("committed")
	job.signal(syscall.SIGTERM)
	job.wait("stopping")
	job.signal(syscall.SIGTERM)
	if end := job.end(); end.Signal() != syscall.SIGTERM {
		t.Errorf("it has ended with %v", end)
	}
}
