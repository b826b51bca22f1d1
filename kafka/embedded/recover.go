package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
// folder: those whose commit it had begun to write, by commits, and all others by
// aborts. Loaded as it is, the log has neither: readers would take what the same
// producer writes next for a part of an aborted transaction, and drop it.
//
// It happens in a broker that nobody knows of, before the real one starts.
func (b *Broker) recoverFolder() error {
	decided, err := readDecisions(b.folder.decisions())
	if err != nil {
		return err
	}
	faults := new(faults)
	ports := make([]int, b.options.Brokers)
	cluster, err := kfake.NewCluster(kfake.Ports(ports...), kfake.DataDir(b.folder.data()), kfake.WithLogger(faults))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRecovery)
	defer cancel()
	err = endOpen(ctx, cluster.ListenAddrs(), decided)
	cluster.Close()
	if lost := faults.all(); err == nil && len(lost) > 0 {
		err = fmt.Errorf("it can't be written: %s", lost[0])
	}
	if err != nil {
		return err
	}
	return forgetSummaries(b.folder.data())
}

// forgetSummaries removes what the cluster has noted of its partitions besides
// their records: it takes what was open when it started for aborted, whatever
// marker came after. The next start reads the records instead.
func forgetSummaries(data string) error {
	summaries, err := filepath.Glob(filepath.Join(data, "partitions", "*", "snapshot.json"))
	if err != nil {
		return err
	}
	for _, name := range summaries {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// partition is one of a topic's.
type partition struct {
	topic string
	id    int32
}

// transaction is one, as far as epochs tell them apart.
type transaction struct {
	producer int64
	epoch    int16
}

// found is what partitions hold of transactions.
type found struct {
	open      map[partition]map[int64]int16 // epochs by producer
	committed map[transaction]bool          // in some partition
}

// endOpen writes a marker for each transaction that has none.
func endOpen(ctx context.Context, addrs []string, decided map[int64]decision) error {
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
	f, err := readTransactions(ctx, client, left)
	if err != nil {
		return err
	}
	var markers []kadm.TxnMarkers
	for p, producers := range f.open {
		for producer, epoch := range producers {
			topic := kadm.TopicsSet{}
			topic.Add(p.topic, p.id)
			// A decision alone could be one that was refused; a marker is none.
			commit := decided[producer] == decision{epoch, true} && f.committed[transaction{producer, epoch}]
			markers = append(markers, kadm.TxnMarkers{ProducerID: producer, ProducerEpoch: epoch, Commit: commit, Topics: topic})
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

// readTransactions reads partitions to their ends.
func readTransactions(ctx context.Context, client *kgo.Client, left map[partition]int64) (found, error) {
	f := found{map[partition]map[int64]int16{}, map[transaction]bool{}}
	for len(left) > 0 {
		fetched := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return f, err
		}
		for _, e := range fetched.Errors() {
			return f, fmt.Errorf("topic %s, partition %d: %w", e.Topic, e.Partition, e.Err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			p := partition{r.Topic, r.Partition}
			f.add(p, r)
			if r.Offset+1 >= left[p] {
				delete(left, p)
			}
		})
	}
	return f, nil
}

// What the key of a transaction's marker says, behind its version.
const (
	abortMarker  = 0
	commitMarker = 1
)

// add takes a record into account, in the order of its partition.
func (f *found) add(p partition, r *kgo.Record) {
	switch {
	case r.Attrs.IsControl() && len(r.Key) >= markerKey:
		switch binary.BigEndian.Uint16(r.Key[2:]) {
		case commitMarker:
			f.committed[transaction{r.ProducerID, r.ProducerEpoch}] = true
			delete(f.open[p], r.ProducerID)
		case abortMarker:
			delete(f.open[p], r.ProducerID)
		}
	case r.Attrs.IsTransactional():
		if f.open[p] == nil {
			f.open[p] = map[int64]int16{}
		}
		f.open[p][r.ProducerID] = r.ProducerEpoch
	}
}
