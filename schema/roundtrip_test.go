package schema_test

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

// equal compares deeply, decimals by value.
func equal(a, b any) bool { return reflect.DeepEqual(plain(a), plain(b)) }

// plain turns decimals into text.
func plain(v any) any {
	w, ok := v.(wide)
	if !ok {
		return v
	}
	type pair struct {
		wide  wide
		price string
		self  any
		kids  []any
	}
	p := pair{wide: w}
	if w.Price != nil {
		p.price = w.Price.RatString()
	}
	if w.Self != nil {
		p.self = plain(*w.Self)
	}
	for _, o := range w.Others {
		p.kids = append(p.kids, plain(o))
	}
	p.wide.Price, p.wide.Self, p.wide.Others = nil, nil, nil
	return p
}

func TestRoundTrip(t *testing.T) {
	wides := must(schema.Of[wide]("wide"))
	skip, toJSON := schema.Skipper(wides.Schema()), schema.JSON(wides.Schema())
	rapid.Check(t, func(t *rapid.T) {
		v := genWide(1).Draw(t, "v")
		data, err := wides.Append([]byte("before"), &v)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, "behind"...)[len("before"):]
		n, err := skip(data)
		if err != nil || string(data[n:]) != "behind" {
			t.Fatalf("skipping stopped at %d of %d: %v", n, len(data), err)
		}
		given := bytes.Clone(data)
		got := wide{Strings: []string{"left over"}, Maybe: new(string)}
		rest, err := wides.Decode(given, &got)
		if err != nil || string(rest) != "behind" {
			t.Fatalf("decoding left %q: %v", rest, err)
		}
		clear(given) // nothing may point into it
		if !equal(got, v) {
			t.Fatalf("got  %+v\nwant %+v", got, v)
		}
		again, err := wides.Append(nil, &got)
		if err != nil || !bytes.Equal(again, data[:n]) {
			t.Fatalf("written again as other bytes: %v", err)
		}
		text, rest, err := toJSON(nil, data)
		if err != nil || string(rest) != "behind" || !jsontext.Value(text).IsValid() {
			t.Fatalf("JSON %s left %q: %v", text, rest, err)
		}
		for cut := range n {
			if _, err := wides.Decode(data[:cut], &got); err == nil {
				t.Fatalf("decoded from %d of %d bytes", cut, n)
			}
			if _, err := skip(data[:cut]); err == nil {
				t.Fatalf("skipped over %d of %d bytes", cut, n)
			}
		}
	})
}

func TestTopLevelNeedNotBeStruct(t *testing.T) {
	check(t, int64(-7), "\x0d")
	check(t, "hé", "\x06h\xc3\xa9")
	check(t, []string{"a", "b"}, "\x04\x02a\x02b\x00")
	check(t, map[string]bool{"b": true, "a": false}, "\x04\x02a\x00\x02b\x01\x00")
	check(t, map[int64]uint8{2: 1, -1: 2}, "\x04\x01\x04\x04\x02\x00") // -1 before 2
	check(t, [2]uint32{1, math.MaxUint32}, "\x04\x02\xfe\xff\xff\xff\x1f\x00")
	check(t, uint64(258), "\x00\x00\x00\x00\x00\x00\x01\x02")
	check(t, tier("gold"), "\x02")
	check(t, time.Duration(1), "\x02")
	check(t, schema.Instant(-1), "\x01")
	check(t, struct{}{}, "")
	check(t, []struct{}{{}, {}}, "\x04\x00")
	check(t, float32(1), "\x00\x00\x80\x3f")
	check(t, struct{ P *int8 }{}, "\x00")
	check(t, struct{ P *int8 }{P: new(int8)}, "\x02\x00")
}

// check compares an encoding with one that was worked out by hand.
func check[T any](t *testing.T, v T, want string) {
	t.Helper()
	typ, err := schema.Of[T]("x")
	if err != nil {
		t.Errorf("%T: %v", v, err)
		return
	}
	data, err := typ.Append(nil, &v)
	if err != nil || string(data) != want {
		t.Errorf("%T %v is %q, want %q (%v)", v, v, data, want, err)
	}
	var got T
	if rest, err := typ.Decode(data, &got); err != nil || len(rest) > 0 || !reflect.DeepEqual(got, v) {
		t.Errorf("%T: read %v, want %v (%v)", v, got, v, err)
	}
	if n, err := schema.Skipper(typ.Schema())(data); n != len(data) || err != nil {
		t.Errorf("%T: skipped %d of %d: %v", v, n, len(data), err)
	}
}

func TestCanonical(t *testing.T) {
	type value struct {
		Floats  []float64
		Float   float32
		List    []string
		Map     map[string]int
		Entries map[int]int
		At      time.Time
	}
	values := must(schema.Of[value]("value"))
	zone := time.FixedZone("east", 3600)
	a := value{
		Floats: []float64{math.NaN(), math.Copysign(0, -1)},
		Float:  float32(math.NaN()),
		At:     time.Unix(-1, 999_999_999),
	}
	b := value{
		Floats:  []float64{math.Float64frombits(0xfff0000000000001), math.Copysign(0, -1)},
		Float:   math.Float32frombits(0xffc00001),
		List:    []string{},
		Map:     map[string]int{},
		Entries: map[int]int{},
		At:      time.Unix(-1, 999_999_000).In(zone),
	}
	x, y := must(values.Append(nil, &a)), must(values.Append(nil, &b))
	if !bytes.Equal(x, y) {
		t.Errorf("equal values differ:\n%x\n%x", x, y)
	}
	var got value
	must(values.Decode(y, &got))
	if got.List != nil || got.Map == nil || got.Entries == nil {
		t.Errorf("an empty list is read as nil, an empty map as one that can be written to; got %#v", got)
	}
	if !math.Signbit(got.Floats[1]) {
		t.Error("the sign of zero is lost")
	}
	if want := time.Unix(-1, 999_999_000).UTC(); got.At != want {
		t.Errorf("time is %v, want %v", got.At, want)
	}
	many := value{Map: map[string]int{}, Entries: map[int]int{}}
	for i := range 100 {
		many.Map[strings.Repeat("k", i)] = i
		many.Entries[i-50] = i
	}
	first := must(values.Append(nil, &many))
	for range 20 {
		if !bytes.Equal(first, must(values.Append(nil, &many))) {
			t.Fatal("a map's order shows")
		}
	}
}

func TestZeroTime(t *testing.T) {
	times := must(schema.Of[time.Time]("at"))
	var v, got time.Time
	must(times.Decode(must(times.Append(nil, &v)), &got))
	if got != v || !got.IsZero() {
		t.Errorf("the zero time is read as %v", got)
	}
}

func TestValuesWithoutEncoding(t *testing.T) {
	refused(t, struct{ At time.Time }{time.Unix(math.MaxInt64/1000, 0)}, "x.At: the time")
	refused(t, struct{ T []tier }{[]tier{"gold", "tin"}}, `x.T[]: "tin" is none of its Symbols ["basic" "gold" "platinum"]`)
	refused(t, struct{ T tier }{}, `have Symbols name "" too`)
	refused(t, struct {
		D *big.Rat `avro:",precision=3,scale=1"`
	}{big.NewRat(1, 3)}, "x.D: 1/3 has more than 1 digits behind the point")
	refused(t, struct {
		D big.Rat `avro:",precision=3,scale=1"`
	}{*big.NewRat(100, 1)}, "x.D: 100 has more digits than a decimal(3,1)")
	refused(t, make([]struct{}, 2000), "items that take no bytes")
	type loop struct{ Next *loop }
	l := &loop{}
	l.Next = l
	refused(t, *l, "nested more than 1000 deep")
}

func refused[T any](t *testing.T, v T, want string) {
	t.Helper()
	_, err := must(schema.Of[T]("x")).Append(nil, &v)
	var value *schema.ValueError
	if !errors.As(err, &value) || !strings.Contains(err.Error(), want) {
		t.Errorf("%T: %v, want %q", v, err, want)
	}
}

func TestDeepValues(t *testing.T) {
	type list struct {
		N    int
		Next *list
	}
	lists := must(schema.Of[list]("list"))
	var l *list
	for i := range 999 {
		l = &list{i, l}
	}
	head := list{-1, l}
	data, err := lists.Append(nil, &head)
	if err != nil {
		t.Fatal(err)
	}
	var got list
	if _, err := lists.Decode(data, &got); err != nil || !reflect.DeepEqual(got, head) {
		t.Fatal(err)
	}
	if _, err := schema.Skipper(lists.Schema())(data); err != nil {
		t.Fatal(err)
	}
	if _, _, err := schema.JSON(lists.Schema())(nil, data); err != nil {
		t.Fatal(err)
	}
	endless := bytes.Repeat([]byte{0, 2}, 1<<20)
	for name, err := range map[string]error{
		"decode": second(lists.Decode(endless, &got)),
		"skip":   second(schema.Skipper(lists.Schema())(endless)),
		"json":   third(schema.JSON(lists.Schema())(nil, endless)),
	} {
		if err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

func TestHostileLengths(t *testing.T) {
	huge := "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" // 2^62 - 1
	least := "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	for _, data := range []string{huge, least, huge + strings.Repeat("\x02", 100), "\x01" + huge, least + huge, strings.Repeat("\xff", 20)} {
		hostile[string](t, data)
		hostile[[]byte](t, data)
		hostile[[]string](t, data)
		hostile[[]struct{}](t, data)
		hostile[[]struct {
			Kept int `avro:"-"`
		}](t, data)
		hostile[[3]int](t, data)
		hostile[map[string]int64](t, data)
		hostile[map[int64]string](t, data)
		hostile[tier](t, data)
		hostile[struct{ P *int }](t, data)
		hostile[struct {
			D *big.Rat `avro:",precision=3"`
		}](t, "\x02"+data)
	}
}

func TestEnumsIndexIsChecked(t *testing.T) {
	var v tier
	if _, err := must(schema.Of[tier]("x")).Decode([]byte("\x06"), &v); err == nil {
		t.Errorf("the fourth of three symbols is %q", v)
	}
}

func hostile[T any](t *testing.T, data string) {
	t.Helper()
	typ := must(schema.Of[T]("x"))
	var v T
	if _, err := typ.Decode([]byte(data), &v); err == nil {
		t.Errorf("%T is read from %q", v, data)
	}
	allocated := testing.AllocsPerRun(3, func() {
		_, _ = typ.Decode([]byte(data), &v)
		_, _ = schema.Skipper(typ.Schema())([]byte(data))
		_, _, _ = schema.JSON(typ.Schema())(nil, []byte(data))
	})
	if allocated > 500 {
		t.Errorf("%T: %v allocations for %q", v, allocated, data)
	}
}

// TestBlocks reads what this package doesn't write: several blocks, and blocks
// that tell their size.
func TestBlocks(t *testing.T) {
	data := []byte("\x02\x02a\x03\x08\x02b\x02c\x00")
	var list []string
	if _, err := must(schema.Of[[]string]("x")).Decode(data, &list); err != nil || strings.Join(list, "") != "abc" {
		t.Errorf("%q %v", list, err)
	}
	var array [3]string
	if _, err := must(schema.Of[[3]string]("x")).Decode(data, &array); err != nil || array[2] != "c" {
		t.Errorf("%q %v", array, err)
	}
	var short [2]string
	if _, err := must(schema.Of[[2]string]("x")).Decode(data, &short); err == nil {
		t.Error("three items in an array of two")
	}
	var m map[string]int
	if _, err := must(schema.Of[map[string]int]("x")).Decode([]byte("\x02\x02a\x02\x01\x06\x02b\x04\x00"), &m); err != nil || len(m) != 2 || m["b"] != 2 {
		t.Errorf("%v %v", m, err)
	}
	if n, err := schema.Skipper(schema.Array(schema.String()))(data); n != len(data) || err != nil {
		t.Errorf("skipped %d of %d: %v", n, len(data), err)
	}
	text, _, err := schema.JSON(schema.Array(schema.String()))(nil, data)
	if string(text) != `["a","b","c"]` || err != nil {
		t.Errorf("%s %v", text, err)
	}
}

func TestNarrowIntegersAreChecked(t *testing.T) {
	type narrow struct {
		A uint8
		B int16
	}
	narrows := must(schema.Of[narrow]("n"))
	var v narrow
	for data, want := range map[string]string{
		"\x01\x00":             "n.A: -1 doesn't fit a uint8",
		"\x00\x80\x80\x04":     "n.B: 32768 doesn't fit an int16",
		"\xfe\x03\xff\xff\x03": "",
	} {
		_, err := narrows.Decode([]byte(data), &v)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", data, err, want)
		}
	}
	if v.A != 255 && v.B != -32768 {
		t.Errorf("%v", v)
	}
}
