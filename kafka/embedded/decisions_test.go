package embedded

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions")
	d := &decisions{path: path, known: map[int64]decision{}}
	if err := d.rewrite(); err != nil {
		t.Fatal(err)
	}
	defer func() { d.close() }()
	check := func(want map[int64]decision) {
		t.Helper()
		got, err := readDecisions(path)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("read %v, %v, expected %v", got, err, want)
		}
	}
	check(map[int64]decision{})
	d.note(7, 1, true)
	d.note(8, 5, false)
	d.note(7, 2, false)
	check(map[int64]decision{7: {2, false}, 8: {5, false}})
	d.forget(7)
	d.forget(9)
	check(map[int64]decision{8: {5, false}})

	// many lines of few producers stay a small file
	for i := range 200_000 {
		if !d.note(int64(i%3)+100, int16(i%30000), i%2 == 0) {
			t.Fatal(d.fault)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxDecisions+100 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	// 199,997 to 199,999 are the last of each
	check(map[int64]decision{8: {5, false}, 102: {19997 % 30000, false}, 100: {19998, true}, 101: {19999, false}})

	// a line that a kill has cut off says nothing
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteString("8 6 1")
	file.Close()
	if got, err := readDecisions(path); err != nil || got[8] != (decision{5, false}) {
		t.Errorf("read %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("8 six 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readDecisions(path); err == nil {
		t.Error("a broken line is read")
	}
}
