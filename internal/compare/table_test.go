package compare

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

func ctxOf() context.Context { return context.Background() }

// oldRow and newRow are one row in two versions.
type oldRow struct {
	Name  string
	N     int32
	Extra string
}

type newRow struct {
	N     int64
	Added bool
	Name  string
}

var (
	oldType = must(schema.Of[oldRow]("row"))
	newType = must(schema.Of[newRow]("row"))
)

// change is what a position does to a key.
type change struct {
	key   string
	value int // 0: the key is deleted
}

// tableSide is a table as a side keeps it.
type tableSide struct {
	changes [][]change // by position
	ends    []int
}

// steps freezes what the engine would: a key that was touched is put if it is there at
// the step's end, deleted if it was there before, and not told otherwise.
func (s tableSide) steps(w *world, newer bool, first epoch.Position) (steps []Step, ops []map[string]change) {
	held := map[string]int{}
	from := 0
	for _, end := range s.ends {
		before := map[string]int{}
		for k, v := range held {
			before[k] = v
		}
		net := map[string]change{}
		for _, position := range s.changes[from:end] {
			for _, c := range position {
				held[c.key] = c.value
				net[c.key] = c
			}
		}
		var rows []frozen
		for k, c := range net {
			switch {
			case c.value != 0 && newer:
				rows = append(rows, frozen{op: connector.Put, key: k, row: encode(newType, newRow{N: int64(c.value), Name: k, Added: true})})
			case c.value != 0:
				rows = append(rows, frozen{op: connector.Put, key: k, row: encode(oldType, oldRow{N: int32(c.value), Name: k, Extra: "x"})})
			case before[k] != 0:
				rows = append(rows, frozen{op: connector.Delete, key: k})
			default:
				delete(net, k)
			}
		}
		s := oldType.Schema()
		if newer {
			s = newType.Schema()
		}
		steps = append(steps, Step{first + epoch.Position(from), first + epoch.Position(end), w.freeze("out", true, s, rows, 3)})
		ops = append(ops, net)
		from = end
	}
	return steps, ops
}

// expected compares span by span with maps.
func expected(old, now tableSide, ops [2][]map[string]change) (want Counts) {
	from := 0
	sides := [2]tableSide{old, now}
	for _, end := range sharedEnds(old.ends, now.ends) {
		var last, first [2]map[string]change
		taken := 0
		for side, s := range sides {
			last[side], first[side] = map[string]change{}, map[string]change{}
			for i, e := range s.ends {
				if e <= from || e > end {
					continue
				}
				taken++
				for k, c := range ops[side][i] {
					if _, ok := first[side][k]; !ok {
						first[side][k] = c
					}
					last[side][k] = c
				}
			}
		}
		keys := map[string]bool{}
		for side := range last {
			for k := range last[side] {
				keys[k] = true
			}
		}
		for k := range keys {
			a, inOld := last[0][k]
			b, inNew := last[1][k]
			switch {
			case inOld && inNew && a.value == b.value:
				want.Equal++
			case inOld && inNew && a.value != 0 && b.value != 0:
				want.Changed++
			case inOld && inNew && a.value != 0:
				want.OnlyOld++
			case inOld && inNew:
				want.OnlyNew++
			case inOld && a.value != 0:
				want.OnlyOld++
			case inNew && b.value != 0:
				want.OnlyNew++
			case inOld && taken > 2 && first[0][k].value != 0, inNew && taken > 2 && first[1][k].value != 0:
				want.CameAndWent++
			case inOld:
				want.OnlyOld++
				want.DeletesOnlyOld++
			default:
				want.OnlyNew++
				want.DeletesOnlyNew++
			}
		}
		from = end
	}
	return want
}

func drawChanges(t *rapid.T, label string, n int) [][]change {
	one := rapid.Custom(func(t *rapid.T) change {
		return change{fmt.Sprintf("k%d", rapid.IntRange(0, 9).Draw(t, "key")), rapid.IntRange(0, 3).Draw(t, "value")}
	})
	return rapid.SliceOfN(rapid.SliceOfN(one, 0, 6), n, n).Draw(t, label)
}

func drawEnds(t *rapid.T, label string, n int) []int {
	every := rapid.IntRange(1, 5).Draw(t, label+" coarseness")
	return cuts(n, func(int) bool { return rapid.IntRange(1, every).Draw(t, label) == 1 })
}

// Whatever the rows and the steps of both sides, each key is counted as maps say.
func TestTablesAreComparedByKey(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		n := rapid.IntRange(1, 12).Draw(rt, "positions")
		old := tableSide{drawChanges(rt, "old changes", n), drawEnds(rt, "old ends", n)}
		now := tableSide{slices.Clone(old.changes), drawEnds(rt, "new ends", n)}
		for i := range now.changes {
			if rapid.IntRange(0, 3).Draw(rt, "another") == 0 {
				now.changes[i] = drawChanges(rt, "new changes", 1)[0]
			}
		}
		first := epoch.Position(rapid.IntRange(0, 1000).Draw(rt, "first"))
		newer := rapid.Bool().Draw(rt, "another schema")
		var ops [2][]map[string]change
		a, aOps := old.steps(w, false, first)
		b, bOps := now.steps(w, newer, first)
		ops[0], ops[1] = aOps, bOps
		got := w.compareAll(Options{}, a, b)
		wantCounts(rt, got.Counts, expected(old, now, ops))
		if got.After != first || got.To != first+epoch.Position(n) {
			rt.Fatalf("positions %d to %d were compared, want %d to %d", got.After, got.To, first, int(first)+n)
		}
		if want := min(int(got.Different()), defaultSamples); len(got.Samples) != want {
			rt.Fatalf("there are %d samples, want %d", len(got.Samples), want)
		}
		var columns int64
		for _, c := range got.Columns {
			columns += c.Rows
		}
		if columns != got.Changed || got.Changed > 0 && got.Columns[0].Column != "N" {
			rt.Fatalf("columns %v differ, want N in %d rows", got.Columns, got.Changed)
		}
	})
}

// The same build is equal to itself, however its steps are cut.
func TestATableIsEqualToItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		n := rapid.IntRange(1, 20).Draw(rt, "positions")
		changes := drawChanges(rt, "changes", n)
		a, _ := tableSide{changes, drawEnds(rt, "old ends", n)}.steps(w, false, 0)
		b, _ := tableSide{changes, drawEnds(rt, "new ends", n)}.steps(w, rapid.Bool().Draw(rt, "another schema"), 0)
		if got := w.compareAll(Options{}, a, b); got.Different() != 0 || got.Untold != 0 || len(got.Samples) != 0 {
			rt.Fatalf("a table differs from itself: %+v", got)
		}
	})
}

// More steps than are read at once are merged before, and too many rows for the memory
// that is allowed are said to be too many; neither changes what is counted.
func TestManyStepsAreMergedInMemory(t *testing.T) {
	random := seeded(t)
	w := newWorld(t)
	const n = 3*maxOpen + 7
	changes := make([][]change, n)
	for i := range changes {
		for range 20 {
			changes[i] = append(changes[i], change{fmt.Sprintf("key %d", random.IntN(400)), random.IntN(4)})
		}
	}
	changes[n-1] = append(changes[n-1], change{"key 1", 3})
	old := tableSide{changes, cuts(n, func(int) bool { return true })}
	now := tableSide{slices.Clone(changes), []int{n}}
	now.changes[n-1] = append(slices.Clone(now.changes[n-1]), change{"key 1", 9}, change{"key 2", 0}, change{"only new", 1})
	a, aOps := old.steps(w, false, 70)
	b, bOps := now.steps(w, true, 70)
	want := expected(old, now, [2][]map[string]change{aOps, bOps})
	wantCounts(t, w.compareAll(Options{}, a, b).Counts, want)
	if want.OnlyNew == 0 || want.Changed == 0 {
		t.Fatalf("the rows of the test don't differ: %+v", want)
	}

	got := w.compareAll(Options{Memory: 4096}, a, b)
	var rows [2]int64
	for side, steps := range [2][]Step{a, b} {
		for _, s := range steps {
			rows[side] += s.rows()
		}
	}
	wantCounts(t, got.Counts, Counts{Untold: 1, UntoldOld: rows[0], UntoldNew: rows[1]})
	if !slices.Equal(got.Reasons, []string{tooMany.Error()}) {
		t.Errorf("the reasons are %q", got.Reasons)
	}
	// Two merged runs of some 140 KB are held at once, and a third would be too much.
	wantCounts(t, w.compareAll(Options{Memory: 340_000}, a, b).Counts, want)
	// As many steps as are read at once need no memory.
	few, _ := tableSide{changes[:maxOpen], cuts(maxOpen, func(int) bool { return true })}.steps(w, false, 0)
	one, _ := tableSide{changes[:maxOpen], []int{maxOpen}}.steps(w, true, 0)
	if got := w.compareAll(Options{Memory: 1}, few, one); got.Different() != 0 || got.Untold != 0 || got.Equal == 0 {
		t.Errorf("%d steps: %+v, want equal rows", maxOpen, got.Counts)
	}
}

// What is told of rows that differ: by key, with the columns that do, as JSON.
func TestSamplesOfATable(t *testing.T) {
	w := newWorld(t)
	put := func(key, name string, n int32) frozen {
		return frozen{op: connector.Put, key: key, row: encode(oldType, oldRow{name, n, "x"}), wire: []byte(name)}
	}
	putNew := func(key, name string, n int64) frozen {
		return frozen{op: connector.Put, key: key, row: encode(newType, newRow{n, true, name}), wire: []byte("w")}
	}
	old := []Step{{4, 5, w.freeze("out", true, oldType.Schema(), []frozen{
		put("same", "w", 1), put("other wire", "v", 1), put("changed", "b", 1), put("gone", "c", 1), put("deleted", "d", 1), {op: connector.Delete, key: "only delete"}, {op: connector.Delete, key: "both delete"},
	}, 0)}}
	now := []Step{{4, 5, w.freeze("out", true, newType.Schema(), []frozen{
		putNew("same", "w", 1), putNew("other wire", "v", 1), putNew("changed", "B", 2), putNew("come", "e", 1), {op: connector.Delete, key: "deleted"}, {op: connector.Delete, key: "both delete"},
	}, 0)}}
	got := w.compareAll(Options{}, old, now)
	wantCounts(t, got.Counts, Counts{Equal: 3, Changed: 1, OnlyOld: 3, OnlyNew: 1, DeletesOnlyOld: 1, Wires: 1})
	slices.SortFunc(got.Samples, func(a, b Sample) int { return slices.Compare([]byte(a.Key), []byte(b.Key)) })
	want := []Sample{
		{After: 4, To: 5, Key: `"changed"`, Columns: []ColumnSample{{"N", "1", "2"}, {"Name", `"b"`, `"B"`}}},
		{After: 4, To: 5, Key: `"come"`, New: `{"N":1,"Added":true,"Name":"e"}`},
		{After: 4, To: 5, Key: `"deleted"`, Old: `{"Name":"d","N":1,"Extra":"x"}`, NewDeletes: true},
		{After: 4, To: 5, Key: `"gone"`, Old: `{"Name":"c","N":1,"Extra":"x"}`},
		{After: 4, To: 5, Key: `"only delete"`, OldDeletes: true},
	}
	if fmt.Sprintf("%+v", got.Samples) != fmt.Sprintf("%+v", want) {
		t.Errorf("the samples are\n%+v, want\n%+v", got.Samples, want)
	}
	if !slices.Equal(got.Columns, []ColumnCount{{"N", 1}, {"Name", 1}}) {
		t.Errorf("columns %v differ", got.Columns)
	}
	var told []string
	for _, d := range got.Schemas {
		told = append(told, fmt.Sprintf("%s %s", d.Path, d.Change))
	}
	if want := []string{" reordered", "N widened", "Added added", "Extra removed"}; !slices.Equal(told, want) {
		t.Errorf("of the schemas %q is told, want %q", told, want)
	}
	none := w.compareAll(Options{Samples: -1, Columns: map[string]Column{"N": {Ignore: true}, "Extra": {Ignore: true}}}, old, now)
	if len(none.Samples) != 0 || !slices.Equal(none.Columns, []ColumnCount{{"Name", 1}}) || len(none.Schemas) != 2 {
		t.Errorf("with ignored columns: %+v", none)
	}
}
