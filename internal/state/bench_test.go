package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// benchForm is a state whose entries are about 100 bytes.
func benchForm() Form {
	return Form{Name: "spend", Key: parse(`"string"`), Value: parse(`{"type":"record","name":"spend","fields":[
		{"name":"Orders","type":"long"},{"name":"Cents","type":"long"},{"name":"Seen","type":"long"},
		{"name":"Name","type":"string"},{"name":"City","type":"string"},{"name":"Note","type":"string"}]}`)}
}

// benchChanges are n entries of all, in random order, split among two shards.
func benchChanges(random *rand.Rand, all, n int) []*Changes {
	changes := []*Changes{{}, {}}
	for _, i := range random.Perm(all)[:n] {
		key := appendText(nil, fmt.Sprintf("customer-%08d", i))
		slot := epoch.Slot(xxhash.Sum64(key) >> 48)
		c := changes[slot>>15]
		c.Begin(slot)
		c.Buf = append(c.Buf, key...)
		c.Element()
		c.Value()
		c.Buf = append(c.Buf, branchValue)
		c.Buf = binary.AppendVarint(c.Buf, random.Int64N(100))
		c.Buf = binary.AppendVarint(c.Buf, random.Int64N(1e7))
		c.Buf = binary.AppendVarint(c.Buf, 1.7e15+random.Int64N(1e13))
		c.Buf = appendText(c.Buf, fmt.Sprintf("Name %x", random.Uint64()))
		c.Buf = appendText(c.Buf, []string{"New York", "Newark", "Philadelphia"}[random.IntN(3)])
		c.Buf = appendText(c.Buf, fmt.Sprintf("some note, %d of them", random.IntN(1000)))
		c.End()
	}
	return changes
}

// discard is a store that keeps nothing.
type discard struct{ store.Store }

func (discard) Create(context.Context, string, []byte) error { return nil }
func (discard) Upload(context.Context, string) (store.Upload, error) {
	return discardUpload{}, nil
}

type discardUpload struct{ store.Upload }

func (discardUpload) Write(p []byte) (int, error)  { return len(p), nil }
func (discardUpload) Commit(context.Context) error { return nil }
func (discardUpload) Abort()                       {}

func perEntry(b *testing.B, n int64) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/entry")
}

func BenchmarkSort(b *testing.B) {
	f, changes := benchForm(), benchChanges(rand.New(rand.NewPCG(1, 1)), 1e6, 1e5)
	for b.Loop() {
		if err := inOrder(context.Background(), f, changes, func(epoch.Slot, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b, 1e5)
}

func BenchmarkWrite(b *testing.B) {
	f, changes := benchForm(), benchChanges(rand.New(rand.NewPCG(1, 1)), 1e6, 1e5)
	b.SetBytes(int64(len(changes[0].Buf) + len(changes[1].Buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Write(context.Background(), discard{}, job, "x.avro", f, changes, 0); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b, 1e5)
}

// benchSegments are a base and six epochs on it.
func benchSegments(b *testing.B, entries int) (*store.Memory, []epoch.Segment, int64) {
	random, st := rand.New(rand.NewPCG(1, 1)), store.NewMemory()
	var out []epoch.Segment
	rows := int64(0)
	for i, n := range []int{entries, entries / 10, entries / 10, entries / 10, entries / 10, entries / 10, entries / 10} {
		s, err := Write(context.Background(), st, job, fmt.Sprint(i), benchForm(), benchChanges(random, entries, n), 0)
		if err != nil {
			b.Fatal(err)
		}
		out, rows = append(out, s), rows+s.Rows
	}
	return st, out, rows
}

func BenchmarkMerge(b *testing.B) {
	st, s, rows := benchSegments(b, 2e5)
	for b.Loop() {
		if _, err := Merge(context.Background(), readThrough{discard{st}, st}, job, "x.avro", benchForm(), s, true); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b, rows)
}

// readThrough writes nowhere and reads from a store.
type readThrough struct {
	discard
	from store.Store
}

func (s readThrough) Open(ctx context.Context, name string) (store.Object, error) {
	return s.from.Open(ctx, name)
}

// spendValue is what the benchmarks decode the entries to.
type spendValue struct {
	orders, cents, seen int64
	name, city, note    string
}

func decodeSpend(src []byte, v *spendValue) []byte {
	for _, p := range []*int64{&v.orders, &v.cents, &v.seen} {
		x, n := binary.Varint(src)
		*p, src = x, src[n:]
	}
	for _, p := range []*string{&v.name, &v.city, &v.note} {
		x, n := binary.Varint(src)
		*p, src = string(src[n:n+int(x)]), src[n+int(x):]
	}
	return src
}

// BenchmarkRestore decodes every entry and puts it into a map; its floor is a
// loop over the blocks that does the same, without parts, hashes and checks.
func BenchmarkRestore(b *testing.B) {
	const entries = 1e6
	f, st := benchForm(), store.NewMemory()
	s, err := Write(context.Background(), st, job, "base", f, benchChanges(rand.New(rand.NewPCG(1, 1)), entries, entries), 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, parts := range [][]epoch.Slots{{epoch.AllSlots}, {{First: 0, Last: 32767}, {First: 32768, Last: 65535}}} {
		b.Run(fmt.Sprintf("parts=%d", len(parts)), func(b *testing.B) {
			for b.Loop() {
				err := Restore(context.Background(), st, job, f, []epoch.Segment{s}, parts, func(int) func(*Entry) error {
					m := make(map[string]spendValue, int(entries)/len(parts))
					return func(e *Entry) error {
						var v spendValue
						decodeSpend(e.Value, &v)
						_, n := binary.Varint(e.Key)
						m[string(e.Key[n:])] = v
						return nil
					}
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			perEntry(b, entries)
		})
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if err := restoreByHand(st, entries); err != nil {
				b.Fatal(err)
			}
		}
		perEntry(b, entries)
	})
	b.Run("alone", func(b *testing.B) { // what Restore itself takes
		for b.Loop() {
			err := Restore(context.Background(), st, job, f, []epoch.Segment{s}, []epoch.Slots{epoch.AllSlots}, func(int) func(*Entry) error {
				return func(*Entry) error { return nil }
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		perEntry(b, entries)
	})
}

func restoreByHand(st store.Store, entries int) error {
	o, err := st.Open(context.Background(), job+"/base")
	if err != nil {
		return err
	}
	r, err := avrofile.NewReader(io.NewSectionReader(o, 0, o.Size()))
	if err != nil {
		return err
	}
	m := make(map[string]spendValue, entries)
	var buf []byte
	for {
		block, n, err := r.Next(buf)
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		for src := slices.Clip(block); n > 0; n-- {
			_, k := binary.Varint(src)
			src = src[k:]
			length, k := binary.Varint(src)
			key := string(src[k : k+int(length)])
			var v spendValue
			src = decodeSpend(src[k+int(length)+1:], &v)
			m[key] = v
		}
		buf = block
	}
}
