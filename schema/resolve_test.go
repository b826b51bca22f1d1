package schema_test

import (
	"bytes"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

// resolve writes old, reads it as a New and compares with want.
func resolve[Old, New any](t *testing.T, old Old, want New) {
	t.Helper()
	writer, reader := must(schema.Of[Old]("s")), must(schema.Of[New]("s"))
	r, err := reader.Reader(must(schema.Parse([]byte(writer.Schema().String()))))
	if err != nil {
		t.Errorf("%T: %v", old, err)
		return
	}
	data := must(writer.Append(nil, &old))
	var got New
	rest, err := r.Decode(append(data, 'x'), &got)
	if err != nil || string(rest) != "x" || !reflect.DeepEqual(got, want) {
		t.Errorf("%T %+v is read as %+v\nwant %+v (%v, %q left)", old, old, got, want, err, rest)
	}
}

func TestResolve(t *testing.T) {
	type oldV struct {
		Gone    map[string][]point
		Small   int32
		F       float32
		Text    string
		Raw     []byte
		Before  string
		Tier    tier
		Nested  struct{ X, Y int8 }
		List    []struct{ A int32 }
		ByName  map[string]int32
		ByNum   map[int32]uint8
		Maybe   *int32
		Present int16
		Array   [2]int32
	}
	type added struct {
		N    int       `avro:",default=5"`
		T    tier      `avro:",default=gold"`
		Zero tier      // the first symbol
		Mood mood      // has an empty symbol
		When time.Time `avro:",default=2020-01-02T03:04:05.6Z"`
	}
	type newV struct {
		Array   []int64
		Present *int32
		Maybe   *float64
		ByNum   map[int64]int16
		ByName  map[string]float32
		List    []struct {
			B string `avro:",default=b, and c"`
			A float64
		}
		Nested struct {
			Y, X int32
			Z    bool `avro:",default=true"`
		}
		Tier    tierMore
		After   string `avro:",alias=Before"`
		Raw     string
		Text    []byte
		F       float64
		Small   int64
		Added   added
		Entries map[int]string
		Tiers   [2]tier
		Took    time.Duration `avro:",default=1h30m"`
		Big     uint64        `avro:",default=18446744073709551615"`
		Dec     big.Rat       `avro:",precision=4,scale=2,default=-1.5"`
		Ratio   float32       `avro:",default=0.5"`
		Key     []byte        `avro:",default=\x01é"`
	}
	n, one, five := int32(7), int32(1), 7.0
	old := oldV{
		Gone: map[string][]point{"a": {{1, "x"}, {2, "y"}}}, Small: -5, F: 1.5, Text: "text", Raw: []byte("raw"), Before: "was",
		Tier: "platinum", List: []struct{ A int32 }{{1}, {2}}, ByName: map[string]int32{"a": 1}, ByNum: map[int32]uint8{3: 4},
		Maybe: &n, Present: 1, Array: [2]int32{8, 9},
	}
	old.Nested.X, old.Nested.Y = 1, 2
	want := newV{
		Array: []int64{8, 9}, Present: &one, Maybe: &five, ByNum: map[int64]int16{3: 4}, ByName: map[string]float32{"a": 1},
		Tier: "platinum", After: "was", Raw: "raw", Text: []byte("text"), F: 1.5, Small: -5,
		Added: added{N: 5, T: "gold", Zero: "basic", When: time.Date(2020, 1, 2, 3, 4, 5, 6e8, time.UTC)},
		Tiers: [2]tier{"basic", "basic"}, Took: 90 * time.Minute, Big: 1<<64 - 1, Dec: *big.NewRat(-3, 2), Ratio: 0.5,
		Key: []byte("\x01é"),
	}
	for _, a := range []float64{1, 2} {
		want.List = append(want.List, struct {
			B string `avro:",default=b, and c"`
			A float64
		}{"b, and c", a})
	}
	want.Nested.X, want.Nested.Y, want.Nested.Z = 1, 2, true
	resolve(t, old, want)
}

func TestResolveNull(t *testing.T) {
	resolve(t, struct{ A *int32 }{}, struct{ A *int64 }{})
	resolve(t, []int8{1, -1}, []float64{1, -1})
	resolve(t, int32(5), int64(5))
	resolve(t, struct {
		D *big.Rat `avro:",precision=5,scale=2"`
	}{big.NewRat(5, 2)}, struct {
		D *big.Rat `avro:",precision=9,scale=2"`
	}{big.NewRat(5, 2)})
	resolve(t, struct {
		D big.Rat `avro:",precision=5,scale=2"`
	}{*big.NewRat(5, 2)}, struct {
		D *big.Rat `avro:",precision=5,scale=2"`
	}{big.NewRat(5, 2)})
}

// TestResolveOtherNullOrder reads what others write: null as the last branch.
func TestResolveOtherNullOrder(t *testing.T) {
	writer := must(schema.Parse([]byte(`{"type":"record","name":"x","fields":[{"name":"A","type":["string","null"]},{"name":"B","type":["string","null"]}]}`)))
	type value struct{ A, B *string }
	r, err := must(schema.Of[value]("s")).Reader(writer)
	if err != nil {
		t.Fatal(err)
	}
	var v value
	if _, err := r.Decode([]byte("\x00\x02a\x02"), &v); err != nil || v.A == nil || *v.A != "a" || v.B != nil {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := r.Decode([]byte("\x04\x02"), &v); err == nil {
		t.Error("a third branch")
	}
}

func TestResolveRecursive(t *testing.T) {
	type old struct {
		Label string
		N     int32
		Kids  []old
		Gone  *old
	}
	type now struct {
		N     float64
		Kids  []now
		Label string
		Seen  bool `avro:",default=true"`
	}
	resolve(t,
		old{"root", 1, []old{{"a", 2, nil, nil}, {"b", 3, []old{{Label: "c"}}, nil}}, &old{Label: "gone", Kids: []old{{}}}},
		now{1, []now{{2, nil, "a", true}, {3, []now{{0, nil, "c", true}}, "b", true}}, "root", true})
}

type crossOld struct {
	Gone struct {
		A []string
		B *float64
	}
	N      int32
	L      int64
	F      float32
	S      string
	B      []byte
	Old    string
	T      tier
	Nested struct {
		P, Q int32
		Gone map[string]bool
	}
	List []struct{ A, Gone int32 }
	M    map[string]int32
	Was  string
}

type crossNew struct {
	M    map[string]float64
	List []struct {
		New bool `avro:",default=true"`
		A   int64
	}
	Nested struct {
		Q float32
		R string `avro:",default=r"`
		P int32
	}
	T     tierMore
	Now   string `avro:",alias=Old"`
	B     []byte
	S     string
	F     float64
	L     float64
	N     int64
	Added struct {
		X int `avro:",default=-3"`
		Y []string
	}
	Was   *string
	Extra tier `avro:",default=platinum"`
}

// TestResolveLikeAnotherImplementation resolves the same data with code that
// isn't this one, and compares what comes out.
func TestResolveLikeAnotherImplementation(t *testing.T) {
	writer, reader := must(schema.Of[crossOld]("s")), must(schema.Of[crossNew]("s"))
	r := must(reader.Reader(writer.Schema()))
	others := must(avro.Parse(reader.Schema().String()))
	other := must(avro.Resolve(must(avro.Parse(writer.Schema().String())), others))
	rapid.Check(t, func(t *rapid.T) {
		var old crossOld
		old.Gone.A = genSlice(genText).Draw(t, "Gone.A")
		old.Gone.B = rapid.Ptr(rapid.Float64(), true).Draw(t, "Gone.B")
		old.N, old.L, old.F = rapid.Int32().Draw(t, "N"), rapid.Int64().Draw(t, "L"), rapid.Float32().Draw(t, "F")
		old.S, old.B = genText.Draw(t, "S"), genSlice(rapid.Byte()).Draw(t, "B")
		old.Old, old.Was, old.T = genText.Draw(t, "Old"), genText.Draw(t, "Was"), genTier.Draw(t, "T")
		old.Nested.P, old.Nested.Q = rapid.Int32().Draw(t, "P"), rapid.Int32().Draw(t, "Q")
		old.Nested.Gone = rapid.MapOfN(genText, rapid.Bool(), 0, 2).Draw(t, "Nested.Gone")
		for range rapid.IntRange(0, 3).Draw(t, "list") {
			old.List = append(old.List, struct{ A, Gone int32 }{rapid.Int32().Draw(t, "A"), 9})
		}
		old.M = rapid.MapOfN(genText, rapid.Int32(), 0, 1).Draw(t, "M")
		data := must(writer.Append(nil, &old))
		var got crossNew
		if _, err := r.Decode(data, &got); err != nil {
			t.Fatal(err)
		}
		ours := must(reader.Append(nil, &got))
		var x any
		if _, err := other.Decode(data, &x); err != nil {
			t.Fatal(err)
		}
		theirs, err := others.Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Fatalf("read as %+v\nthe other reads %v", got, x)
		}
	})
}
