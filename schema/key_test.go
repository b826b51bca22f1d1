package schema_test

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

type route struct {
	Carrier string
	Number  int32
	Night   bool
	Gate    [2]byte
	Port    uint16
	Serial  uint64
	At      schema.Instant
	Code    int8
	Zone    struct{ A uint8 }
	Kind    tier // in a key, any string
}

func compareRoutes(a, b route) int {
	night := func(r route) int {
		if r.Night {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Carrier, b.Carrier), cmp.Compare(a.Number, b.Number), cmp.Compare(night(a), night(b)),
		bytes.Compare(a.Gate[:], b.Gate[:]), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Serial, b.Serial),
		cmp.Compare(a.At, b.At), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Zone.A, b.Zone.A), cmp.Compare(a.Kind, b.Kind))
}

// genRoute yields few values for each field, so that many are equal.
var genRoute = rapid.Custom(func(t *rapid.T) route {
	r := route{
		Carrier: rapid.SampledFrom([]string{"", "A", "AA", "B", "é"}).Draw(t, "Carrier"),
		Number:  rapid.SampledFrom([]int32{math.MinInt32, -1, 0, 1, 300}).Draw(t, "Number"),
		Night:   rapid.Bool().Draw(t, "Night"),
		Gate:    [2]byte{rapid.SampledFrom([]byte{0, 128, 255}).Draw(t, "Gate")},
		Port:    rapid.SampledFrom([]uint16{0, 65535}).Draw(t, "Port"),
		Serial:  rapid.SampledFrom([]uint64{0, 1, 1 << 63}).Draw(t, "Serial"),
		At:      rapid.SampledFrom([]schema.Instant{math.MinInt64, 0, math.MaxInt64}).Draw(t, "At"),
		Code:    rapid.SampledFrom([]int8{-128, 0, 127}).Draw(t, "Code"),
		Kind:    rapid.SampledFrom([]tier{"", "tin"}).Draw(t, "Kind"),
	}
	r.Zone.A = rapid.SampledFrom([]uint8{0, 255}).Draw(t, "Zone")
	return r
})

func testKey[K comparable](t *testing.T, g *rapid.Generator[K], compare func(a, b K) int) {
	t.Helper()
	keys := must(schema.KeyOf[K]("key"))
	order, err := schema.Comparer(must(schema.Parse([]byte(keys.Schema().String()))))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := g.Draw(t, "a"), g.Draw(t, "b")
		if rapid.Bool().Draw(t, "same") {
			b = a
		}
		x, y := keys.Append(nil, a), keys.Append(nil, b)
		if (a == b) != bytes.Equal(x, y) {
			t.Fatalf("%v and %v are %x and %x", a, b, x, y)
		}
		if got, want := order(append(x, 1), append(y, 2)), compare(a, b); got != want {
			t.Fatalf("%v to %v compares as %d, want %d", a, b, got, want)
		}
		if got, want := keys.Compare(&a, &b), compare(a, b); got != want {
			t.Fatalf("%v to %v compares in memory as %d, want %d", a, b, got, want)
		}
		back, rest, err := keys.Decode(append(bytes.Clone(x), 'z'))
		if back != a || string(rest) != "z" || err != nil {
			t.Fatalf("%v is read as %v (%v)", a, back, err)
		}
		for cut := range x {
			if _, _, err := keys.Decode(x[:cut]); err == nil {
				t.Fatalf("%v is read from %d of %d bytes", a, cut, len(x))
			}
			order(x[:cut], y)
		}
	})
}

func TestKeys(t *testing.T) {
	testKey(t, genText, cmp.Compare[string])
	testKey(t, rapid.Int64(), cmp.Compare[int64])
	testKey(t, rapid.Int32(), cmp.Compare[int32])
	testKey(t, rapid.Int(), cmp.Compare[int])
	testKey(t, rapid.Int8(), cmp.Compare[int8])
	testKey(t, rapid.Uint64(), cmp.Compare[uint64])
	testKey(t, rapid.Uint32(), cmp.Compare[uint32])
	testKey(t, genInstant, cmp.Compare[schema.Instant])
	testKey(t, genRoute, compareRoutes)
}

func TestKeysDoNotAllocate(t *testing.T) {
	names, routes := must(schema.KeyOf[string]("key")), must(schema.KeyOf[route]("key"))
	buf, name := make([]byte, 0, 256), "ada"
	if n := testing.AllocsPerRun(100, func() {
		buf = names.Append(buf[:0], name)
		a, b := route{Carrier: name}, route{Carrier: name, Kind: "tin"}
		buf = routes.Append(buf, a)
		if routes.Compare(&a, &b) >= 0 {
			t.Error("the order is wrong")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestComparer(t *testing.T) {
	type value struct {
		F  float64
		G  float32
		L  []int16
		P  *string
		T  tier
		In struct{ B []byte }
	}
	values := must(schema.Of[value]("v"))
	compare, err := schema.Comparer(values.Schema())
	if err != nil {
		t.Fatal(err)
	}
	a, b := "a", "b"
	ascending := []value{
		{F: math.Inf(-1), T: "gold"},
		{F: -1, T: "basic"},
		{F: math.Copysign(0, -1), T: "basic"},
		{T: "basic"},
		{T: "gold"},
		{T: "gold", In: struct{ B []byte }{[]byte{1}}},
		{T: "platinum"},
		{P: &a, T: "basic"},
		{P: &b, T: "basic"},
		{L: []int16{-5}, T: "basic"},
		{L: []int16{-5, 1}, T: "basic"},
		{L: []int16{7}, T: "basic"},
		{G: 1, T: "basic"},
		{G: float32(math.NaN()), T: "basic"},
		{F: 2, T: "basic"},
		{F: math.NaN(), T: "basic"},
	}
	for i := range ascending {
		for j := range ascending {
			x, y := must(values.Append(nil, &ascending[i])), must(values.Append(nil, &ascending[j]))
			if got := compare(x, y); got != cmp.Compare(i, j) {
				t.Errorf("%v to %v compares as %d", ascending[i], ascending[j], got)
			}
		}
	}
	if _, err := schema.Comparer(must(schema.Of[[]map[string]int]("m")).Schema()); err == nil {
		t.Error("maps have no order")
	}
}

func TestComparerOrders(t *testing.T) {
	s := must(schema.Parse([]byte(`{"type":"record","name":"r","fields":[
		{"name":"a","type":{"type":"map","values":"int"},"order":"ignore"},
		{"name":"b","type":"int","order":"descending"},
		{"name":"c","type":"int"}]}`)))
	compare, err := schema.Comparer(s)
	if err != nil {
		t.Fatal(err)
	}
	ascending := []string{"\x00\x04\x02", "\x02\x02x\x02\x00\x04\x04", "\x00\x02\x00"}
	if !slices.IsSortedFunc(ascending, func(a, b string) int { return compare([]byte(a), []byte(b)) }) ||
		compare([]byte(ascending[0]), []byte(ascending[2])) != -1 {
		t.Error("ignored or descending fields compare wrongly")
	}
	if compare([]byte("\x00\x04\x02"), []byte("\x02\x02x\x08\x00\x04\x02")) != 0 {
		t.Error("an ignored field counts")
	}
}
