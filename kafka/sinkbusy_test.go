package kafka_test

import (
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/kafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTransactionBeforeStillEnding has brokers say, some times, that they are not through
// with the transaction before: to records, and to offsets in another way. A delivery
// asks again soon, so that it is written within its transaction's time-out.
func TestTransactionBeforeStillEnding(t *testing.T) {
	t.Parallel()
	c := fakeBrokers(t)
	l := newLife(t, c.ListenAddrs(), kafka.TransactionTimeout(9*time.Second))
	cluster := kafka.Connect(kafka.Brokers(l.addrs...)) // with the settings that a job has
	target, err := kafka.Append(l.topic, codec.String(), append(l.opts, kafka.On(cluster))...).Open(t.Context(), l.opening, l.key)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	l.make(t, target)
	l.deliver(t, target, connector.Apply, l.delivery(1, nil, "a"))
	const records, offsets = 20, 7
	refused := c.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: l.topic, Err: kerr.ConcurrentTransactions, Count: records},
		kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.CoordinatorLoadInProgress, Count: offsets},
	)
	second := l.delivery(2, nil, "b")
	second.Offsets = []connector.GroupOffsets{{Group: l.opening.Job, Offsets: map[string]connector.Offset{l.topic + "/0": {Next: 1, LeaderEpoch: -1}}}}
	l.deliver(t, target, connector.Apply, second)
	if n := refused.Hits(); n != records+offsets {
		t.Errorf("%d requests were refused, want %d", n, records+offsets)
	}
	l.sees(t, "a", "b")
}
