package cli_test

import (
	"encoding/json/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
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

// A job whose branch was sealed is in the middle of a cut: it is not called stopped, and
// whoever waits to go on hears of the request.
func TestStopInTheMiddleOfACut(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--lease", "300ms", "--epoch", "10ms", "--resume-after", "1h")
	job.wait("committed")
	st, err := store.OpenFolder(env.Real(), filepath.Join(job.cmd.Dir, "sluice-data"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := epoch.FindJob(t.Context(), env.Real(), st, "follow")
	if err == nil {
		_, err = log.SealBranch(t.Context(), epoch.MainBranch, epoch.ThisProcess(), "a test")
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := job.sluice("stop"); !strings.HasPrefix(out, "follow is in the middle of a cut: its branch was sealed at epoch ") {
		t.Errorf("stop says %q", out)
	}
	if end := job.end(); end.ExitStatus() != 0 {
		t.Errorf("the one that waits has ended with %v", end)
	}
	if out := job.sluice("stop"); !strings.HasPrefix(out, "follow is in the middle of a cut: its branch was sealed at epoch ") {
		t.Errorf("stop says %q, when nobody is left", out)
	}
}

// stop --drain --close-windows stops where the input ends, and asks for just that; a job
// without windows has none to close.
func TestStopClosesWindows(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--lease", "300ms", "--epoch", "10ms")
	job.wait("committed")
	var out struct {
		Ended   bool                        `json:"ended"`
		Offsets map[string]map[string]int64 `json:"offsets"`
	}
	if err := json.Unmarshal([]byte(job.sluice("stop", "--drain", "--close-windows", "--json")), &out); err != nil {
		t.Fatal(err)
	}
	if end := out.Offsets["orders"]["orders.jsonl"]; !out.Ended || end == 0 {
		t.Errorf("the stop says %+v, expected the end of the input", out)
	}
	asked, err := filepath.Glob(filepath.Join(job.cmd.Dir, "*", "follow", "control", "1.json"))
	if err != nil || len(asked) != 1 {
		t.Fatalf("the requests are %v, %v", asked, err)
	}
	if text, err := os.ReadFile(asked[0]); err != nil || !strings.Contains(string(text), `"kind":"drain to"`) || !strings.Contains(string(text), `"close_windows":true`) {
		t.Errorf("the request is %s, %v", text, err)
	}
	if end := job.end(); end.ExitStatus() != 0 {
		t.Errorf("the job has ended with %v", end)
	}
}

// stop --drain --to ends a job at offsets, and prints them so that another begins there.
func TestStopAtOffsets(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--lease", "300ms", "--epoch", "10ms")
	job.wait("committed")
	fails := func(code int, says string, args ...string) {
		t.Helper()
		cmd := exec.Command("sluice", append([]string{"stop"}, args...)...)
		cmd.Dir, cmd.Env = job.cmd.Dir, job.cmd.Env
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), says) {
			t.Errorf("stop %v has ended with %d and said %q, want %d and %q", args, cmd.ProcessState.ExitCode(), out, code, says)
		}
	}
	fails(2, "only with --drain", "--to", "NOW")
	fails(2, "--close-windows: only with --drain", "--close-windows")
	fails(2, "--to then=now=: \"then=now=\": expected a number behind the =", "--drain", "--to", "then=now=")
	fails(2, "NOW, or offsets", "--drain", "--to", "group:readers")
	fails(2, "orders.jsonl=-1: expected 0 or more\n", "--drain", "--to", "orders.jsonl=-1")
	fails(1, "request 1 is not met: source orders, partition orders.jsonl: offset 3 is asked for, and it has been read to 62 already", "--drain", "--to", "orders.jsonl=3")

	// What is written meanwhile, as two lines, is read up to the end of the first.
	line := `{"User":"bob","Shop":{"City":"Oslo","Number":1},"Cents":1200}` + "\n"
	stopped := make(chan string)
	go func() {
		cmd := exec.Command("sluice", "stop", "--drain", "--to", "orders:orders.jsonl=124", "--json")
		cmd.Dir, cmd.Env = job.cmd.Dir, job.cmd.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		stopped <- string(out)
	}()
	job.wait("nothing behind the offsets is read")
	f, err := os.OpenFile(filepath.Join(job.cmd.Dir, "orders.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(line + line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := <-stopped; !strings.Contains(out, `"ended":true`) || !strings.Contains(out, `"offsets":{"orders":{"orders.jsonl":124}}`) {
		t.Errorf("stop says %q", out)
	}
	if line := job.wait("stopped"); !strings.Contains(line, `"exit_code":0`) || !strings.Contains(line, `"why":"drain to requested by process `) {
		t.Errorf("the last event is %s", line)
	}
	if end := job.end(); end.ExitStatus() != 0 {
		t.Errorf("it has ended with %v", end)
	}
	fails(1, "follow is not running", "--drain", "--to", "NOW")

	// What is printed is a file of offsets.
	second := job.another("follow", "--lease", "300ms", "--epoch", "10ms")
	second.wait("committed")
	out := second.sluice("stop", "--drain", "--to", "NOW")
	if !strings.HasPrefix(out, "# follow has stopped at epoch ") || !strings.HasSuffix(out, "\norders:orders.jsonl=186\n") {
		t.Errorf("stop says %q", out)
	}
	if end := second.end(); end.ExitStatus() != 0 {
		t.Errorf("the second run has ended with %v", end)
	}
	if err := os.WriteFile(filepath.Join(job.cmd.Dir, "offsets"), []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("follow", "import", "--store", "elsewhere", "--offsets", "offsets", "--json")
	cmd.Dir, cmd.Env = job.cmd.Dir, job.cmd.Env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"next":186`) {
		t.Errorf("import says %q (%v)", out, err)
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
