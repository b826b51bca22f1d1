package compare

import (
	"cmp"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/epoch"
)

// streamSide is a stream: the values of its rows by position, and its steps.
type streamSide struct {
	rows [][]int
	ends []int
	// partRows bounds the rows of an object; 0: 4.
	partRows int64
}

func (s streamSide) steps(w *world, newer bool) (steps []Step) {
	from := 0
	for _, end := range s.ends {
		var rows []frozen
		for _, position := range s.rows[from:end] {
			for _, v := range position {
				rows = append(rows, frozen{row: streamRow(v, newer)})
			}
		}
		form := oldType.Schema()
		if newer {
			form = newType.Schema()
		}
		steps = append(steps, Step{epoch.Position(from), epoch.Position(end), w.freeze("out", false, form, rows, cmp.Or(s.partRows, 4))})
		from = end
	}
	return steps
}

func streamRow(v int, newer bool) []byte {
	if newer {
		return encode(newType, newRow{N: int64(v), Name: "row", Added: v%2 == 0})
	}
	return encode(oldType, oldRow{N: int32(v), Name: "row", Extra: fmt.Sprint(v)})
}

// common is the length of the longest sequence that two have in common.
func common(a, b []int) int {
	lengths := make([][]int, len(a)+1)
	for i := range lengths {
		lengths[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] {
				lengths[i+1][j+1] = lengths[i][j] + 1
			} else {
				lengths[i+1][j+1] = max(lengths[i][j+1], lengths[i+1][j])
			}
		}
	}
	return lengths[len(a)][len(b)]
}

func flat(rows [][]int) (all []int) {
	for _, r := range rows {
		all = append(all, r...)
	}
	return all
}

// Streams that line up are compared in order: what is equal is a common sequence, all
// of it if the streams are the same, and each row of each side is counted once.
func TestStreamsAreComparedInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		values := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 50)
		old := values.Draw(rt, "old")
		now := append([]int{}, old...)
		if rapid.Bool().Draw(rt, "unlike") {
			now = values.Draw(rt, "new")
		}
		a := streamSide{rows: [][]int{old}, ends: []int{1}}.steps(w, false)
		b := streamSide{rows: [][]int{now}, ends: []int{1}}.steps(w, rapid.Bool().Draw(rt, "another schema"))
		got := w.compareAll(Options{}, a, b)
		if got.Equal+got.Changed+got.OnlyOld != int64(len(old)) || got.Equal+got.Changed+got.OnlyNew != int64(len(now)) {
			rt.Fatalf("%+v doesn't count %d and %d rows", got.Counts, len(old), len(now))
		}
		most := int64(common(old, now))
		if got.Equal > most || fmt.Sprint(old) == fmt.Sprint(now) != (got.Different() == 0) {
			rt.Fatalf("%v and %v: %+v; at most %d rows are equal in order", old, now, got.Counts, most)
		}
		if (got.Equal == 0) != (most == 0) && most > int64(len(old))/2 {
			rt.Fatalf("%v and %v: no row is equal, and %d are", old, now, most)
		}
	})
}

// Rows that were added, dropped or changed are told as such, and those behind them are
// equal, as long as no more of them stand together than are looked ahead.
func TestStreamsAgreeAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		var old, now []int
		var want Counts
		next := 0
		fresh := func() int { next++; return next }
		agree := func() {
			for range rapid.IntRange(1, 40).Draw(rt, "equal") {
				v := fresh()
				old, now = append(old, v), append(now, v)
				want.Equal++
			}
		}
		agree()
		for range rapid.IntRange(1, 5).Draw(rt, "edits") {
			a, b := rapid.IntRange(0, window-1).Draw(rt, "dropped"), rapid.IntRange(0, window-1).Draw(rt, "added")
			for range a {
				old = append(old, fresh())
			}
			for range b {
				now = append(now, fresh())
			}
			paired := min(a, b)
			want.Changed += int64(paired)
			want.OnlyOld += int64(a - paired)
			want.OnlyNew += int64(b - paired)
			agree()
		}
		a := streamSide{rows: [][]int{old}, ends: []int{1}}.steps(w, false)
		b := streamSide{rows: [][]int{now}, ends: []int{1}}.steps(w, rapid.Bool().Draw(rt, "another schema"))
		got := w.compareAll(Options{Samples: 1}, a, b)
		wantCounts(rt, got.Counts, want)
	})
}

// Where a side took several positions in one step, the rows are compared as a multiset.
func TestCoarseStreamsAreMultisets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		n := rapid.IntRange(2, 8).Draw(rt, "positions")
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 9), 0, 9), n, n)
		old := streamSide{rows: rows.Draw(rt, "old"), ends: cuts(n, func(int) bool { return true })}
		now := streamSide{rows: old.rows, ends: []int{n}}
		switch rapid.IntRange(0, 2).Draw(rt, "new") {
		case 1:
			now.rows = rows.Draw(rt, "new rows")
		case 2:
			now.rows = [][]int{rapid.Permutation(flat(old.rows)).Draw(rt, "order")}
			for len(now.rows) < n {
				now.rows = append(now.rows, nil)
			}
		}
		a, b := flat(old.rows), flat(now.rows)
		counts := map[int]int{}
		for _, v := range a {
			counts[v]++
		}
		var want Counts
		for _, v := range b {
			if counts[v] > 0 {
				counts[v]--
				want.Equal++
			}
		}
		restOld, restNew := int64(len(a))-want.Equal, int64(len(b))-want.Equal
		want.Changed = min(restOld, restNew)
		want.OnlyOld, want.OnlyNew = restOld-want.Changed, restNew-want.Changed
		newer := rapid.Bool().Draw(rt, "another schema")
		got := w.compareAll(Options{}, old.steps(w, false), now.steps(w, newer))
		wantCounts(rt, got.Counts, want)
		back := w.compareAll(Options{}, now.steps(w, newer), old.steps(w, false))
		want.OnlyOld, want.OnlyNew = want.OnlyNew, want.OnlyOld
		wantCounts(rt, back.Counts, want)
	})
}

// Rows in one order need no memory; rows in another order that need too much are told
// to be too many, and what comes behind them is compared.
func TestMultisetsAreBounded(t *testing.T) {
	w := newWorld(t)
	var up, down []int
	for i := range 1000 {
		up, down = append(up, i), append(down, 999-i)
	}
	steps := func(first []int) []Step {
		return streamSide{rows: [][]int{first[:500], first[500:], {7}}, ends: []int{1, 2, 3}}.steps(w, false)
	}
	coarse := streamSide{rows: [][]int{up, nil, {8}}, ends: []int{2, 3}}.steps(w, true)
	wantCounts(t, w.compareAll(Options{Memory: 1}, steps(up), coarse).Counts, Counts{Equal: 1000, Changed: 1})
	wantCounts(t, w.compareAll(Options{Memory: 20_000}, steps(down), coarse).Counts, Counts{Changed: 1, Untold: 1, UntoldOld: 1000, UntoldNew: 1000})
	wantCounts(t, w.compareAll(Options{}, steps(down), coarse).Counts, Counts{Equal: 1000, Changed: 1})
}

// More rows than are looked ahead may have changed before the streams agree again.
func TestStreamsAgreeAfterManyChanges(t *testing.T) {
	for more := range window - 1 {
		w := newWorld(t)
		var rows [2][]int
		for i := range 100 {
			rows[oldSide], rows[newSide] = append(rows[oldSide], i), append(rows[newSide], 1000+i)
		}
		for i := range more {
			rows[oldSide] = append(rows[oldSide], 2000+i)
		}
		for i := range 50 {
			rows[oldSide], rows[newSide] = append(rows[oldSide], 3000+i), append(rows[newSide], 3000+i)
		}
		var sides [2][]Step
		for side := range sides {
			sides[side] = streamSide{rows: [][]int{rows[side]}, ends: []int{1}, partRows: 500}.steps(w, false)
		}
		wantCounts(t, w.compareAll(Options{}, sides[oldSide], sides[newSide]).Counts, Counts{Equal: 50, Changed: 100, OnlyOld: int64(more)})
		wantCounts(t, w.compareAll(Options{}, sides[newSide], sides[oldSide]).Counts, Counts{Equal: 50, Changed: 100, OnlyNew: int64(more)})
	}
}

// Without any order, as many rows are paired within a tolerance as can be.
func TestTolerancesPairAllThatCanBe(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 12)
		sides := [2][]int{values.Draw(rt, "old"), values.Draw(rt, "new")}
		bound := rapid.IntRange(1, 5).Draw(rt, "tolerance")
		c := must(New("job", "out", Options{Columns: map[string]Column{"N": {Absolute: float64(bound)}, "Extra": {Ignore: true}}}))
		f := c.form(oldType.Schema())
		tally := &tally{c: c, span: &span{}, forms: [2]*form{f, f}}
		m := newMultiset(tally)
		for side, values := range sides {
			for _, v := range values {
				var both [2]*row
				both[side] = &row{form: f}
				both[side].Row.Row = streamRow(v, false)
				if err := m.take(both[oldSide], both[newSide]); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := m.settle(ctxOf()); err != nil {
			rt.Fatal(err)
		}
		partner := map[int]int{} // of new rows, by their places
		var find func(i int, tried map[int]bool) bool
		find = func(i int, tried map[int]bool) bool {
			for j, v := range sides[newSide] {
				if d := v - sides[oldSide][i]; tried[j] || d > bound || d < -bound {
					continue
				}
				tried[j] = true
				if k, ok := partner[j]; !ok || find(k, tried) {
					partner[j] = i
					return true
				}
			}
			return false
		}
		var want Counts
		for i := range sides[oldSide] {
			if find(i, map[int]bool{}) {
				want.Equal++
			}
		}
		rest := [2]int64{int64(len(sides[oldSide])) - want.Equal, int64(len(sides[newSide])) - want.Equal}
		want.Changed = min(rest[oldSide], rest[newSide])
		want.OnlyOld, want.OnlyNew = rest[oldSide]-want.Changed, rest[newSide]-want.Changed
		wantCounts(rt, tally.Counts, want)
	})
}
