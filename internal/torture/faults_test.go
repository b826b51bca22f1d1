package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the job visits reads and writes.
type (
	visit struct {
		User, Page string
		Seconds    int64
		Fault      string
	}
	total struct{ Visits, Seconds int64 }
	step  struct {
		User, Page string
		Seconds    int64
		Fault      string
		Nth        int64
	}
	letter struct {
		Source, Partition string
		Offset            int64
		Operator, Key     string
		Error             string
		RecordKey, Bytes  []byte
	}
)

// visits are n lines without a fault, of a few users and pages.
func visits(from, n int) []visit {
	var out []visit
	for i := from; i < from+n; i++ {
		out = append(out, visit{User: fmt.Sprintf("user-%d", i%7), Page: fmt.Sprintf("page-%d", i%5), Seconds: int64(i%50 + 1)})
	}
	return out
}

func lineOf(v visit) string {
	line, _ := json.Marshal(v)
	return string(line) + "\n"
}

// visitsJob is a folder of the job visits with its one input file.
type visitsJob struct {
	folder, bin string
	input       string // all of the file
}

// newVisits makes a folder in which the job has read its first records.
func newVisits(t *testing.T) *visitsJob {
	t.Helper()
	j := &visitsJob{folder: t.TempDir(), bin: build(t, &binaries.visits, "visits/...")}
	j.append(t, visits(0, 300)...)
	mustRun(t, j.folder, filepath.Join(j.bin, "broken"))
	return j
}

func (j *visitsJob) append(t *testing.T, visits ...visit) {
	t.Helper()
	for _, v := range visits {
		j.appendLine(t, lineOf(v))
	}
}

// appendLine appends a line of any kind, and returns its offset.
func (j *visitsJob) appendLine(t *testing.T, line string) (offset int) {
	t.Helper()
	offset = len(j.input)
	j.input += line
	appendTo(t, filepath.Join(j.folder, "in", "visits.jsonl"), line)
	return offset
}

// run runs one of the job's builds.
func (j *visitsJob) run(t *testing.T, build string) result {
	t.Helper()
	return runCommand(t, j.folder, filepath.Join(j.bin, build))
}

// stops runs a build that must stop at the record at an offset, and say so.
func (j *visitsJob) stops(t *testing.T, build string, at int, says ...string) {
	t.Helper()
	r := j.run(t, build)
	if r.code != 16 {
		t.Fatalf("%s: exit code %d, expected 16\n%s", build, r.code, r.stderr)
	}
	for _, text := range append(says, "source visits", "visits.jsonl", fmt.Sprintf("offset %d", at)) {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("the error does not say %q:\n%s", text, r.stderr)
		}
	}
	if next := j.journal(t).head().Sources["visits"].Partitions["visits.jsonl"].Next; next > int64(at) {
		t.Errorf("the job stands at %d, behind the record at %d that it failed on", next, at)
	}
}

func (j *visitsJob) journal(t *testing.T) *journal {
	t.Helper()
	log := openJournal(filepath.Join(j.folder, "store"), "visits")
	log.read(t)
	return log
}

// sameOutputs compares the sinks with what the lines of the input say, but for
// those at the offsets given.
func (j *visitsJob) sameOutputs(t *testing.T, without ...int) {
	t.Helper()
	users, pages := map[string]total{}, map[string]total{}
	steps := map[string][]step{}
	offset := 0
	for line := range strings.Lines(j.input) {
		here := offset
		offset += len(line)
		var v visit
		if slices.Contains(without, here) || json.Unmarshal([]byte(line), &v) != nil {
			continue
		}
		u, p := users[v.User], pages[v.Page]
		u, p = total{u.Visits + 1, u.Seconds + v.Seconds}, total{p.Visits + 1, p.Seconds + v.Seconds}
		users[v.User], pages[v.Page] = u, p
		steps[v.User] = append(steps[v.User], step{v.User, v.Page, v.Seconds, v.Fault, u.Visits})
	}
	out := func(name string) string { return filepath.Join(j.folder, "out", name) }
	sameRows(t, out("users"), users)
	sameRows(t, out("pages"), pages)
	sameStream(t, out("steps"), steps, func(s step) string { return s.User })
}

// TestPanicHalfway lets a fold panic when it has changed half of its entry: the
// job stops, and a build without the fault finds the entry as it was before.
func TestPanicHalfway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fault, operator, key string }{
		{"user", "users", "user-3"},
		{"page", "pages", "page-2"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			j := newVisits(t)
			before := j.journal(t).head()
			j.append(t, visits(300, 40)...) // of the same keys, in the same epoch or in one before
			at := j.appendLine(t, lineOf(visit{"user-3", "page-2", 1_000, c.fault}))
			j.append(t, visits(340, 40)...)
			j.stops(t, "broken", at, c.operator, c.key, "half done with user-3 on page-2")
			j.stops(t, "broken", at) // again: it stands where it stood
			if r := j.run(t, "fixed"); r.code != 0 {
				t.Fatalf("the build without the fault: exit code %d\n%s", r.code, r.stderr)
			}
			if head := j.journal(t).head(); head.Position <= before.Position {
				t.Errorf("position %d after the fault, %d before it", head.Position, before.Position)
			}
			j.sameOutputs(t)
			if r := j.run(t, "broken"); r.code != 12 {
				t.Errorf("the build that was replaced: exit code %d, expected 12\n%s", r.code, r.stderr)
			}
		})
	}
}

// badLines are lines that are no visit, with what an error must say of them
// besides the file and the offset.
var badLines = map[string]struct {
	line string
	says []string
}{
	"no JSON":        {"{\"User\":\"user-1\",\"Page\":!}\n", []string{"not JSON"}},
	"cut off":        {"{\"User\":\"user-1\",\n", []string{"unfinished"}},
	"wrong type":     {"{\"User\":\"user-1\",\"Page\":\"page-1\",\"Seconds\":\"many\"}\n", []string{"Seconds", "many"}},
	"out of range":   {"{\"User\":\"user-1\",\"Page\":\"page-1\",\"Seconds\":9223372036854775808}\n", []string{"Seconds", "9223372036854775808"}},
	"no object":      {"[1,2]\n", []string{"array"}},
	"duplicate name": {"{\"User\":\"user-1\",\"User\":\"user-2\"}\n", []string{"User", "duplicate"}},
}

// TestBadInputStops gives the job lines that can't be decoded: it stops and
// says file, byte offset, field and cause.
func TestBadInputStops(t *testing.T) {
	t.Parallel()
	first := newVisits(t)
	for name, bad := range badLines {
		t.Run(name, func(t *testing.T) {
			j := &visitsJob{folder: t.TempDir(), bin: first.bin, input: first.input}
			if err := os.CopyFS(j.folder, os.DirFS(first.folder)); err != nil {
				t.Fatal(err)
			}
			j.append(t, visits(300, 10)...)
			at := j.appendLine(t, bad.line)
			j.append(t, visits(310, 10)...)
			j.stops(t, "broken", at, bad.says...)
		})
	}
}

// TestDeadLetters gives the job records that it fails on, at every stage, and a
// sink for them: they go there, in the epoch that they belong to, and have no
// other effect.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	j := newVisits(t)
	var want []letter
	var offsets []int
	fail := func(line, operator, key string) {
		offset := j.appendLine(t, line)
		offsets = append(offsets, offset)
		want = append(want, letter{
			Source: "visits", Partition: "visits.jsonl", Offset: int64(offset), Operator: operator, Key: key,
			Bytes: []byte(strings.TrimSuffix(line, "\n")),
		})
	}
	next := 300
	some := func() { j.append(t, visits(next, 20)...); next += 20 }
	some()
	fail(lineOf(visit{"user-1", "page-1", 1_000, "user"}), "users", "user-1")
	some()
	fail(lineOf(visit{"user-2", "page-1", 1_000, "page"}), "pages", "page-1") // it has passed the first stage
	fail(lineOf(visit{"user-2", "page-1", 1_000, "page"}), "pages", "page-1")
	some()
	for _, name := range sortedKeys(badLines) {
		fail(badLines[name].line, "visits", "")
		some()
	}
	fail(lineOf(visit{"only once", "page-1", 1_000, "page"}), "pages", "page-1") // its user must not come to be
	some()
	if r := j.run(t, "letters"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	j.sameOutputs(t, offsets...)
	j.sameLetters(t, want)
	some() // a run that follows knows nothing of the records left out
	if r := j.run(t, "letters"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	j.sameOutputs(t, offsets...)
	j.sameLetters(t, want)
}

// sameLetters compares the sink of dead letters with what it must hold, each in
// the file of the epoch that has read it.
func (j *visitsJob) sameLetters(t *testing.T, want []letter) {
	t.Helper()
	folder := filepath.Join(j.folder, "out", "letters")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []letter
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			l := decode[letter](t, line)
			if position := j.positionOf(t, l.Offset); !strings.HasPrefix(e.Name(), fmt.Sprintf("%020d", position)) {
				t.Errorf("the letter of offset %d is in %s, its record was read in position %d", l.Offset, e.Name(), position)
			}
			got = append(got, l)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d dead letters, expected %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if g.Error == "" || g.Source != w.Source || g.Partition != w.Partition || g.Offset != w.Offset || g.Operator != w.Operator || g.Key != w.Key || !bytes.Equal(g.Bytes, w.Bytes) {
			t.Errorf("dead letter %d: expected %+v, found %+v", i, w, g)
		}
	}
	counted := int64(0)
	for _, m := range j.journal(t).manifests {
		counted += m.Counts["dead_letters"]
	}
	if counted != int64(len(want)) {
		t.Errorf("the manifests count %d dead letters, expected %d", counted, len(want))
	}
}

// positionOf finds the position of the epoch that has read an offset.
func (j *visitsJob) positionOf(t *testing.T, offset int64) uint64 {
	t.Helper()
	for _, m := range j.journal(t).manifests {
		if m.Kind == "data" && m.Sources["visits"].Partitions["visits.jsonl"].Next > offset {
			return m.Position
		}
	}
	t.Fatalf("no epoch has read offset %d", offset)
	return 0
}
