package cli_test

import (
	"encoding/json/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
)

// run runs the sluice command on the job's store.
func (j *runningJob) sluice(args ...string) string {
	j.t.Helper()
	cmd := exec.Command("sluice", args...)
	cmd.Dir, cmd.Env = j.cmd.Dir, j.cmd.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		j.t.Fatalf("sluice %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// status is what the status of a job says of its owner.
type status struct {
	Alive     string           `json:"alive"`
	Heartbeat *epoch.Heartbeat `json:"heartbeat"`
}

func (j *runningJob) status() (s status) {
	j.t.Helper()
	if err := json.Unmarshal([]byte(j.sluice("status", "--json")), &s); err != nil {
		j.t.Fatal(err)
	}
	return s
}

// The store alone tells how a job is, and asks it to stop; standing by, or
// running, its processes end well.
func TestStopFromElsewhere(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--lease", "300ms", "--epoch", "10ms")
	job.wait("committed")
	for s := job.status(); s.Heartbeat == nil || s.Heartbeat.Role != "running"; s = job.status() {
	}
	if s := job.status(); !strings.HasPrefix(s.Alive, "is running, heartbeat ") || s.Heartbeat.Sources["orders"]["orders.jsonl"].End == 0 {
		t.Errorf("the status is %+v", s)
	}
	second := job.another("follow", "--lease", "300ms")
	second.wait("standing by")
	if out := job.sluice("stop"); !strings.HasPrefix(out, "follow has stopped at epoch ") {
		t.Errorf("stop says %q", out)
	}
	for name, p := range map[string]*runningJob{"the owner": job, "the standby": second} {
		if line := p.wait("stopped"); !strings.Contains(line, `"why":"stop requested by process `) {
			t.Errorf("the last event of %s is %s", name, line)
		}
		if end := p.end(); end.ExitStatus() != 0 {
			t.Errorf("%s has ended with %v", name, end)
		}
	}
	if s := job.status(); s.Alive != "has stopped" {
		t.Errorf("behind the stop the status is %+v", s)
	}
	if out := job.sluice("stop"); !strings.HasPrefix(out, "follow is not running; it stands at epoch ") {
		t.Errorf("a second stop says %q", out)
	}
}

// --takeover stops the owner with a message and the exit code 11.
func TestTakeOverFromTheCommandLine(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--epoch", "10ms", "--lease", "300ms")
	job.wait("committed")
	second := job.another("follow", "--takeover", "--lease", "300ms")
	line := job.wait("stopped") // it has nothing to commit, and finds out with its heartbeat
	if !strings.Contains(line, `"exit_code":11`) || !strings.Contains(line, "fenced: owner ") {
		t.Errorf("the last event of the first is %s", line)
	}
	if end := job.end(); end.ExitStatus() != 11 {
		t.Errorf("the first has ended with %v", end)
	}
	second.sluice("stop", "--wait", "1m")
	if end := second.end(); end.ExitStatus() != 0 {
		t.Errorf("the second has ended with %v", end)
	}
}
