package kafka_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
)

// TestLargeRecords delivers more bytes than the client holds at a time, in records
// that are each larger than what Kafka takes by default.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	everyBroker(t, func(t *testing.T, addrs []string) {
		topic := services.Unique("large")
		makeTopic(t, addrs, topic, 1, map[string]string{"max.message.bytes": "20000000"})
		sink := kafka.Append(topic, codec.Bytes(), kafka.On(kafka.Connect(kafka.Brokers(addrs...))))
		random := rand.NewChaCha8([32]byte{1})
		all := make([][]byte, 5)
		for i := range all {
			all[i] = make([]byte, 18_000_000)
			_, _ = random.Read(all[i])
		}
		got := deliverAll(t, addrs, topic, sink, all...)
		if len(got) != len(all) {
			t.Fatalf("%d records, expected %d", len(got), len(all))
		}
		for i, r := range got {
			if !bytes.Equal(r.Value, all[i]) {
				t.Errorf("record %d is another", i)
			}
		}
	})
}
