package cli_test

import (
	"encoding/json/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// howForgotten is what forget tells with --json.
type howForgotten struct {
	Stage   string  `json:"stage"`
	Epoch   *uint64 `json:"epoch"`
	Entries *int64  `json:"entries"`
	Merged  *uint64 `json:"merged"`
}

// forget asks for a key to be forgotten.
func (j *runningJob) forget(args ...string) (f howForgotten) {
	j.t.Helper()
	if err := json.Unmarshal([]byte(j.sluice(append([]string{"forget", "--json"}, args...)...)), &f); err != nil {
		j.t.Fatal(err)
	}
	return f
}

// longest is far above what anything here takes.
const longest = time.Minute

// until asks again and again how far a request is.
func (j *runningJob) until(request string, done func(howForgotten) bool) howForgotten {
	j.t.Helper()
	late := time.Now().Add(longest)
	for {
		f := j.forget("--status", "--request", request)
		if done(f) {
			return f
		}
		if time.Now().After(late) {
			j.t.Fatalf("after %v, request %s is %+v", longest, request, f)
		}
	}
}

func appendOrder(t *testing.T, j *runningJob, user string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(j.cmd.Dir, "orders.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"User":"` + user + `","Shop":{"City":"Oslo","Number":1},"Cents":500}` + "\n"); err != nil {
		t.Fatal(err)
	}
}

// A job that runs forgets without any input, merges its segments, and notes that
// without any either. What comes later is counted anew. A stop that is asked in the
// same moment loses nothing, and nor does a SIGKILL.
func TestForgetWhileItRuns(t *testing.T) {
	t.Parallel()
	job := startJob(t, "follow", "--lease", "300ms", "--epoch", "10ms", "--listen", "")
	job.wait("committed")
	f := job.forget("--key", "ann")
	if f.Stage != "deleted" || f.Epoch == nil || f.Entries == nil || *f.Entries != 1 {
		t.Fatalf("forget tells %+v", f)
	}
	job.until("1", func(f howForgotten) bool { return f.Merged != nil })
	appendOrder(t, job, "ann")
	job.wait("committed")
	job.wait("committed") // that of the edits was one
	if got := job.sluice("state", "read", "spend", "ann"); got != `{"Orders":1,"Cents":500}`+"\n" {
		t.Errorf("who was forgotten and came back has %s", got)
	}

	appendOrder(t, job, "bob")
	job.wait("committed")
	job.forget("--key", "ann", "--wait", "0")
	job.sluice("stop")
	if end := job.end(); end.ExitStatus() != 0 {
		t.Fatalf("the job has ended with %v", end)
	}
	job.forget("--key", "bob")
	job = job.another("follow", "--lease", "300ms", "--epoch", "10ms", "--listen", "")
	job.until("4", func(f howForgotten) bool { return f.Stage != "waiting" })
	if got := job.sluice("state", "list", "--count", "--json"); !strings.Contains(got, `"entries":0`) {
		t.Errorf("when all were forgotten, the state is %s", got)
	}
	appendOrder(t, job, "cid")
	job.wait("committed")
	job.wait("committed") // again, that of the edits was one
	job.forget("--key", "cid", "--wait", "0")
	if err := job.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	job.end()
	job = job.another("follow", "--lease", "300ms", "--epoch", "10ms", "--listen", "")
	job.until("5", func(f howForgotten) bool { return f.Stage != "waiting" && f.Merged != nil })
	job.sluice("stop")
	job.end()
	job.sluice("gc", "--keep", "0s", "--keep-epochs", "1")
	for _, request := range []string{"1", "2", "4", "5"} {
		if f := job.forget("--status", "--request", request); f.Stage != "gone" {
			t.Errorf("in the end request %s is %+v", request, f)
		}
	}
	for _, name := range []string{"ann", "bob", "cid"} {
		// What the killed process was writing, below .tmp, is a later start's to remove.
		if found := filesWith(t, filepath.Join(job.cmd.Dir, "sluice-data", "follow"), name); len(found) > 0 {
			t.Errorf("%s stands in %v", name, found)
		}
	}
}

// filesWith are the files below a folder in which a text stands.
func filesWith(t *testing.T, folder, text string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), text) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
