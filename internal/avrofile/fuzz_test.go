package avrofile

import (
	"bytes"
	"io"
	"testing"
)

// Whatever is read, there is no panic, no endless loop and no more data than
// snappy can make of the file.
func FuzzReader(f *testing.F) {
	for _, codec := range []Codec{Snappy, Null} {
		file, _ := sample(f, codec)
		f.Add(file)
		f.Add(file[:len(file)/2])
	}
	f.Add([]byte(headed("snappy", long(1)+text("\x80\x80\x80\x10....CRC!"))))
	f.Fuzz(func(t *testing.T, file []byte) {
		data, records, _ := read(file)
		if len(data) > snappyRatio*len(file) || records > len(data) {
			t.Errorf("%d records, %d bytes from a file of %d", records, len(data), len(file))
		}
	})
}

func benchmarkRecords() [][]byte {
	var records [][]byte
	for i := range 10_000 {
		record := append([]byte("customer-"), long(int64(i*7919))...)
		records = append(records, append(record, bytes.Repeat([]byte{byte(i), byte(i >> 3), 0, 1}, 12)...))
	}
	return records
}

func BenchmarkAppend(b *testing.B) {
	records := benchmarkRecords()
	w := New(io.Discard, Options{Schema: `"bytes"`})
	b.SetBytes(int64(len(records[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := w.Append(records[i%len(records)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	file, _ := write(b, Options{Schema: `"bytes"`}, benchmarkRecords()...)
	data, _, _ := read(file)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file))
		for err == nil {
			var block []byte
			if block, _, err = r.Next(buf); err == nil {
				buf = block
			}
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}
