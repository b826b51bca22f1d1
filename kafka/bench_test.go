package kafka

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/services"
)

// BenchmarkRead reads a million records of 200 bytes from four partitions of the
// real broker, by the client's own loop and by the source, and tells the CPU time
// that this process took for a record.
func BenchmarkRead(b *testing.B) {
	broker, err := services.StartKafka(services.KafkaOptions{})
	if err != nil {
		b.Skipf("nothing is measured: %v", err)
	}
	defer broker.Close()
	addrs := []string{broker.Addr()}
	const records, parts = 1_000_000, 4
	for _, c := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"lz4", kgo.Lz4Compression()}} {
		topic := "bench_" + c.name
		fillBench(b, addrs, topic, records, parts, c.codec)
		b.Run(c.name+"/client", func(b *testing.B) {
			perRecord(b, records, func() { readByClient(b, addrs, topic, records, parts) })
		})
		b.Run(c.name+"/source", func(b *testing.B) {
			perRecord(b, records, func() { readBySource(b, addrs, topic, records, parts) })
		})
	}
}

func fillBench(b *testing.B, addrs []string, topic string, records, parts int, codec kgo.CompressionCodec) {
	w, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(20*time.Millisecond), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(100))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	if err := makeTopic(b.Context(), w, topic, int32(parts)); err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 200)
	for i := range records {
		copy(value, fmt.Sprintf("%08d,user-%07d,", i, i*7919%1000003))
		for n := 24; n < 200; n++ {
			value[n] = byte('a' + (i*n+n*n/7)%26)
		}
		w.Produce(b.Context(), &kgo.Record{Topic: topic, Partition: int32(i % parts), Value: append([]byte(nil), value...)}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := w.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// perRecord measures the process's CPU time.
func perRecord(b *testing.B, records int, read func()) {
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		read()
	}
	n := float64(records) * float64(b.N)
	b.ReportMetric(float64(cpu(b)-before)/n, "cpu-ns/record")
	b.ReportMetric(n/b.Elapsed().Seconds(), "records/s")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func readByClient(b *testing.B, addrs []string, topic string, records, parts int) {
	from := map[int32]kgo.Offset{}
	for i := range parts {
		from[int32(i)] = kgo.NewOffset().AtStart()
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	bytes := 0
	for n := 0; n < records; {
		c.PollFetches(b.Context()).EachRecord(func(r *kgo.Record) {
			n++
			bytes += len(r.Value)
		})
	}
	if bytes != 200*records {
		b.Fatalf("%d bytes", bytes)
	}
}

func readBySource(b *testing.B, addrs []string, topic string, records, parts int) {
	r, err := topicOf(addrs, topic, NoGroup()).Open(b.Context(), opening(io.Discard))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	type answer struct {
		bytes int
		err   error
	}
	read := make(chan answer)
	for i := range parts {
		p, err := r.Partition(b.Context(), place{topic, int32(i)}.String(), connector.Offset{})
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			bytes, err := drain(b.Context(), p, p.End())
			read <- answer{bytes, err}
		}()
	}
	bytes := 0
	for range parts {
		a := <-read
		if a.err != nil {
			b.Fatal(a.err)
		}
		bytes += a.bytes
	}
	if bytes != 200*records {
		b.Fatalf("%d bytes", bytes)
	}
}

// drain reads a partition to an offset, in batches of the engine's size.
func drain(ctx context.Context, p connector.Partition, end int64) (bytes int, err error) {
	batch := &connector.Batch{}
	for batch.To.Next < end {
		*batch = connector.Batch{Records: batch.Records[:0], Buffer: batch.Buffer[:0], To: batch.To, Limit: 1024, LimitBytes: 1 << 20}
		if err := p.Next(ctx, batch, -1); err != nil {
			return bytes, err
		}
		for i := range batch.Records {
			bytes += len(batch.Records[i].Value)
		}
	}
	return bytes, nil
}
