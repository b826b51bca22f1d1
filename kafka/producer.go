package kafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// producer is one life of a transactional producer: from its start, which fences
// those before it, to the first error.
type producer struct {
	client *kgo.Client
	clock  env.Clock
	topic  string
	old    bool
	lived  identity
	open   bool // a transaction was begun, and its end not asked for
}

// identity is what brokers know a life of a producer by.
type identity struct {
	id    int64
	epoch int16
}

// The bounds of a producer.
const (
	startWithin = time.Minute     // its start, which waits for the end of what another has left open
	abortWithin = 2 * time.Second // undoing what it can't finish; brokers do it later by themselves
	buffered    = 20_000          // the records that it holds and brokers have not confirmed,
	// and their bytes, unless records may be larger than half of it
	bufferedBytes = 32 << 20
	// batchWait is how long a batch is waited for to fill. Whatever is not full at
	// the end of a delivery goes at once.
	batchWait = 50 * time.Millisecond
	// endingPause is the time between two tries while brokers still end the transaction
	// before, which takes them some milliseconds. The client library would wait for up to
	// 5 s. slowestPause is where it ends for other errors, whose tries become rarer.
	endingPause  = 20 * time.Millisecond
	slowestPause = 2500 * time.Millisecond
	// unknownRetries is how often a topic may be unknown to a broker that has just started:
	// for as long as by the client library's own settings.
	unknownRetries = int(20 * time.Second / endingPause)
)

// offsetCommit is the key of the requests by which groups are told their offsets
// in a transaction, with its newest versions: from 5 on the group is a part of the
// transaction without another request; from 6 on topics are told by ids.
const (
	offsetCommit    = 28
	offsetCommitNew = 5
	offsetCommitOld = 4
)

// producerClient makes the client of a producer. Nothing is connected yet, and nobody
// fenced: only what asks for the producer's id does that.
func (t *target) producerClient() (*kgo.Client, error) {
	s := t.sink.settings
	versions, newest := kversion.Stable(), int16(offsetCommitNew)
	if t.old {
		newest = offsetCommitOld
	}
	versions.SetMaxKeyVersion(offsetCommit, newest)
	limit := int32(t.sink.bounds.record.Load())
	client, _, err := s.cluster.newClient(t.job,
		kgo.MaxVersions(versions),
		kgo.TransactionalID(t.transaction),
		kgo.TransactionTimeout(s.transaction),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(compressions[s.compression]),
		kgo.ProducerLinger(batchWait),
		kgo.MetadataMinAge(endingPause),
		kgo.RetryBackoffFn(retryPause),
		kgo.UnknownTopicRetries(unknownRetries),
		kgo.RecordPartitioner(newPartitioner()),
		kgo.MaxBufferedRecords(buffered),
		kgo.MaxBufferedBytes(max(bufferedBytes, 2*int(limit))),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			if topic == t.sink.topic {
				return limit
			}
			return defaultRecord
		}),
	)
	return client, err
}

// newProducer starts a producer: what another has left open is ended then.
func (t *target) newProducer(ctx context.Context) (*producer, error) {
	client, err := t.readyClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := env.Within(ctx, t.env.Clock, startWithin)
	defer cancel()
	p := &producer{client: client, clock: t.env.Clock, topic: t.sink.topic, old: t.old}
	if p.lived, err = p.identity(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("starting the producer: %w", err)
	}
	return p, nil
}

func (p *producer) identity(ctx context.Context) (identity, error) {
	id, epoch, err := p.client.ProducerID(ctx)
	return identity{id, epoch}, err
}

// same makes sure that the client has not begun another life by itself.
func (p *producer) same(ctx context.Context) error {
	now, err := p.identity(ctx)
	if err != nil {
		return err
	}
	if now != p.lived {
		return fmt.Errorf("the producer was id %d, epoch %d, and is id %d, epoch %d: it was started anew in between", p.lived.id, p.lived.epoch, now.id, now.epoch)
	}
	return nil
}

// transact does what fill says in one transaction, which it ends if check finds no
// fault with what was written. After an error its outcome is unknown, and the
// producer is of no use any more.
func (p *producer) transact(ctx context.Context, fill, check func(*transaction) error) error {
	if err := p.client.BeginTransaction(); err != nil {
		return err
	}
	p.open = true
	if err := p.same(ctx); err != nil {
		return err
	}
	tx := &transaction{producer: p, now: p.clock.Now(), wrote: map[string]int32{}}
	tx.done = tx.note
	if err := fill(tx); err != nil {
		return tx.first(err)
	}
	if err := p.client.Flush(ctx); err != nil {
		return tx.first(err)
	}
	if err := tx.first(nil); err != nil {
		return err
	}
	if err := check(tx); err != nil {
		return err
	}
	if err := tx.loaded(ctx); err != nil {
		return err
	}
	if err := p.same(ctx); err != nil {
		return err
	}
	p.open = false
	if err := p.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	before := p.lived
	var err error
	if p.lived, err = p.identity(ctx); err != nil || p.old && p.lived != before {
		// It is committed; only the producer can't go on.
		p.lived = identity{}
	}
	return nil
}

// close ends the producer. What it has begun and can't finish it undoes, if that
// can be had soon, so that consumers need not wait for it.
func (p *producer) close() {
	if p.open {
		ctx, cancel := env.Within(context.Background(), p.clock, abortWithin)
		defer cancel()
		if p.client.AbortBufferedRecords(ctx) == nil {
			_ = p.client.EndTransaction(ctx, kgo.TryAbort)
		}
	}
	p.client.Close()
}

// transaction is one transaction of a producer.
type transaction struct {
	*producer
	now  time.Time // the time of records that have none of their own
	done func(*kgo.Record, error)

	mu     sync.Mutex
	failed error            // the first record's that was not written
	ends   []int64          // of the sink's topic, by partition: the offset behind the last row that was written, or 0
	last   string           // the topic of the last record that was written
	wrote  map[string]int32 // of each topic a partition that was written to

	records []kgo.Record // memory for those that come next
	bytes   []byte
	headers []connector.Header
}

// note notes how a record has fared. The client library calls it for one record
// at a time.
func (tx *transaction) note(r *kgo.Record, err error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if err == nil && r.Offset < 0 {
		err = errNoOffset
	}
	if err != nil {
		if tx.failed == nil {
			tx.failed = fmt.Errorf("writing to topic %s, partition %d: %w", r.Topic, r.Partition, err)
		}
		return
	}
	if r.Topic == tx.topic {
		if more := int(r.Partition) + 1 - len(tx.ends); more > 0 {
			tx.ends = append(tx.ends, make([]int64, more)...)
		}
		tx.ends[r.Partition] = r.Offset + 1
	}
	if r.Topic != tx.last {
		tx.last, tx.wrote[r.Topic] = r.Topic, r.Partition
	}
}

// errNoOffset says that a record is written, and nobody knows where.
var errNoOffset = errors.New("the broker has told no offset")

// written waits until all rows so far are written, and tells where they end.
func (tx *transaction) written(ctx context.Context) ([]int64, error) {
	if err := tx.client.Flush(ctx); err != nil {
		return nil, tx.first(err)
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.ends, tx.failed
}

// loaded waits until the client library has settled what it knows of the topics
// that were written to. It can have written the first records of a topic, and be
// about to note that the topic is there: to end the transaction just then would
// leave the topic out, or even undo it all and call that a success.
func (tx *transaction) loaded(ctx context.Context) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	for topic, partition := range tx.wrote {
		for {
			leader, _, err := tx.client.PartitionLeader(topic, partition)
			if err == nil && leader >= 0 {
				break
			}
			if pause := env.Pause(ctx, tx.clock, loadedPause); pause != nil {
				return fmt.Errorf("the client doesn't settle what it knows of topic %s: %w", topic, pause)
			}
		}
	}
	return nil
}

const loadedPause = time.Millisecond

// first is the first error there was: a record's, or err.
func (tx *transaction) first(err error) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.failed != nil {
		return tx.failed
	}
	return err
}

func (tx *transaction) produce(ctx context.Context, r *kgo.Record) {
	tx.client.Produce(ctx, r, tx.done)
}

// The memory that records are copied to is taken in pieces of this size, as many
// records for each of those.
const (
	pieceBytes   = 64 << 10
	pieceRecords = 128
)

// rows writes the rows of a delivery.
func (tx *transaction) rows(ctx context.Context, rows iter.Seq2[connector.Row, error]) error {
	n := 0
	for row, err := range rows {
		if err != nil {
			return err
		}
		r, err := tx.record(row.Wire)
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		tx.produce(ctx, r)
		if n++; n%pieceRecords == 0 {
			if err := tx.first(ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}

// record makes a record of its wire form, which holds until the next row only.
func (tx *transaction) record(wire []byte) (*kgo.Record, error) {
	if len(wire) > cap(tx.bytes)-len(tx.bytes) {
		tx.bytes = make([]byte, 0, max(pieceBytes, len(wire)))
	}
	start := len(tx.bytes)
	tx.bytes = append(tx.bytes, wire...)
	w, err := parseWire(tx.bytes[start:], tx.headers)
	if err != nil {
		return nil, err
	}
	if len(tx.records) == 0 {
		tx.records = make([]kgo.Record, pieceRecords)
	}
	r := &tx.records[0]
	tx.records = tx.records[1:]
	r.Topic, r.Partition, r.Key, r.Value, r.Timestamp = tx.topic, w.partition, w.key, w.value, tx.now
	if w.time != connector.NoTime {
		r.Timestamp = time.UnixMilli(w.time)
	}
	if len(w.headers) > 0 {
		tx.headers = w.headers
		r.Headers = make([]kgo.RecordHeader, len(w.headers))
		for i, h := range w.headers {
			r.Headers[i] = kgo.RecordHeader(h)
		}
	}
	return r, nil
}

// offsets tells groups how far they have read, as a part of the transaction.
func (tx *transaction) offsets(ctx context.Context, groups []connector.GroupOffsets, metadata string) error {
	for _, g := range groups {
		if len(g.Offsets) == 0 {
			continue
		}
		if tx.old {
			if err := tx.addGroup(ctx, g.Group); err != nil {
				return fmt.Errorf("telling group %s its offsets: %w", g.Group, err)
			}
		}
		if err := tx.tellGroup(ctx, g, metadata); err != nil {
			return fmt.Errorf("telling group %s its offsets: %w", g.Group, err)
		}
	}
	return nil
}

// addGroup makes a group a part of the transaction, which newer brokers do by
// themselves.
func (tx *transaction) addGroup(ctx context.Context, group string) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, _ = tx.client.OptValue(kgo.TransactionalID).(string)
	req.ProducerID, req.ProducerEpoch, req.Group = tx.lived.id, tx.lived.epoch, group
	return tx.whileEnding(ctx, func() error {
		resp, err := req.RequestWith(ctx, tx.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
}

func (tx *transaction) tellGroup(ctx context.Context, g connector.GroupOffsets, metadata string) error {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, _ = tx.client.OptValue(kgo.TransactionalID).(string)
	req.ProducerID, req.ProducerEpoch, req.Group = tx.lived.id, tx.lived.epoch, g.Group
	topics := map[string]*kmsg.TxnOffsetCommitRequestTopic{}
	for _, name := range slices.Sorted(maps.Keys(g.Offsets)) {
		topic, number, err := splitPartition(name)
		if err != nil {
			return err
		}
		t := topics[topic]
		if t == nil {
			added := kmsg.NewTxnOffsetCommitRequestTopic()
			added.Topic = topic
			t = &added
			topics[topic] = t
		}
		part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset, part.LeaderEpoch = number, g.Offsets[name].Next, g.Offsets[name].LeaderEpoch
		part.Metadata = &metadata
		t.Partitions = append(t.Partitions, part)
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		req.Topics = append(req.Topics, *topics[topic])
	}
	return tx.whileEnding(ctx, func() error {
		resp, err := req.RequestWith(ctx, tx.client)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			for _, part := range t.Partitions {
				err := kerr.ErrorForCode(part.ErrorCode)
				switch {
				case errors.Is(err, kerr.GroupAuthorizationFailed):
					return &PermissionError{Resource: "group " + g.Group, Operation: "Read"}
				case errors.Is(err, kerr.TopicAuthorizationFailed):
					return &PermissionError{Resource: "topic " + t.Topic, Operation: "Read"}
				case err != nil:
					return fmt.Errorf("partition %s/%d: %w", t.Topic, part.Partition, err)
				}
			}
		}
		return nil
	})
}

// splitPartition takes apart a partition's name, topic/number.
func splitPartition(name string) (topic string, number int32, err error) {
	topic, text, _ := strings.Cut(name, "/")
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || topic == "" || n < 0 {
		return "", 0, fmt.Errorf("%q is no partition of Kafka, expected topic/number", name)
	}
	return topic, int32(n), nil
}

// whileEnding tries again while the producer's transaction before this one is
// still being ended by the brokers: they have confirmed it by then, and say that
// two can't overlap.
func (tx *transaction) whileEnding(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, kerr.ConcurrentTransactions) || env.Pause(ctx, tx.clock, endingPause) != nil {
			return err
		}
	}
}

// retryPause is the time before another try, of a request that has failed so often.
func retryPause(fails int) time.Duration {
	return min(endingPause<<min(fails-1, 10), slowestPause)
}
