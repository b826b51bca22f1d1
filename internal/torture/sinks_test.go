package torture

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// eachLine calls f with every line of a sink's files, in the order of their
// names; hidden names are no output.
func eachLine(t *testing.T, folder string, f func(line []byte)) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			t.Fatalf("%s: half a line at the end: a file of a sink is whole or absent", e.Name())
		}
		for line := range bytes.Lines(data) {
			f(line)
		}
	}
}

// decode reads one line, with nothing in it that R lacks.
func decode[R any](t *testing.T, line []byte) (row R) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return row
}

// state is what a table has for a key: a row, or nothing.
type state[R any] struct {
	there bool
	row   R
}

// sameStream compares a stream sink with what it must hold, key by key in their
// order; since no line is left over on either side, the multisets are equal.
func sameStream[R comparable](t *testing.T, folder string, want map[string][]R, key func(R) string) {
	t.Helper()
	c := newComparison(t, folder, want)
	eachLine(t, folder, func(line []byte) {
		row := decode[R](t, line)
		c.next(key(row), row)
	})
	c.end()
}

// sameTable compares a table sink with the values that each key had at the ends
// of epochs: each emitted value is one of them, in their order, none is left
// out, and the last is the last. A value that is emitted again adds nothing.
func sameTable[K comparable, R comparable](t *testing.T, folder string, want map[K][]state[R]) {
	t.Helper()
	c := newComparison(t, folder, want)
	last := map[K]state[R]{}
	eachLine(t, folder, func(line []byte) {
		l := decode[struct {
			Op  string
			Key K
			Row R
		}](t, line)
		s := state[R]{l.Op == "put", l.Row}
		if s != last[l.Key] {
			c.next(l.Key, s)
			last[l.Key] = s
		}
	})
	c.end()
}

// lastRows are the rows that a table sink holds in the end.
func lastRows[K comparable, R any](t *testing.T, folder string) map[K]R {
	t.Helper()
	rows := map[K]R{}
	eachLine(t, folder, func(line []byte) {
		l := decode[struct {
			Op  string
			Key K
			Row R
		}](t, line)
		if l.Op == "delete" {
			delete(rows, l.Key)
			return
		}
		rows[l.Key] = l.Row
	})
	return rows
}

// comparison holds what comes, key by key, against what must.
type comparison[K comparable, V comparable] struct {
	t      *testing.T
	what   string
	want   map[K][]V
	seen   map[K]int
	faults int
}

func newComparison[K comparable, V comparable](t *testing.T, folder string, want map[K][]V) *comparison[K, V] {
	return &comparison[K, V]{t: t, what: filepath.Base(folder), want: want, seen: map[K]int{}}
}

// maxFaults bounds what is printed of one sink.
const maxFaults = 5

func (c *comparison[K, V]) fault(format string, args ...any) {
	c.t.Helper()
	if c.faults++; c.faults <= maxFaults {
		c.t.Errorf("sink "+c.what+": "+format, args...)
	}
}

func (c *comparison[K, V]) next(key K, got V) {
	n, want := c.seen[key], c.want[key]
	c.seen[key]++
	switch {
	case n >= len(want):
		c.fault("key %v: one more than the %d expected: %+v", key, len(want), got)
	case want[n] != got:
		c.fault("key %v, number %d of %d: expected %+v, found %+v", key, n, len(want), want[n], got)
	}
}

func (c *comparison[K, V]) end() {
	total := 0
	for key, want := range c.want {
		total += len(want)
		if n := c.seen[key]; n < len(want) {
			c.fault("key %v: %d of %d came; the first that is missing is %+v", key, n, len(want), want[n])
		}
	}
	if c.faults > maxFaults {
		c.t.Errorf("sink %s: %d faults in all", c.what, c.faults)
	}
	c.t.Logf("sink %s: %d keys, %d rows compared", c.what, len(c.want), total)
}

// sortedKeys helps to print a map in the same way each time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
