package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/tabular"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// numbered are rows of a key and a value, both numbers.
type numbered struct {
	rows [][2]int64
	at   int
	buf  []byte
}

func (n *numbered) Next() ([]byte, error) {
	if n.at == len(n.rows) {
		return nil, io.EOF
	}
	row := n.rows[n.at]
	n.at++
	n.buf = binary.AppendVarint(binary.AppendVarint(n.buf[:0], row[0]), row[1])
	return n.buf, nil
}
func (n *numbered) Place() string            { return fmt.Sprintf("row %d", n.at) }
func (n *numbered) Row() int64               { return int64(n.at) }
func (n *numbered) Offset() int64            { return int64(n.at) }
func (n *numbered) Absent() []tabular.Absent { return nil }
func (n *numbered) Close() error             { return nil }

// splitRow is the intake of numbered rows.
func splitRow() func(row []byte, put func(e *state.Entry) error) error {
	return func(row []byte, put func(e *state.Entry) error) error {
		_, n := binary.Varint(row)
		return put(&state.Entry{Slot: engine.SlotOf(xxhash.Sum64(row[:n])), Key: row[:n:n], Value: row[n:]})
	}
}

func sum(a, b []byte) ([]byte, error) {
	x, _ := binary.Varint(a)
	y, _ := binary.Varint(b)
	return binary.AppendVarint(nil, x+y), nil
}

// imports sorts rows in runs of a size and returns what came of it.
func imports(t *testing.T, rows [][2]int64, runBytes int, merge func(a, b []byte) ([]byte, error)) (map[int64]int64, int, error) {
	t.Helper()
	ctx := t.Context()
	o := Options{Env: env.Real(), Store: store.NewMemory(), Job: "sums", Log: slog.New(slog.DiscardHandler)}
	job, err := epoch.OpenJob(ctx, o.Env, o.Store, o.Job, "")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := job.BeginImport(ctx, epoch.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	spec := &engine.StateSpec{Name: "sums", Form: state.Form{Name: "sums", Key: schema.Long(), Value: schema.Long()}, Intake: engine.Intake{New: splitRow, Merge: merge}}
	i := &importer{o: o, owner: owner, runBytes: runBytes}
	file := ImportFile{State: "sums", Open: func(tabular.Layout) (Rows, error) { return &numbered{rows: rows}, nil }}
	done, err := i.state(ctx, spec, file)
	runs := len(i.tried)
	if err != nil {
		i.cleanUp(ctx)
		if left, _ := o.Store.List(ctx, "sums/branches/", "", 10); len(left) > 0 {
			t.Errorf("%d objects are left behind", len(left))
		}
		return nil, runs, err
	}
	i.made()
	i.cleanUp(ctx)
	if left, _ := o.Store.List(ctx, "sums/branches/", "", 10); len(left) != 1 {
		t.Errorf("%d objects are left, expected the one that is needed", len(left))
	}
	got := map[int64]int64{}
	before := -1
	for e, err := range state.Read(ctx, o.Store, o.Job, spec.Form, []epoch.Segment{done.segment}, epoch.AllSlots) {
		if err != nil {
			t.Fatal(err)
		}
		if int(e.Slot) < before {
			t.Errorf("slot %d comes after %d", e.Slot, before)
		}
		before = int(e.Slot)
		k, _ := binary.Varint(e.Key)
		got[k], _ = binary.Varint(e.Value)
	}
	return got, runs, nil
}

// TestImportRuns compares what is sorted in many runs with a map.
func TestImportRuns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, runBytes := range []int{1, 64, 1 << 10, 1 << 20} {
		var rows [][2]int64
		model := map[int64]int64{}
		for range 500 {
			row := [2]int64{r.Int64N(200), r.Int64N(1000)}
			rows = append(rows, row)
			model[row[0]] += row[1]
		}
		got, runs, err := imports(t, rows, runBytes, sum)
		if err != nil || !maps.Equal(got, model) {
			t.Errorf("runs of %d bytes, %d objects: %v\n got %v\nwant %v", runBytes, runs, err, got, model)
		}
	}
}

// TestImportTwice sees that two rows of one key are found, in one run or in several,
// and named.
func TestImportTwice(t *testing.T) {
	rows := [][2]int64{{1, 10}, {2, 20}, {3, 30}, {4, 40}, {2, 50}, {5, 60}}
	for _, runBytes := range []int{1, 4, 1 << 20} {
		_, _, err := imports(t, rows, runBytes, nil)
		var failed *ImportError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "the key 2 comes twice: expected one row for each, found row 2 and row 5") {
			t.Errorf("runs of %d bytes: %v", runBytes, err)
		}
		if _, _, err := imports(t, rows[:4], runBytes, nil); err != nil {
			t.Errorf("runs of %d bytes, without such: %v", runBytes, err)
		}
	}
}
