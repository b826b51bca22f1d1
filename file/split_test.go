package file_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
)

// TestSplitting compares with what strings.Split makes of any text, however
// the batches are cut.
func TestSplitting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\r\"é")), 0, 200, -1).Draw(rt, "text")
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		size := rapid.IntRange(1, 20).Draw(rt, "size")
		var want []string
		for line := range strings.SplitSeq(text, "\n") {
			// A carriage return belongs to the newline behind it only.
			want = append(want, line)
		}
		for i := range want {
			if i < len(want)-1 {
				want[i] = strings.TrimSuffix(want[i], "\r")
			}
		}
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		s := textFile("x.log")
		p, err := openIn(t, inMemory("x.log", []byte(text)), s, "x.log", connector.Offset{})
		if err != nil {
			rt.Fatal(err)
		}
		decode := s.NewDecoder()
		var got []string
		at := int64(0)
		for {
			b := &connector.Batch{Limit: limit, LimitBytes: size}
			err := p.Next(t.Context(), b, -1)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				rt.Fatal(err)
			}
			for i := range b.Records {
				var line string
				if err := decode(b, i, &line); err != nil {
					rt.Fatal(err)
				}
				if o := b.Records[i].Offset; !strings.HasPrefix(text[o:], line) || o < at {
					rt.Fatalf("%q isn't at offset %d", line, o)
				}
				got = append(got, line)
			}
			at = b.To.Next
		}
		if !slices.Equal(got, want) || at != int64(len(text)) && len(text) > 0 {
			rt.Fatalf("%q was read as %q to %d, expected %q", text, got, at, want)
		}
	})
}

// FuzzLines reads any text in batches cut anywhere, stops and goes on at each
// cut, and puts it together again.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n\nc"), uint8(1), uint8(1))
	f.Add([]byte("\xef\xbb\xbf\"a\nb\"\n\"c"), uint8(2), uint8(9))
	f.Fuzz(func(t *testing.T, text []byte, limit, size uint8) {
		s, o := file.Lines("x.log", codec.Bytes()), inMemory("x.log", text)
		at := connector.Offset{}
		for {
			p, err := openIn(t, o, s, "x.log", at)
			if err != nil {
				t.Fatal(err)
			}
			b := &connector.Batch{Limit: int(limit), LimitBytes: int(size)}
			err = p.Next(t.Context(), b, -1)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.To.Next <= at.Next {
				t.Fatalf("from %d to %d", at.Next, b.To.Next)
			}
			// What lies between the records is newlines, and the mark at the
			// beginning.
			from := at.Next
			for i := range b.Records {
				r := &b.Records[i]
				line := text[r.Offset:]
				if r.Offset == 0 {
					line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
				}
				if !bytes.HasPrefix(line, r.Value) || len(r.Value) == 0 || bytes.IndexByte(r.Value, '\n') >= 0 {
					t.Fatalf("record %q at %d of %q", r.Value, r.Offset, text)
				}
				checkGap(t, text, from, r.Offset)
				from = r.Offset + int64(len(text[r.Offset:])-len(line)+len(r.Value))
			}
			checkGap(t, text, from, b.To.Next)
			at = b.To
		}
		if at.Next != int64(len(text)) {
			t.Fatalf("read to %d of %q", at.Next, text)
		}
	})
}

func checkGap(t *testing.T, text []byte, from, to int64) {
	t.Helper()
	gap := text[from:to]
	if from == 0 {
		gap = bytes.TrimPrefix(gap, []byte("\xef\xbb\xbf"))
	}
	if len(bytes.Trim(gap, "\r\n")) > 0 {
		t.Fatalf("%q was left out of %q", gap, text)
	}
}
