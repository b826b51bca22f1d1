package codec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

type item struct {
	Name string
	Qty  int32
}

type order struct {
	ID     int64
	User   string
	Items  []item
	Limits map[string]uint8
	At     time.Time
	Times  []time.Time
	For    time.Duration
	Note   *string
}

func decode[T any](t testing.TB, c codec.Codec[T], text string) (T, error) {
	t.Helper()
	var v T
	src := []byte(text)
	err := c.NewDecoder()(src, &v)
	for i := range src { // what was decoded must not point there
		src[i] = '#'
	}
	return v, err
}

func TestJSON(t *testing.T) {
	note := "ü"
	want := order{
		ID: 1 << 60, User: "ann", Items: []item{{"a", 1}, {"b", -2}}, Limits: map[string]uint8{"x": 255},
		At: time.Date(2026, 1, 31, 0, 0, 0, 1000, time.UTC), Times: []time.Time{time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}, For: 90 * time.Minute, Note: &note,
	}
	text := ` {"ID":1152921504606846976,"User":"ann","Items":[{"Name":"a","Qty":1},{"Qty":-2,"Name":"b","Extra":[]}],"Limits":{"x":255},` +
		`"At":"2026-01-31T01:00:00.000001+01:00","Times":["2026-01-30T19:00:00-05:00"],"For":"1h30m","Note":"\u00fc","ignored":{"a":null}} `
	got, err := decode(t, codec.JSON[order](), text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n%+v\nexpected\n%+v", got, want)
	}
	encoded, err := codec.JSON[order]().NewEncoder()([]byte("> "), &want)
	if err != nil {
		t.Fatal(err)
	}
	if s := `> {"ID":1152921504606846976,"User":"ann","Items":[{"Name":"a","Qty":1},{"Name":"b","Qty":-2}],"Limits":{"x":255},` +
		`"At":"2026-01-31T00:00:00.000001Z","Times":["2026-01-31T00:00:00Z"],"For":"1h30m0s","Note":"ü"}`; string(encoded) != s {
		t.Errorf("encoded\n%s\nexpected\n%s", encoded, s)
	}
}

// TestLocalTimes decodes a time whose offset is the machine's own: encoding/json
// would give it the machine's zone, and equal bytes would make other values on
// another machine.
func TestLocalTimes(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.FixedZone("HERE", 3600)
	type row struct {
		A  time.Time
		In struct{ B time.Time }
		C  *time.Time
	}
	v, err := decode(t, codec.JSON[row](), `{"A":"2026-01-31T01:00:00+01:00","In":{"B":"2026-01-31T01:00:00+01:00"},"C":"2026-01-31T01:00:00+01:00"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{v.A, v.In.B, *v.C} {
		if s := at.String(); s != "2026-01-31 00:00:00 +0000 UTC" {
			t.Errorf("decoded to %s", s)
		}
	}
	if v, err := decode(t, codec.JSON[[]time.Time](), `[null]`); err != nil || !v[0].IsZero() {
		t.Errorf("null time: %v, %v", v, err)
	}
}

func TestJSONRefuses(t *testing.T) {
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	cases := []struct {
		text  string
		field string
		at    int64
		says  string
	}{
		{``, "", 0, "ends unfinished after 0 bytes"},
		{`{"ID":1`, "", 7, "ends unfinished after 7 bytes"},
		{`{"ID":1}}`, "", 8, "not JSON at byte 8"},
		{`{"ID":1} 2`, "", 9, "not JSON at byte 9"},
		{`{"ID":1,"ID":2}`, "ID", 8, "duplicate"},
		{`{"User":"` + "\xff" + `"}`, "User", 9, "invalid UTF-8"},
		{`{"ID":"x"}`, "ID", 6, `expected int64, found the string "x"`},
		{`{"ID":1.5}`, "ID", 6, `expected int64, found the number 1.5`},
		{`{"Items":[{"Qty":1},{"Qty":3000000000}]}`, "Items[1].Qty", 27, "expected int32, found the number 3000000000"},
		{`{"Limits":{"x":256}}`, "Limits.x", 15, "expected uint8, found the number 256"},
		{`{"Items":{}}`, "Items", 9, "expected []codec_test.item, found an object"},
		{`{"At":"yesterday"}`, "At", 6, "expected time.Time"},
		{`{"For":90}`, "For", 7, `expected time.Duration, found the number 90 (a duration is a text such as "1h30m"`},
		{`{"For":"soon"}`, "For", 7, "invalid duration"},
		{`[]`, "", 0, "expected codec_test.order, found an array"},
		{`{"x":` + deep + `}`, "", -2, "max depth"},
	}
	for _, c := range cases {
		_, err := decode(t, codec.JSON[order](), c.text)
		bad, ok := errors.AsType[*connector.DecodeError](err)
		if !ok {
			t.Errorf("%.60q: %v is no *connector.DecodeError", c.text, err)
			continue
		}
		if c.at != -2 && (bad.Field != c.field || bad.At != c.at) || !strings.Contains(bad.Error(), c.says) {
			t.Errorf("%.60q: field %.60q at %d: %.200v; expected %q at %d: %s", c.text, bad.Field, bad.At, bad, c.field, c.at, c.says)
		}
	}
	_, err := decode(t, codec.JSON[item](codec.Strict()), `{"Name":"a","Size":1}`)
	if bad, ok := errors.AsType[*connector.DecodeError](err); !ok || bad.Field != "Size" || !strings.Contains(err.Error(), "codec is strict") {
		t.Errorf("strict: %v", err)
	}
}

func TestEncodeFails(t *testing.T) {
	ch := struct{ C func() }{func() {}}
	dst, err := codec.JSON[struct{ C func() }]().NewEncoder()([]byte("kept"), &ch)
	if err == nil || string(dst) != "kept" {
		t.Errorf("%q, %v", dst, err)
	}
	bad := "a\xff"
	if dst, err := codec.String().NewEncoder()([]byte("kept"), &bad); err == nil || string(dst) != "kept" {
		t.Errorf("%q, %v", dst, err)
	}
}

func TestPlain(t *testing.T) {
	if v, err := decode(t, codec.String(), "grüße"); err != nil || v != "grüße" {
		t.Errorf("%q, %v", v, err)
	}
	_, err := decode(t, codec.String(), "gr\xfc\xdfe")
	if bad, ok := errors.AsType[*connector.DecodeError](err); !ok || bad.At != 2 || !strings.Contains(err.Error(), "0xfc") {
		t.Errorf("%#v", err)
	}
	if v, err := decode(t, codec.Bytes(), "\xff\x00"); err != nil || !bytes.Equal(v, []byte{0xff, 0}) {
		t.Errorf("%q, %v", v, err)
	}
	s, b := "text", []byte("bytes")
	if dst, err := codec.String().NewEncoder()([]byte(">"), &s); err != nil || string(dst) != ">text" {
		t.Errorf("%q, %v", dst, err)
	}
	if dst, err := codec.Bytes().NewEncoder()([]byte(">"), &b); err != nil || string(dst) != ">bytes" {
		t.Errorf("%q, %v", dst, err)
	}
}

func TestDescribed(t *testing.T) {
	if p := codec.JSON[item]().Parameters(); p != nil {
		t.Errorf("parameters %v", p)
	}
	if p := codec.JSON[item](codec.Strict()).Parameters(); len(p) != 1 || p[0] != (connector.Parameter{Name: "strict", Value: "true"}) {
		t.Errorf("parameters %v", p)
	}
	if names := codec.JSON[item]().Name() + codec.String().Name() + codec.Bytes().Name(); names != "jsonstringbytes" {
		t.Errorf("names %s", names)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"ID":1,"User":"a","Items":[{"Qty":1}],"Limits":{"a":1},"At":"2026-01-31T00:00:00Z","For":"1s","Note":null}`))
	f.Add([]byte(`{"Items":[`))
	decode, encode := codec.JSON[order]().NewDecoder(), codec.JSON[order]().NewEncoder()
	f.Fuzz(func(t *testing.T, text []byte) {
		var v, again order
		if err := decode(text, &v); err != nil {
			if _, ok := errors.AsType[*connector.DecodeError](err); !ok {
				t.Fatalf("%v is no *connector.DecodeError", err)
			}
			return
		}
		encoded, err := encode(nil, &v)
		if err != nil {
			return // a year that RFC 3339 can't hold
		}
		if err := decode(encoded, &again); err != nil {
			t.Fatalf("%s was encoded as %s: %v", text, encoded, err)
		}
		if second, err := encode(nil, &again); err != nil || !bytes.Equal(encoded, second) {
			t.Fatalf("encoded as %s, then as %s (%v)", encoded, second, err)
		}
	})
}

var line = []byte(`{"ID":1152921504606846976,"User":"user-0012345","Cents":1299,"At":"2026-01-02T03:04:05.123456Z","Note":"something that no field takes","Qty":3}`)

func BenchmarkJSONDecode(b *testing.B) {
	type flat struct {
		ID    int64
		User  string
		Cents int64
		At    time.Time
	}
	decode := codec.JSON[flat]().NewDecoder()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var v flat
		if err := decode(line, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONEncode(b *testing.B) {
	encode := codec.JSON[item]().NewEncoder()
	var dst []byte
	v := item{"name", 7}
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = encode(dst[:0], &v); err != nil {
			b.Fatal(err)
		}
	}
}
