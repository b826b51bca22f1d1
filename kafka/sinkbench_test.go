package kafka_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
)

// processor is the time that this process has had of the machine's processors. The
// broker is another process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// texts are n texts of about a hundred bytes.
func texts(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"user":"user-%08d","at":"2026-01-31T12:00:00.%06dZ","cents":%06d,"note":"of a shop in town"}`, i*7919%n, i%1_000_000, i%999_983)
	}
	return all
}

// byHand is a plain transactional producer as the sink's.
func byHand(b *testing.B, addr string) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(services.Unique("byhand")),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(20_000), kgo.ProducerBatchMaxBytes(1_048_588))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return client
}

// produceByHand writes texts, and one record to another topic, in one transaction.
func produceByHand(b *testing.B, client *kgo.Client, topic, progress string, all []string) {
	ctx := context.Background()
	if err := client.BeginTransaction(); err != nil {
		b.Fatal(err)
	}
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			b.Error(err)
		}
	}
	for _, text := range all {
		client.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte(text)}, done)
	}
	client.Produce(ctx, &kgo.Record{Topic: progress, Key: []byte("key"), Value: []byte("value")}, done)
	if err := client.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		b.Fatal(err)
	}
}

type sinkBench struct {
	topic, progress string
	target          connector.Target
	position        connector.Position
}

func newSinkBench(b *testing.B, addr string) *sinkBench {
	s := &sinkBench{topic: services.Unique("bench"), progress: services.Unique("progress")}
	makeTopic(b, []string{addr}, s.topic, 6, nil)
	makeTopic(b, []string{addr}, s.progress, 1, nil)
	sink := kafka.Append(s.topic, codec.String(), kafka.On(kafka.Connect(kafka.Brokers(addr))))
	var err error
	s.target, err = sink.Open(b.Context(), connector.Opening{Env: env.Real(), Job: services.Unique("job"), JobID: "id"}, connector.RecordKey{JobID: "id", Task: "0.0", Sink: "s"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.target.Close() })
	if _, err := s.target.Make(b.Context(), connector.SinkRecord{ID: "first", Target: s.topic}); err != nil {
		b.Fatal(err)
	}
	return s
}

// frozen are texts as an outbox has them.
func (s *sinkBench) frozen(b *testing.B, all []string) [][]byte {
	rows, err := kafka.Append(s.topic, codec.String()).Rows()
	if err != nil {
		b.Fatal(err)
	}
	wire := rows.NewWire()
	wires := make([][]byte, len(all))
	for i := range all {
		if wires[i], err = wire(nil, &all[i]); err != nil {
			b.Fatal(err)
		}
	}
	return wires
}

func (s *sinkBench) deliver(b *testing.B, wires [][]byte) {
	s.position++
	verdict, _, err := s.target.Deliver(b.Context(), &connector.Delivery{
		Record: connector.SinkRecord{Position: s.position, ID: "first", Target: s.topic},
		Decide: func(*connector.SinkRecord) connector.Verdict { return connector.Apply },
		Rows: func(yield func(connector.Row, error) bool) {
			for _, w := range wires {
				if !yield(connector.Row{Wire: w}, nil) {
					return
				}
			}
		},
	})
	if err != nil || verdict != connector.Apply {
		b.Fatalf("verdict %d, %v", verdict, err)
	}
}

// benchRows is a million, in deliveries of the default's size.
const (
	benchRows     = 1_000_000
	benchDelivery = 200_000
)

// BenchmarkMillionRows compares deliveries with what a plain producer takes for the
// same records, in processor time of this process and by the clock.
func BenchmarkMillionRows(b *testing.B) {
	addr := realKafka(b).Addr()
	all := texts(benchRows)
	measure := func(b *testing.B, once func()) {
		once() // what is made at the first time, topics' files among it
		began := processor(b)
		b.ResetTimer()
		for range b.N {
			once()
		}
		b.ReportMetric(float64(processor(b)-began)/float64(b.N)/benchRows, "cpu-ns/row")
	}
	b.Run("delivered", func(b *testing.B) {
		s := newSinkBench(b, addr)
		wires := s.frozen(b, all)
		measure(b, func() {
			for i := 0; i < benchRows; i += benchDelivery {
				s.deliver(b, wires[i:i+benchDelivery])
			}
		})
	})
	b.Run("by hand", func(b *testing.B) {
		s := newSinkBench(b, addr)
		client := byHand(b, addr)
		measure(b, func() {
			for i := 0; i < benchRows; i += benchDelivery {
				produceByHand(b, client, s.topic, s.progress, all[i:i+benchDelivery])
			}
		})
	})
}

// BenchmarkSmallDelivery compares deliveries of ten rows with transactions of the
// same records by hand.
func BenchmarkSmallDelivery(b *testing.B) {
	addr := realKafka(b).Addr()
	all := texts(10)
	b.Run("delivered", func(b *testing.B) {
		s := newSinkBench(b, addr)
		wires := s.frozen(b, all)
		s.deliver(b, wires)
		for b.Loop() {
			s.deliver(b, wires)
		}
	})
	b.Run("by hand", func(b *testing.B) {
		s := newSinkBench(b, addr)
		client := byHand(b, addr)
		produceByHand(b, client, s.topic, s.progress, all)
		for b.Loop() {
			produceByHand(b, client, s.topic, s.progress, all)
		}
	})
}
