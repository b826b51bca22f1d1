package kafka

import (
	"errors"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector/connectortest"
	"github.com/sluicestream/sluice/internal/services"
)

func TestSourceOnTheEmbeddedCluster(t *testing.T) {
	connectortest.TestSource(t, func(t *testing.T) connectortest.SourceFixture[string] {
		noLeaks(t)
		return fixture(t, fake(t).ListenAddrs(), "orders")
	})
}

func TestSourceOnTheRealBroker(t *testing.T) {
	t.Parallel()
	b := realKafka(t)
	topic := services.Unique("orders")
	connectortest.TestSource(t, func(t *testing.T) connectortest.SourceFixture[string] {
		return fixture(t, []string{b.Addr()}, topic)
	})
}

// fixture is a source of two partitions, whose records were written in several
// batches and compressed.
func fixture(t *testing.T, addrs []string, topic string) connectortest.SourceFixture[string] {
	// A client remembers a topic by its id, so that each that is made needs another.
	var w *kgo.Client
	remake := func() {
		w = writer(t, addrs, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
		admin := kadm.NewClient(w)
		if _, err := admin.DeleteTopic(t.Context(), topic); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Fatal(err)
		}
		until(t, "the topic to be made anew", func() bool {
			_, err := admin.CreateTopic(t.Context(), 2, 1, nil, topic)
			return err == nil
		})
	}
	fill := func() {
		for _, part := range []int32{0, 1} {
			put(t, w, numbered(topic, part, 0, 2)...)
			put(t, w, numbered(topic, part, 2, 5)...)
			put(t, w, numbered(topic, part, 5, 6)...)
		}
	}
	remake()
	fill()
	o := opening(io.Discard)
	o.Job = topic
	return connectortest.SourceFixture[string]{
		Source:  Topic(topic, codec.String(), On(Connect(Brokers(addrs...)))),
		Opening: o,
		Want:    map[string][]string{topic + "/0": texts(0, 6), topic + "/1": texts(0, 6)},
		Append: func(t *testing.T, partition string, values ...string) {
			p, err := parsePlace(partition)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				put(t, w, record(topic, p.number, v))
			}
		},
		Replace: func(t *testing.T, partition string) {
			remake()
			fill()
		},
		Shorten: func(t *testing.T, partition string) { remake() },
	}
}
