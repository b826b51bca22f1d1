package outbox

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/connector"
)

// The rows of however many shards come out by slot and then by key, whether slots
// have one row or hundreds.
func TestManyRowsComeOutBySlotAndKey(t *testing.T) {
	compare := tableForm().Compare
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 1500).Draw(rt, "rows")
		slots := rapid.SampledFrom([]uint64{1, 3, 300, 1 << 16}).Draw(rt, "slots")
		batches := make([]Batch, rapid.IntRange(1, 4).Draw(rt, "shards"))
		for i := range batches {
			batches[i].Rows = &Rows{}
		}
		mix := rapid.Uint64().Draw(rt, "mix") | 1
		var want []string
		for i := range uint64(n) {
			slot := (i * mix >> 20) % slots
			key := fmt.Sprintf("key %016x", i*mix)
			add(rt, batches[slot%uint64(len(batches))].Rows, slot, 0, connector.Put, key, &row{key, int64(slot)}, nil)
			want = append(want, fmt.Sprintf("%05d %s", slot, key))
		}
		slices.Sort(want)
		parser, err := newParser(keyType.Schema(), rowType.Schema())
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		err = BySlot(batches, compare, func(record []byte) error {
			r, size, err := parser.parse(bytes.Clone(record))
			if err != nil || size != len(record) {
				return fmt.Errorf("record %x: %d bytes are read of it, %w", record, size, err)
			}
			key, _, err := keyType.Decode(r.Key)
			got = append(got, fmt.Sprintf("%05d %s", r.Slot, key))
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%d rows come out in another order, or not all, of %d in %d slots", len(got), n, slots)
		}
	})
}
