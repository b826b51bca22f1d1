package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// exported are the entries of an exported file, and the number of its blocks.
func exported(t failer, file []byte) (entries []wide, blocks int) {
	t.Helper()
	r, err := avrofile.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	f := plainForm()
	if !parse(r.Schema()).Equal(f.Schema()) {
		t.Errorf("the file's schema is %s", r.Schema())
	}
	split := newSplitter(f)
	for {
		block, n, err := r.Next(nil)
		if err == io.EOF {
			return entries, blocks
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks++
		for src := block; len(src) > 0; n-- {
			at, err := split.split(src)
			if err != nil {
				t.Fatal(err)
			}
			var e Entry
			split.entry(&e, src, at)
			if e.Deleted {
				t.Errorf("a delete of %q was exported", e.Key)
			}
			row, value, err := decode(f, &e)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, wide{e.Slot, row.key, value})
			src = src[at.end:]
			if n == 0 {
				t.Fatal("a block has more records than it says")
			}
		}
		if n != 0 {
			t.Errorf("a block has %d records fewer than it says", n)
		}
	}
}

// TestExport exports random segments: many entries in a first one, few or many in
// later ones, in slots that meet at blocks' ends.
func TestExport(t *testing.T) {
	copied, touched := 0, 0 // cases
	rapid.Check(t, func(t *rapid.T) {
		st := store.NewMemory()
		keys := rapid.IntRange(1, 3000).Draw(t, "keys")
		spread := rapid.SampledFrom([]int{1, 64, 65536}).Draw(t, "slots") // few: many keys in each
		entry := func(k int, value int64) wide {
			e := wideOf(fmt.Sprintf("key-%d", k), value)
			e.slot = epoch.Slot(int(e.slot) / (65536 / spread) * (65536 / spread))
			return e
		}
		all := make([][]wide, 1, 4)
		for k := range keys {
			all[0] = append(all[0], entry(k, int64(k)))
		}
		for range rapid.IntRange(0, 3).Draw(t, "later segments") {
			later := map[int]wide{}
			for range rapid.SampledFrom([]int{1, 3, 10, 200, 3000}).Draw(t, "changes") {
				k := rapid.IntRange(0, keys+10).Draw(t, "key")
				later[k] = entry(k, rapid.Int64Range(-1, 100).Draw(t, "value"))
			}
			var s []wide
			for _, e := range later {
				s = append(s, e)
			}
			all = append(all, s)
		}
		live := rapid.Bool().Draw(t, "the first says that it has no deletes")
		var told []epoch.Segment
		for i, s := range all {
			told = append(told, blockyOf(t, st, fmt.Sprintf("%d.avro", i), rapid.IntRange(1, 2000).Draw(t, "block bytes"), s, live && i == 0))
		}
		o := ExportOptions{Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Plain: rapid.Bool().Draw(t, "plain")}
		x, err := exportOf(st, told, o)
		if err != nil {
			t.Fatal(err)
		}
		want := newest(all...)
		got, _ := exported(t, x.file)
		if !slices.Equal(got, want) || x.entries != int64(len(want)) {
			t.Fatalf("exported %d entries, said %d, want %d", len(got), x.entries, len(want))
		}
		switch {
		case x.copied && x.merged:
			touched++
			fallthrough
		case x.copied:
			copied++
		}
		if x.copied && (o.Plain || !live) {
			t.Fatal("blocks were copied")
		}
	})
	if copied == 0 || touched == 0 {
		t.Errorf("blocks were copied in %d cases, in %d beside others that were merged: the test's cases are too few", copied, touched)
	}
}

// exportedFile is what came of an export.
type exportedFile struct {
	file           []byte
	entries        int64
	copied, merged bool // of its pieces at least one was
}

func exportOf(st store.Store, told []epoch.Segment, o ExportOptions) (x exportedFile, err error) {
	ctx := context.Background()
	var out bytes.Buffer
	if x.entries, err = Export(ctx, st, job, plainForm(), told, &out, o); err != nil {
		return x, err
	}
	x.file = out.Bytes()
	s, err := OpenSeeker(ctx, st, job, plainForm(), told)
	if err != nil {
		return x, err
	}
	defer s.Close()
	pieces, err := (&export{seeker: s, o: o, base: s.largest()}).plan(ctx)
	for _, p := range pieces {
		x.copied, x.merged = x.copied || p.copied, x.merged || !p.copied
	}
	return x, err
}

// TestExportOfNothing exports states without segments, and without entries.
func TestExportOfNothing(t *testing.T) {
	st := store.NewMemory()
	gone := []epoch.Segment{blocky(t, st, "0.avro", 100, []wide{wideOf("a", 1)}), blocky(t, st, "1.avro", 100, []wide{wideOf("a", -1)})}
	for name, told := range map[string][]epoch.Segment{"no segments": nil, "an empty one": {blocky(t, st, "2.avro", 100, nil)}, "deleted": gone} {
		var out bytes.Buffer
		n, err := Export(t.Context(), st, job, plainForm(), told, &out, ExportOptions{})
		if err != nil || n != 0 {
			t.Errorf("%s: %d entries, %v", name, n, err)
			continue
		}
		if got, _ := exported(t, out.Bytes()); len(got) > 0 {
			t.Errorf("%s: exported %v", name, got)
		}
	}
}

// TestExportSeesDamage flips each byte of a segment that is mostly copied, and of
// one that is merged with it.
func TestExportSeesDamage(t *testing.T) {
	st := store.NewMemory()
	var first []wide
	for i := range 300 {
		first = append(first, wideOf(fmt.Sprintf("key-%d", i), int64(i)))
	}
	told := []epoch.Segment{
		blockyOf(t, st, "0.avro", 60, first, true), blocky(t, st, "1.avro", 60, []wide{wideOf("key-7", 8), wideOf("key-9", -1)}),
	}
	x, err := exportOf(st, told, ExportOptions{})
	if err != nil || !x.copied || !x.merged {
		t.Fatalf("copied %v, merged %v: %v", x.copied, x.merged, err)
	}
	for _, s := range told {
		name := job + "/" + s.Path
		good := readAll(t, st, name)
		for i := range good {
			bad := slices.Clone(good)
			bad[i] ^= 1 << (i % 8)
			if err := st.Replace(t.Context(), name, bad); err != nil {
				t.Fatal(err)
			}
			_, err := Export(t.Context(), st, job, plainForm(), told, io.Discard, ExportOptions{Workers: 2})
			var damaged *epoch.DamagedError
			if !errors.As(err, &damaged) || damaged.Object != name {
				t.Errorf("%s with another byte %d: %v", name, i, err)
			}
		}
		if err := st.Replace(t.Context(), name, good); err != nil {
			t.Fatal(err)
		}
	}
}

// errFull is what a full disk says here.
var errFull = errors.New("the disk is full")

// full is a writer that takes a number of bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestExportEnds ends exports by their writer and by their context.
func TestExportEnds(t *testing.T) {
	st := store.NewMemory()
	var first []wide
	for i := range 20_000 {
		first = append(first, wideOf(fmt.Sprintf("key-%d", i), int64(i)))
	}
	for _, live := range []bool{true, false} {
		told := []epoch.Segment{blockyOf(t, st, fmt.Sprintf("%v.avro", live), 4000, first, live)}
		if _, err := Export(t.Context(), st, job, plainForm(), told, &full{10_000}, ExportOptions{Workers: 2}); !errors.Is(err, errFull) {
			t.Errorf("a full disk: %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		o := ExportOptions{Workers: 2, Written: func(int64, int64) { stop() }}
		if _, err := Export(ctx, st, job, plainForm(), told, io.Discard, o); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	}
}

func readAll(t *testing.T, st store.Store, name string) []byte {
	t.Helper()
	o, err := st.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	data := make([]byte, o.Size())
	if _, err := o.ReadAt(data, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return data
}
