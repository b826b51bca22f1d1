package compare

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

// Avro's encoding, by hand.
func long(v int64) []byte { return binary.AppendVarint(nil, v) }
func str(s string) []byte { return append(long(int64(len(s))), s...) }
func dbl(v float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
}
func flt(v float32) []byte {
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
}
func decimal(v int64) []byte { // in more bytes than are needed
	return append(long(8), binary.BigEndian.AppendUint64(nil, uint64(v))...)
}
func some(v []byte) []byte { return append([]byte{2}, v...) }
func array(items ...[]byte) []byte {
	return append(append(long(int64(len(items))), slices.Concat(items...)...), 0)
}

// entries is a map, of keys and values in turn.
func entries(parts ...[]byte) []byte {
	return append(append(long(int64(len(parts)/2)), slices.Concat(parts...)...), 0)
}

// blocks is an array in a block for each item, with its size.
func blocks(items ...[]byte) (out []byte) {
	for _, i := range items {
		out = append(append(append(out, long(-1)...), long(int64(len(i)))...), i...)
	}
	return append(out, 0)
}

func parsed(s string) *schema.Schema { return must(schema.Parse([]byte(s))) }

// typed is a value of a type.
type typed struct {
	schema *schema.Schema
	value  []byte
}

func of(logical string) *schema.Schema {
	kind := "long"
	if logical == "date" || logical == "time-millis" {
		kind = "int"
	}
	return parsed(fmt.Sprintf(`{"type":%q,"logicalType":%q}`, kind, logical))
}

func record2(a, b schema.Field) *schema.Schema { return schema.Record("r", a, b) }

func field(name string, s *schema.Schema) schema.Field { return schema.Field{Name: name, Type: s} }

// columnDiffers compares one column of two rows.
func columnDiffers(t fatal, o Column, a, b typed) bool {
	t.Helper()
	rows := [2][]byte{a.value, b.value}
	forms := [2]*form{newForm(schema.Record("row", field("c", a.schema))), newForm(schema.Record("row", field("c", b.schema)))}
	p, err := newPair("job", "out", map[string]Column{"c": o}, forms[0], forms[1], func(schema.Difference) {})
	if err != nil {
		t.Fatal(err)
	}
	same, err := p.equal(rows[0], rows[1])
	if err != nil {
		t.Fatal(err)
	}
	// Rows that are equal have one canonical form, and others have others.
	if !p.tolerant && !p.same {
		x, y := must(p.canonical(nil, oldSide, rows[0])), must(p.canonical(nil, newSide, rows[1]))
		if (string(x) == string(y)) != same {
			t.Fatalf("%s %x and %s %x: equal is %t, the forms are %x and %x", a.schema.Word(), a.value, b.schema.Word(), b.value, same, x, y)
		}
	}
	return !same
}

func TestValues(t *testing.T) {
	nan := math.Float64frombits(0x7ff8000000000001)
	enum := func(symbols ...string) *schema.Schema { return schema.Enum("e", symbols...) }
	uuid := parsed(`{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}`)
	union := func(s string) *schema.Schema { return parsed(s) }
	two := record2(field("a", schema.Long()), field("b", schema.String()))
	turned := record2(field("b", schema.String()), field("a", schema.Int()))
	more := schema.Record("r", field("b", schema.String()), field("x", schema.Double()), field("a", schema.Long()))
	numbered := parsed(`{"type":"array","logicalType":"map","items":{"type":"record","name":"kv","fields":[{"name":"key","type":"string"},{"name":"value","type":"long"}]}}`)
	for _, c := range []struct {
		what  string
		a, b  typed
		equal bool
	}{
		{"an int and a long", typed{schema.Int(), long(7)}, typed{schema.Long(), long(7)}, true},
		{"other ints", typed{schema.Int(), long(7)}, typed{schema.Long(), long(8)}, false},
		{"a long and a double", typed{schema.Long(), long(-3)}, typed{schema.Double(), dbl(-3)}, true},
		{"a large long and the double next to it", typed{schema.Long(), long(1<<53 + 1)}, typed{schema.Double(), dbl(1 << 53)}, false},
		{"a power of two", typed{schema.Long(), long(1 << 60)}, typed{schema.Double(), dbl(1 << 60)}, true},
		{"a float and the double of the same digits", typed{schema.Float(), flt(0.1)}, typed{schema.Double(), dbl(0.1)}, true},
		{"a float and what it widens to", typed{schema.Float(), flt(0.1)}, typed{schema.Double(), dbl(float64(float32(0.1)))}, true},
		{"other doubles", typed{schema.Double(), dbl(0.1)}, typed{schema.Double(), dbl(math.Nextafter(0.1, 1))}, false},
		{"NaN and NaN", typed{schema.Double(), dbl(math.NaN())}, typed{schema.Double(), dbl(nan)}, true},
		{"NaN as a float", typed{schema.Float(), flt(float32(math.NaN()))}, typed{schema.Double(), dbl(nan)}, true},
		{"NaN and 0", typed{schema.Double(), dbl(math.NaN())}, typed{schema.Double(), dbl(0)}, false},
		{"zeros of both signs", typed{schema.Double(), dbl(0)}, typed{schema.Double(), dbl(math.Copysign(0, -1))}, true},
		{"infinities", typed{schema.Double(), dbl(math.Inf(1))}, typed{schema.Double(), dbl(math.Inf(-1))}, false},
		{"decimals of other scales", typed{schema.Decimal(10, 2), decimal(-150)}, typed{schema.Decimal(12, 4), decimal(-15000)}, true},
		{"other decimals", typed{schema.Decimal(10, 2), decimal(150)}, typed{schema.Decimal(12, 4), decimal(15001)}, false},
		{"decimals of opposite signs", typed{schema.Decimal(10, 2), decimal(150)}, typed{schema.Decimal(10, 2), decimal(-150)}, false},
		{"a decimal and a long", typed{schema.Decimal(10, 2), decimal(12000)}, typed{schema.Long(), long(120)}, true},
		{"a decimal of nothing", typed{schema.Decimal(10, 2), decimal(0)}, typed{schema.Long(), long(0)}, true},
		{"a decimal and a double", typed{schema.Decimal(10, 2), decimal(10)}, typed{schema.Double(), dbl(0.1)}, true},
		{"a small decimal and a double", typed{schema.Decimal(18, 12), decimal(-125)}, typed{schema.Double(), dbl(-1.25e-10)}, true},
		{"the least long as a decimal", typed{schema.Decimal(19, 0), decimal(math.MinInt64)}, typed{schema.Long(), long(math.MinInt64)}, true},
		{"an unsigned and a long", typed{schema.Uint64(), []byte{0, 0, 0, 0, 0, 0, 1, 0}}, typed{schema.Long(), long(256)}, true},
		{"a large unsigned and a double", typed{schema.Uint64(), []byte{0x80, 0, 0, 0, 0, 0, 0, 0}}, typed{schema.Long(), long(math.MinInt64)}, false},
		{"an enum and a string", typed{enum("red", "green"), long(1)}, typed{schema.String(), str("green")}, true},
		{"an enum with another order", typed{enum("red", "green"), long(1)}, typed{enum("green", "red"), long(0)}, true},
		{"an enum's same index of another order", typed{enum("red", "green"), long(1)}, typed{enum("green", "red"), long(1)}, false},
		{"a long and its digits", typed{schema.Long(), long(12)}, typed{schema.String(), str("12")}, true},
		{"a long and other digits", typed{schema.Long(), long(12)}, typed{schema.String(), str("012")}, false},
		{"bytes and a string", typed{schema.Bytes(), str("abc")}, typed{schema.String(), str("abc")}, true},
		{"a UUID and its text", typed{uuid, []byte("0123456789abcdef")}, typed{schema.String(), str("30313233-3435-3637-3839-616263646566")}, true},
		{"a boolean and a number", typed{schema.Boolean(), []byte{1}}, typed{schema.Long(), long(1)}, false},
		{"booleans", typed{schema.Boolean(), []byte{1}}, typed{schema.Boolean(), []byte{0}}, false},
		{"a boolean and a nullable one", typed{schema.Boolean(), []byte{1}}, typed{schema.Nullable(schema.Boolean()), some([]byte{1})}, true},
		{"null and nothing else", typed{schema.Nullable(schema.Long()), []byte{0}}, typed{schema.Long(), long(0)}, false},
		{"null and an empty string", typed{schema.Nullable(schema.Long()), []byte{0}}, typed{schema.String(), str("")}, false},
		{"nulls", typed{schema.Nullable(schema.Long()), []byte{0}}, typed{schema.Nullable(schema.String()), []byte{0}}, true},
		{"moments of other units", typed{of("timestamp-millis"), long(-1500)}, typed{schema.Timestamp(), long(-1_500_000)}, true},
		{"moments with parts", typed{of("timestamp-nanos"), long(-1)}, typed{schema.Timestamp(), long(0)}, false},
		{"a date and a moment", typed{of("date"), long(-1)}, typed{schema.Timestamp(), long(-86_400_000_000)}, true},
		{"a moment and a number", typed{schema.Timestamp(), long(1)}, typed{schema.Long(), long(1)}, false},
		{"a duration and a time of day", typed{schema.Duration(), long(5_000_000)}, typed{of("time-millis"), long(5)}, true},
		{"a time of day and another", typed{of("time-micros"), long(math.MaxInt64)}, typed{schema.Duration(), long(math.MaxInt64)}, false},
		{"arrays of other types", typed{schema.Array(schema.Int()), array(long(1), long(2))}, typed{schema.Array(schema.Double()), blocks(dbl(1), dbl(2))}, true},
		{"arrays of another order", typed{schema.Array(schema.Int()), array(long(1), long(2))}, typed{schema.Array(schema.Int()), array(long(2), long(1))}, false},
		{"an array and a longer one", typed{schema.Array(schema.Int()), array(long(1))}, typed{schema.Array(schema.Int()), array(long(1), long(1))}, false},
		{"maps of another order", typed{schema.Map(schema.Long()), entries(str("a"), long(1), str("b"), long(2))}, typed{numbered, entries(str("b"), long(2), str("a"), long(1))}, true},
		{"other maps", typed{schema.Map(schema.Long()), entries(str("a"), long(1), str("b"), long(2))}, typed{numbered, entries(str("a"), long(2), str("b"), long(1))}, false},
		{"records with turned fields", typed{two, slices.Concat(long(1), str("x"))}, typed{turned, slices.Concat(str("x"), long(1))}, true},
		{"other records", typed{two, slices.Concat(long(1), str("x"))}, typed{turned, slices.Concat(str("y"), long(1))}, false},
		{"records of which one has more", typed{two, slices.Concat(long(1), str("x"))}, typed{more, slices.Concat(str("x"), dbl(2), long(1))}, true},
		{"a record and a string", typed{two, slices.Concat(long(1), str("x"))}, typed{schema.String(), str("x")}, false},
		{"unions of another order", typed{union(`["long","string"]`), slices.Concat(long(1), str("x"))}, typed{union(`["null","string","double"]`), slices.Concat(long(1), str("x"))}, true},
		{"a union and a plain value", typed{union(`["long","string"]`), slices.Concat(long(0), long(4))}, typed{schema.Double(), dbl(4)}, true},
		{"a union's records of other names", typed{union(`[{"type":"record","name":"a","fields":[]},{"type":"record","name":"b","fields":[]}]`), long(0)}, typed{union(`[{"type":"record","name":"b","fields":[]},{"type":"record","name":"a","fields":[]}]`), long(0)}, false},
		{"a union's records of one name", typed{union(`[{"type":"record","name":"a","fields":[]},{"type":"record","name":"b","fields":[]}]`), long(0)}, typed{union(`[{"type":"record","name":"b","fields":[]},{"type":"record","name":"a","fields":[]}]`), long(1)}, true},
	} {
		if columnDiffers(t, Column{}, c.a, c.b) == c.equal || columnDiffers(t, Column{}, c.b, c.a) == c.equal {
			t.Errorf("%s: %s %x and %s %x: equal should be %t", c.what, c.a.schema.Word(), c.a.value, c.b.schema.Word(), c.b.value, c.equal)
		}
	}
}

func TestUnorderedArrays(t *testing.T) {
	a, b := typed{schema.Array(schema.Int()), array(long(1), long(2), long(2))}, typed{schema.Array(schema.Long()), array(long(2), long(1), long(2))}
	c := typed{schema.Array(schema.Long()), array(long(2), long(1), long(1))}
	if !columnDiffers(t, Column{}, a, b) || columnDiffers(t, Column{Unordered: true}, a, b) || !columnDiffers(t, Column{Unordered: true}, a, c) {
		t.Error("arrays without their order are equal if they have the same items as often, and only where that is told")
	}
}

// A type that holds itself is compared as deep as it goes.
func TestRecursiveTypes(t *testing.T) {
	list := parsed(`{"type":"record","name":"l","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","l"]}]}`)
	wide := parsed(`{"type":"record","name":"l","fields":[{"name":"next","type":["null","l"]},{"name":"v","type":"long"}]}`)
	a := typed{list, slices.Concat(long(1), long(1), long(2), long(0))}
	b := typed{wide, slices.Concat(long(1), long(0), long(2), long(1))}
	c := typed{wide, slices.Concat(long(1), long(0), long(3), long(1))}
	if columnDiffers(t, Column{}, a, b) || !columnDiffers(t, Column{}, a, c) {
		t.Error("lists are equal if all their values are")
	}
}

// Any two decimals and doubles are equal if they are as fractions, the double by its
// shortest digits.
func TestNumbersAreComparedByValue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		scales := [2]int{rapid.IntRange(0, 6).Draw(rt, "scale"), rapid.IntRange(0, 6).Draw(rt, "scale")}
		near := rapid.Int64Range(-2000, 2000)
		values := [2]int64{near.Draw(rt, "value"), near.Draw(rt, "value")}
		var rats [2]*big.Rat
		var sides [2]typed
		for i := range rats {
			rats[i] = new(big.Rat).SetFrac(big.NewInt(values[i]), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scales[i])), nil))
			sides[i] = typed{schema.Decimal(18, scales[i]), decimal(values[i])}
			if rapid.Bool().Draw(rt, "a double") {
				v, _ := rats[i].Float64()
				sides[i] = typed{schema.Double(), dbl(v)}
			}
		}
		distance := new(big.Rat).Sub(rats[0], rats[1])
		distance.Abs(distance)
		if (distance.Sign() == 0) == columnDiffers(rt, Column{}, sides[0], sides[1]) {
			rt.Fatalf("%s and %s", rats[0], rats[1])
		}
		// Tolerances with three digits, so that they are often met exactly.
		digits := rapid.Int64Range(0, 3000).Draw(rt, "tolerance")
		bound, relative := big.NewRat(digits, 1000), rapid.Bool().Draw(rt, "relative")
		o, limit := Column{Absolute: float64(digits) / 1000}, bound
		if relative {
			largest := new(big.Rat).Abs(rats[0])
			if b := new(big.Rat).Abs(rats[1]); b.Cmp(largest) > 0 {
				largest = b
			}
			o, limit = Column{Relative: float64(digits) / 1000}, new(big.Rat).Mul(bound, largest)
		}
		if (distance.Cmp(limit) <= 0) == columnDiffers(rt, o, sides[0], sides[1]) {
			rt.Fatalf("%s and %s with %+v", rats[0], rats[1], o)
		}
	})
}

func TestTolerances(t *testing.T) {
	for _, c := range []struct {
		what  string
		o     Column
		a, b  typed
		equal bool
	}{
		{"neighbours that a float64 can't tell", Column{Absolute: 0.5}, typed{schema.Long(), long(1 << 60)}, typed{schema.Long(), long(1<<60 + 1)}, false},
		{"neighbours within", Column{Absolute: 1}, typed{schema.Long(), long(1 << 60)}, typed{schema.Long(), long(1<<60 + 1)}, true},
		{"a tenth", Column{Absolute: 0.1}, typed{schema.Double(), dbl(1.1)}, typed{schema.Double(), dbl(1)}, true},
		{"infinity", Column{Absolute: 1e300}, typed{schema.Double(), dbl(math.Inf(1))}, typed{schema.Double(), dbl(1)}, false},
		{"NaN", Column{Absolute: 1e300}, typed{schema.Double(), dbl(math.NaN())}, typed{schema.Double(), dbl(1)}, false},
		{"null", Column{Absolute: 10}, typed{schema.Nullable(schema.Long()), []byte{0}}, typed{schema.Long(), long(0)}, false},
		{"moments within", Column{Time: time.Second}, typed{of("timestamp-millis"), long(-1000)}, typed{schema.Timestamp(), long(0)}, true},
		{"moments beyond", Column{Time: time.Second}, typed{schema.Timestamp(), long(-1_000_001)}, typed{schema.Timestamp(), long(0)}, false},
		{"moments far apart", Column{Time: math.MaxInt64}, typed{schema.Timestamp(), long(math.MinInt64)}, typed{schema.Timestamp(), long(math.MaxInt64)}, false},
		{"durations within", Column{Time: time.Millisecond}, typed{schema.Duration(), long(0)}, typed{schema.Duration(), long(1_000_000)}, true},
		{"durations beyond", Column{Time: time.Millisecond}, typed{schema.Duration(), long(0)}, typed{schema.Duration(), long(1_000_001)}, false},
		{"durations by share", Column{Relative: 0.01}, typed{schema.Duration(), long(100)}, typed{schema.Duration(), long(99)}, true},
		{"durations by less", Column{Relative: 0.01}, typed{schema.Duration(), long(100)}, typed{schema.Duration(), long(98)}, false},
	} {
		if columnDiffers(t, c.o, c.a, c.b) == c.equal || columnDiffers(t, c.o, c.b, c.a) == c.equal {
			t.Errorf("%s: equal should be %t", c.what, c.equal)
		}
	}
}
