package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/internal/services"
)

// load is what is written to a live job's input, at an even rate, and what is
// watched of its output.
type load struct {
	Rate   float64 // records a second
	Warm   float64 // seconds before it is measured
	Length float64 // seconds for which it is measured
}

const (
	probePrefix = "probe-"
	probeEvery  = time.Millisecond
	loadTick    = 2 * time.Millisecond
	// probesWithin bounds how long the last probes are waited for.
	probesWithin = 20 * time.Second
	// loadPool is how many different orders are written, over and over.
	loadPool = 200_000
	// transactionEvery is how often the time of a transaction with one record is
	// measured meanwhile.
	transactionEvery = 200 * time.Millisecond
)

// putLoad writes records to the job's input, and among them, each millisecond, one
// of a user that no other record has. It measures the time from such a record's
// append, which the broker notes, to the moment at which the user's row is read by
// a consumer that reads what is committed.
func putLoad(t task) (sample, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &outputWatch{latencies: map[string]float64{}}
	watching := make(chan error, 1)
	go func() { watching <- w.run(ctx, t) }()
	var empty []float64
	var measuring sync.WaitGroup
	var emptyErr error
	loaded, end := context.WithCancel(ctx)
	defer end()
	measuring.Go(func() { empty, emptyErr = smallTransactions(loaded, t) })
	g := &generator{task: t}
	err := g.run(ctx)
	end()
	measuring.Wait()
	if err := errors.Join(err, emptyErr); err != nil {
		return nil, err
	}
	w.await(g.probes, watching)
	cancel()
	if err := <-watching; err != nil {
		return nil, err
	}
	return g.summary(w, empty), nil
}

// generator writes the records.
type generator struct {
	task   task
	probes []string // those that count, in the order in which they were written
	sent   int
	took   time.Duration
}

// run writes for as long as the load says, at most until ctx ends. What was written by
// then stands in the topic.
func (g *generator) run(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(g.task.Kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(loadTick), kgo.MaxBufferedRecords(1_000_000))
	if err != nil {
		return err
	}
	defer client.Close()
	pool, err := orderPool()
	if err != nil {
		return err
	}
	var failed error
	var mu sync.Mutex
	send := func(value []byte) {
		client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: g.task.Live.Topic, Partition: int32(g.sent % kafkaPartitions), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
		g.sent++
	}
	l := g.task.Load
	began, probed := time.Now(), 0
	for passed := 0.0; passed < l.Warm+l.Length && ctx.Err() == nil; passed = time.Since(began).Seconds() {
		for due := int(passed * l.Rate); g.sent < due; {
			send(pool[g.sent%len(pool)])
		}
		for due := int(passed / probeEvery.Seconds()); probed < due; probed++ {
			user := fmt.Sprintf("%s%d", probePrefix, probed)
			if passed >= l.Warm {
				g.probes = append(g.probes, user)
			}
			send(fmt.Appendf(nil, `{"id":"p","user":%q,"shop":"none","cents":1,"items":1,"paid":true,"at":"2026-03-01T00:00:00Z"}`, user))
		}
		time.Sleep(loadTick)
	}
	err = client.Flush(context.WithoutCancel(ctx))
	g.took = time.Since(began)
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, failed)
}

func orderPool() ([][]byte, error) {
	encode, err := orderEncoder("json")
	if err != nil {
		return nil, err
	}
	draw, r := newZipf(allKeys).draw, newRandom(2)
	pool := make([][]byte, loadPool)
	for i := range pool {
		if pool[i], err = encode(r, i, draw(r)); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

// summary has the latencies of all probes, and of the first and the last third of
// them: they are the same while lag stays flat.
func (g *generator) summary(w *outputWatch, empty []float64) sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sample{"rate": float64(g.sent) / g.took.Seconds(), "missing": 0}
	var all []float64
	for _, user := range g.probes {
		latency, ok := w.latencies[user]
		if !ok {
			s["missing"]++
			continue
		}
		all = append(all, latency)
	}
	third := len(all) / 3
	s["first"], s["last"] = quantile(all[:third], 0.5), quantile(all[len(all)-third:], 0.5)
	s["median"], s["p99"], s["probes"] = quantile(all, 0.5), quantile(all, 0.99), float64(len(all))
	s["empty"] = quantile(empty, 0.5)
	return s
}

// quantile is 0 if there are no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// outputWatch reads the job's output as it becomes readable.
type outputWatch struct {
	mu        sync.Mutex
	latencies map[string]float64 // in seconds, of probes
	arrivals  []time.Time        // of anything
}

// await waits until all of the users have been seen, within a bound, or the watching
// has ended.
func (w *outputWatch) await(users []string, watching <-chan error) {
	until := time.Now().Add(probesWithin)
	for w.lacks(users) && time.Now().Before(until) && len(watching) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// arrived are the moments at which anything was seen so far.
func (w *outputWatch) arrived() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.arrivals)
}

// lacks tells whether one of the users has not been seen.
func (w *outputWatch) lacks(users []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(users, func(user string) bool {
		_, ok := w.latencies[user]
		return !ok
	})
}

func (w *outputWatch) run(ctx context.Context, t task) error {
	reader, err := kgo.NewClient(kgo.SeedBrokers(t.Kafka), kgo.ConsumeTopics(t.Live.Output),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		fetches := reader.PollFetches(ctx)
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		var bad error
		w.mu.Lock()
		if !fetches.Empty() {
			w.arrivals = append(w.arrivals, now)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !strings.HasPrefix(string(r.Key), probePrefix) {
				return
			}
			var row seen
			if err := json.Unmarshal(r.Value, &row); err != nil {
				bad = err
				return
			}
			w.latencies[string(r.Key)] = now.Sub(time.UnixMicro(row.At)).Seconds()
		})
		w.mu.Unlock()
		if bad != nil {
			return bad
		}
	}
}

// smallTransactions measures, until ctx ends, how long transactions take that hold
// one record.
func smallTransactions(ctx context.Context, t task) (took []float64, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.Kafka), kgo.TransactionalID(services.Unique("small")), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	topic := services.Unique("small")
	if err := createTopic(ctx, client, topic, 1, nil); err != nil {
		return nil, err
	}
	defer dropTopic(client, topic)
	for ctx.Err() == nil {
		began := time.Now()
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
		if err := client.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
			return nil, err
		}
		if err := client.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began).Seconds())
		select {
		case <-time.After(transactionEvery):
		case <-ctx.Done():
		}
	}
	return took, nil
}
