package avrofile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"
)

// write returns the file of the records.
func write(t testing.TB, o Options, records ...[]byte) ([]byte, Summary) {
	t.Helper()
	var out bytes.Buffer
	w := New(&out, o)
	for _, r := range records {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), sum
}

// read returns a file's blocks, one behind the other, and the number of records.
func read(file []byte) (data []byte, records int, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, 0, err
	}
	var buf []byte
	for {
		block, n, err := r.Next(buf)
		if err == io.EOF {
			return data, records, nil
		}
		if err != nil {
			return data, records, err
		}
		data, records, buf = append(data, block...), records+n, block
	}
}

func TestBytesOfAFile(t *testing.T) {
	file, sum := write(t, Options{Schema: `"long"`, Meta: map[string]string{"z": "1", "a": "2"}, Codec: Null}, []byte{2}, []byte{4})

	header := "Obj\x01" +
		"\x08" + // four entries
		"\x02a\x022" +
		"\x14avro.codec\x08null" +
		"\x16avro.schema\x0c\"long\"" +
		"\x02z\x021" +
		"\x00"
	marker := sha256.Sum256([]byte(header + "\x02\x04"))
	sync := string(marker[:16])
	want := header + sync + "\x04\x04\x02\x04" + sync // two records, two bytes
	if string(file) != want {
		t.Errorf("got  %q\nwant %q", file, want)
	}
	hash := sha256.Sum256([]byte(want))
	if want := (Summary{Records: 2, Bytes: int64(len(want)), SHA256: hex.EncodeToString(hash[:])}); sum != want {
		t.Errorf("summary %+v, want %+v", sum, want)
	}
}

func TestFileWithoutRecords(t *testing.T) {
	file, sum := write(t, Options{Schema: `"long"`})
	if sum.Records != 0 || sum.Bytes != int64(len(file)) {
		t.Errorf("summary %+v of %d bytes", sum, len(file))
	}
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if r.Schema() != `"long"` || r.Meta("avro.codec") != "snappy" || r.Meta("none") != "" {
		t.Errorf("schema %q, codec %q", r.Schema(), r.Meta("avro.codec"))
	}
	if _, _, err := r.Next(nil); err != io.EOF {
		t.Errorf("Next: %v, want the end", err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 1, 300)).Draw(t, "records")
		o := Options{
			Schema:     rapid.String().Draw(t, "schema"),
			Meta:       rapid.MapOf(rapid.StringMatching(`[a-z]{1,9}`), rapid.String()).Draw(t, "meta"),
			BlockBytes: rapid.IntRange(0, 2000).Draw(t, "block"),
			Codec:      rapid.SampledFrom([]Codec{Snappy, Null}).Draw(t, "codec"),
		}
		var first, second bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &second} {
			w := New(out, o)
			for _, r := range records {
				w.Append(r)
			}
			if _, err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("equal content gave different bytes")
		}
		r, err := NewReader(&first)
		if err != nil {
			t.Fatal(err)
		}
		if r.Schema() != o.Schema {
			t.Errorf("schema %q, want %q", r.Schema(), o.Schema)
		}
		for key, value := range o.Meta {
			if r.Meta(key) != value {
				t.Errorf("meta %q: %q, want %q", key, r.Meta(key), value)
			}
		}
		data, n, err := read(second.Bytes())
		if err != nil || n != len(records) || !bytes.Equal(data, bytes.Join(records, nil)) {
			t.Errorf("read %d records, %d bytes, error %v; want %d records", n, len(data), err, len(records))
		}
	})
}

// sample is a file of several blocks, and where the first one begins.
func sample(t testing.TB, codec Codec) (file []byte, header int) {
	var records [][]byte
	for i := range 100 {
		records = append(records, fmt.Appendf(nil, "record %d of a hundred, ", i))
	}
	file, _ = write(t, Options{Schema: `"bytes"`, BlockBytes: 600, Codec: codec}, records...)
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return file, int(r.Offset())
}

func TestFileCutShort(t *testing.T) {
	for _, codec := range []Codec{Snappy, Null} {
		file, header := sample(t, codec)
		whole, _, _ := read(file)
		ends := map[int]bool{header: true} // of blocks: there a file may end
		r, _ := NewReader(bytes.NewReader(file))
		for {
			if _, _, err := r.Next(nil); err != nil {
				break
			}
			ends[int(r.Offset())] = true
		}
		for n := range file {
			data, _, err := read(file[:n])
			var format *FormatError
			switch {
			case !bytes.HasPrefix(whole, data):
				t.Fatalf("%v, %d bytes: other data", codec, n)
			case ends[n] && err != nil:
				t.Fatalf("%v, %d bytes, whole blocks: %v", codec, n, err)
			case !ends[n] && !errors.As(err, &format):
				t.Fatalf("%v, %d bytes: error %v", codec, n, err)
			case !ends[n] && !strings.Contains(err.Error(), "the end of the file after"):
				t.Fatalf("%v, %d bytes: %v doesn't tell that the file ends", codec, n, err)
			}
		}
	}
}

// A block's number of records is the one thing without a check sum: only who
// knows the records can tell.
func TestFlippedBit(t *testing.T) {
	file, header := sample(t, Snappy)
	whole, records, _ := read(file)
	for at := header; at < len(file); at++ {
		for bit := range 8 {
			file[at] ^= 1 << bit
			data, n, err := read(file)
			if err == nil && (n == records || !bytes.Equal(data, whole)) {
				t.Fatalf("byte %d, bit %d: nobody saw it", at, bit)
			}
			file[at] ^= 1 << bit
		}
	}
}

func long(v int64) string { return string(binary.AppendVarint(nil, v)) }

func text(s string) string { return long(int64(len(s))) + s }

// headed is a file with the given content behind a header of the codec.
func headed(codec, content string) string {
	return magic + long(2) + text(schemaKey) + text(`"bytes"`) + text(codecKey) + text(codec) + long(0) +
		strings.Repeat("S", syncBytes) + content
}

func TestHostileFiles(t *testing.T) {
	sync := strings.Repeat("S", syncBytes)
	bomb := string(s2.EncodeSnappy(nil, make([]byte, 1<<20)))
	_, n := binary.Uvarint([]byte(bomb))
	liar := string(binary.AppendUvarint(nil, 1<<40)) + bomb[n:]
	tests := []struct{ name, file, want string }{
		{"empty", "", "byte 0: expected the begin of an Avro object container file of 4 bytes, found the end of the file after 0 bytes"},
		{"something else", "PK\x03\x04", `expected "Obj\x01"`},
		{"many entries", magic + long(1<<62), "expected at most 10000 metadata entries, found 4611686018427387904"},
		{"many entries with a size", magic + long(math.MinInt64) + long(1), "expected at most 10000 metadata entries"},
		{"many small blocks of entries", magic + strings.Repeat(long(1)+text("k")+text("v"), 50) + long(-1<<62) + long(9), "at most 10000"},
		{"long key", magic + long(1) + long(1<<62), "expected a header of at most 16777216 bytes, found a metadata key of 4611686018427387904 bytes"},
		{"negative length", magic + long(1) + long(-5), "found a metadata key of -5 bytes"},
		{"key cut short", magic + long(1) + long(15<<20) + "abc", "the end of the file after 3 bytes"},
		{"endless number", magic + strings.Repeat("\xff", 50), "a number that is too long"},
		{"codec", headed("zstandard", ""), `expected the codec snappy or null, found "zstandard"`},
		{"no schema", magic + long(0) + sync, "expected metadata with avro.schema, found none"},
		{"many records", headed("null", long(1<<62)), "expected a block of 0 to 67108864 records, found 4611686018427387904"},
		{"negative records", headed("null", long(-1)), "found -1"},
		{"more records than bytes", headed("null", long(1000)+text("abc")+sync), "at most one record for each of the block's 3 bytes, found 1000 records"},
		{"large block", headed("null", long(1)+long(1<<62)), "expected a block of 0 to 67108864 bytes, found 4611686018427387904"},
		{"negative block", headed("null", long(1)+long(-7)), "found -7"},
		{"block cut short", headed("null", long(1)+long(60<<20)+"abc"), "expected a block of 62914560 bytes, found the end of the file after 3 bytes"},
		{"no check sum", headed("snappy", long(1)+text("abc")+sync), "expected a block with a check sum, found 3 bytes"},
		{"claims too much", headed("snappy", long(1)+text(liar+"CRC!")+sync), "expected snappy data of at most 67108864 bytes"},
		{"claims what can't be", headed("snappy", long(1)+text("\x80\x80\x80\x10....CRC!")+sync), "33554432 bytes from 8"},
		{"wrong check sum", headed("snappy", long(1)+text(bomb+"CRC!")+sync), "expected a block with the check sum 43524321"},
		{"wrong marker", headed("null", long(1)+text("abc")+strings.Repeat("T", syncBytes)), "expected the sync marker 5353"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := read([]byte(test.file))
			runtime.ReadMemStats(&after)
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
				t.Errorf("%d bytes were allocated for a file of %d", took, len(test.file))
			}
		})
	}
}

func TestRecordThatIsTooLarge(t *testing.T) {
	w := New(io.Discard, Options{Schema: `"bytes"`, Codec: Null})
	w.Append([]byte{0})
	err := w.Append(make([]byte, MaxBlockBytes+1))
	if err == nil || !strings.Contains(err.Error(), "record 1 has 67108865 bytes, the limit is 67108864") {
		t.Errorf("error %v", err)
	}
	if _, closeErr := w.Close(); closeErr != err {
		t.Errorf("Close after it: %v", closeErr)
	}
}

type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return len(p), nil
}

func TestWriterBelowFails(t *testing.T) {
	w := New(&failing{300}, Options{Schema: `"bytes"`, Codec: Null, BlockBytes: 50})
	var err error
	for range 100 {
		if err = w.Append(make([]byte, 10)); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Append: %v", err)
	}
	if _, err := w.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
}

func TestReaderBelowFails(t *testing.T) {
	file, header := sample(t, Snappy)
	r, err := NewReader(io.MultiReader(bytes.NewReader(file[:header+9]), failingReader{}))
	if err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, _, err := r.Next(nil); !errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &format) {
		t.Errorf("Next: %v, want the reader's own error", err)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestWriterAfterClose(t *testing.T) {
	w := New(io.Discard, Options{Schema: `"bytes"`, BlockBytes: 1})
	w.Close()
	if err := w.Append([]byte("x")); err == nil {
		t.Error("Append after Close gave no error")
	}
	if _, err := w.Close(); err == nil {
		t.Error("a second Close gave no error")
	}
}
