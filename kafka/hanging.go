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
// If one of them has not heard of it (a broker that died may leave such), the next
// transaction of this producer would take what is open there along. These bound
// how long that is waited for.
const (
	hangingWithin = 10 * time.Second
	hangingPause  = 100 * time.Millisecond
)

// ended makes sure that no transaction of this producer is open in the partitions
// that it writes to, before the first one of its life. It needs the permission Read
// on the topics, and leaves out those that it may not look at.
func (t *target) ended(ctx context.Context, producer int64) error {
	within, cancel := env.Within(ctx, t.env.Clock, hangingWithin)
	defer cancel()
	for {
		err := t.hanging(within, producer)
		if err == nil || env.Pause(within, t.env.Clock, hangingPause) != nil {
			return err
		}
	}
}

// hanging is an error if a transaction of the producer is open.
func (t *target) hanging(ctx context.Context, producer int64) error {
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
		return fmt.Errorf("looking for open transactions: %w", err)
	}
	found.EachProducer(func(d kadm.DescribedProducer) {
		if d.ProducerID == producer && d.CurrentTxnStartOffset >= 0 {
			err = fmt.Errorf("topic %s, partition %d: a transaction of this producer (id %d) is open since offset %d, though the cluster has ended it: nothing is written, since the next one would take it along; kafka-transactions.sh abort ends it there",
				d.Topic, d.Partition, d.ProducerID, d.CurrentTxnStartOffset)
		}
	})
	return err
}
