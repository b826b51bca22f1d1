package kafka

import (
	"context"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
)

// TestBrokerIsAwayForAWhile: reading waits, says so, and goes on by itself where it
// was, from a broker that was killed, and so does looking for partitions.
func TestBrokerIsAwayForAWhile(t *testing.T) {
	b := mortal(t)
	noLeaks(t)
	topic := services.Unique("orders")
	w := writer(t, []string{b.Addr()})
	newTopic(t, w, topic, 2)
	put(t, w, numbered(topic, 0, 0, 500)...)
	put(t, w, numbered(topic, 1, 0, 500)...)
	logs := &logged{}
	r := openSource(t, topicOf([]string{b.Addr()}, topic), opening(logs))
	p, q := partitionAt(t, r, topic+"/0", connector.Offset{}), partitionAt(t, r, topic+"/1", connector.Offset{})
	got, _ := values(t, p, 100)
	others, _ := values(t, q, 500)
	b.Kill()
	more, _ := values(t, p, 400) // what was fetched is there
	got = append(got, more...)

	type answer struct {
		values []string
		err    error
	}
	read := make(chan answer)
	listed := make(chan answer)
	go func() {
		var a answer
		for len(a.values) < 300 && a.err == nil {
			batch := &connector.Batch{}
			a.err = p.Next(t.Context(), batch, -1)
			for _, r := range batch.Records {
				a.values = append(a.values, string(r.Value))
			}
		}
		read <- a
	}()
	go func() {
		names, err := r.Partitions(t.Context())
		listed <- answer{names, err}
	}()
	until(t, "a line in the log", func() bool { return strings.Contains(logs.String(), "waits for it") })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	select {
	case a := <-read:
		t.Fatalf("read without a broker: %d values, %v", len(a.values), a.err)
	case a := <-listed:
		t.Fatalf("listed without a broker: %v, %v", a.values, a.err)
	case <-time.After(3 * time.Second): // the cluster's absence has a length; nothing is waited for
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("waiting took %d bytes", grown)
	}
	if n := strings.Count(logs.String(), "waits for it"); n > 2 {
		t.Errorf("%d lines in the log:\n%s", n, logs)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	put(t, writer(t, []string{b.Addr()}), numbered(topic, 0, 500, 800)...)
	a, l := <-read, <-listed
	if got = append(got, a.values...); a.err != nil || !slices.Equal(got, texts(0, 800)) {
		t.Fatalf("read %d values, expected 800: %v", len(got), a.err)
	}
	if l.err != nil || len(l.values) != 2 {
		t.Fatalf("listed %q, %v", l.values, l.err)
	}
	put(t, writer(t, []string{b.Addr()}), numbered(topic, 1, 500, 600)...)
	more, _ = values(t, q, 100)
	if others = append(others, more...); !slices.Equal(others, texts(0, 600)) {
		t.Fatalf("the other partition has %d values, expected 600", len(others))
	}
	until(t, "a line that tells the end", func() bool { return strings.Contains(logs.String(), "can be read again") })
}

// turned is a clock, and another one once it was turned on.
type turned struct {
	env.Clock
	then env.Clock
	on   *atomic.Bool
}

func (c turned) Now() time.Time {
	if c.on.Load() {
		return c.then.Now()
	}
	return c.Clock.Now()
}

func (c turned) NewTimer(d time.Duration) env.Timer {
	if c.on.Load() {
		return c.then.NewTimer(d)
	}
	return c.Clock.NewTimer(d)
}

// TestUnreadPartitionHoldsLittle: one that is opened and not read on keeps a bounded
// piece of what there is, and nobody else waits for it.
func TestUnreadPartitionHoldsLittle(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string, topic string) {
		w := writer(t, addrs, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(1000), kgo.ProducerBatchMaxBytes(1<<20))
		newTopic(t, w, topic, 2)
		const size, records = 100 << 10, 200 // 20 MB in each
		value := strings.Repeat("x", size)
		for range records / 20 {
			var some []*kgo.Record
			for range 20 {
				some = append(some, record(topic, 0, value), record(topic, 1, value))
			}
			put(t, w, some...)
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		o := opening(io.Discard)
		quick := &atomic.Bool{}
		o.Env.Clock = turned{o.Env.Clock, hastyEnv().Clock, quick}
		r := openSource(t, topicOf(addrs, topic), o)
		idle, busy := partitionAt(t, r, topic+"/0", connector.Offset{}), partitionAt(t, r, topic+"/1", connector.Offset{})
		quick.Store(true) // ends that nobody reads are asked for every few seconds
		before := heap()
		if err := idle.Next(t.Context(), &connector.Batch{Limit: 1}, -1); err != nil {
			t.Fatal(err)
		}
		most := int64(0)
		for n := 0; n < records; {
			b := &connector.Batch{}
			if err := busy.Next(t.Context(), b, -1); err != nil {
				t.Fatal(err)
			}
			if n/100 != (n+len(b.Records))/100 {
				most = max(most, heap()-before)
			}
			n += len(b.Records)
		}
		t.Logf("at most %d KiB are held", most>>10)
		if most > 12<<20 {
			t.Errorf("%d bytes are held, of 1 MiB at a time for each of two partitions", most)
		}
		// Nobody reads: the ends are known all the same.
		put(t, w, record(topic, 0, "last"), record(topic, 1, "last"))
		until(t, "the ends", func() bool { return idle.End() == records+1 && busy.End() == records+1 })
		rest := 0
		for to := int64(0); to < records+1; {
			b := &connector.Batch{}
			if err := idle.Next(t.Context(), b, -1); err != nil {
				t.Fatal(err)
			}
			rest, to = rest+len(b.Records), b.To.Next
		}
		if rest != records {
			t.Errorf("the partition that was not read had %d records left, expected %d", rest, records)
		}
	})
}

// TestEndsAreAskedForWithoutReading: a partition that is opened for its end alone
// fetches nothing.
func TestEndsAreAskedForWithoutReading(t *testing.T) {
	noLeaks(t)
	c := fake(t)
	w := writer(t, c.ListenAddrs())
	newTopic(t, w, "orders", 3)
	for i := range int32(3) {
		put(t, w, numbered("orders", i, 0, 10*int(i))...)
	}
	seen := fetches(c)
	o := opening(io.Discard)
	o.Begun = true
	r := openSource(t, topicOf(c.ListenAddrs(), "orders"), o)
	names, err := r.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		p := partitionAt(t, r, name, connector.Offset{})
		if p.End() != int64(10*i) {
			t.Errorf("partition %s ends at %d", name, p.End())
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := seen(); n != 0 {
		t.Errorf("%d fetches", n)
	}
}

// TestClosing: who waits for records of a partition, or of a source, that is closed
// is told.
func TestClosing(t *testing.T) {
	noLeaks(t)
	addrs := fake(t).ListenAddrs()
	newTopic(t, writer(t, addrs), "orders", 1)
	r := openSource(t, topicOf(addrs, "orders"), opening(io.Discard))
	p := partitionAt(t, r, "orders/0", connector.Offset{})
	waiting := make(chan error)
	go func() { waiting <- p.Next(context.Background(), &connector.Batch{}, -1) }()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err == nil {
		t.Fatal("no error behind Close")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Next(context.Background(), &connector.Batch{}, -1); err == nil {
		t.Fatal("read from a closed source")
	}
}
