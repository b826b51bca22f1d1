package golden

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/internal/state/statetest"
	"github.com/sluicestream/sluice/store"
)

// place is a folder in which a job runs.
type place struct {
	t     *testing.T
	store store.Store
	job   string
}

// enter makes a folder the working folder, and opens its store.
func enter(t *testing.T, folder, job string) *place {
	t.Helper()
	t.Chdir(folder)
	st, err := store.OpenFolder(env.Real(), "store")
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, st, job}
}

// append adds lines to what the job reads.
func (p *place) append(lines []string) {
	p.t.Helper()
	if err := os.MkdirAll("in", 0o755); err != nil {
		p.t.Fatal(err)
	}
	f, err := os.OpenFile("in/"+p.job+".jsonl", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// options are what a run has if change, which may be nil, says nothing else.
func (p *place) options(change func(*sluice.Options)) sluice.Options {
	// Volatile: go test's folder may be in memory. The epoch is so long that what a run
	// finds in files, which end, is one.
	o := sluice.Options{Store: p.store, Log: slog.New(slog.DiscardHandler), Epoch: time.Second, Lease: 200 * time.Millisecond, Volatile: true}
	if change != nil {
		change(&o)
	}
	return o
}

func (p *place) run(job *sluice.Job, change func(*sluice.Options)) {
	p.t.Helper()
	if err := job.Run(p.t.Context(), p.options(change)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) upgrade(job *sluice.Job, u sluice.Upgrade, change func(*sluice.Options)) {
	p.t.Helper()
	u.Auto = true
	if err := job.Upgrade(p.t.Context(), p.options(change), u); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) rollback(job *sluice.Job, u sluice.Upgrade, change func(*sluice.Options)) {
	p.t.Helper()
	u.Auto = true
	if err := job.Rollback(p.t.Context(), p.options(change), u); err != nil {
		p.t.Fatal(err)
	}
}

// log is the job as its objects tell of it.
func (p *place) log() *epoch.Job {
	p.t.Helper()
	j, err := epoch.FindJob(p.t.Context(), env.Real(), p.store, p.job)
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

// head is the live branch's newest epoch.
func (p *place) head() epoch.Manifest {
	p.t.Helper()
	live := p.lives()
	return p.headOf(live[len(live)-1].Branch)
}

// headOf is a branch's newest epoch, the seal apart.
func (p *place) headOf(branch string) epoch.Manifest {
	p.t.Helper()
	head, err := p.log().Head(p.t.Context(), branch, epoch.FirstTask)
	if err != nil {
		p.t.Fatal(err)
	}
	return head.Manifest
}

// lives are the live records.
func (p *place) lives() []epoch.LiveRecord {
	p.t.Helper()
	records, err := p.log().LiveRecords(p.t.Context(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return records
}

// manifests are those of a branch that are kept.
func (p *place) manifests(branch string) (all []epoch.Manifest) {
	p.t.Helper()
	job := p.log()
	from, err := job.Floor(p.t.Context(), branch, epoch.FirstTask)
	if err != nil {
		p.t.Fatal(err)
	}
	for m, err := range job.Manifests(p.t.Context(), branch, epoch.FirstTask, from, p.headOf(branch).Epoch) {
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// check compares states.
func (p *place) check(m epoch.Manifest, want held) {
	p.t.Helper()
	for name, values := range want {
		if got := statetest.Values(p.t, p.store, p.job, m, name); !maps.Equal(got, values) {
			p.t.Errorf("branch %s, epoch %d, state %s:\n got %v\nwant %v", m.Branch, m.Epoch, name, got, values)
		}
	}
}

// sound has the store looked through.
func (p *place) sound() {
	p.t.Helper()
	report, err := fsck.Check(p.t.Context(), p.store, p.job, fsck.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range report.Findings {
		p.t.Errorf("%s: expected %s, found %s", f.Object, f.Expected, f.Found)
	}
}

// lines are what a sink of files has been given, in the order of its positions.
func (p *place) lines(sink string) (all []string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join("out", sink, "[0-9]*"))
	if err != nil {
		p.t.Fatal(err)
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return all
}

// table is what a table's sink of files has, by key.
func (p *place) table(sink string) map[string]string {
	p.t.Helper()
	rows := map[string]string{}
	for _, line := range p.lines(sink) {
		var change struct {
			Op       string
			Key, Row jsontext.Value
		}
		if err := json.Unmarshal([]byte(line), &change, json.MatchCaseInsensitiveNames(true)); err != nil {
			p.t.Fatalf("sink %s: %s: %v", sink, line, err)
		}
		if change.Op == "delete" {
			delete(rows, string(change.Key))
		} else {
			rows[string(change.Key)] = string(change.Row)
		}
	}
	return rows
}

// copied is a copy of the checkpoint of a format.
func copied(t *testing.T, format string) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", format))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// anew is the folder of the checkpoint of today's format, without what a job has left.
func anew(t *testing.T, job player) string {
	t.Helper()
	folder, err := filepath.Abs(newest())
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range append(job.leaves, "store/"+job.name, "in/"+job.name+"*", "out/"+job.name+"-*") {
		left, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// superseded sees that a run has ended because another build is live.
func superseded(t *testing.T, err error) {
	t.Helper()
	var e *epoch.SupersededError
	if !errors.As(err, &e) {
		t.Errorf("the build that was replaced ended with %v", err)
	}
}
