package embedded

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Record is one to be put into a topic. Records of one key go to one partition,
// chosen as Java's client does; those without a key (nil) go anywhere.
type Record struct {
	Key, Value []byte
}

// Fill puts records into a topic, and returns how many of them it acknowledged. It
// ends at the first error, of the records or of the broker, and returns that.
func (b *Broker) Fill(ctx context.Context, topic string, records iter.Seq2[Record, error]) (int64, error) {
	client, err := kgo.NewClient(b.clientOptions(topic)...)
	if err != nil {
		return 0, fmt.Errorf("fill topic %s: %w", topic, err)
	}
	defer client.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var acknowledged atomic.Int64
	for r, err := range records {
		if err != nil {
			stop(err)
		}
		if ctx.Err() != nil {
			break
		}
		// waits while too many are under way
		client.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				stop(fmt.Errorf("fill topic %s: %w", topic, err))
				return
			}
			acknowledged.Add(1)
		})
	}
	client.Flush(context.WithoutCancel(ctx)) // what was canceled is done with soon
	return acknowledged.Load(), context.Cause(ctx)
}

// Topics lists all topics, also those that clients have made, by name.
func (b *Broker) Topics(ctx context.Context) ([]Topic, error) {
	client, err := kgo.NewClient(b.clientOptions("")...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found, err := kadm.NewClient(client).ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the topics: %w", err)
	}
	var topics []Topic
	for _, t := range found.Sorted() {
		topic := Topic{Name: t.Topic, Partitions: len(t.Partitions), Settings: map[string]string{}}
		info := b.cluster.TopicInfo(t.Topic)
		if info == nil {
			continue // deleted meanwhile
		}
		for name, value := range info.Configs {
			if value != nil {
				topic.Settings[name] = *value
			}
		}
		topics = append(topics, topic)
	}
	return topics, nil
}

// clientOptions are how this process talks to its own broker.
func (b *Broker) clientOptions(topic string) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(b.addrs...)}
	if topic != "" {
		options = append(options, kgo.DefaultProduceTopic(topic))
	}
	if b.options.TLS != nil {
		// It is this process that answers: there is nobody to be mistaken for it.
		own := &tls.Dialer{NetDialer: new(net.Dialer), Config: &tls.Config{InsecureSkipVerify: true}}
		options = append(options, kgo.Dialer(own.DialContext))
	}
	if len(b.options.Users) > 0 {
		m, err := b.options.Users[0].mechanism()
		if err == nil {
			options = append(options, kgo.SASL(m))
		}
	}
	return options
}

// mechanism is how a user logs in.
func (u User) mechanism() (sasl.Mechanism, error) {
	switch u.Mechanism {
	case "PLAIN":
		return plain.Auth{User: u.Name, Pass: u.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: u.Name, Pass: u.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: u.Name, Pass: u.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("user %s: mechanism %q; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", u.Name, u.Mechanism)
}
