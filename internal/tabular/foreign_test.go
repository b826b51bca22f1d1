package tabular

import (
	"bytes"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro/ocf"

	"github.com/twmb/avro"

	"github.com/sluicestream/sluice/schema"
)

// foreignShop and foreignRow are what the files in testdata hold: they were written
// by pyarrow 26, where every column may be null.
type foreignShop struct {
	City   string `avro:"city"`
	Number int64  `avro:"number"`
}

type foreignRow struct {
	User   string             `avro:"user"`
	Orders int64              `avro:"orders"`
	Cents  int64              `avro:"cents"`
	At     time.Time          `avro:"at"`
	Seen   time.Time          `avro:"seen"`
	Price  *big.Rat           `avro:"price,precision=12,scale=3"`
	Tags   []*string          `avro:"tags"`
	ByDay  map[string]int64   `avro:"byday"`
	Shop   *foreignShop       `avro:"shop"`
	Note   *string            `avro:"note"`
	Ratio  float64            `avro:"ratio"`
	Extra  string             `avro:"extra,default=none"`
	Nested map[string][]int32 `avro:"nested"`
}

func text(s string) *string { return &s }

// foreignRows are the two rows of each file.
func foreignRows() []foreignRow {
	return []foreignRow{
		{
			User: "ann", Orders: 3, Cents: 6500, At: time.Date(2026, 1, 31, 12, 0, 0, 123e6, time.UTC), Seen: time.Date(2026, 1, 31, 12, 0, 0, 123456e3, time.UTC),
			Price: big.NewRat(1234, 100), Tags: []*string{text("a"), nil, text("b")}, ByDay: map[string]int64{"mon": 1, "tue": 2},
			Shop: &foreignShop{"Oslo", 1}, Ratio: 0.5, Extra: "none", Nested: map[string][]int32{},
		},
		{
			User: "bob", Orders: 1, Cents: -1, At: time.Date(1969, 12, 31, 23, 59, 59, 999e6, time.UTC), Seen: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC),
			Price: big.NewRat(-1, 100), ByDay: map[string]int64{}, Shop: &foreignShop{"", -5}, Note: text("x"), Ratio: -1.5, Extra: "none", Nested: map[string][]int32{},
		},
	}
}

func sameForeign(t *testing.T, rows [][]byte) {
	t.Helper()
	typ, err := schema.Of[foreignRow]("row")
	if err != nil {
		t.Fatal(err)
	}
	want := foreignRows()
	if len(rows) != len(want) {
		t.Fatalf("%d rows, expected %d", len(rows), len(want))
	}
	render := schema.JSON(typ.Schema())
	for i := range want {
		expected, err := typ.Append(nil, &want[i])
		if err != nil {
			t.Fatal(err)
		}
		var v foreignRow
		if rest, err := typ.Decode(rows[i], &v); err != nil || len(rest) > 0 {
			t.Fatalf("row %d: %v, %d bytes too many", i, err, len(rest))
		}
		got, err := typ.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, expected) {
			was, _, _ := render(nil, expected)
			is, _, _ := render(nil, got)
			t.Errorf("row %d: expected %s\nfound %s", i, was, is)
		}
	}
}

func foreignLayout(t *testing.T) Layout {
	t.Helper()
	typ, err := schema.Of[foreignRow]("row")
	if err != nil {
		t.Fatal(err)
	}
	return Records("row", typ.Schema())
}

func TestForeignParquet(t *testing.T) {
	for _, name := range []string{"foreign.parquet", "foreign-old.parquet"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := read(data, Parquet, foreignLayout(t), ReadOptions{Defaults: true})
			if err != nil {
				t.Fatal(err)
			}
			sameForeign(t, rows)
		})
	}
}

// TestForeignAvro reads what another implementation wrote, in another order, with
// columns that may be null, as Spark has them, narrower numbers, and one that nobody
// wants.
func TestForeignAvro(t *testing.T) {
	s, err := avro.Parse(`{"type":"record","name":"topLevelRecord","fields":[
		{"name":"ratio","type":["float","null"]},
		{"name":"strange","type":["null","string"]},
		{"name":"user","type":["string","null"]},
		{"name":"cents","type":["long","null"]},
		{"name":"orders","type":["int","null"]},
		{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
		{"name":"seen","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
		{"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":3}]},
		{"name":"tags","type":["null",{"type":"array","items":["string","null"]}]},
		{"name":"byday","type":["null",{"type":"map","values":["int","null"]}]},
		{"name":"shop","type":["null",{"type":"record","name":"shop","fields":[{"name":"number","type":["int","null"]},{"name":"city","type":["string","null"]}]}]},
		{"name":"note","type":["string","null"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range foreignRows() {
		byDay, tags := map[string]any{}, []any{}
		for day, n := range r.ByDay {
			byDay[day] = int32(n)
		}
		for _, tag := range r.Tags {
			if tag == nil {
				tags = append(tags, nil)
			} else {
				tags = append(tags, *tag)
			}
		}
		row := map[string]any{
			"ratio": float32(r.Ratio), "strange": "x", "user": r.User, "cents": r.Cents, "orders": int32(r.Orders), "at": r.At, "seen": r.Seen,
			"price": r.Price, "tags": tags, "byday": byDay, "shop": map[string]any{"number": int32(r.Shop.Number), "city": r.Shop.City}, "note": nil,
		}
		if r.Note != nil {
			row["note"] = *r.Note
		}
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l := foreignLayout(t)
	var faults *ColumnsError
	if _, err := read(out.Bytes(), Avro, l, ReadOptions{Defaults: true}); !errors.As(err, &faults) || !strings.Contains(err.Error(), "column strange has no place") {
		t.Errorf("a column that nobody wants: %v", err)
	}
	rows, err := read(out.Bytes(), Avro, l, ReadOptions{Ignore: true, Defaults: true})
	if err != nil {
		t.Fatal(err)
	}
	sameForeign(t, rows)
}

// texts are the same two rows, as a person writes them.
const (
	foreignJSON = "\ufeff" + `{"user":"ann","orders":3,"cents":6500,"at":"2026-01-31T12:00:00.123Z","seen":"2026-01-31 13:00:00.123456+01:00","price":"12.34","tags":["a",null,"b"],"byday":{"mon":1,"tue":2},"shop":{"number":1,"city":"Oslo"},"ratio":0.5}

{"note":"x","ratio":-1.5,"shop":{"city":"","number":-5},"byday":{},"tags":[],"price":-0.010,"seen":-315619200000000,"at":"1969-12-31T23:59:59.999Z","cents":-1,"orders":1,"user":"bob","extra":"none"}`
	foreignCSV = "\ufeffnote,user,orders,cents,at,seen,price,tags,byday,shop,ratio\r\n" +
		`,ann,3,6500,2026-01-31T12:00:00.123Z,2026-01-31T12:00:00.123456Z,12.34,"[""a"",null,""b""]","{""mon"":1,""tue"":2}","{""city"":""Oslo"",""number"":1}",0.5` + "\r\n\r\n" +
		`x,bob,1,-1,1969-12-31T23:59:59.999Z,1960-01-01T00:00:00Z,-0.01,[],,"{""city"":"""",""number"":-5}",-1.5` + "\r\n"
)

func TestForeignTexts(t *testing.T) {
	for f, data := range map[Format]string{JSONL: foreignJSON, CSV: foreignCSV} {
		t.Run(string(f), func(t *testing.T) {
			rows, err := read([]byte(data), f, foreignLayout(t), ReadOptions{Defaults: true})
			if err != nil {
				t.Fatal(err)
			}
			sameForeign(t, rows)
		})
	}
}
