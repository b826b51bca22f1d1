package schema_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/schema"
)

// varint is a number as Avro writes it, by the standard library.
func varint(v int64) string { return string(binary.AppendVarint(nil, v)) }

// tierKnown is an enum with a symbol for those that it doesn't know.
type tierKnown string

func (tierKnown) Symbols() []string     { return []string{"other", "basic"} }
func (tierKnown) DefaultSymbol() string { return "other" }

// foreign is what somebody else wrote, and what it is read as. want is a value,
// or the end of the error of decoding it, which begins with the path.
type foreign struct {
	name, schema, data string
	read               func(w *schema.Schema, data string) (any, error)
	want               any
}

// as reads a record's field F of type V.
func as[V any](w *schema.Schema, data string) (any, error) {
	type row struct{ F V }
	return read[row](schema.Record("other.Row", schema.Field{Name: "F", Type: w}), data, func(r row) any { return r.F })
}

// asDecimal reads a record's field F of decimal(9,2).
func asDecimal(w *schema.Schema, data string) (any, error) {
	type row struct {
		F big.Rat `avro:",precision=9,scale=2"`
	}
	return read[row](schema.Record("Row", schema.Field{Name: "F", Type: w}), data, func(r row) any { return r.F.RatString() })
}

func asNullableDecimal(w *schema.Schema, data string) (any, error) {
	type row struct {
		F *big.Rat `avro:",precision=9,scale=2"`
	}
	return read[row](schema.Record("Row", schema.Field{Name: "F", Type: w}), data, func(r row) any {
		if r.F == nil {
			return nil
		}
		return r.F.RatString()
	})
}

func read[R any](w *schema.Schema, data string, value func(R) any) (any, error) {
	r, err := must(schema.Of[R]("row")).Reader(w)
	if err != nil {
		return nil, fmt.Errorf("no reader: %w", err)
	}
	var v R
	rest, err := r.Decode([]byte(data+"x"), &v)
	if err == nil && string(rest) != "x" {
		err = fmt.Errorf("%d bytes left", len(rest))
	}
	return value(v), err
}

func pointer[V any](v V) *V { return &v }

const (
	uuidText = "00112233-4455-6677-8899-aabbccddeeff"
	uuidRaw  = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
)

// moment is 2026-03-01T12:34:56.789 UTC, which `date -u -d @1772368496` tells.
var moment = time.Date(2026, 3, 1, 12, 34, 56, 789e6, time.UTC)

const momentMillis = 1772368496789

func logical(kind, name string) string {
	return fmt.Sprintf(`{"type":%q,"logicalType":%q}`, kind, name)
}

var foreigns = []foreign{
	{"millis as time", logical("long", "timestamp-millis"), varint(momentMillis), as[time.Time], moment},
	{"millis as instant", logical("long", "timestamp-millis"), varint(momentMillis), as[schema.Instant], schema.Instant(momentMillis * 1000)},
	{"millis before 1970", logical("long", "timestamp-millis"), varint(-1), as[schema.Instant], schema.Instant(-1000)},
	{"millis, nullable", `["null",` + logical("long", "timestamp-millis") + `]`, "\x02" + varint(momentMillis), as[*time.Time], &moment},
	{"the last millis", logical("long", "timestamp-millis"), varint(math.MaxInt64 / 1000), as[schema.Instant], schema.Instant(math.MaxInt64 / 1000 * 1000)},
	{"millis too far", logical("long", "timestamp-millis"), varint(math.MaxInt64/1000 + 1), as[schema.Instant],
		"row.F: the timestamp-millis 9223372036854776 is out of range: 64 bits of microseconds reach some 292,000 years from 1970"},
	{"millis too far back", logical("long", "timestamp-millis"), varint(math.MinInt64), as[time.Time], "is out of range"},
	{"micros of a local time", logical("long", "local-timestamp-micros"), varint(momentMillis * 1000), as[time.Time], moment},
	{"millis of a local time", logical("long", "local-timestamp-millis"), varint(momentMillis), as[time.Time], moment},
	{"nanos of a local time", logical("long", "local-timestamp-nanos"), varint(momentMillis*1e6 + 1), as[time.Time], moment.Add(1)},
	{"nanos as time", logical("long", "timestamp-nanos"), varint(momentMillis*1e6 + 1), as[time.Time], moment.Add(1)},
	{"nanos as instant", logical("long", "timestamp-nanos"), varint(momentMillis * 1e6), as[schema.Instant], schema.Instant(momentMillis * 1000)},
	{"parts of a micro", logical("long", "timestamp-nanos"), varint(momentMillis*1e6 + 1), as[schema.Instant],
		"row.F: 2026-03-01T12:34:56.789000001Z has parts of a microsecond, which an Instant can't hold: use time.Time"},
	{"date as time", logical("int", "date"), varint(20513), as[time.Time], time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
	{"date as instant", logical("int", "date"), varint(-1), as[schema.Instant], schema.Instant(-86400e6)},
	{"date too far", logical("int", "date"), varint(math.MaxInt32), as[time.Time], "row.F: the date 2147483647 is out of range"},
	{"date as days", logical("int", "date"), varint(20513), as[int32], int32(20513)},
	{"date as long days", logical("int", "date"), varint(20513), as[int], 20513},
	{"time of day", logical("int", "time-millis"), varint(1), as[time.Duration], time.Millisecond},
	{"time of day in micros", logical("long", "time-micros"), varint(86399999999), as[time.Duration], 24*time.Hour - time.Microsecond},
	{"time of day too long", logical("long", "time-micros"), varint(math.MaxInt64), as[time.Duration], "row.F: the time-micros 9223372036854775807 is out of range"},
	{"time of day as a number", logical("long", "time-micros"), varint(5), as[int64], int64(5)},
	{"an unknown logical type", logical("long", "mystery"), varint(5), as[int64], int64(5)},
	{"uuid", logical("string", "uuid"), varint(36) + uuidText, as[string], uuidText},
	{"uuid as bytes", logical("string", "uuid"), varint(36) + strings.ToUpper(uuidText), as[[16]byte], [16]byte([]byte(uuidRaw))},
	{"no uuid", logical("string", "uuid"), varint(2) + "00", as[[16]byte], `row.F: "00" is no UUID such as 00000000-0000-0000-0000-000000000000`},
	{"no hex", logical("string", "uuid"), varint(36) + strings.Replace(uuidText, "a", "g", 1), as[[16]byte], "is no UUID"},
	{"no hyphen", logical("string", "uuid"), varint(36) + strings.Replace(uuidText, "-", "0", 1), as[[16]byte], "is no UUID"},
	{"fixed uuid", `{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}`, uuidRaw, as[[16]byte], [16]byte([]byte(uuidRaw))},
	{"fixed uuid as text", `{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}`, uuidRaw, as[string], uuidText},
	{"fixed decimal", `{"type":"fixed","name":"d","size":8,"logicalType":"decimal","precision":9,"scale":2}`, "\x00\x00\x00\x00\x00\x00\x04\xd2", asDecimal, "617/50"},
	{"negative fixed decimal", `{"type":"fixed","name":"d","size":4,"logicalType":"decimal","precision":9,"scale":2}`, "\xff\xff\xff\x38", asDecimal, "-2"},
	{"too large a fixed decimal", `{"type":"fixed","name":"d","size":8,"logicalType":"decimal","precision":3,"scale":2}`, "\x00\x00\x00\x00\x00\x00\x04\xd2", asDecimal, "row.F: 1234 has more digits than a decimal(3,2) in fixed(8)"},
	{"decimal of fewer digits", `{"type":"bytes","logicalType":"decimal","precision":4,"scale":1}`, "\x02\x19", asDecimal, "5/2"},
	{"decimal or null", `["null",{"type":"bytes","logicalType":"decimal","precision":4,"scale":1},"string"]`, "\x02\x02\x19", asNullableDecimal, "5/2"},
	{"decimal, and it is null", `["string","null",{"type":"bytes","logicalType":"decimal","precision":4,"scale":1}]`, "\x02", asNullableDecimal, nil},
	{"decimal, and it is a string", `["null",{"type":"bytes","logicalType":"decimal","precision":4,"scale":1},"string"]`, "\x04\x02a", asNullableDecimal,
		"row.F: string was written where nullable decimal(9,2) is read"},
	{"the branch that fits", `["null","int","string"]`, "\x02" + varint(-3), as[*int32], pointer(int32(-3))},
	{"null of three", `["null","int","string"]`, "\x00", as[*int32], (*int32)(nil)},
	{"the branch that doesn't", `["null","int","string"]`, "\x04\x02a", as[*int32], "row.F: string was written where nullable int is read"},
	{"the branch as a string", `["null","int","string"]`, "\x04\x02a", as[*string], pointer("a")},
	{"no such branch", `["null","int","string"]`, "\x06", as[*string], "row.F: a union's index is none of its branches'"},
	{"branches that widen", `["int","long","float","double"]`, "\x04\x00\x00\xc0\x3f", as[float64], 1.5},
	{"branches of text", `["string","bytes"]`, "\x02\x02a", as[string], "a"},
	{"one branch", `["string"]`, "\x00\x02a", as[string], "a"},
	{"one branch, nullable", `["string"]`, "\x00\x02a", as[*string], pointer("a")},
	{"null alone", `"null"`, "", as[*string], (*string)(nil)},
	{"null as the one branch", `["null"]`, "\x00", as[*string], (*string)(nil)},
	{"a record or a string", `["string",{"type":"record","name":"p","fields":[{"name":"Y","type":"string"},{"name":"X","type":"int"}]}]`, "\x02\x02b" + varint(4), as[point], point{4, "b"}},
	{"one of two records", `[{"type":"record","name":"q","fields":[{"name":"Z","type":"int"}]},{"type":"record","name":"p","fields":[{"name":"X","type":"int"}]}]`, "\x02" + varint(4), as[point], point{X: 4}},
	{"the other of two records", `[{"type":"record","name":"q","fields":[{"name":"Z","type":"int"}]},{"type":"record","name":"p","fields":[{"name":"X","type":"int"}]}]`, "\x00" + varint(4), as[point],
		"row.F: record was written where record is read"},
	{"items of several types", `{"type":"array","items":["int","null"]}`, "\x04\x00\x02\x02\x00", as[[]*int64], []*int64{pointer(int64(1)), nil}},
	{"values of several types", `{"type":"map","values":["string","int"]}`, "\x02\x02a\x02\x02\x00", as[map[string]int], map[string]int{"a": 1}},
	{"an unknown symbol", `{"type":"enum","name":"t","symbols":["basic","gold"],"default":"basic"}`, "\x02", as[tierKnown], tierKnown("other")},
	{"a known symbol", `{"type":"enum","name":"t","symbols":["basic","gold"],"default":"basic"}`, "\x00", as[tierKnown], tierKnown("basic")},
	{"a type that has aliases", `{"type":"enum","name":"t","aliases":["a.b","c"],"symbols":["basic"]}`, "\x00", as[tier], tier("basic")},
}

func TestForeign(t *testing.T) {
	for _, c := range foreigns {
		got, err := c.read(must(schema.Parse([]byte(c.schema))), c.data)
		if want, ok := c.want.(string); ok && err != nil {
			var value *schema.ValueError
			if !errors.As(err, &value) || !strings.HasPrefix(value.Path, "row") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", c.name, err, want)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v (%v)\nwant %v", c.name, got, err, c.want)
		}
	}
}

// TestForeignDifferences has what the reading rests on told beforehand.
func TestForeignDifferences(t *testing.T) {
	for _, c := range []struct {
		old  string
		now  *schema.Schema
		want []string
	}{
		{logical("long", "timestamp-millis"), of[time.Time](), []string{"may timestamp-millis → timestamp"}},
		{logical("long", "local-timestamp-micros"), of[time.Time](), []string{"ok local-timestamp-micros → timestamp"}},
		{logical("long", "timestamp-nanos"), of[schema.Instant](), []string{"may timestamp-nanos → timestamp (narrowed)"}},
		{logical("int", "date"), of[time.Time](), []string{"may date → timestamp"}},
		{logical("int", "date"), of[int32](), nil},
		{logical("int", "date"), of[int64](), []string{"ok date → long"}},
		{logical("int", "date"), of[int16](), []string{"narrows date → int16 (narrowed)"}},
		{logical("int", "date"), of[float64](), []string{"no date → double"}},
		{logical("long", "timestamp-millis"), of[int64](), []string{"no timestamp-millis → long"}},
		{logical("int", "time-millis"), of[time.Duration](), []string{"ok time-millis → duration"}},
		{logical("long", "time-micros"), of[time.Duration](), []string{"may time-micros → duration"}},
		{logical("int", "time-millis"), of[time.Time](), []string{"no time-millis → timestamp"}},
		{logical("string", "uuid"), of[string](), nil},
		{logical("string", "uuid"), of[[16]byte](), []string{"may uuid → fixed(16)"}},
		{logical("string", "uuid"), of[[15]byte](), []string{"no uuid → fixed(15)"}},
		{`"string"`, of[[16]byte](), []string{"no string → fixed(16)"}},
		{`{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}`, of[string](), []string{"ok uuid in fixed(16) → string"}},
		{`{"type":"fixed","name":"u","size":16}`, of[string](), []string{"no fixed(16) → string"}},
		{`{"type":"fixed","name":"d","size":8,"logicalType":"decimal","precision":9,"scale":2}`, schema.Decimal(9, 2), []string{"ok decimal(9,2) in fixed(8) → decimal(9,2)"}},
		{`["null","int","string"]`, of[struct{ A *int64 }]().Fields()[0].Type, []string{"may null or int or string → nullable long (narrowed)", "ok int → long"}},
		{`["null","int","string"]`, of[int64](), []string{"narrows null or int or string → long (made required)", "may null or int or string → long (narrowed)", "ok int → long"}},
		{`["int","long"]`, of[int64](), []string{"ok int or long → long", "ok int → long"}},
		{`["int","long"]`, of[int32](), []string{"may, narrows int or long → int (narrowed)"}},
		{`["double","long"]`, of[int32](), []string{"narrows double or long → int (narrowed)"}},
		{`["boolean","string"]`, of[int32](), []string{"no boolean or string → int"}},
		{`"null"`, of[struct{ A *int64 }]().Fields()[0].Type, []string{"ok null → nullable long"}},
		{`["null"]`, of[int64](), []string{"no null → long"}},
		{`{"type":"enum","name":"t","symbols":["basic","gold"]}`, of[tierKnown](), []string{"ok symbol added (other)", "drops symbol removed (gold)"}},
	} {
		var got []string
		for _, d := range schema.Differences(must(schema.Parse([]byte(c.old))), c.now) {
			got = append(got, word(d)+" "+d.String())
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s → %s:\ngot  %q\nwant %q", c.old, c.now.Word(), got, c.want)
		}
	}
}
