package torture

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// feeder writes lines to the files that a job follows.
type feeder struct {
	rng   *rand.Rand
	line  func(part, n int) any // the n-th of all, which goes to a file, as JSON has it
	files []*os.File
	held  [][]byte // by file: the rest of a line of which a part may be written
	fed   int
}

const (
	partitions = 4
	shops      = 50
)

func newFeeder(t *testing.T, rng *rand.Rand, folder string, line func(part, n int) any) *feeder {
	t.Helper()
	f := &feeder{rng: rng, line: line, held: make([][]byte, partitions)}
	for i := range partitions {
		file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.jsonl", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		f.files = append(f.files, file)
	}
	return f
}

// feed writes more lines. The end of what was fed may be half a line.
func (f *feeder) feed(t *testing.T, lines int) {
	t.Helper()
	for range lines {
		f.hold(f.rng.IntN(partitions))
	}
	for part, held := range f.held {
		if len(held) == 0 {
			continue
		}
		f.write(t, part, len(held)-f.rng.IntN(min(len(held), 60)))
	}
}

// hold has a file get one more line.
func (f *feeder) hold(part int) {
	f.fed++
	line, _ := json.Marshal(f.line(part, f.fed))
	f.held[part] = append(append(f.held[part], line...), '\n')
}

// orders makes up those of the shop's job. A few users order a good part of what is
// ordered.
func orders(rng *rand.Rand, users int) func(part, n int) any {
	return func(part, n int) any {
		user := rng.IntN(users)
		if rng.IntN(4) == 0 {
			user = rng.IntN(10)
		}
		return order{
			ID:    fmt.Sprintf("%d-%07d", part, n),
			User:  fmt.Sprintf("user-%d", user),
			Shop:  fmt.Sprintf("shop-%d", rng.IntN(shops)),
			Cents: rng.Int64N(10_000),
			Close: rng.IntN(100) == 0,
		}
	}
}

func (f *feeder) write(t *testing.T, part, bytes int) {
	t.Helper()
	if _, err := f.files[part].Write(f.held[part][:bytes]); err != nil {
		t.Fatal(err)
	}
	f.held[part] = append(f.held[part][:0], f.held[part][bytes:]...)
}

// finish writes what was held back.
func (f *feeder) finish(t *testing.T) {
	t.Helper()
	for part, held := range f.held {
		f.write(t, part, len(held))
	}
}
