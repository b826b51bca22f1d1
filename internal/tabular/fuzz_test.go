package tabular

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/sluicestream/sluice/schema"
)

// fuzzRead reads what may be anything: whatever comes of it must be rows of the
// layout, and reading them must end.
func fuzzRead(f *testing.F, format Format) {
	key, err := schema.KeyOf[shopKey]("key")
	if err != nil {
		f.Fatal(err)
	}
	value, err := schema.Of[everything]("all")
	if err != nil {
		f.Fatal(err)
	}
	l := Entries("all", key.Schema(), nil, value.Schema())
	skip := schema.Skipper(l.Schema())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range []ReadOptions{{}, {Ignore: true}, {Defaults: true}} {
			r, err := Open(bytes.NewReader(data), int64(len(data)), "file", format, l, o)
			if err != nil {
				continue
			}
			for range 10_000 {
				row, err := r.Next()
				if err != nil {
					if err == io.EOF && r.Row() == 0 && len(data) > 0 && format == JSONL && bytes.ContainsAny(data, "{") {
						t.Errorf("rows were passed over")
					}
					break
				}
				if n, err := skip(row); err != nil || n != len(row) {
					t.Fatalf("a row that is none: %d of %d bytes, %v", n, len(row), err)
				}
			}
			if err := r.Close(); err != nil {
				t.Logf("close: %v", err)
			}
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(foreignJSON))
	f.Add([]byte(`{"key":{"City":"Oslo","Number":1,"Code":2,"Open":true,"Tag":"AAAAAA=="},"value":{"Subs":[{"Name":"a","price":"1.00"}],"Keys":[],"Ints":{"1":"x"},"MapL":{"a":[]}}}`))
	fuzzRead(f, JSONL)
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte(foreignCSV))
	f.Add([]byte(keyCells + ",Subs,I8\n\"Os\"\"\nlo\",1,2,true,AAAAAA==,\"[{\"\"Name\"\":\"\"a\"\",\"\"price\"\":null}]\",7\n"))
	fuzzRead(f, CSV)
}

func fuzzSeed(f *testing.F, format Format) {
	l := Entries("all", schema.Long(), nil, schema.String())
	f.Add(written(f, format, l, [][]byte{appendText(appendLong(nil, 7), "x")}))
}

func FuzzReadAvro(f *testing.F) {
	fuzzSeed(f, Avro)
	fuzzRead(f, Avro)
}

func FuzzReadParquet(f *testing.F) {
	fuzzSeed(f, Parquet)
	for _, name := range []string{"foreign.parquet", "foreign-old.parquet"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	fuzzRead(f, Parquet)
}
