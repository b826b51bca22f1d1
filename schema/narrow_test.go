package schema_test

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

func everywhere(string) bool { return true }

// narrowed writes old and reads it by consent as a New.
func narrowed[Old, New any](old Old, allow func(string) bool) (got New, err error) {
	writer := must(schema.Of[Old]("s"))
	r, err := must(schema.Of[New]("s")).Narrowing(must(schema.Parse([]byte(writer.Schema().String()))), allow)
	if err != nil {
		return got, err
	}
	rest, err := r.Decode(append(must(writer.Append(nil, &old)), 'x'), &got)
	if err == nil && string(rest) != "x" {
		err = errors.New("something is left over")
	}
	return got, err
}

// fits narrows a value that the new type holds.
func fits[Old, New any](t *testing.T, old Old, want New) {
	t.Helper()
	if got, err := narrowed[Old, New](old, everywhere); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%T %v is read as %v (%v), want %T %v", old, old, got, err, want, want)
	}
	if _, err := narrowed[Old, New](old, nil); err == nil {
		t.Errorf("%T is read as %T without consent", old, want)
	}
}

// unfit narrows a value that it doesn't.
func unfit[Old, New any](t *testing.T, old Old, want string) {
	t.Helper()
	got, err := narrowed[Old, New](old, everywhere)
	var value *schema.ValueError
	if !errors.As(err, &value) || err.Error() != want {
		t.Errorf("%T %v is read as %v (%v), want %s", old, old, got, err, want)
	}
}

func TestNarrowing(t *testing.T) {
	fits(t, int64(math.MaxInt32), int32(math.MaxInt32))
	unfit[int64, int32](t, math.MaxInt32+1, "s: 2147483648 doesn't fit an int")
	fits(t, int32(-128), int8(-128))
	unfit[int32, int8](t, -129, "s: -129 doesn't fit an int8")
	fits(t, int16(5), uint8(5))
	unfit[int16, uint8](t, -1, "s: -1 doesn't fit a uint8")
	fits(t, int64(math.MaxInt64), uint64(math.MaxInt64))
	unfit[int64, uint64](t, -1, "s: -1 doesn't fit uint64")
	fits(t, int8(7), uint64(7))
	fits(t, uint64(math.MaxInt64), int64(math.MaxInt64))
	unfit[uint64, int64](t, math.MaxInt64+1, "s: 9223372036854775808 doesn't fit long")
	fits(t, uint64(255), uint8(255))
	unfit[uint64, uint8](t, 256, "s: 256 doesn't fit a uint8")
	fits(t, uint32(127), int8(127))
	fits(t, 0.1, float32(0.1))
	fits(t, math.Inf(-1), float32(math.Inf(-1)))
	fits(t, 1e-60, float32(0))
	unfit[float64, float32](t, 1e39, "s: 1e+39 doesn't fit a float")
	fits(t, -3.0, int64(-3))
	unfit[float64, int64](t, 0.5, "s: 0.5 doesn't fit an integer")
	unfit[float64, int64](t, 1<<63, "s: 9.223372036854776e+18 doesn't fit an integer")
	unfit[float64, int64](t, math.NaN(), "s: NaN doesn't fit an integer")
	fits(t, float32(200), uint8(200))
	unfit[float32, int8](t, 200, "s: 200 doesn't fit an int8")
	type optional struct{ A *string }
	type required struct{ A string }
	fits(t, optional{pointer("a")}, required{"a"})
	unfit[optional, required](t, optional{}, "s.A: null was written where string is read")
	fits(t, struct{ A *int64 }{pointer(int64(5))}, struct{ A uint8 }{5})
	fits(t, tier("gold"), tierNoBasic("gold"))
	unfit[tier, tierNoBasic](t, "basic", `s: the symbol basic is none of ["gold" "platinum"]`)
	fits(t, []int{1, 2}, [2]int32{1, 2})
	unfit[[]int, [2]int](t, []int{1, 2, 3}, "s: 3 items in an array of 2")
	fits(t, map[int64]bool{-7: true}, map[int32]bool{-7: true})
	unfit[map[int64]bool, map[int32]bool](t, map[int64]bool{1 << 40: true}, "s{key}: 1099511627776 doesn't fit an int")
}

type tierNoBasic string

func (tierNoBasic) Symbols() []string { return []string{"gold", "platinum"} }

func TestNarrowingDecimals(t *testing.T) {
	type wide struct {
		D big.Rat `avro:",precision=12,scale=4"`
	}
	type small struct {
		D big.Rat `avro:",precision=5,scale=2"`
	}
	type maybe struct {
		D *big.Rat `avro:",precision=5,scale=2"`
	}
	of := func(a, b int64) wide { return wide{*big.NewRat(a, b)} }
	fits(t, of(-99999, 100), small{*big.NewRat(-99999, 100)})
	fits(t, of(5, 2), maybe{big.NewRat(5, 2)})
	unfit[wide, small](t, of(1, 1000), "s.D: 1/1000 has more than 2 digits behind the point")
	unfit[wide, maybe](t, of(1000, 1), "s.D: 1000 has more digits than a decimal(5,2)")
	unfit[maybe, small](t, maybe{}, "s.D: null was written where decimal(5,2) is read")
}

// TestWidenedBeyondAvro reads what always fits, though Avro's rules say nothing
// of it.
func TestWidenedBeyondAvro(t *testing.T) {
	resolve(t, uint32(math.MaxUint32), uint64(math.MaxUint32))
	resolve(t, uint8(9), uint(9))
	type before struct {
		D big.Rat `avro:",precision=5,scale=2"`
	}
	type after struct {
		D *big.Rat `avro:",precision=9,scale=4"`
	}
	resolve(t, before{*big.NewRat(-1, 4)}, after{big.NewRat(-1, 4)})
}

// TestConsentIsByPath allows one of two, and is told which else there is.
func TestConsentIsByPath(t *testing.T) {
	type old struct {
		A, B int64
		C    []struct{ D *int64 }
		E    string
	}
	type now struct {
		A, B int32
		C    []struct{ D int64 }
		E    int
	}
	var asked []string
	_, err := narrowed[old, now](old{}, func(path string) bool {
		asked = append(asked, path)
		return path == "A"
	})
	var unresolved *schema.ResolveError
	want := "stored data can't be read as the type of now: s.B: long → int (narrowed); s.C[].D: nullable long → long (made required); s.E: string → long"
	if !errors.As(err, &unresolved) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !slices.Equal(asked, []string{"A", "B", "C[].D"}) {
		t.Error("asked for", asked)
	}
}

// TestConsentToBranches reads a union's branches that narrow, and no other, where
// it is allowed.
func TestConsentToBranches(t *testing.T) {
	type row struct{ A, B *int32 }
	union := must(schema.Parse([]byte(`["null","int","long","string"]`)))
	writer := schema.Record("r", schema.Field{Name: "A", Type: union}, schema.Field{Name: "B", Type: union})
	r := must(must(schema.Of[row]("row")).Narrowing(writer, func(path string) bool { return path == "B" }))
	var v row
	if _, err := r.Decode([]byte("\x02\x02\x04\x04"), &v); err != nil || *v.A != 1 || *v.B != 2 {
		t.Error(v, err)
	}
	for data, want := range map[string]string{
		"\x04\x02\x04\x04":                     "row.A: long was written where nullable int is read",
		"\x02\x02\x04\x80\x80\x80\x80\x80\x01": "row.B: 17179869184 doesn't fit an int",
		"\x02\x02\x06\x02a":                    "row.B: string was written where nullable int is read",
	} {
		if _, err := r.Decode([]byte(data), &v); err == nil || err.Error() != want {
			t.Errorf("%x: %v, want %s", data, err, want)
		}
	}
}

func TestNarrowingOfRecursiveTypes(t *testing.T) {
	type old struct {
		N    *int64
		Kids []old
	}
	type now struct {
		N    int8
		Kids []now
	}
	fits(t, old{pointer(int64(1)), []old{{N: pointer(int64(2))}}}, now{1, []now{{N: 2}}})
	unfit[old, now](t, old{pointer(int64(1)), []old{{N: pointer(int64(200))}}}, "s.N: 200 doesn't fit an int8")
	unfit[old, now](t, old{pointer(int64(1)), []old{{}}}, "s.N: null was written where int8 is read")
}

type narrowOld struct {
	A int64
	B *uint64
	C float64
	D map[string]int32
	E []struct{ F int16 }
	G int64
}

type narrowNew struct {
	G uint32
	E []struct{ F uint8 }
	D map[string]int8
	C int64
	B int16
	A int32
}

// TestNarrowingIsExact narrows values of which many fit, and compares with Go's
// own conversions: either a value comes back as it was, or its path is named.
func TestNarrowingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := func(label string) int64 {
			around := rapid.SampledFrom([]int64{0, 1 << 7, 1 << 8, 1 << 15, 1 << 31, 1 << 32, -1 << 7, -1 << 15, -1 << 31}).Draw(t, label)
			return around + rapid.Int64Range(-2, 2).Draw(t, label)
		}
		u := uint64(near("B"))
		old := narrowOld{A: near("A"), B: &u, C: float64(near("C")) + rapid.SampledFrom([]float64{0, 0, 0, 0.5}).Draw(t, "part"), G: near("G")}
		small := func(label string) int16 { return int16(rapid.IntRange(-3, 300).Draw(t, label)) }
		for range rapid.IntRange(0, 2).Draw(t, "items") {
			old.E = append(old.E, struct{ F int16 }{small("F")})
		}
		old.D = map[string]int32{"a": int32(small("D")) - 100}
		var bad []string
		check := func(path string, ok bool) {
			if !ok {
				bad = append(bad, "s."+path)
			}
		}
		check("A", old.A == int64(int32(old.A)))
		check("B", u <= math.MaxInt16)
		check("C", old.C == math.Trunc(old.C))
		check("D{}", old.D["a"] == int32(int8(old.D["a"])))
		for _, e := range old.E {
			check("E[].F", e.F == int16(uint8(e.F)))
		}
		check("G", old.G == int64(uint32(old.G)))
		got, err := narrowed[narrowOld, narrowNew](old, everywhere)
		var value *schema.ValueError
		switch {
		case len(bad) > 0:
			if !errors.As(err, &value) || !slices.Contains(bad, value.Path) {
				t.Fatalf("%+v is read as %+v (%v), which has no room for %q", old, got, err, bad)
			}
			return
		case err != nil:
			t.Fatal(err)
		}
		same := int64(got.A) == old.A && uint64(got.B) == u && float64(got.C) == old.C && int64(got.G) == old.G && int32(got.D["a"]) == old.D["a"]
		for i, e := range old.E {
			same = same && int16(got.E[i].F) == e.F
		}
		if !same || len(got.E) != len(old.E) {
			t.Fatalf("%+v is read as %+v", old, got)
		}
	})
}

type badFallback string

func (badFallback) Symbols() []string     { return []string{"a"} }
func (badFallback) DefaultSymbol() string { return "b" }

func TestDefaultSymbol(t *testing.T) {
	s := of[tierKnown]()
	if got := s.String(); got != `{"type":"enum","name":"s","symbols":["other","basic"],"default":"other"}` {
		t.Error(got)
	}
	if symbol, ok := must(schema.Parse([]byte(s.String()))).DefaultSymbol(); symbol != "other" || !ok {
		t.Error(symbol, ok)
	}
	if _, ok := of[tier]().DefaultSymbol(); ok {
		t.Error("an enum without one has a default")
	}
	_, err := schema.Of[struct{ A badFallback }]("s")
	if err == nil || !strings.Contains(err.Error(), `s.A: the DefaultSymbol of schema_test.badFallback, "b", is none of its Symbols`) {
		t.Error(err)
	}
}

// TestNanosAreCutByNobody keeps a moment's parts of a microsecond from being lost
// without a word, also by consent.
func TestNanosAreCutByNobody(t *testing.T) {
	writer := must(schema.Parse([]byte(logical("long", "timestamp-nanos"))))
	r := must(must(schema.Of[schema.Instant]("s")).Narrowing(writer, everywhere))
	var v schema.Instant
	if _, err := r.Decode([]byte(varint(1001)), &v); err == nil {
		t.Error(v)
	}
	if _, err := r.Decode([]byte(varint(-1000)), &v); err != nil || v.Time() != time.UnixMicro(-1).UTC() {
		t.Error(v, err)
	}
}
