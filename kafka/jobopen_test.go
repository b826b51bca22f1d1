package kafka_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// longest is as long as brokers let a transaction be open.
const longest = 15 * time.Minute

// A process dies in the middle of a delivery to one sink, and leaves its transaction
// open for longer than anybody waits. The next start has a sink besides whose record is
// to be made: it ends the transaction before it reads the topic that both share,
// whichever of the two comes first.
func TestOneSinksOpenTransactionDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("the new one first: %v", first), func(t *testing.T) {
			t.Parallel()
			c := fakeBrokers(t)
			addrs, name := c.ListenAddrs(), services.Unique("sums")
			in, out, also := name+"-orders", name+"-totals", name+"-also"
			for _, topic := range []string{in, out, also} {
				makeTopic(t, addrs, topic, 1, nil)
			}
			on := kafka.On(kafka.Connect(kafka.Brokers(addrs...), hasty()))
			job := func(both bool) *sluice.Job {
				job := sluice.NewJob(name)
				table := sums(job, job.From("orders", kafka.Topic(in, codec.JSON[order](), on)))
				to := func(sink, topic string, timeout time.Duration) {
					table.To(sink, kafka.Upsert(topic, oneTotal, codec.String(), codec.JSON[total](), on, kafka.TransactionTimeout(timeout)))
				}
				if both && first {
					to("also", also, time.Second)
				}
				to("totals", out, longest)
				if both && !first {
					to("also", also, time.Second)
				}
				return job
			}
			st, log := store.NewMemory(), new(journal)
			feedPartition(t, addrs, in, 0, order{"ann", 1})
			if err := run(t, job(false), st, log, func() bool { return maps.Equal(totalsIn(t, addrs[0], out), map[string]int64{"ann": 1}) }); err != nil {
				t.Fatal(err)
			}
			leaveOpen(t, addrs, name, out)
			feedPartition(t, addrs, in, 0, order{"ann", 2})
			// The new sink has the rows that change from now on.
			want := map[string]int64{"ann": 3}
			err := run(t, job(true), st, log, func() bool {
				return maps.Equal(totalsIn(t, addrs[0], out), want) && maps.Equal(totalsIn(t, addrs[0], also), want)
			})
			if err != nil {
				t.Errorf("%v; it logged:\n%s", err, log)
			}
		})
	}
}

// leaveOpen begins a transaction as the delivery of the job's sink totals does, writes
// to the topic and to the job's progress, and leaves it open for a quarter of an hour.
func leaveOpen(t *testing.T, addrs []string, job, topic string) {
	t.Helper()
	reader := plainClient(t, addrs, kgo.ConsumeTopics(job+".sluice"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var id string
	for id == "" {
		found := reader.PollFetches(ctx)
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		found.EachRecord(func(r *kgo.Record) {
			_, rest, _ := strings.Cut(string(r.Key), `"job_id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		})
	}
	dead := plainClient(t, addrs, kgo.TransactionalID(job+"/"+id+"/0.0/totals"), kgo.TransactionTimeout(longest), kgo.DefaultProduceTopic(topic))
	if err := dead.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	lost := []*kgo.Record{{Key: []byte("ann"), Value: []byte(`{"User":"ann","Cents":100}`)}, {Topic: job + ".sluice", Key: []byte("{}"), Value: []byte("{}")}}
	if err := dead.ProduceSync(ctx, lost...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
