package codec_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/typepb"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/schema"
)

type spend struct {
	Orders, Cents int64
	VIP           bool
	Name          string
}

var sampleSpend = spend{Orders: 17, Cents: 123_456, VIP: true, Name: "Ada Lovelace"}

// BenchmarkAvro compares what the codec costs with the package schema by itself.
func BenchmarkAvro(b *testing.B) {
	spends, err := schema.Of[spend]("spend")
	if err != nil {
		b.Fatal(err)
	}
	reg := &shelf{}
	reg.put(1, &codec.Schema{Format: codec.FormatAvro, Text: spends.Schema().String()})
	reg.put(2, &codec.Schema{Format: codec.FormatAvro, Text: record(`{"name":"Name","type":"string"},{"name":"gone","type":"long"},{"name":"VIP","type":"boolean"},{"name":"Orders","type":"int"},{"name":"Cents","type":"long"}`)})
	plain, framed := codec.Avro[spend](), codec.Avro[spend](codec.Record("spend"), codec.Registered(reg, codec.ByRecord()))
	bytes, err := spends.Append(nil, &sampleSpend)
	if err != nil {
		b.Fatal(err)
	}
	other := []byte("\x00\x00\x00\x00\x02\x18Ada Lovelace\x02\x01\x22\x80\x89\x0f")
	decoding := func(name string, decode func([]byte, *spend) error, src []byte) {
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var v spend
			for b.Loop() {
				if err := decode(src, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	decoding("schema", func(src []byte, v *spend) error { _, err := spends.Decode(src, v); return err }, bytes)
	decoding("plain", plain.NewDecoder(), bytes)
	decoding("framed", framed.NewDecoder(), append([]byte("\x00\x00\x00\x00\x01"), bytes...))
	decoding("resolved", framed.NewDecoder(), other)
	encoding := func(name string, encode func([]byte, *spend) ([]byte, error)) {
		b.Run("encode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				if dst, err = encode(dst[:0], &sampleSpend); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	encoding("schema", spends.Append)
	encoding("plain", plain.NewEncoder())
	encoding("framed", framed.NewEncoder())
}

// BenchmarkProtobuf compares what the codec costs with the library by itself.
func BenchmarkProtobuf(b *testing.B) {
	reg := &shelf{}
	reg.put(1, &codec.Schema{Format: codec.FormatProtobuf, Text: typeProto})
	src := []byte(columnBytes)
	b.Run("decode/library", func(b *testing.B) {
		b.ReportAllocs()
		m := &typepb.Field{}
		var v column
		for b.Loop() {
			v = column{}
			if proto.Unmarshal(src, m) != nil || columnFrom(m, &v) != nil {
				b.Fatal()
			}
		}
	})
	for name, c := range map[string]struct {
		decode func([]byte, *column) error
		src    []byte
	}{
		"plain":  {columns().NewDecoder(), src},
		"framed": {columns(codec.Registered(reg)).NewDecoder(), append([]byte("\x00\x00\x00\x00\x01\x02\x02"), src...)},
	} {
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var v column
			for b.Loop() {
				v = column{}
				if err := c.decode(c.src, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	encode := columns().NewEncoder()
	b.Run("encode/plain", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		v := column{Name: "abc", Number: 300}
		for b.Loop() {
			dst, _ = encode(dst[:0], &v)
		}
	})
}

// TestAllocations: a framed record costs no allocation more than the package
// schema's.
func TestAllocations(t *testing.T) {
	reg := &shelf{}
	c := codec.Avro[spend](codec.Registered(reg, codec.ByRecord()))
	encode, decode := c.NewEncoder(), c.NewDecoder()
	src, err := encode(nil, &sampleSpend)
	if err != nil {
		t.Fatal(err)
	}
	var v spend
	dst := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() { _ = decode(src, &v) }); n != 1 || v != sampleSpend {
		t.Errorf("decoding takes %v allocations, expected 1: the string", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = encode(dst, &sampleSpend) }); n != 0 {
		t.Errorf("encoding takes %v allocations, expected none", n)
	}
}
