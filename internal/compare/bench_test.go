package compare

import (
	"fmt"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// benchRows is how many rows each side has.
const benchRows = 200_000

// BenchmarkTable compares a table's rows by key: of one schema or another, in one step
// or in ten, one row of a hundred changed.
func BenchmarkTable(b *testing.B) {
	row := func(i int, newer bool) frozen {
		f := frozen{op: connector.Put, key: fmt.Sprintf("user-%07d", i)}
		n := i
		if newer && i%100 == 0 {
			n = -i - 1
		}
		f.row = encode(oldType, oldRow{N: int32(n), Name: f.key, Extra: "some more bytes"})
		return f
	}
	other := func(i int) frozen {
		f := row(i, true)
		f.row = encode(newType, newRow{N: int64(i), Name: f.key})
		return f
	}
	for _, c := range []struct {
		name  string
		steps int
		s     *schema.Schema
		now   func(i int) frozen
	}{
		{"same-schema", 1, oldType.Schema(), func(i int) frozen { return row(i, true) }},
		{"other-schema", 1, newType.Schema(), other},
		{"ten-steps", 10, oldType.Schema(), func(i int) frozen { return row(i, true) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b)
			var old []Step
			for i := range c.steps {
				var rows []frozen
				for j := i; j < benchRows; j += c.steps {
					rows = append(rows, row(j, false))
				}
				old = append(old, Step{epoch.Position(i), epoch.Position(i + 1), w.freeze("out", true, oldType.Schema(), rows, 0)})
			}
			var rows []frozen
			for i := range benchRows {
				rows = append(rows, c.now(i))
			}
			now := []Step{{0, epoch.Position(c.steps), w.freeze("out", true, c.s, rows, 0)}}
			measure(b, w, Options{}, old, now)
		})
	}
}

// BenchmarkStream compares a stream's rows in order and as a multiset.
func BenchmarkStream(b *testing.B) {
	for _, c := range []struct {
		name    string
		steps   int
		changed func(i int) bool
	}{
		{"in-order", 1, func(i int) bool { return i%100 == 0 }},
		{"all-changed", 1, func(int) bool { return true }},
		{"multiset", 2, func(i int) bool { return i%100 == 0 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b)
			var rows [2][]int
			for i := range benchRows {
				v := i
				if c.changed(i) {
					v += benchRows
				}
				rows[oldSide], rows[newSide] = append(rows[oldSide], i), append(rows[newSide], v)
			}
			side := func(rows []int, ends ...int) []Step {
				return streamSide{rows: [][]int{rows[:benchRows/2], rows[benchRows/2:]}, ends: ends, partRows: benchRows}.steps(w, false)
			}
			old := side(rows[oldSide], 2)
			if c.steps == 2 {
				old = side(rows[oldSide], 1, 2)
			}
			measure(b, w, Options{}, old, side(rows[newSide], 2))
		})
	}
}

func measure(b *testing.B, w *world, o Options, old, now []Step) {
	b.ReportAllocs()
	for b.Loop() {
		got := w.compareAll(o, old, now)
		if got.Compared() != benchRows || got.Untold > 0 {
			b.Fatalf("%+v", got.Counts)
		}
	}
	b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkEpochs compares many small epochs of a table, which is what a follower that
// keeps up has.
func BenchmarkEpochs(b *testing.B) {
	w := newWorld(b)
	const epochs = benchRows / 20
	var sides [2][]Step
	for i := range epochs {
		for side := range sides {
			var rows []frozen
			for j := range 20 {
				key := fmt.Sprint("user-", j)
				rows = append(rows, frozen{op: connector.Put, key: key, row: encode(oldType, oldRow{N: int32(i), Name: key, Extra: fmt.Sprint(side)})})
			}
			sides[side] = append(sides[side], Step{epoch.Position(i), epoch.Position(i + 1), w.freeze("out", true, oldType.Schema(), rows, 0)})
		}
	}
	measure(b, w, Options{Columns: map[string]Column{"Extra": {Ignore: true}}}, sides[oldSide], sides[newSide])
	b.ReportMetric(float64(b.N)*epochs/b.Elapsed().Seconds(), "epochs/s")
}
