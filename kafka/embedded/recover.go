package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// maxRecovery bounds how long a killed broker's folder is worked on.
	maxRecovery = 10 * time.Minute
	// markerKey is how long the key of a transaction's marker is.
	markerKey = 4
)

// recoverFolder ends the transactions that a killed broker has left open in its
// folder, by markers that abort them. Loaded as it is, the log has none: readers
// would take what the same producer writes next for a part of the aborted
// transaction, and drop it.
//
// It happens in a broker that nobody knows of, before the real one starts.
func (b *Broker) recoverFolder() error {
	faults := new(faults)
	ports := make([]int, b.options.Brokers)
	cluster, err := kfake.NewCluster(kfake.Ports(ports...), kfake.DataDir(b.folder.data()), kfake.WithLogger(faults))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRecovery)
	defer cancel()
	err = abortOpen(ctx, cluster.ListenAddrs())
	cluster.Close()
	if lost := faults.all(); err == nil && len(lost) > 0 {
		err = fmt.Errorf("it can't be written: %s", lost[0])
	}
	return err
}

// partition is one of a topic's.
type partition struct {
	topic string
	id    int32
}

// abortOpen writes a marker for each transaction that has none.
func abortOpen(ctx context.Context, addrs []string) error {
	var dialer net.Dialer
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.Dialer(dialer.DialContext),
		kgo.KeepControlRecords(), kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	left, err := extents(ctx, admin, client)
	if err != nil {
		return err
	}
	open, err := readOpen(ctx, client, left)
	if err != nil {
		return err
	}
	var markers []kadm.TxnMarkers
	for p, producers := range open {
		for producer, epoch := range producers {
			topic := kadm.TopicsSet{}
			topic.Add(p.topic, p.id)
			markers = append(markers, kadm.TxnMarkers{ProducerID: producer, ProducerEpoch: epoch, Topics: topic})
		}
	}
	if len(markers) == 0 {
		return nil
	}
	written, err := admin.WriteTxnMarkers(ctx, markers...)
	if err != nil {
		return err
	}
	for _, r := range written.SortedPartitions() {
		if r.Err != nil {
			return fmt.Errorf("topic %s, partition %d: end the transaction of producer %d: %w", r.Topic, r.Partition, r.ProducerID, r.Err)
		}
	}
	return nil
}

// extents has the client read all partitions that hold anything, and returns
// where each ends.
func extents(ctx context.Context, admin *kadm.Client, client *kgo.Client) (map[partition]int64, error) {
	starts, err := admin.ListStartOffsets(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := admin.ListEndOffsets(ctx)
	if err != nil {
		return nil, err
	}
	left, from := map[partition]int64{}, map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if end.Offset <= start.Offset {
			return
		}
		left[partition{end.Topic, end.Partition}] = end.Offset
		if from[end.Topic] == nil {
			from[end.Topic] = map[int32]kgo.Offset{}
		}
		from[end.Topic][end.Partition] = kgo.NewOffset().At(start.Offset)
	})
	client.AddConsumePartitions(from)
	return left, nil
}

// readOpen reads partitions to their ends, and returns the epochs of the
// producers that have an open transaction there.
func readOpen(ctx context.Context, client *kgo.Client, left map[partition]int64) (map[partition]map[int64]int16, error) {
	open := map[partition]map[int64]int16{}
	for len(left) > 0 {
		fetched := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, e := range fetched.Errors() {
			return nil, fmt.Errorf("topic %s, partition %d: %w", e.Topic, e.Partition, e.Err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			p := partition{r.Topic, r.Partition}
			switch {
			case isMarker(r):
				delete(open[p], r.ProducerID)
			case r.Attrs.IsTransactional():
				if open[p] == nil {
					open[p] = map[int64]int16{}
				}
				open[p][r.ProducerID] = r.ProducerEpoch
			}
			if r.Offset+1 >= left[p] {
				delete(left, p)
			}
		})
	}
	return open, nil
}

// isMarker tells whether a record is the end of a transaction.
func isMarker(r *kgo.Record) bool {
	return r.Attrs.IsControl() && len(r.Key) >= markerKey && binary.BigEndian.Uint16(r.Key[2:]) <= 1
}
