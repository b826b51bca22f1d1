package torture

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/torture/sources"
)

// sluiceCommand builds the sluice command, once, and returns its path.
func sluiceCommand(t *testing.T) string {
	t.Helper()
	target := filepath.Join(binaries.folder, "command", "sluice")
	binaries.sluice.Do(func() {
		sources.Read(t)
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", target, "../../cmd/sluice")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building sluice: %v\n%s", err, out)
		}
	})
	return target
}

// forgottenUser is who is forgotten; every input has orders of seven users.
const forgottenUser = "user-0-1"

// The numbers of the orders that come before somebody is forgotten, and of all.
const (
	beforeForget = 30
	ordersInAll  = 60
)

// TestForgetKilledAtEachStep asks for a user to be forgotten while nobody runs the
// job, and kills the next run at each of the steps at which it changes the store:
// it is forgotten once, before what came later, and nobody else is. Meanwhile
// savepoints are made by a schedule, none of them twice.
func TestForgetKilledAtEachStep(t *testing.T) {
	t.Parallel()
	folder := quickFolder(t)
	args := []string{"-savepoints", "1s=2,hourly=5"}
	feedSteps(t, folder, 0, beforeForget)
	if p := startSteps(t, folder, "run"); p.wait(t) != 0 {
		t.Fatalf("the first run: %s", p.said())
	}
	sluice := sluiceCommand(t)
	if r := runJob(t, folder, sluice, "forget", "--store", "store", "--key", forgottenUser); r.code != 0 || !strings.Contains(r.stdout, "waiting: the owner has stopped") {
		t.Fatalf("forget: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	feedSteps(t, folder, beforeForget, ordersInAll)
	s := &stage{
		chapter: chapter{name: "forget", args: args, after: args, beside: alone},
		before:  filepath.Join(t.TempDir(), "before"),
	}
	copyFolder(t, s.before, folder)
	p := s.play(t, folder, "-record", "steps.txt")
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.said())
	}
	verifyForgotten(t, folder)
	s.times = readSteps(t, filepath.Join(folder, "steps.txt"))
	changes := regexp.MustCompile(`^(link|rename|create|write|sync|remove|unlink|mkdir).*(manifest|segment|outbox|savepoint|floor|scratch|note)`)
	for step := range s.times {
		if os.Getenv("SLUICE_TORTURE") == "" && !changes.MatchString(step) {
			delete(s.times, step)
		}
	}
	for _, step := range []string{"link manifest before", "link segment after", "link savepoint before", "link savepoint after"} {
		if s.times[step] == 0 {
			t.Errorf("the run does not come to the step %q", step)
		}
	}
	reached := &reached{left: map[string]bool{}}
	list := deaths([]*stage{s}, os.Getenv("SLUICE_TORTURE") != "")
	t.Run("kill", func(t *testing.T) {
		for _, d := range list {
			t.Run(fmt.Sprintf("%s %d", d.step, d.nth), func(t *testing.T) {
				t.Parallel()
				d.dieForgetting(t, sluice, reached)
			})
		}
	})
	t.Logf("%d kills, of the steps\n%s", reached.kills, strings.Join(sortedKeys(s.times), "\n"))
}

// dieForgetting kills the run that is to forget at a step, and lets the job go on.
func (d death) dieForgetting(t *testing.T, sluice string, reached *reached) {
	for range tries {
		folder := quickFolder(t)
		copyFolder(t, folder, d.stage.before)
		p := d.stage.play(t, folder, "-at", d.step, "-nth", strconv.Itoa(d.nth))
		code := p.wait(t)
		if code == 0 { // it has come less often
			d.nth = max(1, d.nth/2)
			continue
		}
		if code != -1 {
			t.Fatalf("exit code %d\n%s", code, p.said())
		}
		reached.note(d.step)
		p = startSteps(t, folder, slices.Concat([]string{"run"}, d.stage.after)...)
		if code := p.wait(t); code != 0 {
			t.Fatalf("the run after the kill: exit code %d\n%s", code, p.said())
		}
		verifyForgotten(t, folder)
		r := runJob(t, folder, sluice, "fsck", "--store", "store")
		if r.code != 0 {
			t.Errorf("fsck: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		return
	}
}

// verifyForgotten works the outputs out from the input, and compares.
func verifyForgotten(t *testing.T, folder string) {
	t.Helper()
	receipts, accounts := map[string][]stepsReceipt{}, map[string]stepsAccount{}
	for part := range stepsInputs {
		data, err := os.ReadFile(filepath.Join(folder, "in", fmt.Sprintf("%d.jsonl", part)))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			if n == beforeForget {
				delete(accounts, forgottenUser)
			}
			n++
			o := decode[stepsOrder](t, []byte(line))
			a := accounts[o.User]
			a = stepsAccount{a.Orders + 1, a.Cents + o.Cents}
			accounts[o.User] = a
			receipts[o.User] = append(receipts[o.User], stepsReceipt{o.User, a.Orders, a.Cents})
		}
		if n != ordersInAll {
			t.Fatalf("input %d has %d orders", part, n)
		}
	}
	sameStream(t, filepath.Join(folder, "out", "receipts"), receipts, func(r stepsReceipt) string { return r.User })
	got := lastRows[string, stepsAccount](t, filepath.Join(folder, "out", "accounts"))
	for user, want := range accounts {
		if got[user] != want {
			t.Errorf("sink accounts: %s ends with %+v, expected %+v", user, got[user], want)
		}
	}
	verifyManifests(t, folder)
	verifySavepoints(t, folder)
}

// forgetManifest is what these tests look at in a manifest.
type forgetManifest struct {
	Epoch   int64
	Kind    string
	Request int64
	Edits   []json.RawMessage
	Counts  map[string]int64
	State   map[string]struct{ Edited int64 }
}

// loosely decodes an object of which only some fields are wanted.
func loosely[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// verifyManifests finds, among what is kept, at most one epoch with the edits, and
// nothing that is still to be merged away.
func verifyManifests(t *testing.T, folder string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "store", "steps", "branches", "main", "0.0", "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var newest forgetManifest
	withEdits := 0
	for _, name := range names {
		if filepath.Base(name) == "heartbeat.json" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := loosely[forgetManifest](t, data)
		if m.Epoch >= newest.Epoch {
			newest = m
		}
		if len(m.Edits) > 0 {
			withEdits++
			if m.Kind != "data" || m.Request != 1 || len(m.Edits) != 2 || m.Counts["forgotten"] != 2 {
				t.Errorf("epoch %d has edits: %+v", m.Epoch, m)
			}
		}
	}
	if withEdits > 1 || newest.Request != 1 {
		t.Errorf("%d epochs with edits; the newest, %d, has done request %d", withEdits, newest.Epoch, newest.Request)
	}
	for name, s := range newest.State {
		if s.Edited != 0 {
			t.Errorf("epoch %d: state %s is still to be merged, since epoch %d", newest.Epoch, name, s.Edited)
		}
	}
}

// verifySavepoints finds each savepoint of the schedules once, with its epoch.
func verifySavepoints(t *testing.T, folder string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "store", "steps", "savepoints", "*.json"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%d savepoints: %v", len(names), err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := loosely[struct {
			Name, Branch, Schedule string
			Tasks                  map[string]int64
		}](t, data)
		if seen[s.Name] || s.Schedule != "1s" && s.Schedule != "hourly" {
			t.Errorf("savepoint %s, of the schedule %q, is there twice or nobody's", s.Name, s.Schedule)
		}
		seen[s.Name] = true
		if _, err := os.Stat(filepath.Join(folder, "store", "steps", "branches", s.Branch, "0.0", fmt.Sprintf("%020d.json", s.Tasks["0.0"]))); err != nil {
			t.Errorf("savepoint %s: %v", s.Name, err)
		}
	}
}
