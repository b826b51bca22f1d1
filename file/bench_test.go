package file_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// BenchmarkRead reads lines of about 150 bytes, without decoding them.
func BenchmarkRead(b *testing.B) {
	const lines = 200_000
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, `{"ID":"o-%09d","User":"user-%07d","Cents":%d,"At":"2026-01-02T03:04:05.123456Z","Note":"something that no field takes","Qty":3}`+"\n", i, i%9973, i%5000)
	}
	dir := b.TempDir()
	write(b, filepath.Join(dir, "x.log"), []byte(text.String()))
	write(b, filepath.Join(dir, "x.log.gz"), zipped([]byte(text.String())))
	sources := []struct {
		name, file string
		source     connector.Source[string]
	}{
		{"lines", "x.log", textFile(filepath.Join(dir, "x.log"))},
		{"gzip", "x.log.gz", textFile(filepath.Join(dir, "x.log.gz"))},
	}
	for _, s := range sources {
		b.Run(s.name, func(b *testing.B) {
			batch := &connector.Batch{}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				p := mustOpen(b, s.source, s.file, connector.Offset{})
				n := 0
				for {
					*batch = connector.Batch{Records: batch.Records[:0], Buffer: batch.Buffer[:0], Limit: 1024, LimitBytes: 1 << 20}
					err := p.Next(b.Context(), batch, -1)
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					n += len(batch.Records)
				}
				p.Close()
				if n != lines {
					b.Fatalf("read %d lines", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lines), "ns/record")
		})
	}
}

// BenchmarkCSVDecode decodes one record of 7 cells.
func BenchmarkCSVDecode(b *testing.B) {
	type row struct {
		ID, User string
		Cents    int64
		Rate     float64
		OK       bool
		Note     *string
		Qty      int32
	}
	for _, c := range []struct{ name, record string }{
		{"plain", "o-123456789,user-1234567,1299,0.25,true,,3"},
		{"quoted", `"o-123456789","user ""1234567""",1299,0.25,true,,3`},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "x.csv")
			write(b, path, []byte("ID,User,Cents,Rate,OK,Note,Qty\n"+c.record+"\n"))
			s := file.CSV[row](path)
			batch := &connector.Batch{}
			if err := mustOpen(b, s, "x.csv", connector.Offset{}).Next(b.Context(), batch, -1); err != nil {
				b.Fatal(err)
			}
			decode := s.NewDecoder()
			b.ReportAllocs()
			for b.Loop() {
				var v row
				if err := decode(batch, 0, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
