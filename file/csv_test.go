package file_test

import (
	"encoding/csv"
	"errors"
	"io"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// decodeCSV decodes a file's text, up to its first error.
func decodeCSV[T any](t testing.TB, text string, opts ...file.Option) ([]T, error) {
	t.Helper()
	s := file.CSV[T]("x.csv", opts...)
	r, err := s.Open(t.Context(), inMemory("x.csv", []byte(text)))
	if err != nil {
		return nil, err
	}
	p, err := r.Partition(t.Context(), "x.csv", connector.Offset{})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	decode := s.NewDecoder()
	var rows []T
	for {
		b := &connector.Batch{}
		if err := p.Next(t.Context(), b, -1); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		for i := range b.Records {
			var v T
			if err := decode(b, i, &v); err != nil {
				return rows, err
			}
			rows = append(rows, v)
		}
	}
}

type base struct {
	Named string `csv:"the name"`
}

type level string

type everything struct {
	base
	Skipped chan int `csv:"-"`
	hidden  chan int
	I8      int8
	I       int
	U64     uint64
	F32     float32
	F       float64
	OK      bool
	Level   level
	At      time.Time
	For     time.Duration
	Raw     []byte
	Rat     *big.Rat
	P       *int32
	S       *string
	Extra   string `csv:",optional"`
}

func TestCSVFields(t *testing.T) {
	text := "S,the name,I8,I,U64,F32,F,OK,Level,At,For,Raw,Rat,P,ignored\n" +
		`,"a ""b"", c",-128,9007199254740993,18446744073709551615,0.1,-1e300,true,high,2026-01-31T01:00:00.5+01:00,1h30m,/+8=,1/3,-7,?` + "\n" +
		`"",,0,0,0,0,0,false,"",0001-01-01T00:00:00Z,0,,,,` + "\n"
	got, err := decodeCSV[everything](t, text)
	if err != nil {
		t.Fatal(err)
	}
	minus7, empty := int32(-7), ""
	want := []everything{
		{
			base: base{`a "b", c`}, I8: -128, I: 9007199254740993, U64: 18446744073709551615, F32: 0.1, F: -1e300, OK: true, Level: "high",
			At: time.Date(2026, 1, 31, 0, 0, 0, 5e8, time.UTC), For: 90 * time.Minute, Raw: []byte{0xff, 0xef}, Rat: big.NewRat(1, 3), P: &minus7,
		},
		{S: &empty, hidden: nil}, // unexported: no column goes there
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n%+v\nexpected\n%+v", got, want)
	}
}

func TestCSVRefuses(t *testing.T) {
	type row struct {
		N  int16
		At time.Time
		S  string
		B  bool
		F  *float32
	}
	const header = "N,At,S,B,F\n"
	const good = "2026-01-31T00:00:00Z"
	cases := []struct {
		text  string
		field string
		at    int64
		says  string
	}{
		{header + "x," + good + ",,true,\n", "N", 0, `expected a whole number for int16, found "x"`},
		{header + "40000," + good + ",,true,\n", "N", 0, `found "40000", which is out of range`},
		{header + "," + good + ",,true,\n", "N", 0, "the cell is empty"},
		{header + "1,yesterday,,true,\n", "At", 2, `expected a time such as 2026-01-31T12:00:00Z, found "yesterday"`},
		{header + "1," + good + ",\xff,true,\n", "S", 23, "not UTF-8"},
		{header + "1," + good + ",,maybe,\n", "B", 24, `expected a boolean, found "maybe"`},
		{header + "1," + good + ",,true,1e99\n", "F", 29, "out of range"},
		{header + "1," + good + ",a \"b\",true,\n", "S", 25, "a quote inside an unquoted cell"},
		{header + "1," + good + ",\"a\" b,true,\n", "S", 26, "text behind a closing quote"},
		{header + "1," + good + ",\"a,true,\n", "S", 23, "a quote is left open"},
		{header + "1," + good + ",\n", "", -1, "expected 5 cells as in the header, found 3"},
		{header + "1," + good + ",,true,,\n", "", -1, "expected 5 cells as in the header, found 6"},
	}
	for _, c := range cases {
		_, err := decodeCSV[row](t, c.text)
		bad, ok := errors.AsType[*connector.DecodeError](err)
		if !ok || bad.Field != c.field || bad.At != c.at || !strings.Contains(bad.Error(), c.says) {
			t.Errorf("%q: %#v (%v), expected field %q at %d: %s", c.text, bad, err, c.field, c.at, c.says)
		}
	}
}

func TestCSVHeaders(t *testing.T) {
	type row struct {
		A int
		B *int
		C int `csv:"c,optional"`
	}
	type pair struct{ X, Y int }
	one := 1
	for text, want := range map[string]row{
		"A\n2\n":                               {A: 2},
		"B,A\n1,2\n":                           {2, &one, 0},
		"\"c\",\"A\"\r\n3,2\r\n":               {2, nil, 3},
		"A,other\n2,x\n":                       {A: 2},
		"A,\"many\nlines\"\n2,x\n":             {A: 2},
		strings.Repeat("x", 9000) + ",A\n,2\n": {A: 2},
	} {
		if got, err := decodeCSV[row](t, text); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
	_, err := decodeCSV[row](t, "a,B\n1,2\n")
	wantError(t, err, "x.csv", `field "A" has no column`, `"a" "B"`)
	_, err = decodeCSV[row](t, "A,A\n1,2\n")
	wantError(t, err, "x.csv", `column "A" is there 2 times`)
	_, err = decodeCSV[row](t, "A,x,y\n1,2,3\n", file.Strict())
	wantError(t, err, `column "x" has no field`, `column "y" has no field`)
	_, err = decodeCSV[row](t, "A,\"x\"y\n1,2,3\n")
	wantError(t, err, "header line", "text behind a closing quote")
	_, err = decodeCSV[row](t, "1,2\n", file.Columns("B", "c"))
	wantError(t, err, `field "A" has no column`)

	if got, err := decodeCSV[pair](t, "1;2\n", file.Columns("Y", "X"), file.Comma(';')); err != nil || got[0] != (pair{2, 1}) {
		t.Errorf("without header: %+v, %v", got, err)
	}
	if got, err := decodeCSV[row](t, "A,B\n1,NA\n2,\n", file.Null("NA", "-")); err != nil || got[0].B != nil || got[1].B != nil {
		t.Errorf("with NA: %+v, %v", got, err)
	}
}

func TestCSVTypesRefused(t *testing.T) {
	type twice struct {
		A int
		B int `csv:"A"`
	}
	type wrong struct {
		A []string
		B map[string]int
		C int `csv:"c,required"`
	}
	_, err := decodeCSV[int](t, "A\n")
	wantError(t, err, "int is none")
	_, err = decodeCSV[struct{ a int }](t, "A\n")
	wantError(t, err, "no exported field")
	_, err = decodeCSV[twice](t, "A\n")
	wantError(t, err, `two fields for the column "A"`)
	_, err = decodeCSV[wrong](t, "A\n")
	wantError(t, err, "field A:", "field B:", "field C:", "required", "UnmarshalText")
	var v int
	if err := file.CSV[int]("x").NewDecoder()(&connector.Batch{}, 0, &v); err == nil {
		t.Error("a decoder for a type that can't be decoded")
	}
}

// FuzzCSV compares with encoding/csv, which knows the same format.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n", "\"a\",\"b\"\n1,2", "\"a\"\"b\n,\",c\r\n\r\n\"\",\"\"", "a\"b,c", "\"a\" ,b\n", ",\n,", "\"", "\"a\r\nb\",c\n"} {
		f.Add(seed)
	}
	type pair struct{ A, B string }
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decodeCSV[pair](t, text, file.Columns("A", "B"))
		// encoding/csv makes one newline of the two in "\r\n" everywhere.
		if strings.Contains(text, "\r") || strings.HasPrefix(text, "\xef\xbb\xbf") {
			return
		}
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = 2
		for i := 0; ; i++ {
			record, cerr := r.Read()
			if cerr != nil {
				if i < len(got) {
					t.Fatalf("%q: %q where encoding/csv says %v", text, got[i], cerr)
				}
				return
			}
			if !validText(record) {
				return
			}
			if i >= len(got) {
				t.Fatalf("%q: %v where encoding/csv reads %q", text, err, record)
			}
			if got[i] != (pair{record[0], record[1]}) {
				t.Fatalf("%q: record %d is %q, encoding/csv reads %q", text, i, got[i], record)
			}
		}
	})
}

func validText(record []string) bool {
	for _, s := range record {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}
