package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// Outboxes of the same bytes are equal and aren't read: they aren't there.
func TestEqualBytesAreNotRead(t *testing.T) {
	w := newWorld(t)
	var rows []frozen
	for i := range 10 {
		rows = append(rows, frozen{op: connector.Put, key: fmt.Sprint(i), row: encode(oldType, oldRow{N: int32(i)})})
	}
	objects := w.freeze("out", true, oldType.Schema(), rows, 4)
	w.st = store.NewMemory()
	// The same rows in one step, and with positions without rows about it.
	old := []Step{{0, 1, objects}, {1, 2, nil}, {2, 3, objects}, {3, 4, nil}, {4, 5, nil}}
	now := []Step{{0, 1, objects}, {1, 4, objects}, {4, 5, nil}}
	got := w.compareAll(Options{}, old, now)
	wantCounts(t, got.Counts, Counts{Equal: 20})
	if got.To != 5 {
		t.Errorf("compared up to %d, want 5", got.To)
	}
	other := slices.Clone(objects)
	other[1].SHA256 = strings.Repeat("0", 64)
	c := must(New("job", "out", Options{}))
	err := c.Run(t.Context(), w.side(old[:1]), w.side([]Step{{0, 1, other}}))
	var damaged *epoch.DamagedError
	if !errors.As(err, &damaged) {
		t.Errorf("other bytes that aren't there: %v, want damage", err)
	}
}

// A comparison goes on where it has stopped, and counts no span twice.
func TestAComparisonGoesOn(t *testing.T) {
	w := newWorld(t)
	rows := [][]int{{1, 2}, {3}, {4, 5}, {6}, {7}}
	old := streamSide{rows: rows, ends: []int{1, 2, 3, 4, 5}}.steps(w, false)
	now := streamSide{rows: [][]int{{1, 2}, {9}, {4, 5}, {6}, {8}}, ends: []int{1, 3, 4, 5}}.steps(w, false)
	c := must(New("job", "out", Options{}))
	run := func(a, b []Step) error { return c.Run(t.Context(), w.side(a), w.side(b)) }
	if err := run(old[:2], now[:2]); err != nil { // position 3 isn't there yet on the old side
		t.Fatal(err)
	}
	if r := c.Result(); r.To != 1 || r.Equal != 2 || r.Different() != 0 {
		t.Fatalf("after the first position: %+v", r)
	}
	var gap *GapError
	if err := run(old[2:], now[1:]); !errors.As(err, &gap) || gap.Side != "old" || gap.Expected != 1 || gap.Found != 2 {
		t.Fatalf("from another position: %v", err)
	}
	if err := run(old[1:4], now[1:]); err != nil {
		t.Fatal(err)
	}
	if err := run(old[4:], now[3:]); err != nil {
		t.Fatal(err)
	}
	r := c.Result()
	wantCounts(t, r.Counts, Counts{Equal: 5, Changed: 2})
	if r.After != 0 || r.To != 5 {
		t.Errorf("positions %d to %d were compared, want 0 to 5", r.After, r.To)
	}
	if r.Samples[0].After != 1 || r.Samples[0].To != 3 || r.Samples[1].After != 4 {
		t.Errorf("the samples are at %+v", r.Samples)
	}
	hole := slices.Delete(slices.Clone(old), 2, 3)
	c = must(New("job", "out", Options{}))
	if err := run(hole, now); !errors.As(err, &gap) || gap.Expected != 2 || gap.Found != 3 {
		t.Errorf("a side with a hole: %v", err)
	}
	c = must(New("job", "out", Options{}))
	if err := run(old[1:], now); !errors.As(err, &gap) || gap.Side != "new" || gap.Expected != 1 || gap.Found != 0 {
		t.Errorf("sides that begin at other positions: %v", err)
	}
}

// An error, of the steps or of an outbox, leaves what was compared before.
func TestErrorsLeaveWhatWasCompared(t *testing.T) {
	w := newWorld(t)
	old := streamSide{rows: [][]int{{1}, {2}}, ends: []int{1, 2}}.steps(w, false)
	now := streamSide{rows: [][]int{{1}, {3, 4}}, ends: []int{1, 2}}.steps(w, true)
	lost := errors.New("the log can't be listed")
	c := must(New("job", "out", Options{}))
	broken := w.side(nil)
	broken.Steps = func(yield func(Step, error) bool) {
		if yield(old[0], nil) {
			yield(Step{}, lost)
		}
	}
	if err := c.Run(t.Context(), broken, w.side(now)); !errors.Is(err, lost) || c.Result().Equal != 1 {
		t.Errorf("steps that end with an error: %v, %+v", err, c.Result())
	}
	path := "job/" + now[1].Outbox[0].Path
	data := must(w.st.Read(t.Context(), path, 1<<20))
	flipped := slices.Clone(data)
	flipped[len(flipped)-20] ^= 1
	if err := w.st.Replace(t.Context(), path, flipped); err != nil {
		t.Fatal(err)
	}
	var damaged *epoch.DamagedError
	if err := c.Run(t.Context(), w.side(old[1:]), w.side(now[1:])); !errors.As(err, &damaged) {
		t.Errorf("a flipped bit: %v", err)
	}
	wantCounts(t, c.Result().Counts, Counts{Equal: 1})
	if err := w.st.Replace(t.Context(), path, data); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ended, w.side(old[1:]), w.side(now[1:])); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if err := c.Run(t.Context(), w.side(old[1:]), w.side(now[1:])); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, c.Result().Counts, Counts{Equal: 1, Changed: 1, OnlyNew: 1})
}

// A table whose keys are out of order would be merged wrongly: it is damage.
func TestKeysOutOfOrderAreDamage(t *testing.T) {
	w := newWorld(t)
	put := func(key string) frozen {
		return frozen{op: connector.Put, key: key, row: encode(oldType, oldRow{})}
	}
	good := []Step{{0, 1, w.freeze("out", true, oldType.Schema(), []frozen{put("a")}, 0)}}
	twice := []Step{{0, 1, w.freeze("out", true, oldType.Schema(), []frozen{put("a"), put("a")}, 0)}}
	c := must(New("job", "out", Options{}))
	var damaged *epoch.DamagedError
	if err := c.Run(t.Context(), w.side(good), w.side(twice)); !errors.As(err, &damaged) || damaged.Object != "job/"+twice[0].Outbox[0].Path {
		t.Errorf("a key that stands twice: %v", err)
	}
}

// What can't be compared is told with its reason, and never counted as equal.
func TestWhatCannotBeCompared(t *testing.T) {
	w := newWorld(t)
	table := w.freeze("out", true, oldType.Schema(), []frozen{{op: connector.Put, key: "a", row: encode(oldType, oldRow{})}}, 0)
	stream := streamSide{rows: [][]int{{1, 2}}, ends: []int{1}}.steps(w, false)[0].Outbox
	again := streamSide{rows: [][]int{{1, 2}}, ends: []int{1}}.steps(w, true)[0].Outbox
	longKeys := must(schema.KeyOf[int64]("key"))
	var rows outbox.Rows
	rows.Begin(3, 0, connector.Delete, 3)
	rows.Buf = longKeys.Append(rows.Buf, 7)
	rows.Row(false)
	rows.Wire(false)
	rows.End()
	numbers := must(outbox.Write(t.Context(), w.st, "job", outbox.Form{
		Sink: "out", Contract: 1, Key: longKeys.Schema(), Row: oldType.Schema(), Compare: must(schema.Comparer(longKeys.Schema())),
	}, []outbox.Batch{{Rows: &rows}}, w.path))
	for _, c := range []struct {
		what     string
		old, now []Step
		rows     [2]int64
		reason   untold
	}{
		{"a table and a stream", []Step{{0, 1, table}}, []Step{{0, 1, stream}}, [2]int64{1, 2}, kindsDiffer},
		{"a stream and a table", []Step{{0, 1, stream}}, []Step{{0, 1, table}}, [2]int64{2, 1}, kindsDiffer},
		{"a stream that becomes a table", []Step{{0, 1, stream}, {1, 2, table}}, []Step{{0, 2, stream}}, [2]int64{3, 2}, kindsDiffer},
		{"keys of other types", []Step{{0, 1, table}}, []Step{{0, 1, numbers}}, [2]int64{1, 1}, keysDiffer},
		{"a schema that changes", []Step{{0, 1, stream}, {1, 2, again}}, []Step{{0, 2, stream}}, [2]int64{4, 2}, formsDiffer},
	} {
		got := w.compareAll(Options{}, c.old, c.now)
		wantCounts(t, got.Counts, Counts{Untold: 1, UntoldOld: c.rows[0], UntoldNew: c.rows[1]})
		if !slices.Equal(got.Reasons, []string{c.reason.Error()}) {
			t.Errorf("%s: the reasons are %q", c.what, got.Reasons)
		}
	}
	// A reason is told once, and a span of too many steps is none to be compared.
	got := w.compareAll(Options{}, []Step{{0, 1, table}, {1, 2, table}}, []Step{{0, 1, stream}, {1, 2, stream}})
	wantCounts(t, got.Counts, Counts{Untold: 2, UntoldOld: 2, UntoldNew: 4})
	if len(got.Reasons) != 1 {
		t.Errorf("the reasons are %q", got.Reasons)
	}
	many := func(n epoch.Position) (steps []Step) {
		for i := range n {
			steps = append(steps, Step{i, i + 1, stream})
		}
		return append(steps, Step{n, n + 1, nil})
	}
	got = w.compareAll(Options{}, many(maxSpanSteps+1), []Step{{0, maxSpanSteps + 2, again}})
	wantCounts(t, got.Counts, Counts{Untold: 1, UntoldOld: 2 * (maxSpanSteps + 1), UntoldNew: 2})
	if !slices.Equal(got.Reasons, []string{tooLong.Error()}) {
		t.Errorf("the reasons are %q", got.Reasons)
	}
	// On one side alone there is nothing to be paired, whatever the schemas.
	got = w.compareAll(Options{}, []Step{{0, 1, stream}, {1, 2, again}}, []Step{{0, 2, nil}})
	wantCounts(t, got.Counts, Counts{OnlyOld: 4})
}

// Rows of other schemas within one side are each compared by their own.
func TestATableWhoseSchemaChanges(t *testing.T) {
	w := newWorld(t)
	first := w.freeze("out", true, oldType.Schema(), []frozen{{op: connector.Put, key: "a", row: encode(oldType, oldRow{"a", 1, ""})}, {op: connector.Put, key: "b", row: encode(oldType, oldRow{"b", 1, ""})}}, 0)
	second := w.freeze("out", true, newType.Schema(), []frozen{{op: connector.Put, key: "b", row: encode(newType, newRow{2, true, "b"})}}, 0)
	coarse := w.freeze("out", true, newType.Schema(), []frozen{{op: connector.Put, key: "a", row: encode(newType, newRow{1, false, "a"})}, {op: connector.Put, key: "b", row: encode(newType, newRow{2, false, "b"})}}, 0)
	got := w.compareAll(Options{}, []Step{{0, 1, first}, {1, 2, second}}, []Step{{0, 2, coarse}})
	wantCounts(t, got.Counts, Counts{Equal: 1, Changed: 1})
	if !slices.Equal(got.Columns, []ColumnCount{{"Added", 1}}) {
		t.Errorf("columns %v differ, want Added, which both have there", got.Columns)
	}
}

// bareRow is a row of a third version.
type bareRow struct{ N int32 }

// A column that only one side has is told once, whatever versions the other had.
func TestColumnsOfOneSideAreToldOnce(t *testing.T) {
	w := newWorld(t)
	bare := must(schema.Of[bareRow]("row"))
	old := []Step{
		streamSide{rows: [][]int{{1}}, ends: []int{1}}.steps(w, false)[0],
		{1, 2, w.freeze("out", false, bare.Schema(), []frozen{{row: encode(bare, bareRow{2})}}, 0)},
	}
	now := streamSide{rows: [][]int{{1}, {2}}, ends: []int{1, 2}}.steps(w, true)
	got := w.compareAll(Options{}, old, now)
	wantCounts(t, got.Counts, Counts{Equal: 2})
	told := map[string]int{}
	for _, d := range got.Schemas {
		told[d.String()]++
	}
	if told["Added: added (boolean)"] != 1 || told["Extra: removed (string)"] != 1 || told["Name: added (string)"] != 1 {
		t.Errorf("of the schemas %v is told", told)
	}
}

type weather struct {
	City string
	Heat float64
	At   time.Time
}

// Streams with tolerances: in order, and as multisets, where all pairs are found.
func TestTolerancesInStreams(t *testing.T) {
	w := newWorld(t)
	typ := must(schema.Of[weather]("row"))
	step := func(after, to epoch.Position, heats ...float64) Step {
		var rows []frozen
		for _, h := range heats {
			rows = append(rows, frozen{row: encode(typ, weather{City: "here", Heat: h, At: time.UnixMicro(5)})})
		}
		return Step{after, to, w.freeze("out", false, typ.Schema(), rows, 0)}
	}
	o := Options{Columns: map[string]Column{"Heat": {Absolute: 1}}}
	wantCounts(t, w.compareAll(o, []Step{step(0, 1, 10, 20, 30)}, []Step{step(0, 1, 11, 22, 30.5)}).Counts, Counts{Equal: 2, Changed: 1})
	// 20 and 10 are met by 10.5 and 21, if each takes the one that the other can't.
	fine := []Step{step(0, 1, 20, 10, 2), step(1, 2, 1, 100)}
	wantCounts(t, w.compareAll(o, fine, []Step{step(0, 2, 10.5, 21, 3, 2, 200)}).Counts, Counts{Equal: 4, Changed: 1})
	wantCounts(t, w.compareAll(Options{}, fine, []Step{step(0, 2, 10.5, 21, 3, 2, 200)}).Counts, Counts{Equal: 1, Changed: 4})
}

func TestOptionsAreChecked(t *testing.T) {
	w := newWorld(t)
	var wrong *OptionError
	for _, c := range []Column{{Absolute: -1}, {Relative: math.NaN()}, {Time: -1}, {Absolute: math.Inf(1)}} {
		if _, err := New("job", "out", Options{Columns: map[string]Column{"N": c}}); !errors.As(err, &wrong) || wrong.Column != "N" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	a, b := streamSide{rows: [][]int{{1}}, ends: []int{1}}.steps(w, false), streamSide{rows: [][]int{{2}}, ends: []int{1}}.steps(w, true)
	for _, o := range []map[string]Column{{"Name": {Absolute: 1}}, {"N": {Time: 1}}, {"Name": {Relative: 1}}, {"N": {Time: 1, Absolute: 1}}} {
		c := must(New("job", "out", Options{Columns: o}))
		if err := c.Run(t.Context(), w.side(a), w.side(b)); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	w := newWorld(t)
	step := func(letter string) []Step {
		row := encode(oldType, oldRow{Name: strings.Repeat(letter, maxSampleBytes)})
		return []Step{{0, 1, w.freeze("out", false, oldType.Schema(), []frozen{{row: row}}, 0)}}
	}
	got := w.compareAll(Options{}, step("a"), step("ö")).Samples[0].Columns[0]
	// Before the first letter stands a quote, so that half an ö would be left.
	if want := (ColumnSample{"Name", `"` + strings.Repeat("a", maxSampleBytes-1) + "…", `"` + strings.Repeat("ö", maxSampleBytes/2-1) + "…"}); got != want {
		t.Errorf("the sample is %+v", got)
	}
}
