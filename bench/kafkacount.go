package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// countOptions are a variant of the count: "json", "avro", and "json least", which
// delivers at least once.
type countOptions struct {
	format string
	least  bool
}

func countOptionsOf(variant string) countOptions {
	format, guarantee, _ := strings.Cut(variant, " ")
	return countOptions{format, guarantee == "least"}
}

// kafkaJob counts a topic's orders by user and writes the table to another topic:
// epochs of 1 s, each delivered in a transaction, all of the store synced.
func kafkaJob(t task) (sample, error) {
	o := countOptionsOf(t.Variant)
	dir, err := os.MkdirTemp(t.Dir, "kafka-job-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	world := env.Real()
	if o.least {
		world.Files = unsynced{world.Files}
	}
	st, err := store.OpenFolder(world, filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	out, err := newOutput(t)
	if err != nil {
		return nil, err
	}
	defer out.close()
	job, err := countJob(t, o, out.topic)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var records, epochs atomic.Int64
	err = job.Run(ctx, sluice.Options{Store: st, Env: world, Log: quiet(), Committed: func(c sluice.Committed) {
		epochs.Add(1)
		if records.Add(c.Records) >= int64(t.scale(allKafkaOrders)) {
			stop()
		}
	}})
	if err != nil {
		return nil, err
	}
	s := sample{cpuSeconds: cpu().Seconds(), "epochs": float64(epochs.Load())}
	pprof.StopCPUProfile() // what follows is not the job's
	return s, out.check(s, valueDecoder(o.format), int64(t.scale(allKafkaOrders)))
}

func countJob(t task, o countOptions, output string) (*sluice.Job, error) {
	cluster := kafka.Connect(kafka.Brokers(t.Kafka))
	orders, rows := codec.JSON[order](), codec.JSON[spend]()
	if o.format == "avro" {
		written, err := schema.Of[notedOrder]("order")
		if err != nil {
			return nil, err
		}
		orders, rows = codec.Avro[order](codec.Writer(written.Schema().String())), codec.Avro[spend]()
	}
	var sink connector.TableSink[string, spend] = kafka.Upsert(output, sameSpend, codec.String(), rows, kafka.On(cluster))
	if o.least {
		sink = leastSink{topic: output, brokers: t.Kafka, value: rows}
	}
	job := sluice.NewJob(services.Unique("spend"))
	job.From("orders", kafka.Topic(ordersTopic(o.format, t.scale(allKafkaOrders)), orders, kafka.On(cluster))).
		KeyBy(order.user).
		Fold(sluice.NewState[string, spend]("spend"), (*spend).count).
		To("spend_by_user", sink)
	return job, nil
}

func sameSpend(_ string, s spend) spend { return s }

// output is a topic for what one process puts out.
type output struct {
	brokers string
	client  *kgo.Client
	topic   string
}

func newOutput(t task) (*output, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.Kafka))
	if err != nil {
		return nil, err
	}
	o := &output{t.Kafka, client, services.Unique("spend")}
	if err := createTopic(context.Background(), client, o.topic, kafkaPartitions, nil); err != nil {
		client.Close()
		return nil, err
	}
	return o, nil
}

func (o *output) close() {
	defer o.client.Close()
	if err := dropTopic(o.client, o.topic); err != nil {
		fmt.Fprintln(os.Stderr, "removing topic", o.topic, err)
	}
}

// check reads the output, counts its rows, and looks whether the last of each key
// add up to the number of orders. decode takes a value apart.
func (o *output) check(s sample, decode func(value []byte, row *spend) error, orders int64) error {
	last, rows := map[string]spend{}, 0
	err := readTopic(context.Background(), o.brokers, o.topic, func(r *kgo.Record) error {
		var row spend
		err := decode(r.Value, &row)
		last[string(r.Key)] = row
		rows++
		return err
	})
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, row := range last {
		sum += row.Orders
	}
	if sum != orders {
		return fmt.Errorf("topic %s: the rows of %d users add up to %d orders, expected %d", o.topic, len(last), sum, orders)
	}
	s["rows"], s["users"] = float64(rows), float64(len(last))
	return nil
}

// readTopic goes through a topic's committed records, up to where it ends now.
func readTopic(ctx context.Context, brokers, topic string, take func(*kgo.Record) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := endsOf(ctx, client, topic)
	if err != nil {
		return err
	}
	from := map[int32]kgo.Offset{}
	for part, end := range ends {
		if end > 0 {
			from[part] = kgo.NewOffset().AtStart()
		}
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(brokers),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer reader.Close()
	for left := len(from); left > 0; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var bad error
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset == ends[r.Partition]-1 {
				left--
			}
			if bad == nil && !r.Attrs.IsControl() && r.Offset < ends[r.Partition] {
				bad = take(r)
			}
		})
		if bad != nil {
			return fmt.Errorf("topic %s: %w", topic, bad)
		}
	}
	return nil
}

func measureKafkaJSON(b *bench) ([]Result, error) {
	results, err := b.measureCount("json")
	if err != nil {
		return nil, err
	}
	inside, err := b.onEmbedded()
	if err != nil {
		return nil, err
	}
	inside.setting.Quick = true // the broker is not what is measured
	n := inside.setting.scale(allKafkaOrders)
	if err := inside.fillOrders("json", n); err != nil {
		return nil, err
	}
	s, floor, err := inside.compare("kafka.count", "kafka.count.floor", "json", cpuSeconds, 2)
	if err != nil {
		return nil, err
	}
	results[0].note("with the embedded broker, %.1fM records: %.0f ns, floor %.0f ns, ratio %.2f", float64(n)/1e6, s[cpuSeconds]/float64(n)*1e9, floor[cpuSeconds]/float64(n)*1e9, s[cpuSeconds]/floor[cpuSeconds])
	return results, nil
}

func measureKafkaAvro(b *bench) ([]Result, error) { return b.measureCount("avro") }

func (b *bench) measureCount(format string) ([]Result, error) {
	on, err := b.onKafka()
	if err != nil {
		return nil, err
	}
	n := b.setting.scale(allKafkaOrders)
	if err := on.fillOrders(format, n); err != nil {
		return nil, err
	}
	s, floor, err := on.compare("kafka.count", "kafka.count.floor", format, cpuSeconds, 2)
	if err != nil {
		return nil, err
	}
	perRecord := 1e9 / float64(n)
	r := Result{
		Name: "kafka.count." + format, Value: s[cpuSeconds] * perRecord, Unit: "ns",
		What: fmt.Sprintf("CPU per record of the job's process: %.1fM %s records of about 200 bytes from 4 partitions of a real broker, 1M keys (zipf), epochs of 1 s, each a transaction, fsync on; floor: a program of the client library alone that polls, decodes, counts in a map and writes the same rows each second, without transactions or anything durable", float64(n)/1e6, strings.ToUpper(format)),
		Why:  countWhy[format],
	}.against(floor[cpuSeconds] * perRecord).atMost(1.4)
	r.note("%.0f epochs and %.0f rows for %.0f users; the floor: %.0f flushes and %.0f rows", s["epochs"], s["rows"], s["users"], floor["flushes"], floor["rows"])
	return []Result{r}, nil
}

var countWhy = map[string]string{
	"json": "decoding JSON and the client library's fetching are the floor's too; beyond it, a changed entry is encoded three times (for the state, as the sink's row, as the record), sorted, hashed and compressed, and the outbox is written, synced and read back for its delivery",
	"avro": "a record is decoded in a few hundred nanoseconds, so that what an epoch's changed entries cost (encoding for the state, as the row and as the record, sorting, hashing, compressing, reading back) weighs more",
}

func measureExactlyOnce(b *bench) ([]Result, error) {
	on, err := b.onKafka()
	if err != nil {
		return nil, err
	}
	n := b.setting.scale(allKafkaOrders)
	if err := on.fillOrders("json", n); err != nil {
		return nil, err
	}
	s, least, err := on.compareVariants("kafka.count", "json", "json least", cpuSeconds, 3)
	if err != nil {
		return nil, err
	}
	perRecord := 1e9 / float64(n)
	r := Result{
		Name: "kafka.exactly-once", Value: s[cpuSeconds] * perRecord, Unit: "ns",
		What: "CPU per record of the job of kafka.count.json; floor: the same job delivering at least once",
		Why:  "a transaction's requests are a few per epoch; the rest is the same work",
	}.against(least[cpuSeconds] * perRecord).atMost(1.05)
	r.note("there is no such mode in the product: the floor's sink, which is the benchmark's own, freezes the same rows and the same records, writes them by the client library's producer without transactions and keeps its record in memory, and the job's store syncs nothing, neither outboxes nor manifests")
	r.note("%.0f epochs and %.0f rows; at least once: %.0f epochs and %.0f rows", s["epochs"], s["rows"], least["epochs"], least["rows"])
	return []Result{r}, nil
}
