package torture

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// feeder writes orders to the files that the shop's job follows.
type feeder struct {
	rng   *rand.Rand
	users int
	files []*os.File
	held  [][]byte // by file: the rest of a line of which a part may be written
	fed   int
}

const (
	partitions = 4
	shops      = 50
)

func newFeeder(t *testing.T, rng *rand.Rand, folder string, users int) *feeder {
	t.Helper()
	f := &feeder{rng: rng, users: users, held: make([][]byte, partitions)}
	for i := range partitions {
		file, err := os.Create(filepath.Join(folder, fmt.Sprintf("orders-%d.jsonl", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		f.files = append(f.files, file)
	}
	return f
}

// feed writes more orders. The end of what was fed may be half a line.
func (f *feeder) feed(t *testing.T, orders int) {
	t.Helper()
	for range orders {
		part := f.rng.IntN(partitions)
		f.fed++
		f.held[part] = append(f.held[part], f.order(part)...)
	}
	for part, held := range f.held {
		if len(held) == 0 {
			continue
		}
		f.write(t, part, len(held)-f.rng.IntN(min(len(held), 60)))
	}
}

// order makes up a line. A few users order a good part of what is ordered.
func (f *feeder) order(part int) []byte {
	user := f.rng.IntN(f.users)
	if f.rng.IntN(4) == 0 {
		user = f.rng.IntN(10)
	}
	line, _ := json.Marshal(order{
		ID:    fmt.Sprintf("%d-%07d", part, f.fed),
		User:  fmt.Sprintf("user-%d", user),
		Shop:  fmt.Sprintf("shop-%d", f.rng.IntN(shops)),
		Cents: f.rng.Int64N(10_000),
		Close: f.rng.IntN(100) == 0,
	})
	return append(line, '\n')
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
