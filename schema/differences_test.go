package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/schema"
)

type tierMore string

func (tierMore) Symbols() []string { return []string{"basic", "silver", "gold", "platinum"} }

type tierLess string

func (tierLess) Symbols() []string { return []string{"basic", "platinum"} }

type tierTurned string

func (tierTurned) Symbols() []string { return []string{"platinum", "gold", "basic"} }

// diff is a case of a type that changed. want is one line for each difference:
// "ok" resolves, "may" resolves but for some values, "drops" resolves and loses
// data, "narrows" is read by consent, "no" isn't read.
type diff struct {
	name     string
	old, now func() *schema.Schema
	want     []string
}

func word(d schema.Difference) string {
	switch {
	case d.Resolves && d.MayFail && d.Narrows:
		return "may, narrows"
	case d.Resolves && d.Drops:
		return "drops"
	case d.Resolves && d.MayFail:
		return "may"
	case d.Resolves:
		return "ok"
	case d.Narrows:
		return "narrows"
	case d.Drops:
		return "no-drops"
	}
	return "no"
}

func of[T any]() *schema.Schema { return must(schema.Of[T]("s")).Schema() }

var diffs = []diff{
	{"nothing", of[struct{ A int }], of[struct{ A int }], nil},
	{"field added", of[struct{ A int }], of[struct {
		A int
		B bool
	}], []string{"ok B: added (boolean)"}},
	{"field removed", of[struct {
		A int
		B []string
	}], of[struct{ A int }], []string{"drops B: removed (array of string)"}},
	{"fields reordered", of[struct{ A, B, C int }], of[struct{ C, A, B int }], []string{"ok reordered: A, B, C → C, A, B"}},
	{"int to long", of[struct{ A int32 }], of[struct{ A int64 }], []string{"ok A: int → long"}},
	{"float to double", of[struct{ A float32 }], of[struct{ A float64 }], []string{"ok A: float → double"}},
	{"int to double", of[struct{ A int32 }], of[struct{ A float64 }], []string{"ok A: int → double"}},
	{"long to float", of[struct{ A int64 }], of[struct{ A float32 }], []string{"ok A: long → float"}},
	{"long narrowed", of[struct{ A int64 }], of[struct{ A int32 }], []string{"narrows A: long → int (narrowed)"}},
	{"double narrowed", of[struct{ A float64 }], of[struct{ A float32 }], []string{"narrows A: double → float (narrowed)"}},
	{"double to long", of[struct{ A float64 }], of[struct{ A int64 }], []string{"narrows A: double → long (narrowed)"}},
	{"widths of Go widened", of[struct {
		A int8
		B uint8
		C uint16
		D uint32
	}], of[struct {
		A int16
		B int16
		C uint32
		D int64
	}], []string{"ok A: int8 → int16", "ok B: uint8 → int16", "ok C: uint16 → uint32", "ok D: uint32 → long"}},
	{"widths of Go narrowed", of[struct {
		A int16
		B int32
		C uint16
		D int8
	}], of[struct {
		A int8
		B int16
		C int16
		D uint32
	}], []string{"narrows A: int16 → int8 (narrowed)", "narrows B: int → int16 (narrowed)", "narrows C: uint16 → int16 (narrowed)", "narrows D: int8 → uint32 (narrowed)"}},
	{"unsigned of 64 bits", of[struct{ A int64 }], of[struct{ A uint64 }], []string{"narrows A: long → uint64 (narrowed)"}},
	{"string to number", of[struct{ A string }], of[struct{ A int64 }], []string{"no A: string → long"}},
	{"number to string", of[struct{ A int64 }], of[struct{ A string }], []string{"no A: long → string"}},
	{"string to bytes", of[struct{ A string }], of[struct{ A []byte }], []string{"ok A: string → bytes"}},
	{"bytes to string", of[struct{ A []byte }], of[struct{ A string }], []string{"ok A: bytes → string"}},
	{"bool to int", of[struct{ A bool }], of[struct{ A int8 }], []string{"no A: boolean → int8"}},
	{"made nullable", of[struct{ A string }], of[struct{ A *string }], []string{"ok A: string → nullable string (made nullable)"}},
	{"made nullable and widened", of[struct{ A int32 }], of[struct{ A *int64 }],
		[]string{"ok A: int → nullable long (made nullable)", "ok A: int → long"}},
	{"made required", of[struct{ A *string }], of[struct{ A string }], []string{"narrows A: nullable string → string (made required)"}},
	{"renamed with an alias", of[struct{ Old int32 }], of[struct {
		New int64 `avro:",alias=Older,alias=Old"`
	}], []string{"ok New: renamed from Old", "ok New: int → long"}},
	{"an alias of a field that stays", of[struct{ A int }], of[struct {
		A int
		B int `avro:",alias=A"`
	}], []string{"ok B: added (long)"}},
	{"renamed without an alias", of[struct{ Old int }], of[struct{ New int }],
		[]string{"ok New: added (long)", "drops Old: removed (long)"}},
	{"symbol added", of[struct{ T tier }], of[struct{ T tierMore }], []string{"ok T: symbol added (silver)"}},
	{"symbol removed", of[struct{ T tier }], of[struct{ T tierLess }], []string{"narrows T: symbol removed (gold)"}},
	{"symbols reordered", of[struct {
		T tier `avro:",default=gold"`
	}], of[struct {
		T tierTurned `avro:",default=gold"`
	}], []string{"ok T: reordered: basic, gold, platinum → platinum, gold, basic"}},
	{"enum to string", of[struct{ T tier }], of[struct{ T string }], []string{"no T: enum → string"}},
	{"default changed", of[struct {
		A int `avro:",default=1"`
	}], of[struct {
		A int `avro:",default=2"`
	}], []string{"ok A: default 1 → 2"}},
	{"in a list", of[struct{ L []struct{ A, B int32 } }], of[struct {
		L []struct {
			A string
			C bool
		}
	}], []string{"no L[].A: int → string", "ok L[].C: added (boolean)", "drops L[].B: removed (int)"}},
	{"in a list of lists", of[struct{ L [][]int32 }], of[struct{ L [][]int64 }], []string{"ok L[][]: int → long"}},
	{"in a map", of[struct{ M map[string]int32 }], of[struct{ M map[string]*int64 }],
		[]string{"ok M{}: int → nullable long (made nullable)", "ok M{}: int → long"}},
	{"in a map with other keys", of[struct{ M map[int32]struct{ A int32 } }], of[struct{ M map[int64]struct{ A int64 } }],
		[]string{"ok M{key}: int → long", "ok M{}.A: int → long"}},
	{"a field of a map's key", of[struct{ M map[struct{ A, B int }]bool }], of[struct{ M map[struct{ A int }]bool }],
		[]string{"no-drops M{key}.B: removed (long)"}},
	{"other keys", of[struct{ M map[string]int }], of[struct{ M map[int]int }], []string{"no M: map of long → map from long to long"}},
	{"nested", of[struct{ In struct{ P *struct{ A int } } }], of[struct{ In struct{ P *struct{ A bool } } }], []string{"no In.P.A: long → boolean"}},
	{"array's length", of[struct{ A [2]int }], of[struct{ A [3]int }], []string{"no A: array of 2 long → array of 3 long"}},
	{"array to list", of[struct{ A [2]int }], of[struct{ A []int }], []string{"ok A: array of 2 long → array of long"}},
	{"list to array", of[struct{ A []int }], of[struct{ A [2]int }], []string{"narrows A: array of long → array of 2 long (narrowed)"}},
	{"fixed size", of[struct{ A [2]byte }], of[struct{ A [3]byte }], []string{"no A: fixed(2) → fixed(3)"}},
	{"time and instant", of[struct{ A time.Time }], of[struct{ A schema.Instant }],
		[]string{"ok A: default -62135596800000000 → 0"}},
	{"long to time", of[struct{ A int64 }], of[struct{ A time.Time }], []string{"no A: long → timestamp"}},
	{"duration to long", of[struct{ A time.Duration }], of[struct{ A int64 }], []string{"no A: duration → long"}},
	{"the whole", of[[]int32], of[string], []string{"no array of int → string"}},
	{"the whole's element", of[[]int32], of[[]int64], []string{"ok []: int → long"}},
	{"several, in order", of[struct {
		A int32
		B struct{ X, Y int }
		C string
		D int
	}], of[struct {
		B struct{ Y, X, Z int }
		A int64
		E int `avro:",alias=D"`
		F bool
	}], []string{
		"ok reordered: A, B, E → B, A, E",
		"ok B: reordered: X, Y → Y, X",
		"ok B.Z: added (long)",
		"ok A: int → long",
		"ok E: renamed from D",
		"ok F: added (boolean)",
		"drops C: removed (string)",
	}},
}

func TestDifferences(t *testing.T) {
	for _, d := range diffs {
		found := schema.Differences(d.old(), d.now())
		var got []string
		resolves := true
		for _, f := range found {
			got = append(got, word(f)+" "+f.String())
			resolves = resolves && f.Resolves
		}
		if !slices.Equal(got, d.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", d.name, strings.Join(got, "\n     "), strings.Join(d.want, "\n     "))
		}
		if parsed := must(schema.Parse([]byte(d.old().String()))); !slices.Equal(schema.Differences(parsed, d.now()), found) {
			t.Errorf("%s: other differences once it was stored", d.name)
		}
	}
}

func TestDecimalDifferences(t *testing.T) {
	for _, c := range []struct {
		old, now *schema.Schema
		want     string
		resolves bool
	}{
		{schema.Decimal(10, 2), schema.Decimal(12, 2), "decimal(10,2) → decimal(12,2)", true},
		{schema.Decimal(12, 2), schema.Decimal(10, 2), "decimal(12,2) → decimal(10,2) (narrowed)", false},
		{schema.Decimal(10, 2), schema.Decimal(10, 3), "decimal(10,2) → decimal(10,3) (narrowed)", false},
		{schema.Decimal(10, 2), schema.Decimal(12, 4), "decimal(10,2) → decimal(12,4)", true},
		{schema.Decimal(10, 2), schema.Decimal(12, 1), "decimal(10,2) → decimal(12,1) (narrowed)", false},
		{schema.Bytes(), schema.Decimal(10, 3), "bytes → decimal(10,3)", false},
	} {
		got := schema.Differences(c.old, c.now)
		if len(got) != 1 || got[0].String() != c.want || got[0].Resolves != c.resolves {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

func TestNamesMakeNoDifference(t *testing.T) {
	type here struct {
		P point
		F [2]byte
		T tier
	}
	a, b := must(schema.Of[here]("a")), must(schema.Of[here]("b.c"))
	if d := schema.Differences(a.Schema(), b.Schema()); len(d) > 0 {
		t.Error(d)
	}
	if a.Schema().Equal(b.Schema()) {
		t.Error("schemas of other names are equal")
	}
	type elsewhere here
	if c := must(schema.Of[elsewhere]("a")); !a.Schema().Equal(c.Schema()) {
		t.Error("the name of the Go type shows")
	}
}

func TestRecursiveDifferences(t *testing.T) {
	type old struct {
		N    int32
		Kids []old
	}
	type now struct {
		N    int64
		Kids []now
	}
	got := schema.Differences(of[old](), of[now]())
	if len(got) != 1 || got[0].String() != "N: int → long" {
		t.Error(got)
	}
}

func TestResolveErrorListsEverything(t *testing.T) {
	type now struct {
		A string
		B int32
		C bool
	}
	writer := of[struct{ A, B int64 }]()
	_, err := must(schema.Of[now]("spend")).Reader(writer)
	var resolve *schema.ResolveError
	if !errors.As(err, &resolve) || len(resolve.Differences) != 3 {
		t.Fatal(err)
	}
	want := "stored data can't be read as the type of now: spend.A: long → string; spend.B: long → int (narrowed)"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
