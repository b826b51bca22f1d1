package torture

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// intakeBuilt is for the builds of the job intake.
var intakeBuilt sync.Once

// intake is a folder of the job intake: what its files hold, unpacked.
type intake struct {
	folder, bin         string
	plain, packed, rows string
}

// entered is the state of a user.
type entered struct{ Entries, Points int64 }

const (
	plainFile  = "in/plain.jsonl"
	packedFile = "in/packed.jsonl.gz"
	rowsFile   = "in/rows.csv"
	rowsHeader = "User,Points\n"
)

// newIntake makes a folder in which the job has read some good records of each
// file, and has more to read.
func newIntake(t *testing.T) *intake {
	t.Helper()
	j := &intake{folder: t.TempDir(), bin: build(t, &intakeBuilt, "intake/..."), rows: rowsHeader}
	j.addGood(0, 40)
	j.write(t)
	mustRun(t, j.folder, j.binary("strict"))
	return j
}

func (j *intake) binary(build string) string { return filepath.Join(j.bin, build) }

func (j *intake) path(name string) string { return filepath.Join(j.folder, name) }

// addGood adds good records to each file.
func (j *intake) addGood(from, n int) {
	j.plain += goodLines(from, n)
	j.packed += goodLines(from+1, n)
	j.rows += goodRows(from+2, n)
}

func goodLines(from, n int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, `{"User":"user-%d","Points":%d,"Detail":{"Marks":[%d]}}`+"\n", i%7, i, i)
	}
	return b.String()
}

func goodRows(from, n int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, "user-%d,%d\n", i%7, i)
	}
	return b.String()
}

// write writes the files anew.
func (j *intake) write(t *testing.T) {
	t.Helper()
	j.put(t, plainFile, []byte(j.plain))
	j.put(t, packedFile, gzipped(t, j.packed))
	j.put(t, rowsFile, []byte(j.rows))
}

func (j *intake) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(j.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(j.path(name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// next is how far the files have been read, by the log's head.
func (j *intake) next(t *testing.T) map[string]int64 {
	t.Helper()
	log := openJournal(filepath.Join(j.folder, "store"), "intake")
	log.read(t)
	next := map[string]int64{}
	for _, s := range log.head().Sources {
		for name, p := range s.Partitions {
			next["in/"+name] = p.Next
		}
	}
	return next
}

// stops runs the job, which must stop with the exit code for bad input and one
// line that says what it must.
func (j *intake) stops(t *testing.T, build string, says ...string) {
	t.Helper()
	isBadInput(t, runCommand(t, j.folder, j.binary(build), "--listen", ""), says...)
}

// isBadInput holds a result against what bad input gives: the exit code, and one
// short line that says what it must.
func isBadInput(t *testing.T, r result, says ...string) {
	t.Helper()
	if r.code != 16 {
		t.Fatalf("exit code %d, expected 16\n%s", r.code, shown(r.stderr))
	}
	last := lastLine(r.stderr)
	for _, text := range append(says, "intake") {
		if !strings.Contains(last, text) {
			t.Errorf("the error does not say %q:\n%s", text, shown(last))
		}
	}
	if !strings.HasPrefix(last, "error: ") || len(last) > 2000 {
		t.Errorf("expected one short line with the error, found %d bytes:\n%s", len(last), shown(last))
	}
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func shown(text string) string { return text[max(0, len(text)-3000):] }

// goesOn runs the job to the end of its good files, and compares the sink with
// what they hold.
func (j *intake) goesOn(t *testing.T, build string) {
	t.Helper()
	mustRun(t, j.folder, j.binary(build), "--listen", "")
	j.sameTotals(t)
}

func (j *intake) sameTotals(t *testing.T) {
	t.Helper()
	want := map[string]entered{}
	add := func(user string, points int64) {
		e := want[user]
		want[user] = entered{e.Entries + 1, e.Points + points}
	}
	for line := range strings.Lines(j.plain + j.packed) {
		var user string
		var points, mark int64
		if _, err := fmt.Sscanf(line, `{"User":"user-%1s","Points":%d,"Detail":{"Marks":[%d]}}`, &user, &points, &mark); err == nil {
			add("user-"+user, points)
		}
	}
	for line := range strings.Lines(j.rows) {
		var user string
		var points int64
		if _, err := fmt.Sscanf(line, "user-%1s,%d\n", &user, &points); err == nil {
			add("user-"+user, points)
		}
	}
	sameRows(t, filepath.Join(j.folder, "out", "totals"), want)
}
