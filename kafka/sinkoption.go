package kafka

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sinkSettings are what a sink's options say.
type sinkSettings struct {
	cluster     *Cluster
	create      *topicPlan
	transaction time.Duration
	rows, bytes int64
	compression Compression
	oldBrokers  bool
	record      int64
}

// The defaults. A part of 32 MiB takes a cluster that writes 10 MB/s three
// seconds, so that it is far from a transaction's 30; it is also what the client
// may hold of it at a time.
const (
	defaultTransaction = 30 * time.Second
	defaultPartRows    = 200_000
	defaultPartBytes   = 32 << 20
)

// minTransaction leaves a delivery the time to be written.
const minTransaction = time.Second

func newSinkSettings(opts []SinkOption) sinkSettings {
	s := sinkSettings{transaction: defaultTransaction, rows: defaultPartRows, bytes: defaultPartBytes, compression: LZ4}
	for _, o := range opts {
		o.toSink(&s)
	}
	if s.cluster == nil {
		s.cluster = Connect()
	}
	return s
}

// check says what is wrong with the settings.
func (s *sinkSettings) check() error {
	var faults []string
	if s.transaction < minTransaction {
		faults = append(faults, fmt.Sprintf("the option TransactionTimeout is %v, expected at least %v", s.transaction, minTransaction))
	}
	if s.rows < 0 || s.bytes < 0 {
		faults = append(faults, fmt.Sprintf("the option MaxDelivery is %d rows and %d bytes, expected none below 0", s.rows, s.bytes))
	}
	if s.record < 0 {
		faults = append(faults, fmt.Sprintf("the option MaxRecordBytes is %d, expected at least 1", s.record))
	}
	if c := s.create; c != nil && (c.partitions < 1 || c.replication < 0) {
		faults = append(faults, fmt.Sprintf("the option CreateTopic has %d partitions and %d replicas, expected at least 1 partition, and 0 or more replicas", c.partitions, c.replication))
	}
	if _, known := compressions[s.compression]; !known {
		faults = append(faults, fmt.Sprintf("no compression is called %q", string(s.compression)))
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

// CreateTopic has the sink's topic made if it isn't there, with so many partitions
// and replicas (0: as the cluster has it) and these settings, such as
// {"cleanup.policy": "compact"}. Defaults to none: a topic that is missing is an
// error. A topic that is there is left as it is.
func CreateTopic(partitions, replication int, configs map[string]string) SinkOption {
	topic := &topicPlan{partitions, replication, maps.Clone(configs)}
	return sinkOption(func(s *sinkSettings) { s.create = topic })
}

// TransactionTimeout is the time after which brokers undo a delivery that was
// begun and not ended. Consumers that read committed records wait that long at the
// most for a process that died. It is at most the brokers'
// transaction.max.timeout.ms, and a delivery must be written within it. Defaults
// to 30 s.
func TransactionTimeout(d time.Duration) SinkOption {
	return sinkOption(func(s *sinkSettings) { s.transaction = d })
}

// MaxDelivery bounds what one transaction holds: an epoch with more rows, or more
// bytes of them as they are frozen, is delivered in several. 0: no bound. Defaults
// to 200,000 rows and 32 MiB.
func MaxDelivery(rows, bytes int64) SinkOption {
	return sinkOption(func(s *sinkSettings) { s.rows, s.bytes = rows, bytes })
}

// MaxRecordBytes is the size beyond which a record is refused when it is made.
// Defaults to the topic's max.message.bytes, and where that may not be read, to
// Kafka's own default for it, 1,048,588.
func MaxRecordBytes(n int) SinkOption {
	return sinkOption(func(s *sinkSettings) {
		s.record = int64(n)
		if n == 0 {
			s.record = -1 // refused, since 0 would say that there is no such option
		}
	})
}

// AllowOldBrokers lets a sink write to brokers without the second version of
// transactions (before Kafka 4.0, or with the feature transaction.version below
// 2). There a request that was held up in the network may come after its
// transaction was undone, and stay in the topic as the beginning of one that
// nothing ends: consumers that read committed records then stand still at it until
// somebody aborts it. Defaults to a refusal.
func AllowOldBrokers() SinkOption {
	return sinkOption(func(s *sinkSettings) { s.oldBrokers = true })
}

// Compression is how the batches of records are compressed.
type Compression string

// The compressions. LZ4 is the default: it costs least of the processor of those
// that make batches much smaller, on this side and on each consumer's. ZSTD makes
// them smaller still, at about three times the cost.
const (
	LZ4          Compression = "lz4"
	ZSTD         Compression = "zstd"
	Snappy       Compression = "snappy"
	GZIP         Compression = "gzip"
	Uncompressed Compression = "none"
)

var compressions = map[Compression]kgo.CompressionCodec{
	LZ4: kgo.Lz4Compression(), ZSTD: kgo.ZstdCompression(), Snappy: kgo.SnappyCompression(),
	GZIP: kgo.GzipCompression(), Uncompressed: kgo.NoCompression(),
}

// Compress chooses the compression. Defaults to [LZ4].
func Compress(c Compression) SinkOption {
	return sinkOption(func(s *sinkSettings) { s.compression = c })
}
