package avrofile

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// TestBlocksAreCopied copies ranges of a file's blocks, as they are, into another
// file, between blocks that are packed anew.
func TestBlocksAreCopied(t *testing.T) {
	shown := 0
	rapid.Check(t, func(t *rapid.T) {
		var in, out, want bytes.Buffer
		codec := rapid.SampledFrom([]Codec{Snappy, Null}).Draw(t, "codec")
		w := New(&in, Options{Schema: `"bytes"`, BlockBytes: rapid.SampledFrom([]int{1, 50, 3000}).Draw(t, "block bytes"), Codec: codec})
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			w.Append(bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "record"), rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "times")))
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(in.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := r.Blocks(bytes.NewReader(in.Bytes()), int64(in.Len()))
		if err != nil {
			t.Fatal(err)
		}
		to := New(&out, Options{Schema: `"bytes"`, Codec: codec, Sync: r.Sync(), Unsummed: true})
		var scratch []byte
		records := int64(0)
		for i := 0; i < blocks.Len(); {
			end := rapid.IntRange(i+1, blocks.Len()).Draw(t, "end")
			n := int64(0)
			for k := i; k < end; k++ {
				b := blocks.At(k)
				block, err := blocks.Read(k, nil, &scratch)
				if err != nil {
					t.Fatal(err)
				}
				if begin := b.Begin(); !bytes.HasPrefix(block, begin) {
					t.Fatalf("block %d begins with % x, its head shows % x", k, block[:min(3, len(block))], begin)
				} else if len(begin) == 3 {
					shown++
				}
				want.Write(block)
				n += int64(b.Records)
			}
			from, before := blocks.Span(i, end)
			if err := to.AppendBlocks(in.Bytes()[from:before], n); err != nil {
				t.Fatal(err)
			}
			records += n
			i = end
			if rapid.Bool().Draw(t, "another between") {
				to.Append([]byte("another"))
				want.WriteString("another")
				records++
			}
		}
		sum, err := to.Close()
		if err != nil || sum.Records != records || sum.Bytes != int64(out.Len()) || sum.SHA256 != "" {
			t.Fatalf("%+v of %d records, %v", sum, records, err)
		}
		var got []byte
		for c, err := NewReader(&out); ; {
			if err != nil {
				t.Fatal(err)
			}
			block, _, err := c.Next(nil)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, block...)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("copied % x, want % x", got, want.Bytes())
		}
	})
	if shown == 0 {
		t.Error("no block's head has shown three bytes")
	}
}

// TestBlocksOfOthers refuses blocks whose marker isn't the file's.
func TestBlocksOfOthers(t *testing.T) {
	sync := "0123456789abcdef"
	for name, c := range map[string]struct {
		given  string
		blocks string
	}{
		"another's marker":    {sync, "\x02\x02a" + "0123456789ABCDEF"},
		"cut short":           {sync, "cdef"},
		"no marker was given": {"", "\x02\x02a" + sync},
		"a short marker":      {"0123", "\x02\x02a" + sync},
	} {
		w := New(io.Discard, Options{Schema: `"bytes"`, Codec: Null, Sync: c.given})
		first := w.AppendBlocks([]byte(c.blocks), 1)
		if _, err := w.Close(); first == nil || !errors.Is(err, first) {
			t.Errorf("%s: %v, closed with %v", name, first, err)
		}
	}
}
