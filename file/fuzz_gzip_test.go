package file_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// FuzzGzip holds what is read of a packed file against what the standard
// library unpacks: the same lines, then the same end or an error that names the
// file.
func FuzzGzip(f *testing.F) {
	whole := zipped([]byte("one\ntwo\r\n\nthree"))
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), whole...)) // two members are one content
	f.Add(whole[:len(whole)-5])
	f.Add(append(bytes.Clone(whole), 0))
	f.Add(zipped([]byte(strings.Repeat("0", 5000))))
	f.Add([]byte("\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\xff\xffextra"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		text, whole := unpack(packed)
		if len(text) > 1<<20 {
			return
		}
		s := textFile("x.gz", file.MaxLine(1000))
		o := inMemory("x.gz", packed)
		r, err := s.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		p, err := r.Partition(t.Context(), "x.gz", connector.Offset{})
		if err == nil {
			defer p.Close()
			got, _, err = readLines(t, p, -1)
		}
		if err != nil {
			wantError(t, err, "x.gz")
		} else if !whole {
			t.Fatalf("%x was read to its end as %q, and is no whole gzip file", packed, got)
		}
		want := lines(text)
		if len(got) > len(want) || err == nil && len(got) != len(want) {
			t.Fatalf("read %q (%v) of %q", got, err, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("line %d is %q, want %q", i, got[i], want[i])
			}
		}
	})
}

// unpack is what the standard library makes of a gzip file, and whether it is
// whole.
func unpack(packed []byte) (text []byte, whole bool) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, false
	}
	text, err = io.ReadAll(io.LimitReader(r, 2<<20))
	return text, err == nil
}

// lines are the lines of a text as the source has them.
func lines(text []byte) []string {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var out []string
	for line := range bytes.Lines(text) {
		trimmed := line
		if cut, ok := bytes.CutSuffix(line, []byte("\n")); ok {
			trimmed = bytes.TrimSuffix(cut, []byte("\r"))
		}
		if len(trimmed) > 0 {
			out = append(out, string(trimmed))
		}
	}
	return out
}
