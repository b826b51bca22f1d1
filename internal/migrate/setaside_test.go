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
	moving  = Migration{Job: "depot", State: "things", Version: "v2", Owner: "9c1f"}
	another = Migration{Job: "depot", State: "things", Version: "v2", Owner: "03ab"}
)

const movingLine = `{"job":"depot","state":"things","version":"v2","owner":"9c1f"}` + "\n"

func setAside(t *testing.T, path string, of Migration) *SetAside {
	t.Helper()
	s, err := NewSetAside(env.Real(), path, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// publish makes a file durable and gives it its name.
func publish(t *testing.T, s *SetAside) {
	t.Helper()
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(); err != nil {
		t.Fatal(err)
	}
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
	publish(t, s)
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
	publish(t, s)
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
	publish(t, s)
	want := movingLine + `{"state":"things","key":"ann","value":"` + base64.StdEncoding.EncodeToString(value) + `","error":"damaged"}` + "\n"
	if got := content(t, path); got != want {
		t.Errorf("the file holds\n%sexpected\n%s", got, want)
	}
}

// What has the file's name is never written over, neither at first nor by a process
// that was shut out while another one has finished.
func TestSetAsideInTheWay(t *testing.T) {
	x := newStock(t)
	x.keep("things", false, thing[crate]{key: "ann", value: crate{1, "bad"}})
	dir := t.TempDir()
	path := filepath.Join(dir, "aside.jsonl")
	slow, fast := setAside(t, path, moving), setAside(t, path, another)
	putBad(t, x, slow, x.sealing(), "slow.avro")
	putBad(t, x, fast, x.sealing(), "fast.avro")
	publish(t, fast)
	whole := content(t, path)
	if err := slow.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := slow.Publish(); err == nil || !strings.Contains(err.Error(), ".aside.jsonl-9c1f") || content(t, path) != whole {
		t.Fatalf("the file of another is written over, or the error does not say where this one's is: %v", err)
	}
	for name, text := range map[string]string{"empty": "", "a first line": movingLine, "text": "my notes, which nobody else has\n"} {
		other := filepath.Join(t.TempDir(), "notes")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewSetAside(env.Real(), other, moving); err == nil || content(t, other) != text {
			t.Errorf("%s: the file may be written over: %v", name, err)
		}
	}
}

// A process that dies before the file has its name leaves it to the next start,
// which finds it, and no other files.
func TestLeftAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "aside.jsonl")
	setAside(t, path, moving) // is not closed here, as by a process that was killed
	s := setAside(t, path, another)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".aside.jsonl-notes"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := LeftAside(env.Real().Files, path, "depot", "things")
	if err != nil || len(left) != 1 || left[0] != another { // the other's first line was never written
		t.Fatalf("left are %v, %v", left, err)
	}
	if left, err := LeftAside(env.Real().Files, path, "depot", "others"); err != nil || len(left) != 0 {
		t.Fatalf("of another state there are %v, %v", left, err)
	}
	if err := left[0].Publish(env.Real().Files, path); err != nil {
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
			if err := s.Sync(); err != nil {
				return err
			}
			return s.Publish()
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
