package schema_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/sluicestream/sluice/schema"
)

func TestText(t *testing.T) {
	s := "a \"b\"\n\x00é\xff"
	text(t, "x\ty", `"x\ty"`, "x\ty")
	text(t, s, `"a \"b\"\n\u0000é�"`, s)
	text(t, true, "true", "true")
	text(t, int8(-5), "-5", "-5")
	text(t, int64(math.MinInt64), "-9223372036854775808", "-9223372036854775808")
	text(t, uint64(math.MaxUint64), "18446744073709551615", "18446744073709551615")
	text(t, 0.1, "0.1", "0.1")
	text(t, float32(0.1), "0.1", "0.1")
	text(t, 1e21, "1e+21", "1e+21")
	text(t, 5e-324, "5e-324", "5e-324")
	text(t, 1e-7, "1e-7", "1e-7")
	text(t, 123456789.0, "123456789", "123456789")
	text(t, math.Copysign(0, -1), "-0", "-0")
	text(t, math.NaN(), `"NaN"`, "NaN")
	text(t, math.Inf(1), `"Infinity"`, "Infinity")
	text(t, float32(math.Inf(-1)), `"-Infinity"`, "-Infinity")
	text(t, []byte("\x00\xff?"), `"AP8/"`, "AP8/")
	text(t, [2]byte{1, 2}, `"AQI="`, "AQI=")
	text(t, tier("gold"), `"gold"`, "gold")
	text(t, mood(""), `""`, "")
	text(t, time.Unix(0, 120_000).UTC(), `"1970-01-01T00:00:00.00012Z"`, "1970-01-01T00:00:00.00012Z")
	text(t, time.Time{}, `"0001-01-01T00:00:00Z"`, "0001-01-01T00:00:00Z")
	text(t, schema.Instant(-1), `"1969-12-31T23:59:59.999999Z"`, "1969-12-31T23:59:59.999999Z")
	text(t, 90*time.Second, `"1m30s"`, "1m30s")
	text(t, []string{"a", ""}, `["a",""]`, `["a",""]`)
	text(t, []*int{nil, new(int)}, `[null,0]`, `[null,0]`)
	text(t, map[string]int{"b": 1, "a\"": 2}, `{"a\"":2,"b":1}`, `{"a\"":2,"b":1}`)
	text(t, map[int]bool{10: true, 9: false}, `{"9":false,"10":true}`, `{"9":false,"10":true}`)
	text(t, map[schema.Instant]int{0: 1}, `{"1970-01-01T00:00:00Z":1}`, `{"1970-01-01T00:00:00Z":1}`)
	text(t, map[bool]int{true: 1}, `{"true":1}`, `{"true":1}`)
	text(t, map[uint64]int{7: 1}, `{"7":1}`, `{"7":1}`)
	text(t, map[[1]byte]int{{1}: 1}, `{"AQ==":1}`, `{"AQ==":1}`)
	text(t, map[point]int{{1, "y"}: 1}, `[{"key":{"X":1,"Y":"y"},"value":1}]`, `[{"key":{"X":1,"Y":"y"},"value":1}]`)
	text(t, struct{}{}, "{}", "{}")
	text(t, struct {
		A, B *string
		C    struct{ D int }
	}{A: &s}, `{"A":"a \"b\"\n\u0000é�","B":null,"C":{"D":0}}`, `{"A":"a \"b\"\n\u0000é�","B":null,"C":{"D":0}}`)
}

func text[T any](t *testing.T, v T, json, cell string) {
	t.Helper()
	typ := must(schema.Of[T]("x"))
	data := append(must(typ.Append(nil, &v)), 'z')
	for name, c := range map[string]struct {
		f    func(dst, src []byte) ([]byte, []byte, error)
		want string
	}{
		"JSON": {schema.JSON(typ.Schema()), json},
		"Text": {schema.Text(typ.Schema()), cell},
	} {
		out, rest, err := c.f([]byte("> "), data)
		if string(out) != "> "+c.want || string(rest) != "z" || err != nil {
			t.Errorf("%s of %T %v is %s, want %s (%v)", name, v, v, out, c.want, err)
		}
	}
}

func TestDecimalText(t *testing.T) {
	type price struct {
		P big.Rat `avro:",precision=30,scale=2"`
	}
	prices := must(schema.Of[price]("p"))
	for given, want := range map[string]string{
		"0": "0.00", "0.01": "0.01", "-0.01": "-0.01", "1.28": "1.28", "-1.28": "-1.28", "-1.29": "-1.29", "1.27": "1.27", "2.56": "2.56", "-2.56": "-2.56",
		"12345678901234567890.12": "12345678901234567890.12", "-655.36": "-655.36", "-655.37": "-655.37", "327.68": "327.68",
	} {
		r, _ := new(big.Rat).SetString(given)
		data := must(prices.Append(nil, &price{*r}))
		out, _, err := schema.JSON(prices.Schema())(nil, data)
		if string(out) != `{"P":"`+want+`"}` || err != nil {
			t.Errorf("%s is %s (%v)", given, out, err)
		}
		var back price
		if must(prices.Decode(data, &back)); back.P.Cmp(r) != 0 {
			t.Errorf("%s is read as %s", given, back.P.RatString())
		}
		cell, _, err := schema.Text(prices.Schema().Fields()[0].Type)(nil, data)
		if string(cell) != want || err != nil {
			t.Errorf("%s in a cell is %s (%v)", given, cell, err)
		}
	}
	out, _, err := schema.Text(schema.Decimal(2, 0))(nil, []byte("\x02\xf7"))
	if string(out) != "-9" || err != nil {
		t.Errorf("%s %v", out, err)
	}
	if _, _, err := schema.JSON(schema.Decimal(2, 0))(nil, []byte("\x04\x00\x64")); err == nil {
		t.Error("100 has more than 2 digits")
	}
}

func TestTextOfNull(t *testing.T) {
	cell, _, err := schema.Text(schema.Nullable(schema.String()))(nil, []byte{0})
	if len(cell) > 0 || err != nil {
		t.Errorf("%q %v", cell, err)
	}
}

func TestOthersTimes(t *testing.T) {
	for given, c := range map[string][2]string{
		`{"type":"int","logicalType":"date"}`:              {"\x02", `"1970-01-02"`},
		`{"type":"long","logicalType":"timestamp-millis"}`: {"\x02", `"1970-01-01T00:00:00.001Z"`},
		`{"type":"long","logicalType":"timestamp-nanos"}`:  {"\x02", `"1970-01-01T00:00:00.000000001Z"`},
		`{"type":"int","logicalType":"time-millis"}`:       {"\x02", `1`},
		`["int","string","null"]`:                          {"\x02\x02x", `"x"`},
	} {
		out, _, err := schema.JSON(must(schema.Parse([]byte(given))))(nil, []byte(c[0]))
		if string(out) != c[1] || err != nil {
			t.Errorf("%s is %s, want %s (%v)", given, out, c[1], err)
		}
	}
}

func TestInstant(t *testing.T) {
	for _, c := range []struct {
		time time.Time
		want schema.Instant
	}{
		{time.Unix(0, 0), 0},
		{time.Unix(0, 1999), 1},
		{time.Unix(0, -1), -1}, // floor, not truncation
		{time.Unix(-1, 0), -1_000_000},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), -1},
		{time.Unix(math.MaxInt64/2, 0), math.MaxInt64},
		{time.Unix(math.MinInt64/2, 0), math.MinInt64},
	} {
		if got := schema.InstantOf(c.time); got != c.want {
			t.Errorf("%v is %d, want %d", c.time, got, c.want)
		}
	}
	if i := schema.Instant(-1_500_000); schema.InstantOf(i.Time()) != i || i.String() != "1969-12-31T23:59:58.5Z" {
		t.Error(i)
	}
}
