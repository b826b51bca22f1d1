package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/twmb/franz-go/pkg/kadm"
)

// A coordinator says that a transaction is ended once it has told all partitions.
// If one of them has not heard of it (a broker that was killed may leave such), the
// next transaction of this producer would take what is open there along. These
// bound how long that is waited for, and when it is undone.
const (
	hangingWithin = 10 * time.Second
	hangingPause  = 100 * time.Millisecond
	undoneAfter   = 30 // pauses
)

// ended makes sure that no transaction of this producer is open in the partitions
// that it writes to, before the first one of its life. It needs the permission Read
// on the topics, and leaves out those that it may not look at.
func (t *target) ended(ctx context.Context, producer int64) error {
	within, cancel := env.Within(ctx, t.env.Clock, hangingWithin)
	defer cancel()
	var found error // by the inquiry before
	for try := 1; ; try++ {
		open, err := t.hanging(within, producer)
		if err == nil {
			return nil
		}
		if found != nil && within.Err() != nil {
			return found // rather than that the time was up during this one
		}
		found = err
		if try == undoneAfter && len(open) > 0 {
			err = t.undo(within, open, err)
		}
		if env.Pause(within, t.env.Clock, hangingPause) != nil {
			return err
		}
	}
}

// undo aborts what is open of transactions before, where it is sure that they were
// not committed: each transaction has an epoch of its own, and the newest that was
// committed is that of the record. It needs the permission ClusterAction.
func (t *target) undo(ctx context.Context, open []kadm.DescribedProducer, cause error) error {
	for _, d := range open {
		if t.old || d.ProducerID != t.by.id || d.ProducerEpoch <= t.by.epoch {
			return cause
		}
		topics := kadm.TopicsSet{}
		topics.Add(d.Topic, d.Partition)
		_, err := kadm.NewClient(t.client).WriteTxnMarkers(ctx, kadm.TxnMarkers{
			ProducerID: d.ProducerID, ProducerEpoch: d.ProducerEpoch, CoordinatorEpoch: max(d.CoordinatorEpoch, 0), Topics: topics,
		})
		if err != nil {
			return fmt.Errorf("%w (the job tried to: %w)", cause, err)
		}
		t.log.Warn("a transaction that the cluster has ended was left open in a partition, and was undone there", "topic", d.Topic, "partition", d.Partition, "sink", t.key.Sink)
	}
	return cause
}

// hanging is an error if a transaction of the producer is open, with where.
func (t *target) hanging(ctx context.Context, producer int64) (open []kadm.DescribedProducer, err error) {
	topics := kadm.TopicsSet{}
	topics.Add(t.progress.name, 0)
	for partition := range t.sink.bounds.partitions.Load() {
		topics.Add(t.sink.topic, partition)
	}
	found, err := kadm.NewClient(t.client).DescribeProducers(ctx, topics)
	var denied *kadm.AuthError
	switch {
	case errors.As(err, &denied), err != nil && t.old:
		err = nil // it can't be known
	case err != nil:
		return nil, fmt.Errorf("looking for open transactions: %w", err)
	}
	found.EachProducer(func(d kadm.DescribedProducer) {
		if d.ProducerID == producer && d.CurrentTxnStartOffset >= 0 {
			open = append(open, d)
			err = fmt.Errorf("topic %s, partition %d: a transaction of this producer (id %d) is open since offset %d, though the cluster has ended it: nothing is written, since the next one would take it along; kafka-transactions.sh abort ends it there",
				d.Topic, d.Partition, d.ProducerID, d.CurrentTxnStartOffset)
		}
	})
	return open, err
}
