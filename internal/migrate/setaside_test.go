package migrate

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/internal/state"
)

var (
	moving  = Migration{Job: "depot", State: "things", From: "9c1f"}
	another = Migration{Job: "depot", State: "things", From: "03ab"}
)

const movingLine = `{"job":"depot","state":"things","from":"9c1f"}` + "\n"

func setAside(t *testing.T, path string, of Migration) *SetAside {
	t.Helper()
	s, err := NewSetAside(env.Real(), path, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// putBad sets the bad entries of a stock aside, and returns what is left.
func putBad(t *testing.T, x *stock, s *SetAside, way *carry.Way, path string) []thing[box] {
	t.Helper()
	o := x.options(way, path, 2)
	o.Failed = func(failed *carry.EntryError, e *state.Entry) error {
		return s.Put(failed, x.forms[failed.State], e)
	}
	segment, _, err := State(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return x.migrated(way, segment)
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("the folder holds %q, expected %q", got, want)
	}
}

// The file has a line for the migration and one for each entry, in their order,
// and its name only once it is whole.
func TestSetAside(t *testing.T) {
	x := newStock(t)
	x.keep("things", false,
		thing[crate]{key: "ann", value: crate{1, "good"}},
		thing[crate]{key: "bob \"q\"", value: crate{2, "bad <1>"}},
		thing[crate]{key: "eve", value: crate{3, "bad 2"}})
	dir := t.TempDir()
	path := filepath.Join(dir, "aside.jsonl")
	s := setAside(t, path, moving)
	left := putBad(t, x, s, x.sealing(), "new.avro")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file has its name before it is whole: %v", err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	lines := map[string]string{
		"bob \"q\"": `{"state":"things","key":"bob \"q\"","value":{"Number":2,"Label":"bad <1>"},"function":"migrate.seal","error":"label \"bad <1>\""}` + "\n",
		"eve":       `{"state":"things","key":"eve","value":{"Number":3,"Label":"bad 2"},"function":"migrate.seal","error":"label \"bad 2\""}` + "\n",
	}
	want := movingLine
	for _, s := range inOrder([]thing[crate]{{key: "bob \"q\""}, {key: "eve"}}) {
		want += lines[s.key]
	}
	if got := content(t, path); got != want {
		t.Errorf("the file holds\n%sexpected\n%s", got, want)
	}
	only(t, dir, "aside.jsonl")
	same(t, left, []thing[box]{{key: "ann", value: box{1, "good", false}}})
}

// Elements of lists stand in the file as well.
func TestSetAsideElements(t *testing.T) {
	x := newStock(t)
	x.keep("things", true, thing[crate]{"ann", 7, crate{1, "bad"}})
	path := filepath.Join(t.TempDir(), "aside.jsonl")
	s := setAside(t, path, moving)
	putBad(t, x, s, x.way(true, carry.Spec[spot, box]{Chain: carry.First(seal)}), "new.avro")
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	want := movingLine + `{"state":"things","key":"ann","element":7,"value":{"Number":1,"Label":"bad"},"function":"migrate.seal","error":"label \"bad\""}` + "\n"
	if got := content(t, path); got != want {
		t.Errorf("the file holds\n%sexpected\n%s", got, want)
	}
}

// Bytes that can't be read are kept as they are, in base64.
func TestSetAsideUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aside.jsonl")
	s := setAside(t, path, moving)
	value := []byte{0x06, 0xff, 0xff, 0xff} // a number, and a text that ends before it begins
	e := &state.Entry{Key: appendText(nil, "ann"), Value: value}
	if err := s.Put(&carry.EntryError{State: "things", Key: "ann", Cause: errors.New("damaged")}, formOf[crate](t, "things", false), e); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	want := movingLine + `{"state":"things","key":"ann","value":"` + base64.StdEncoding.EncodeToString(value) + `","error":"damaged"}` + "\n"
	if got := content(t, path); got != want {
		t.Errorf("the file holds\n%sexpected\n%s", got, want)
	}
}

// A process may die after the file has its name, and before the manifest says
// that the migration is done: the same migration then replaces the file, with the
// same bytes. What another has set aside is not written over, nor is any other
// file.
func TestSetAsideAgain(t *testing.T) {
	x := newStock(t)
	x.keep("things", false, thing[crate]{key: "ann", value: crate{1, "bad"}})
	dir := t.TempDir()
	path := filepath.Join(dir, "aside.jsonl")
	first := setAside(t, path, moving)
	putBad(t, x, first, x.sealing(), "first.avro")
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	whole := content(t, path)

	if _, err := NewSetAside(env.Real(), path, another); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another migration") {
		t.Fatalf("another migration writes it over: %v", err)
	}
	if content(t, path) != whole {
		t.Fatal("the file is another one")
	}
	second := setAside(t, path, moving)
	putBad(t, x, second, x.sealing(), "second.avro")
	if content(t, path) != whole {
		t.Fatal("the file is gone before another is whole")
	}
	if err := second.Commit(); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if got := content(t, path); got != whole {
		t.Errorf("the same migration writes\n%safter\n%s", got, whole)
	}
	only(t, dir, "aside.jsonl")

	for name, text := range map[string]string{"empty": "", "a part of a first line": movingLine[:20], "text": "my notes, which nobody else has\n"} {
		other := filepath.Join(t.TempDir(), "notes")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewSetAside(env.Real(), other, moving); err == nil || content(t, other) != text {
			t.Errorf("%s: the file may be written over: %v", name, err)
		}
	}
}

// A process that dies before the file has its name leaves one of another name,
// which is in nobody's way.
func TestSetAsideLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "aside.jsonl")
	setAside(t, path, moving) // is not closed here, as by a process that was killed
	s := setAside(t, path, another)
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != strings.Replace(movingLine, "9c1f", "03ab", 1) {
		t.Fatalf("the file holds %s", got)
	}
}

// A file that is given up leaves nothing.
func TestSetAsideGivenUp(t *testing.T) {
	dir := t.TempDir()
	s := setAside(t, filepath.Join(dir, "aside.jsonl"), moving)
	s.Close()
	only(t, dir)
}

// Each call of the file system fails in turn: the error says so, or the file is
// whole.
func TestSetAsideFaults(t *testing.T) {
	x := newStock(t)
	x.keep("things", false, thing[crate]{key: "ann", value: crate{1, "bad"}})
	entry := &state.Entry{Key: appendText(nil, "ann"), Value: []byte{2, 6, 'b', 'a', 'd'}}
	failed := &carry.EntryError{State: "things", Key: "ann", Cause: errors.New("bad")}
	want := movingLine + `{"state":"things","key":"ann","value":{"Number":1,"Label":"bad"},"error":"bad"}` + "\n"
	for nth := 1; ; nth++ {
		path := filepath.Join(t.TempDir(), "aside.jsonl")
		calls, hit := 0, ""
		e := faultenv.Wrap(env.Real(), faultenv.Places{}, faultenv.Hooks{Before: func(c faultenv.Call) (f faultenv.Fault) {
			if c.Path == "" {
				return f
			}
			if calls++; calls == nth {
				hit, f.Err = c.Name, errInjected
			}
			return f
		}})
		err := func() error {
			s, err := NewSetAside(e, path, moving)
			if err != nil {
				return err
			}
			defer s.Close()
			if err := s.Put(failed, x.forms["things"], entry); err != nil {
				return err
			}
			return s.Commit()
		}()
		if err == nil && content(t, path) != want {
			t.Fatalf("call %d, %s, failed: the file holds %s", nth, hit, content(t, path))
		}
		if err != nil && !errors.Is(err, errInjected) {
			t.Fatalf("call %d, %s: %v", nth, hit, err)
		}
		if err != nil {
			if data, err := os.ReadFile(path); err == nil && string(data) != want {
				t.Fatalf("call %d, %s, failed: a part of the file has its name: %s", nth, hit, data)
			}
		}
		if hit == "" {
			if nth < 6 {
				t.Fatalf("only %d calls", nth-1)
			}
			return
		}
	}
}
