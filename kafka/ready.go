package kafka

import (
	"cmp"
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ready implements [connector.ReadyTarget]: it makes the client of the next producer, and
// opens the connections over which that and the reading of the job's progress will go,
// which know the coordinator then. It asks for no producer's id, so that it fences nobody.
func (t *target) Ready(ctx context.Context) error {
	if t.producer != nil {
		return nil // it delivers
	}
	if t.ready == nil {
		client, err := t.producerClient()
		if err != nil {
			return err
		}
		t.ready = client
	}
	var leaders []int32
	topics, err := kadm.NewClient(t.ready).ListTopics(ctx, t.sink.topic, t.progress.name)
	if err != nil {
		return t.explain(err)
	}
	topics.EachPartition(func(p kadm.PartitionDetail) {
		if p.Leader >= 0 {
			leaders = append(leaders, p.Leader)
		}
	})
	// It goes to the coordinator; what comes back, and whether brokers know it, is all the same.
	_, _ = kadm.NewClient(t.ready).DescribeTransactions(ctx, t.transaction)
	if len(leaders) > 0 { // none would mean all brokers
		err = t.ready.EnsureProduceConnectionIsOpen(ctx, leaders...)
	}
	_, hanging := t.hanging(ctx, noProducer)
	return cmp.Or(err, hanging, t.progress.warm(ctx))
}

// noProducer is no producer's id.
const noProducer = -1

// warm reads a little over the connections that a reading takes.
func (p *progressTopic) warm(ctx context.Context) error {
	at, err := p.locate(ctx)
	if err != nil {
		return err
	}
	end, err := p.offset(ctx, at, -1)
	if err != nil || end == 0 {
		return err
	}
	_, err = p.fetch(ctx, at, end-1, openToo)
	return err
}

// readyClient is the client that was got ready for a producer, or a new one.
func (t *target) readyClient() (*kgo.Client, error) {
	if client := t.ready; client != nil {
		t.ready = nil
		return client, nil
	}
	return t.producerClient()
}
