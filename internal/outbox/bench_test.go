package outbox

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// BenchmarkBySlot puts an epoch's rows of a table in order: 150,000 of two shards.
func BenchmarkBySlot(b *testing.B) {
	const rows, slots = 150_000, 1 << 16
	random := rand.New(rand.NewPCG(1, 2))
	batches := []Batch{{0, &Rows{}}, {0, &Rows{}}}
	for range rows {
		slot := random.Uint64N(slots)
		add(b, batches[slot%2].Rows, slot, 0, connector.Put, fmt.Sprintf("user-%07d", random.IntN(1_000_000_000)), &row{"name", 1}, []byte("a record of some thirty bytes.."))
	}
	compare := must(schema.Comparer(keyType.Schema()))
	b.ReportAllocs()
	for b.Loop() {
		if err := BySlot(batches, compare, func([]byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
