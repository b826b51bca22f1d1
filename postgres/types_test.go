package postgres

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

type mood string

func (mood) Symbols() []string { return []string{"sad", "ok", "happy"} }

type inner struct {
	A int64
	B *string
}

// everyType has a field for each type that a column can have.
type everyType struct {
	ID         int64 `pg:",key"`
	I8         int8
	I16        int16
	I32        int32
	I64        int64
	U8         uint8
	U16        uint16
	U32        uint32
	U64        uint64
	F32        float32
	F64        float64
	OK         bool
	Text       string
	Short      string `pg:",type=varchar(3)"`
	Raw        []byte
	Five       [5]byte
	UUID       [16]byte
	TextUUID   string `pg:",type=uuid"`
	At         time.Time
	Instant    schema.Instant
	Wall       time.Time `pg:",type=timestamp"`
	Day        time.Time `pg:",type=date"`
	Took       time.Duration
	Nanos      time.Duration `pg:",type=bigint"`
	Price      big.Rat       `avro:",precision=20,scale=4"`
	Wide       *big.Rat      `avro:",precision=60,scale=30"`
	Mood       mood
	Ints       []int32
	Texts      []*string
	Times      []time.Time
	Nested     inner
	Counts     map[string]int64
	List       []inner
	Doc        string `pg:",type=jsonb"`
	Bytes      []byte `pg:",type=json"`
	Maybe      *int64
	MaybeText  *string
	MaybeInner *inner
	U64Small   uint64 `pg:"u64_small,type=bigint"`
	I64Num     int64  `pg:"i64_num,type=numeric(25,5)"`
}

func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

// TestTypes writes the extremes of each type and compares what the server says
// of them with what was worked out by hand.
func TestTypes(t *testing.T) {
	p := newPlace(t)
	p.exec("set timezone = 'UTC'; set bytea_output = 'hex'; set intervalstyle = 'postgres'; set extra_float_digits = 1")
	x := "x"
	least := everyType{
		ID: 1, I8: math.MinInt8, I16: math.MinInt16, I32: math.MinInt32, I64: math.MinInt64,
		F32: -math.MaxFloat32, F64: -math.MaxFloat64, Short: "äöü", Raw: []byte{0, 255}, Five: [5]byte{1, 2, 3, 4, 5},
		TextUUID: "00000000-0000-0000-0000-000000000000",
		At:       time.Date(-4712, 11, 24, 0, 0, 0, 0, time.UTC).AddDate(-1, 0, 0), Instant: schema.InstantOf(time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)),
		Wall: time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), Day: time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC),
		Took: math.MinInt64 / 1000 * 1000, Nanos: math.MinInt64,
		Price: *rat("-9999999999999999.9999"), Wide: rat("-0.000000000000000000000000000001"),
		Mood: "sad", Ints: []int32{math.MinInt32, 0, math.MaxInt32}, Texts: []*string{nil, &x}, Doc: `"\\u0000"`, Bytes: []byte(`{"a":"\u0000", "a":1}`), I64Num: math.MinInt64,
	}
	most := everyType{
		ID: 2, I8: math.MaxInt8, I16: math.MaxInt16, I32: math.MaxInt32, I64: math.MaxInt64,
		U8: math.MaxUint8, U16: math.MaxUint16, U32: math.MaxUint32, U64: math.MaxUint64,
		F32: math.SmallestNonzeroFloat32, F64: math.SmallestNonzeroFloat64, OK: true, Text: "☂ \\ \" ' \t\n\r \x01 🎈",
		UUID: [16]byte{0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xfe}, TextUUID: "ffffffff-ffff-ffff-ffff-fffffffffffe",
		At: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), Instant: math.MaxInt64, Wall: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		Day: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), Took: math.MaxInt64 / 1000 * 1000, Nanos: math.MaxInt64,
		Price: *rat("9999999999999999.9999"), Wide: rat("999999999999999999999999999999.999999999999999999999999999999"),
		Mood: "happy", Texts: []*string{}, Times: []time.Time{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)},
		Nested: inner{-1, &x}, Counts: map[string]int64{"b": 2, "a": 1}, List: []inner{{1, nil}, {2, &x}}, Doc: ` {"b": 1e3, "a": [null]} `, Bytes: []byte(`[1, 2]`),
		Maybe: new(int64), MaybeText: &x, MaybeInner: &inner{7, nil}, U64Small: math.MaxInt64, I64Num: math.MaxInt64,
	}
	zero := everyType{ID: 3, F64: math.NaN(), F32: float32(math.Inf(-1)), TextUUID: least.TextUUID, Mood: "ok", Doc: "0", Bytes: []byte("0"), Price: *rat("0"), Wide: rat("10000")}
	s := Insert[everyType]("every", p.options(CreateTable())...)
	deliverRows(t, s, &least, &most, &zero)

	for _, c := range []struct{ column, typ, least, most, zero string }{
		{"i8", "smallint", "-128", "127", "0"},
		{"i16", "smallint", "-32768", "32767", "0"},
		{"i32", "integer", "-2147483648", "2147483647", "0"},
		{"i64", "bigint", "-9223372036854775808", "9223372036854775807", "0"},
		{"u8", "smallint", "0", "255", "0"},
		{"u16", "integer", "0", "65535", "0"},
		{"u32", "bigint", "0", "4294967295", "0"},
		{"u64", "numeric(20,0)", "0", "18446744073709551615", "0"},
		{"f32", "real", "-3.4028235e+38", "1e-45", "-Infinity"},
		{"f64", "double precision", "-1.7976931348623157e+308", "5e-324", "NaN"},
		{"ok", "boolean", "false", "true", "false"},
		{"text", "text", "", "☂ \\ \" ' \t\n\r \x01 🎈", ""},
		{"short", "character varying(3)", "äöü", "", ""},
		{"raw", "bytea", `\x00ff`, `\x`, `\x`},
		{"five", "bytea", `\x0102030405`, `\x0000000000`, `\x0000000000`},
		{"uuid", "uuid", "00000000-0000-0000-0000-000000000000", "ff010203-0405-0607-0809-0a0b0c0d0efe", "00000000-0000-0000-0000-000000000000"},
		{"text_uuid", "uuid", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-fffffffffffe", "00000000-0000-0000-0000-000000000000"},
		{"at", "timestamp with time zone", "4714-11-24 00:00:00+00 BC", "9999-12-31 23:59:59.999999+00", "0001-01-01 00:00:00+00"},
		{"instant", "timestamp with time zone", "0001-01-01 00:00:00.000001+00", "294247-01-10 04:00:54.775807+00", "1970-01-01 00:00:00+00"},
		{"wall", "timestamp without time zone", "1999-12-31 23:59:59.999999", "2000-01-01 00:00:00", "0001-01-01 00:00:00"},
		{"day", "date", "1999-12-31", "2024-02-29", "0001-01-01"},
		{"took", "interval", "-2562047:47:16.854775", "2562047:47:16.854775", "00:00:00"},
		{"nanos", "bigint", "-9223372036854775808", "9223372036854775807", "0"},
		{"price", "numeric(20,4)", "-9999999999999999.9999", "9999999999999999.9999", "0.0000"},
		{"wide", "numeric(60,30)", "-0.000000000000000000000000000001", "999999999999999999999999999999.999999999999999999999999999999", "10000.000000000000000000000000000000"},
		{"mood", "text", "sad", "happy", "ok"},
		{"ints", "integer[]", "{-2147483648,0,2147483647}", "{}", "{}"},
		{"texts", "text[]", "{NULL,x}", "{}", "{}"},
		{"times", "timestamp with time zone[]", "{}", `{"2000-01-01 00:00:00+00","1969-12-31 23:59:59+00"}`, "{}"},
		{"nested", "jsonb", `{"A": 0, "B": null}`, `{"A": -1, "B": "x"}`, `{"A": 0, "B": null}`},
		{"counts", "jsonb", "{}", `{"a": 1, "b": 2}`, "{}"},
		{"list", "jsonb", "[]", `[{"A": 1, "B": null}, {"A": 2, "B": "x"}]`, "[]"},
		{"doc", "jsonb", `"\\u0000"`, `{"a": [null], "b": 1000}`, "0"},
		{"bytes", "json", `{"a":"\u0000", "a":1}`, "[1, 2]", "0"},
		{"maybe", "bigint", "∅", "0", "∅"},
		{"maybe_text", "text", "∅", "x", "∅"},
		{"maybe_inner", "jsonb", "∅", `{"A": 7, "B": null}`, "∅"},
		{"u64_small", "bigint", "0", "9223372036854775807", "0"},
		{"i64_num", "numeric(25,5)", "-9223372036854775808.00000", "9223372036854775807.00000", "0.00000"},
	} {
		p.expect("select "+c.column+"::text from @.every order by id", c.least, c.most, c.zero)
		p.expect("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = '@.every'::regclass and attname = '"+c.column+"'", c.typ)
	}
}

// deliverRows makes a stream's sink ready and delivers rows to it.
func deliverRows[T any](t *testing.T, s connector.StreamSink[T], rows ...*T) {
	t.Helper()
	typed, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	target := openTarget(t, s)
	appendRow := typed.NewAppend()
	var frozen []connector.Row
	for _, r := range rows {
		b, err := appendRow(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		frozen = append(frozen, connector.Row{Op: connector.Append, Row: b})
	}
	mustDeliver(t, target, delivery(1, nil, typed.Schema, frozen...), connector.Apply)
}

// openTarget opens a sink and makes its record.
func openTarget(t testing.TB, s connector.Sink) connector.Target {
	t.Helper()
	target, err := s.Open(t.Context(), opening(), ownKey())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	if _, err := target.Make(t.Context(), connector.SinkRecord{ID: "id", Job: "shop", Target: s.Describe().Target}); err != nil {
		t.Fatal(err)
	}
	return target
}

// delivery is one whose record has to stand right before it.
func delivery(position connector.Position, key, row *schema.Schema, rows ...connector.Row) *connector.Delivery {
	return &connector.Delivery{
		Record: connector.SinkRecord{Position: position, ID: "id", Job: "shop", Target: "target", Branch: "main", Manifest: "9c1f"},
		Key:    key, Schema: row,
		Decide: func(found *connector.SinkRecord) connector.Verdict {
			switch {
			case found == nil || found.ID != "id":
				return connector.Disagree
			case found.Position == position-1:
				return connector.Apply
			case found.Position >= position:
				return connector.Skip
			}
			return connector.Disagree
		},
		Rows: func(yield func(connector.Row, error) bool) {
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		},
	}
}

func mustDeliver(t testing.TB, target connector.Target, d *connector.Delivery, want connector.Verdict) {
	t.Helper()
	verdict, found, err := target.Deliver(t.Context(), d)
	if err != nil || verdict != want {
		t.Fatalf("position %d: verdict %v (record %+v, %v), expected %v", d.Record.Position, verdict, found, err, want)
	}
}

// TestMisfits makes rows that a column can't take: each is refused when it is
// made, by the column's name.
func TestMisfits(t *testing.T) {
	type row struct {
		Text   string
		Short  string          `pg:",type=varchar(3)"`
		Small  int64           `pg:",type=smallint"`
		Few    int64           `pg:",type=numeric(3,1)"`
		U      uint64          `pg:",type=bigint"`
		At     time.Time       //
		Took   time.Duration   //
		UUID   string          `pg:",type=uuid"`
		Doc    string          `pg:",type=jsonb"`
		Raw    []byte          `pg:",type=json"`
		Tags   []string        //
		Nested map[string]mood //
		Names  map[string]string
	}
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	rows, err := Insert[row]("t").Rows()
	if err != nil {
		t.Fatal(err)
	}
	appendRow := rows.NewAppend()
	good := func() row { return row{UUID: id, Doc: "{}", Raw: []byte("{}")} }
	r := good()
	if _, err := appendRow(nil, &r); err != nil {
		t.Fatal(err)
	}
	for says, spoil := range map[string]func(r *row){
		"column text: a text of PostgreSQL can't hold the character NUL, which stands at byte 1": func(r *row) { r.Text = "a\x00" },
		"column text: a text of PostgreSQL has to be UTF-8":                                      func(r *row) { r.Text = "\xff" },
		"column short: a text of 4 characters is longer than the column's 3":                     func(r *row) { r.Short = "äöüß" },
		"column small: 32768 is out of range for smallint":                                       func(r *row) { r.Small = math.MaxInt16 + 1 },
		"column few: 100 is out of range for numeric(3,1)":                                       func(r *row) { r.Few = 100 },
		"column few: -100 is out of range":                                                       func(r *row) { r.Few = -100 },
		"column u: 9223372036854775808 is out of range for bigint":                               func(r *row) { r.U = 1 << 63 },
		"column at: the time -4714-12-31T00:00:00Z is before 4713 BC":                            func(r *row) { r.At = time.Date(-4714, 12, 31, 0, 0, 0, 0, time.UTC) },
		"column took: the duration 1ns has parts of a microsecond":                               func(r *row) { r.Took = 1 },
		"column uuid: a uuid has the form":                                                       func(r *row) { r.UUID = strings.ToUpper(id) },
		"found \"0123456789abcdef0123456789abcdef\"":                                             func(r *row) { r.UUID = strings.ReplaceAll(id, "-", "") },
		"column doc: an empty text is no JSON":                                                   func(r *row) { r.Doc = "" },
		"column doc: the text is no JSON: something stands behind it":                            func(r *row) { r.Doc = "{} 1" },
		"column doc: the text is no JSON: ":                                                      func(r *row) { r.Doc = "{,}" },
		"column doc: jsonb can't hold the character NUL":                                         func(r *row) { r.Doc = `{"a":"\\\u0000"}` },
		"column doc: the number 1e999999 in the JSON is out of range for jsonb":                  func(r *row) { r.Doc = "[1e999999]" },
		"column doc: the JSON is nested more than 1000 deep":                                     func(r *row) { r.Doc = strings.Repeat("[", 2000) + strings.Repeat("]", 2000) },
		"column raw: the text is no JSON":                                                        func(r *row) { r.Raw = []byte("nil") },
		"column tags: a text of PostgreSQL can't hold the character NUL":                         func(r *row) { r.Tags = []string{"", "\x00"} },
		"column names: jsonb can't hold the character NUL":                                       func(r *row) { r.Names = map[string]string{"a": "\x00"} },
	} {
		r := good()
		spoil(&r)
		_, err := appendRow(nil, &r)
		var bad *ValueError
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("expected %q, got %v", says, err)
		} else if bad, _ = err.(*ValueError); bad == nil || bad.Table != "public.t" {
			t.Errorf("%s: no ValueError of the table: %#v", says, err)
		}
	}

	keyed, err := Upsert("t", func(k string, n int64) struct{ N int64 } { return struct{ N int64 }{n} }, Key("k")).TableRows()
	if err != nil {
		t.Fatal(err)
	}
	appendKeyed := keyed.NewAppend()
	n := int64(1)
	for key, says := range map[string]string{
		"a\x00b":                  "column k: a text of PostgreSQL can't hold the character NUL, which stands at byte 1",
		strings.Repeat("k", 3000): "column k: a key of 3004 bytes is longer than the 2600 that an index takes",
	} {
		if _, err := appendKeyed(nil, key, &n); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("key %.10q: expected %q, got %v", key, says, err)
		}
	}
	if _, err := appendKeyed(nil, "fine", &n); err != nil {
		t.Error(err)
	}
}

// TestNumerics compares numerics of all lengths around the groups of four digits
// with what the server says.
func TestNumerics(t *testing.T) {
	p := newPlace(t)
	type row struct {
		ID int64
		N  big.Rat `avro:",precision=40,scale=13"`
	}
	var rows []*row
	var want []string
	for digits := 1; digits <= 40; digits++ {
		for _, first := range []string{"1", "9", "10", "90000", "12345"} {
			for _, sign := range []string{"", "-"} {
				text := (first + strings.Repeat("0", 40))[:digits]
				text = strings.Repeat("0", max(0, 14-len(text))) + text
				text = sign + text[:len(text)-13] + "." + text[len(text)-13:]
				rows = append(rows, &row{int64(len(rows)), *rat(text)})
				want = append(want, text)
			}
		}
	}
	deliverRows(t, Insert[row]("t", p.options(CreateTable())...), rows...)
	p.expect("select n from @.t order by id", want...)
}

// TestEnumsAndDomains writes to types of the database's own.
func TestEnumsAndDomains(t *testing.T) {
	p := newPlace(t)
	p.exec(`create type @.mood as enum ('happy', 'ok', 'sad', 'other'); create domain @.amount as numeric(30,6) check (value >= 0);
		create domain @.amounts as @.amount;
		create table @.t (mood @.mood, moods @.mood[], amount @.amounts, days date[])`)
	type row struct {
		Mood   mood   `pg:",type=mood"`
		Moods  []mood `pg:",type=mood[]"`
		Amount uint32
		Days   []time.Time `pg:",type=date[]"`
	}
	deliverRows(t, Insert[row]("t", p.options()...), &row{"sad", []mood{"happy", "ok"}, math.MaxUint32, []time.Time{time.Unix(0, 0)}})
	p.expect("select * from @.t", fmt.Sprintf("sad|{happy,ok}|%d.000000|{1970-01-01}", uint32(math.MaxUint32)))
}
