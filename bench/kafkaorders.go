package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/schema"
)

const (
	allKafkaOrders  = 10_000_000
	kafkaPartitions = 4
)

// longerNote makes records of about 200 bytes, as JSON and as Avro.
const longerNote = " and ring the bell twice, please, then wait for a minute"

const avroNote = "leave it at the door, and ring the bell twice, please, then wait for a minute; if nobody comes, the neighbours take it, they are at home all day"

// notedOrder is an order as it is written as Avro; the job and the floor read all
// of it but the note.
type notedOrder struct {
	ID    string
	User  string
	Shop  string
	Cents int64
	Items int64
	Paid  bool
	At    time.Time
	Note  string
}

// ordersTopic is the topic of the orders in a format, of which it holds n.
func ordersTopic(format string, n int) string { return fmt.Sprintf("orders-%s-%d", format, n) }

// fillOrders writes the orders to a topic, their users drawn by Zipf's law, unless
// they are there.
func (b *bench) fillOrders(format string, n int) error {
	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.setting.Kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	topic := ordersTopic(format, n)
	if held, err := recordsOf(ctx, client, topic); err == nil && held == int64(n) {
		return nil
	}
	if _, err := kadm.NewClient(client).DeleteTopic(ctx, topic); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	if err := createTopic(ctx, client, topic, kafkaPartitions, nil); err != nil {
		return err
	}
	encode, err := orderEncoder(format)
	if err != nil {
		return err
	}
	draw, r := newZipf(allKeys).draw, newRandom(1)
	var failed atomic.Pointer[error]
	for i := range n {
		value, err := encode(r, i, draw(r))
		if err != nil {
			return err
		}
		client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(i % kafkaPartitions), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// orderEncoder makes the value of order number i.
func orderEncoder(format string) (func(r *rand.Rand, i, key int) ([]byte, error), error) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	if format == "json" {
		return func(r *rand.Rand, i, key int) ([]byte, error) {
			line := appendOrder(make([]byte, 0, 256), r, i, key, start.Add(time.Duration(i)*time.Millisecond))
			line = line[:len(line)-len("\"}\n")]
			return append(append(line, longerNote...), `"}`...), nil
		}, nil
	}
	t, err := schema.Of[notedOrder]("order")
	if err != nil {
		return nil, err
	}
	return func(r *rand.Rand, i, key int) ([]byte, error) {
		o := notedOrder{
			ID: fmt.Sprintf("o-%d", 100_000_000+i), User: userName(key), Shop: fmt.Sprintf("north-%d", 10+r.IntN(90)),
			Cents: int64(r.IntN(100_000)), Items: int64(1 + r.IntN(20)), Paid: r.IntN(10) > 0, At: start.Add(time.Duration(i) * time.Millisecond), Note: avroNote,
		}
		return t.Append(make([]byte, 0, 256), &o)
	}, nil
}

// orderByHand decodes an order whose bytes are known to be good.
func orderByHand(src []byte) (o order) {
	o.ID, src = takeText(src)
	o.User, src = takeText(src)
	o.Shop, src = takeText(src)
	o.Cents, src = takeNumber(src)
	o.Items, src = takeNumber(src)
	o.Paid = src[0] == 1
	at, _ := binary.Varint(src[1:])
	o.At = time.UnixMicro(at).UTC()
	return o
}

// createTopic makes a topic, and waits until its leaders are known.
func createTopic(ctx context.Context, client *kgo.Client, topic string, partitions int32, settings map[string]*string) error {
	made, err := kadm.NewClient(client).CreateTopic(ctx, partitions, 1, settings, topic)
	if err == nil {
		err = made.Err
	}
	if err != nil {
		return fmt.Errorf("creating topic %s: %w", topic, err)
	}
	until := time.Now().Add(10 * time.Second)
	for {
		held, err := recordsOf(ctx, client, topic)
		if err == nil && held == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("topic %s was created and is not there: %w", topic, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// recordsOf is the number of offsets that a topic has used.
func recordsOf(ctx context.Context, client *kgo.Client, topic string) (n int64, err error) {
	ends, err := endsOf(ctx, client, topic)
	for _, end := range ends {
		n += end
	}
	return n, err
}

// dropTopic removes a topic that nobody needs any more.
func dropTopic(client *kgo.Client, topic string) error {
	_, err := kadm.NewClient(client).DeleteTopic(context.Background(), topic)
	return err
}

// endsOf are the ends of a topic's partitions.
func endsOf(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}
