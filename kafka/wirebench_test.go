package kafka

import (
	"testing"

	"github.com/sluicestream/sluice/codec"
)

type benchSpend struct{ Orders, Cents int64 }

// BenchmarkWire makes the record of a table's row.
func BenchmarkWire(b *testing.B) {
	for _, c := range []struct {
		name  string
		value codec.Codec[benchSpend]
	}{{"json", codec.JSON[benchSpend]()}, {"avro", codec.Avro[benchSpend]()}} {
		b.Run(c.name, func(b *testing.B) {
			rows, err := Upsert("t", func(_ string, s benchSpend) benchSpend { return s }, codec.String(), c.value).TableRows()
			if err != nil {
				b.Fatal(err)
			}
			wire, v, dst := rows.NewWire(), benchSpend{17, 123_456}, []byte(nil)
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = wire(dst[:0], "user-0001234", &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
