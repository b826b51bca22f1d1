package file

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// FuzzNotes puts any bytes in the place of the hidden files: they are what the
// sink wrote, which then is written again as the same, or an error names them.
func FuzzNotes(f *testing.F) {
	key := connector.RecordKey{JobID: "a", Task: "0.0", Sink: "out"}
	record, err := encode(madeBy(key, connector.SinkRecord{ID: "r", Position: 1<<64 - 1, Job: "job", Target: "t"}))
	if err != nil {
		f.Fatal(err)
	}
	last, err := encode(noteOf(key, connector.SinkRecord{ID: "r", Position: 7, Part: 2, Job: "job", Live: 1, Manifest: "ab"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(record))
	f.Add(string(last))
	f.Add(`{"format":1,"position":-1}`)
	f.Add(`{"format":1,"part":4611686018427387904}`)
	f.Add(`{"format":2}`)
	f.Add(strings.Repeat("[", 20_000))
	f.Add(strings.Repeat(" ", maxNote+1))
	f.Fuzz(func(t *testing.T, text string) {
		folder := t.TempDir()
		path := filepath.Join(folder, "record.json")
		writeFile(t, path, text)
		to := &target{env: env.Real(), path: folder, hidden: folder, key: key}
		var m made
		sameAgain(t, to, path, &m)
		var n note
		sameAgain(t, to, path, &n)
	})
}

// sameAgain reads a hidden file, and if it can be read, writes and reads it
// again.
func sameAgain[N made | note, P interface {
	*N
	version() int
}](t *testing.T, to *target, path string, n P) {
	t.Helper()
	if err := to.read(path, n); err != nil {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("the error %q does not name %s", err, path)
		}
		return
	}
	body, err := encode(*n)
	if err != nil {
		t.Fatalf("%+v was read and can't be written: %v", *n, err)
	}
	path = filepath.Join(t.TempDir(), "again.json")
	writeFile(t, path, string(body))
	var again N
	if err := to.read(path, P(&again)); err != nil || again != *n {
		t.Errorf("%+v is read again as %+v, %v", *n, again, err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	f, err := env.OS().Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// FuzzPlace: what is read of a file's name is what stands there.
func FuzzPlace(f *testing.F) {
	f.Add("00000000000000000007.jsonl")
	f.Add("00000000000000000007_00002.csv")
	f.Add("00000000000000000000_00000.json")
	f.Add("tmp-18446744073709551615-0a")
	f.Add("99999999999999999999.jsonl")
	f.Fuzz(func(t *testing.T, name string) {
		at, ok := parsePlace(trimAside(name))
		if ok && !strings.HasPrefix(trimAside(name), at.String()) {
			t.Errorf("%q is read as %s", name, at)
		}
	})
}

// FuzzPattern: no name that fits a pattern leads out of the pattern's folder.
func FuzzPattern(f *testing.F) {
	f.Add("in/*.jsonl", "a.jsonl")
	f.Add("in/*/*", "../x")
	f.Add("*/..", "a/..")
	f.Add("/a/[^b]", "..")
	f.Add(`in/\*`, "*")
	f.Add("in/[.][.]/x", "../x")
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := parsePattern(text)
		if err != nil || !p.matches(name) {
			return
		}
		below, err := filepath.Rel(p.folder, p.path(name))
		if err != nil || !filepath.IsLocal(below) {
			t.Errorf("%q of the pattern %q is %q, which is not in %q", name, text, p.path(name), p.folder)
		}
	})
}
