package avrofile

import (
	"bytes"
	"io"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"pgregory.net/rapid"
)

// The files of this package are read by another implementation, and the other
// way round.

const rowSchema = `{"type":"record","name":"row","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"}]}`

type row struct {
	ID   int64  `avro:"id"`
	Name string `avro:"name"`
}

func rows() *rapid.Generator[[]row] {
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) row {
		return row{rapid.Int64().Draw(t, "id"), rapid.String().Draw(t, "name")}
	}))
}

func TestOthersReadOurFiles(t *testing.T) {
	s := avro.MustParse(rowSchema)
	rapid.Check(t, func(t *rapid.T) {
		want := rows().Draw(t, "rows")
		var out bytes.Buffer
		w := New(&out, Options{Schema: rowSchema, BlockBytes: 100, Codec: rapid.SampledFrom([]Codec{Snappy, Null}).Draw(t, "codec")})
		for i := range want {
			record, err := s.AppendEncode(nil, &want[i])
			if err != nil {
				t.Fatal(err)
			}
			w.Append(record)
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := ocf.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			var got row
			if err := r.Decode(&got); err != nil || got != want[i] {
				t.Fatalf("row %d: %+v, error %v; want %+v", i, got, err, want[i])
			}
		}
		if err := r.Decode(new(row)); err != io.EOF {
			t.Errorf("behind the last row: %v", err)
		}
	})
}

func TestWeReadOthersFiles(t *testing.T) {
	s := avro.MustParse(rowSchema)
	rapid.Check(t, func(t *rapid.T) {
		want := rows().Draw(t, "rows")
		options := []ocf.WriterOpt{ocf.WithBlockCount(rapid.IntRange(1, 9).Draw(t, "block"))}
		if rapid.Bool().Draw(t, "snappy") {
			options = append(options, ocf.WithCodec(ocf.SnappyCodec()))
		}
		var out bytes.Buffer
		w, err := ocf.NewWriter(&out, s, options...)
		if err != nil {
			t.Fatal(err)
		}
		var bytesWanted []byte
		for i := range want {
			if err := w.Encode(&want[i]); err != nil {
				t.Fatal(err)
			}
			if bytesWanted, err = s.AppendEncode(bytesWanted, &want[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		data, n, err := read(out.Bytes())
		if err != nil || n != len(want) || !bytes.Equal(data, bytesWanted) {
			t.Errorf("%d records, %d bytes, error %v; want %d records, %d bytes", n, len(data), err, len(want), len(bytesWanted))
		}
	})
}
