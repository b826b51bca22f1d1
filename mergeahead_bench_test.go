package sluice_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/store"
)

// crowd is a source of numbers that are there already.
type crowd struct{ count int64 }

func (c crowd) Describe() connector.Description {
	return connector.Description{Connector: "crowd", Contract: 1, Target: "crowd"}
}
func (c crowd) Open(context.Context, connector.Opening) (connector.Reader, error) { return c, nil }
func (crowd) Partitions(context.Context) ([]string, error)                        { return []string{"0"}, nil }
func (crowd) Bounded() bool                                                       { return true }
func (crowd) Close() error                                                        { return nil }
func (c crowd) Partition(_ context.Context, _ string, from connector.Offset) (connector.Partition, error) {
	return &crowdPartition{from.Next, c.count}, nil
}

func (crowd) NewDecoder() func(b *connector.Batch, i int, v *int64) error {
	return func(b *connector.Batch, i int, v *int64) error {
		*v = b.Records[i].Offset
		return nil
	}
}

type crowdPartition struct{ next, end int64 }

func (p *crowdPartition) Next(_ context.Context, b *connector.Batch, _ int64) error {
	for ; p.next < p.end && len(b.Records) < b.Limit; p.next++ {
		b.Records = append(b.Records, connector.Record{Offset: p.next, Time: connector.NoTime})
	}
	b.To = connector.Offset{Next: p.next}
	if len(b.Records) == 0 {
		return io.EOF
	}
	return nil
}

func (p *crowdPartition) End() int64 { return p.end }
func (*crowdPartition) Close() error { return nil }

// keyedNumber is a record of it.
type keyedNumber struct {
	Key string
	N   int64
}

// BenchmarkMergeAhead is what a record costs that is counted by key in windows of ten
// seconds: of keys that are drawn evenly, and where every other record has one key. Jobs
// that send each record and jobs that merge ahead take turns; of-sent is the latter's time
// in the former's.
func BenchmarkMergeAhead(b *testing.B) {
	const records, perSecond, many, few = 1_000_000, 100_000, 100_000, 500
	var names [many]string
	for i := range names {
		names[i] = fmt.Sprint("user-", i)
	}
	var drawn [1 << 16]uint32
	for i := range drawn {
		drawn[i] = rand.Uint32()
	}
	for _, keys := range []uint32{many, few} {
		for _, hot := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/hot=%t", keys, hot), func(b *testing.B) {
				number := func(n int64) keyedNumber {
					if hot && n&1 == 0 {
						return keyedNumber{names[0], n}
					}
					return keyedNumber{names[drawn[n%int64(len(drawn))]%keys], n}
				}
				run := func(opts ...sluice.WindowOption) time.Duration {
					job := sluice.NewJob("crowd")
					job.From("crowd", crowd{records}).Map(number).
						EventTime(func(k keyedNumber) sluice.Instant { return sluice.Instant(k.N * second / perSecond) }, 0, sluice.MaxAhead(0)).
						KeyBy(func(k keyedNumber) string { return k.Key }).
						Window(sluice.Tumbling(10*time.Second), opts...).
						FoldMerge(sluice.NewState[sluice.In[string], int64]("sums"), func(sum *int64, k keyedNumber) { *sum += k.N }, func(into, other *int64) { *into += *other }).
						Results().Discard()
					began := time.Now()
					if err := job.Run(context.Background(), sluice.Options{Store: store.NewMemory(), Log: slog.New(slog.DiscardHandler)}); err != nil {
						b.Fatal(err)
					}
					return time.Since(began)
				}
				var sent, merged time.Duration
				for b.Loop() {
					sent += run()
					merged += run(sluice.MergeAhead())
				}
				total := float64(b.N) * records
				b.ReportMetric(float64(sent)/total, "ns/sent")
				b.ReportMetric(float64(merged)/total, "ns/merged")
				b.ReportMetric(float64(merged)/float64(sent), "of-sent")
			})
		}
	}
}
