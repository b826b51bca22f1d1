// Package topics makes Kafka's topics for tests, and reads what consumers of committed
// records see in them. It shares no code with the connector that is tested.
package topics

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Patience is how long anything may take that has to come.
const Patience = 60 * time.Second

// Cluster is a cluster as a test sees it.
type Cluster struct {
	// Addr is where it is.
	Addr string
	// Client writes records, by the keys' partitions.
	Client *kgo.Client
	// Admin asks about topics.
	Admin *kadm.Client
}

// Open connects a test to a cluster, for as long as the test runs.
func Open(tb testing.TB, addr string) *Cluster {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return &Cluster{addr, client, kadm.NewClient(client)}
}

// Create makes a topic, and waits until it is known.
func (c *Cluster) Create(tb testing.TB, topic string, partitions int) {
	tb.Helper()
	Eventually(tb, "topic "+topic+" is made", func() bool {
		_, err := c.Admin.CreateTopic(tb.Context(), int32(partitions), 1, nil, topic)
		return err == nil || strings.Contains(err.Error(), "TOPIC_ALREADY_EXISTS")
	})
	Eventually(tb, "topic "+topic+" is known", func() bool { return c.Partitions(tb, topic) == partitions })
}

// Partitions is the number of partitions that a topic is known to have.
func (c *Cluster) Partitions(tb testing.TB, topic string) int {
	found, err := c.Admin.ListTopics(tb.Context(), topic)
	if err != nil || found.Error() != nil {
		return 0
	}
	return len(found[topic].Partitions)
}

// Read reads all that a topic holds for a consumer that reads committed, partition by
// partition.
func (c *Cluster) Read(tb testing.TB, topic string) []*kgo.Record {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	var ends kadm.ListedOffsets
	Eventually(tb, "the partitions of topic "+topic+" have leaders", func() (ok bool) { // a broker may just have come back
		var err error
		ends, err = c.Admin.ListCommittedOffsets(ctx, topic)
		return err == nil && ends.Error() == nil
	})
	from := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition] = kgo.NewOffset().At(0)
			left[o.Partition] = o.Offset
		}
	})
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.Addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		tb.Fatal(err)
	}
	defer reader.Close()
	parts := map[int32][]*kgo.Record{}
	for len(left) > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			tb.Fatalf("reading %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, ok := left[r.Partition]
			if !ok {
				return
			}
			if !r.Attrs.IsControl() {
				parts[r.Partition] = append(parts[r.Partition], r)
			}
			if r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	var all []*kgo.Record
	for _, p := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, parts[p]...)
	}
	return all
}

// Decided waits until no transaction is open in topics. Brokers write the end of one
// down a little after they have confirmed it.
func (c *Cluster) Decided(tb testing.TB, topics ...string) {
	tb.Helper()
	Eventually(tb, "no transaction is open", func() bool {
		return !slices.ContainsFunc(topics, func(topic string) bool { return !c.settled(tb, topic) })
	})
}

// settled tells whether no transaction is open in a topic: its readers see all that
// there is.
func (c *Cluster) settled(tb testing.TB, topic string) bool {
	stable, err := c.Admin.ListCommittedOffsets(tb.Context(), topic)
	if err != nil {
		return false
	}
	ends, err := c.Admin.ListEndOffsets(tb.Context(), topic)
	if err != nil {
		return false
	}
	same := true
	ends.Each(func(o kadm.ListedOffset) {
		at, ok := stable.Lookup(o.Topic, o.Partition)
		same = same && ok && at.Err == nil && o.Err == nil && at.Offset == o.Offset
	})
	return same
}

// Eventually waits until something holds.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	const step = 20 * time.Millisecond
	for range int(Patience / step) {
		if holds() {
			return
		}
		select {
		case <-time.After(step):
		case <-tb.Context().Done():
		}
	}
	tb.Fatalf("waited in vain: %s", what)
}
