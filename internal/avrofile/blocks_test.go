package avrofile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// readBlocks is read by way of Blocks.
func readBlocks(file []byte) (data []byte, records int, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, 0, err
	}
	b, err := r.Blocks(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, 0, err
	}
	var buf, scratch []byte
	for i := range b.Len() {
		if buf, err = b.Read(i, buf, &scratch); err != nil {
			return data, records, err
		}
		if len(buf) != int(b.At(i).Bytes) {
			return data, records, fmt.Errorf("%d bytes, the head says %d", len(buf), b.At(i).Bytes)
		}
		data, records = append(data, buf...), records+int(b.At(i).Records)
	}
	return data, records, nil
}

func TestBlocksOfAFile(t *testing.T) {
	for _, codec := range []Codec{Snappy, Null} {
		file, _ := write(t, Options{Schema: `"long"`, BlockBytes: 3, Codec: codec}, []byte{2}, []byte{4}, []byte{6}, []byte{8})
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Blocks(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() != 2 || b.At(0).Records != 3 || b.At(0).Bytes != 3 || b.At(1).Records != 1 || b.At(1).Bytes != 1 || b.Checked() != (codec == Snappy) {
			t.Errorf("%s: %+v", codec, b.list)
		}
		var scratch []byte
		for i, want := range []string{1: "\x08", 0: "\x02\x04\x06"} {
			if got, err := b.Read(i, nil, &scratch); string(got) != want || err != nil {
				t.Errorf("%s: block %d: %q, error %v; want %q", codec, i, got, err, want)
			}
		}
	}
}

func TestBlocksWithoutRecords(t *testing.T) {
	file, _ := write(t, Options{Schema: `"long"`})
	if data, n, err := readBlocks(file); len(data) > 0 || n > 0 || err != nil {
		t.Errorf("a file of a header: %q, %d records, error %v", data, n, err)
	}
	empty := headed("null", long(0)+long(0)) + strings.Repeat("S", syncBytes)
	if data, n, err := readBlocks([]byte(empty)); len(data) > 0 || n > 0 || err != nil {
		t.Errorf("an empty block: %q, %d records, error %v", data, n, err)
	}
}

func TestBlocksOfWhatIsNone(t *testing.T) {
	marker := strings.Repeat("S", syncBytes)
	good := headed("null", long(1)+text("a")) + marker
	if data, _, err := readBlocks([]byte(good)); string(data) != "a" || err != nil {
		t.Fatalf("%q, error %v", data, err)
	}
	for name, file := range map[string]string{
		"cut in the marker":        good[:len(good)-1],
		"cut in the block":         good[:len(good)-17],
		"a byte too many":          good + "x",
		"negative number":          headed("null", long(-1)+text("a")) + marker,
		"negative size":            headed("null", long(1)+long(-1)) + marker,
		"a size beyond the file":   headed("null", long(1)+long(1000)) + marker,
		"a size beyond the limit":  headed("null", long(1)+long(MaxBlockBytes+1)) + marker,
		"more records than bytes":  headed("null", long(3)+text("ab")) + marker,
		"bytes without records":    headed("null", long(0)+text("ab")) + marker,
		"endless number":           headed("null", strings.Repeat("\xff", 12)) + marker,
		"snappy data beyond limit": headed("snappy", long(1)+text("\xff\xff\xff\xff\x0f....CRC!")) + marker,
	} {
		var bad *FormatError
		if _, _, err := readBlocks([]byte(file)); !errors.As(err, &bad) {
			t.Errorf("%s: error %v, want a FormatError", name, err)
		}
	}
}

// What Blocks reads of a file is what Next reads of it.
func FuzzBlocks(f *testing.F) {
	for _, codec := range []Codec{Snappy, Null} {
		file, _ := sample(f, codec)
		f.Add(file)
		f.Add(file[:len(file)/2])
	}
	f.Add([]byte(headed("snappy", long(1)+text("\x80\x80\x80\x10....CRC!"))))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, records, err := readBlocks(file)
		if err != nil {
			return
		}
		want, n, err := read(file)
		if err != nil || records != n || !bytes.Equal(got, want) {
			t.Errorf("%d records, %d bytes; Next gives %d, %d, error %v", records, len(got), n, len(want), err)
		}
	})
}
