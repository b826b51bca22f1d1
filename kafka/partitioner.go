package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// spreadBytes is how much of the records without a key goes to one partition
// before the next: few partitions take part in a small delivery, and batches are
// of some size in a large one.
const spreadBytes = 64 << 10

// newPartitioner returns what chooses a record's partition: the one it has; else
// by the hash of the key, as Kafka's own clients do by default; records without a
// key are spread.
func newPartitioner() kgo.Partitioner {
	return partitioner{kgo.UniformBytesPartitioner(spreadBytes, false, true, nil)}
}

type partitioner struct{ byKey kgo.Partitioner }

// ForTopic implements [kgo.Partitioner].
func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	byKey, _ := p.byKey.ForTopic(topic).(kgo.TopicBackupPartitioner)
	return topicPartitioner{byKey}
}

type topicPartitioner struct{ byKey kgo.TopicBackupPartitioner }

// RequiresConsistency implements [kgo.TopicPartitioner].
func (p topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.byKey.RequiresConsistency(r)
}

// Partition implements [kgo.TopicPartitioner]; the client library calls
// PartitionByBackup instead.
func (p topicPartitioner) Partition(r *kgo.Record, _ int) int { return int(r.Partition) }

// PartitionByBackup implements [kgo.TopicBackupPartitioner].
func (p topicPartitioner) PartitionByBackup(r *kgo.Record, n int, backup kgo.TopicBackupIter) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return p.byKey.PartitionByBackup(r, n, backup)
}
