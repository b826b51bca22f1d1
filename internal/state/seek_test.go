package state

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// wide is an entry in tests of seeking: its slot is its key's hash, as it is in a
// job, so that entries lie in all slots.
type wide struct {
	slot  epoch.Slot
	key   string
	value int64 // negative: deleted
}

func wideOf(key string, value int64) wide {
	h := fnv.New32a()
	h.Write([]byte(key))
	return wide{epoch.Slot(h.Sum32() >> 16), key, value}
}

func inSlots(a, b wide) int { return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.key, b.key)) }

// blocky writes a segment of entries, which it puts in order, in blocks of about
// the given size.
func blocky(t failer, st *store.Memory, path string, blockBytes int, entries []wide) epoch.Segment {
	t.Helper()
	return blockyOf(t, st, path, blockBytes, entries, false)
}

// blockyOf is blocky for a segment that says that it has no deletes, if it is live.
func blockyOf(t failer, st *store.Memory, path string, blockBytes int, entries []wide, live bool) epoch.Segment {
	t.Helper()
	f := plainForm()
	slices.SortFunc(entries, inSlots)
	var c Changes
	for _, e := range entries {
		c.Begin(e.slot)
		c.Buf = appendText(c.Buf, e.key)
		c.Value()
		if e.value < 0 {
			c.Buf = append(c.Buf, branchDeleted)
		} else {
			c.Buf = append(append(c.Buf, branchValue), encodeValue(f, e.value)...)
		}
		c.End()
	}
	var out bytes.Buffer
	w := avrofile.New(&out, avrofile.Options{Schema: f.Schema().String(), Meta: f.meta(live), BlockBytes: blockBytes})
	for i := range c.Index {
		w.Append(c.record(uint32(i)))
	}
	sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Replace(context.Background(), job+"/"+path, out.Bytes()); err != nil {
		t.Fatal(err)
	}
	s := epoch.Segment{Path: path, Rows: sum.Records, Bytes: sum.Bytes, SHA256: sum.SHA256}
	if len(entries) > 0 {
		s.Slots = epoch.Slots{First: entries[0].slot, Last: entries[len(entries)-1].slot}
	}
	return s
}

// newest is what there is after all segments' entries, in order.
func newest(segments ...[]wide) (out []wide) {
	last := map[string]wide{}
	for _, s := range segments {
		for _, e := range s {
			last[e.key] = e
		}
	}
	for _, e := range last {
		if e.value >= 0 {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, inSlots)
	return out
}

func within(all []wide, ranges ...epoch.Slots) (out []wide) {
	for _, r := range ranges {
		for _, e := range all {
			if e.slot >= r.First && e.slot <= r.Last {
				out = append(out, e)
			}
		}
	}
	return out
}

func collectWide(entries iter.Seq2[*Entry, error]) (out []wide, err error) {
	for e, err := range entries {
		if err != nil {
			return out, err
		}
		r, value, err := decode(plainForm(), e)
		if err != nil {
			return out, err
		}
		out = append(out, wide{e.Slot, r.key, value})
	}
	return out, nil
}

func slotsOf() *rapid.Generator[epoch.Slots] {
	return rapid.Custom(func(t *rapid.T) epoch.Slots {
		first := rapid.IntRange(0, 65535).Draw(t, "first")
		last := min(65535, first+rapid.SampledFrom([]int{0, 0, 1, 100, 9000, 65535}).Draw(t, "more"))
		return epoch.Slots{First: epoch.Slot(first), Last: epoch.Slot(last)}
	})
}

// Whatever the blocks and the ranges, what is read is what a map has, and what Read
// gives.
func TestReadSlotsIsRead(t *testing.T) {
	ctx, f := context.Background(), plainForm()
	rapid.Check(t, func(t *rapid.T) {
		st := store.NewMemory()
		var told []epoch.Segment
		var written [][]wide
		for i := range rapid.IntRange(0, 4).Draw(t, "segments") {
			var entries []wide
			for k := range rapid.IntRange(1, 300).Draw(t, "entries") {
				key := fmt.Sprint(rapid.IntRange(0, 400).Draw(t, "key"))
				if slices.ContainsFunc(entries, func(e wide) bool { return e.key == key }) {
					continue
				}
				entries = append(entries, wideOf(key, int64(rapid.SampledFrom([]int{-1, k, 1000 * i}).Draw(t, "value"))))
			}
			written = append(written, entries)
			told = append(told, blocky(t, st, fmt.Sprintf("s-%d.avro", i), rapid.SampledFrom([]int{1, 20, 200, 5000}).Draw(t, "block"), entries))
		}
		all := newest(written...)
		ranges := rapid.SliceOfN(slotsOf(), 1, 5).Draw(t, "ranges")
		for _, e := range all[:min(3, len(all))] { // slots that have entries, too
			ranges = append(ranges, epoch.Slots{First: e.slot, Last: e.slot})
		}
		got, err := collectWide(ReadSlots(ctx, st, job, f, told, ranges))
		if want := within(all, ranges...); err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, error %v; want %v", got, err, want)
		}
		var read []wide
		for _, r := range ranges {
			part, err := collectWide(Read(ctx, st, job, f, told, r))
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, part...)
		}
		if !slices.Equal(got, read) {
			t.Fatalf("got %v; Read gives %v", got, read)
		}
	})
}

// failer is a test, or a case of a property.
type failer interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// A flipped bit anywhere in a segment is damage for whoever reads all of it. Who
// reads less gets an error, or exactly what is stored.
func TestReadSlotsOfDamage(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	var entries []wide
	for k := range 60 {
		entries = append(entries, wideOf(fmt.Sprint(k), int64(k)))
	}
	told := []epoch.Segment{blocky(t, st, "s.avro", 60, entries)}
	whole, err := st.Read(ctx, job+"/s.avro", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	some := []epoch.Slots{{First: 20000, Last: 30000}}
	stopped := 0
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		st.Replace(ctx, job+"/s.avro", damaged)
		sum := sha256.Sum256(damaged)
		_, err := collectWide(ReadSlots(ctx, st, job, f, told, []epoch.Slots{epoch.AllSlots}))
		var d *epoch.DamagedError
		if !errors.As(err, &d) || d.Object != job+"/s.avro" {
			t.Fatalf("byte %d: all slots: error %v, want a DamagedError", at, err)
		}
		if !strings.Contains(d.Found, hex.EncodeToString(sum[:])) && !strings.HasSuffix(d.Expected, "rows") {
			t.Errorf("byte %d: found %q", at, d.Found)
		}
		got, err := collectWide(ReadSlots(ctx, st, job, f, told, some))
		if err != nil {
			stopped++
			if !errors.As(err, &d) {
				t.Fatalf("byte %d: some slots: error %v, want a DamagedError", at, err)
			}
			if !slices.Equal(got, within(entries, some...)[:len(got)]) {
				t.Fatalf("byte %d: %v before the error", at, got)
			}
		} else if !slices.Equal(got, within(entries, some...)) {
			t.Fatalf("byte %d: got %v, no error; want %v", at, got, within(entries, some...))
		}
	}
	if stopped == 0 || stopped == len(whole) {
		t.Errorf("%d of %d damages were met by a reader of some slots; want some", stopped, len(whole))
	}
	for _, n := range []int{len(whole) - 1, len(whole) / 2, 0} {
		st.Replace(ctx, job+"/s.avro", whole[:n])
		var d *epoch.DamagedError
		if _, err := collectWide(ReadSlots(ctx, st, job, f, told, some)); !errors.As(err, &d) {
			t.Errorf("cut to %d bytes: error %v", n, err)
		}
	}
	st.Delete(ctx, job+"/s.avro")
	if _, err := collectWide(ReadSlots(ctx, st, job, f, told, some)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no such object: error %v", err)
	}
	if got, err := collectWide(ReadSlots(ctx, st, job, f, told, nil)); len(got) > 0 || err != nil {
		t.Errorf("no ranges: %v, error %v", got, err)
	}
}

// countingStore counts the bytes that are read of opened objects.
type countingStore struct {
	*store.Memory
	mu   sync.Mutex
	read int64
}

func (s *countingStore) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Memory.Open(ctx, name)
	return countingObject{o, s}, err
}

type countingObject struct {
	store.Object
	st *countingStore
}

func (o countingObject) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(p, off)
	o.st.mu.Lock()
	o.st.read += int64(n)
	o.st.mu.Unlock()
	return n, err
}

// bulk are n entries in a segment of usual blocks.
func bulk(t testing.TB, st *store.Memory, n int) ([]wide, []epoch.Segment) {
	entries := make([]wide, n)
	for k := range entries {
		entries[k] = wideOf(fmt.Sprintf("customer-%d-%x", k, k*2654435761), int64(k))
	}
	return entries, []epoch.Segment{blocky(t, st, "bulk.avro", 0, entries)}
}

// A slot costs the heads of the blocks, and a few blocks.
func TestASlotIsFoundWithFewReads(t *testing.T) {
	ctx, f := context.Background(), plainForm()
	st := &countingStore{Memory: store.NewMemory()}
	entries, told := bulk(t, st.Memory, 200_000)
	s, err := OpenSeeker(ctx, st, job, f, told)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	blocks := s.segments[0].blocks.Len()
	if heads := int64(blocks*headBound + headerBound); blocks < 50 || st.read > heads {
		t.Fatalf("%d blocks; %d bytes read for their heads, want at most %d", blocks, st.read, heads)
	}
	r := s.Reader()
	const looks = 100
	st.read = 0
	for k := range looks {
		slot := epoch.Slot(k * 65536 / looks)
		got, err := collectWide(r.Read(ctx, epoch.Slots{First: slot, Last: slot}))
		if want := within(entries, epoch.Slots{First: slot, Last: slot}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("slot %d: got %v, error %v; want %v", slot, got, err, want)
		}
	}
	perLook := float64(st.read) / looks / (float64(told[0].Bytes) / float64(blocks))
	t.Logf("%.1f blocks read for a slot, of %d", perLook, blocks)
	if perLook > 6 {
		t.Errorf("%.1f blocks read for a slot, want at most 6", perLook)
	}
}

// What a head and a header may take to be read, for all that is read ahead.
const (
	headBound   = 64
	headerBound = 256 << 10
)

func TestLargestBlocks(t *testing.T) {
	ctx, f, st := context.Background(), elementForm(), store.NewMemory()
	var c Changes
	for k := range 20_000 {
		slot := epoch.Slot(k * 3)
		c.Begin(slot)
		c.Buf = appendText(c.Buf, fmt.Sprint(k))
		c.Element()
		c.Buf = append(c.Buf, 0)
		c.Value()
		value := "small"
		if k == 7000 || k == 15000 {
			value = strings.Repeat("x", 100_000+k) // compresses to little
		}
		c.Buf = appendText(append(c.Buf, branchValue), value)
		c.End()
	}
	told, err := Write(ctx, st, job, "s.avro", f, []*Changes{&c}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSeeker(ctx, st, job, f, []epoch.Segment{told})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Largest(ctx, 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, error %v; want two ranges", got, err)
	}
	for i, slot := range []epoch.Slot{21000, 45000} {
		if got[i].First > slot || got[i].Last < slot || got[i].Last-got[i].First > 15000 {
			t.Errorf("got %v; want the slots around %d", got[i], slot)
		}
	}
	if none, err := s.Largest(ctx, 0); len(none) > 0 || err != nil {
		t.Errorf("none of the blocks: %v, error %v", none, err)
	}
}

func TestSeekersGoroutines(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	entries, told := bulk(t, st, 30_000)
	s, err := OpenSeeker(ctx, st, job, f, told)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			r := s.Reader()
			for k := g; k < 64; k += 3 {
				slots := epoch.Slots{First: epoch.Slot(k * 1024), Last: epoch.Slot(k*1024 + 40)}
				got, err := collectWide(r.Read(ctx, slots))
				if err != nil || !slices.Equal(got, within(entries, slots)) {
					t.Errorf("slots %v: %d entries, error %v", slots, len(got), err)
				}
			}
		})
	}
	running.Wait()
}

func TestSpread(t *testing.T) {
	ctx, f, st := context.Background(), plainForm(), store.NewMemory()
	entries, told := bulk(t, st, 30_000)
	s, err := OpenSeeker(ctx, st, job, f, told)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Spread(ctx, 0, 4)
	if err != nil || len(got) != 4 {
		t.Fatalf("%v, error %v", got, err)
	}
	for i, r := range got { // entries lie evenly, so a quarter of the records is one of the slots
		if at := int(r.First); r.First != r.Last || at < i*16384-1000 || at > i*16384+1000 {
			t.Errorf("number %d is %v", i, r)
		}
	}
	all, err := s.Spread(ctx, 0, 1<<20)
	slots := map[epoch.Slot]bool{}
	for _, e := range entries {
		slots[e.slot] = true
	}
	if err != nil || len(all) != len(slots) {
		t.Errorf("all: %d slots, error %v; want %d", len(all), err, len(slots))
	}
	for _, r := range all {
		if r.First != r.Last || !slots[r.First] {
			t.Fatalf("all: %v", r)
		}
	}
	if none, err := s.Spread(ctx, 0, 0); len(none) > 0 || err != nil {
		t.Errorf("none: %v, error %v", none, err)
	}
}
