package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// progressTopic is where a job's sinks keep their records in a cluster.
type progressTopic struct {
	client *kgo.Client
	clock  env.Clock
	log    *slog.Logger
	name   string
	before progressRead // what was read last
}

// progressRead is what stood in the topic up to an offset, committed all of it: it is what
// it was as long as the topic's leader stays, so that the next reading goes on from there.
// Compaction only removes what is not the newest of its key.
type progressRead struct {
	newest      map[string]progressEntry
	next        int64
	leaderEpoch int32
	id          [16]byte
}

// from is where a reading begins of a topic that is at a place, behind what is known of it.
// It is false if nothing is known; without an id, one that was made anew would pass for the
// same.
func (r *progressRead) from(at progressPlace, end int64) (int64, bool) {
	return r.next, r.newest != nil && r.id != [16]byte{} && r.leaderEpoch == at.leaderEpoch && r.id == at.id && r.next <= end
}

// progressSegment is how long records of one sink may pile up before the topic
// can be compacted; reading them is what a start waits for.
const progressSegment = 10 * time.Minute

// open makes the topic unless it is there, and checks it. If the job has begun to
// deliver, one that is missing was deleted, or is in another cluster: an empty one in
// its place would not tell what was delivered.
func (p *progressTopic) open(ctx context.Context, begun bool, log *slog.Logger) error {
	looks := 1
	if begun {
		looks = topicLooks
	}
	state, err := findTopic(ctx, p.client, p.clock, p.name, looks)
	if err != nil {
		return err
	}
	if state.partitions == 0 && begun {
		return fmt.Errorf("%w: topic %s, which tells what was delivered, isn't there: expected it, since the job has begun to deliver; restore it with the sinks' topics, name the cluster that has it, or give the job's sinks other names and other topics", connector.ErrRecord, p.name)
	}
	if state.partitions == 0 {
		t := &topicPlan{partitions: 1, configs: map[string]string{
			"cleanup.policy": "compact", "segment.ms": strconv.FormatInt(progressSegment.Milliseconds(), 10),
		}}
		if state.brokers >= 3 {
			t.replication, t.configs["min.insync.replicas"] = 3, "2"
		}
		if state, err = createTopic(ctx, p.client, p.clock, p.name, t); err != nil {
			return fmt.Errorf("the job's progress: %w; it needs one partition, cleanup.policy=compact and segment.ms=%d, if somebody else is to make it", err, progressSegment.Milliseconds())
		}
		log.Info("the topic of the job's progress wasn't there and was made", "topic", p.name)
	}
	if err := state.need(kmsg.ACLOperationRead, kmsg.ACLOperationWrite); err != nil {
		return fmt.Errorf("the job's progress: %w", err)
	}
	return p.check(ctx, state)
}

// check compares the topic's settings with what is needed.
func (p *progressTopic) check(ctx context.Context, state *topicSettings) error {
	var faults []string
	if state.partitions != 1 {
		faults = append(faults, fmt.Sprintf("partitions is %d, expected 1", state.partitions))
	}
	configs, err := topicConfigs(ctx, p.client, p.name)
	if err != nil {
		return err
	}
	if policy, ok := configs["cleanup.policy"]; ok && policy != "compact" {
		faults = append(faults, fmt.Sprintf("cleanup.policy is %s, expected compact", policy))
	}
	if text, ok := configs["segment.ms"]; ok {
		if ms, err := strconv.ParseInt(text, 10, 64); err != nil || ms > progressSegment.Milliseconds() {
			faults = append(faults, fmt.Sprintf("segment.ms is %s, expected at most %d", text, progressSegment.Milliseconds()))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("topic %s can't hold the job's progress: %s", p.name, strings.Join(faults, "; "))
	}
	return nil
}

// errProgressGone says that the topic isn't there any more.
var errProgressGone = errors.New("the topic of the job's progress is gone")

// The bounds of one reading of the topic: how often what fails for a moment is
// tried again, and how long a broker waits for more.
const (
	readTries  = 8
	readPause  = 50 * time.Millisecond
	fetchWait  = 250 * time.Millisecond
	fetchBytes = 8 << 20
	// heldFor is how long an open transaction is waited for in silence.
	heldFor = 2 * time.Second
)

// read reads all records that are committed up to the topic's end as it is now. It
// waits for transactions that are open there, for as long as within.
func (p *progressTopic) read(ctx context.Context, within time.Duration) (found *progress, err error) {
	ctx, cancel := env.Within(ctx, p.clock, within)
	defer cancel()
	for try := range readTries {
		var held int64
		found, held, err = p.readOnce(ctx)
		switch {
		case err == nil:
			return found, nil
		case context.Cause(ctx) == env.ErrTooLong:
			return nil, fmt.Errorf("topic %s: the job's progress wasn't read within %v: %w", p.name, within, p.holder(context.WithoutCancel(ctx), held, err))
		case ctx.Err() != nil || !passing(err) && !errors.Is(err, errProgressGone):
			return nil, fmt.Errorf("topic %s: reading the job's progress: %w", p.name, err)
		}
		if try < readTries-1 && env.Pause(ctx, p.clock, readPause<<try) != nil {
			return nil, err
		}
	}
	if errors.Is(err, errProgressGone) {
		return nil, fmt.Errorf("%w: topic %s: %w", connector.ErrRecord, p.name, err)
	}
	return nil, fmt.Errorf("topic %s: reading the job's progress: %w", p.name, err)
}

// passing tells whether trying again may help: a broker is about to have an answer,
// or the connection was broken, as it is after a broker was away.
func passing(err error) bool { return kerr.IsRetriable(err) || kgo.IsRetryableBrokerErr(err) }

// place is where the topic's partition is to be read.
type progressPlace struct {
	leader      *kgo.Broker
	leaderEpoch int32
	id          [16]byte
}

func (p *progressTopic) locate(ctx context.Context) (progressPlace, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(p.name)
	req.Topics = []kmsg.MetadataRequestTopic{t}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return progressPlace{}, err
	}
	if len(resp.Topics) != 1 {
		return progressPlace{}, fmt.Errorf("asked for one topic, and was told of %d", len(resp.Topics))
	}
	found := resp.Topics[0]
	err = kerr.ErrorForCode(found.ErrorCode)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return progressPlace{}, errProgressGone
	case err != nil:
		return progressPlace{}, err
	case len(found.Partitions) != 1:
		return progressPlace{}, fmt.Errorf("it has %d partitions, expected 1", len(found.Partitions))
	}
	part := found.Partitions[0]
	if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
		return progressPlace{}, err
	}
	return progressPlace{p.client.Broker(int(part.Leader)), part.LeaderEpoch, found.TopicID}, nil
}

// offset asks the leader for the topic's beginning (-2) or its end (-1), which is
// behind all that was written, open transactions included.
func (p *progressTopic) offset(ctx context.Context, at progressPlace, which int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = p.name
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.CurrentLeaderEpoch, part.Timestamp = at.leaderEpoch, which
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	answer, err := at.leader.Request(ctx, req)
	if err != nil {
		return 0, err
	}
	resp, ok := answer.(*kmsg.ListOffsetsResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, errors.New("asked for the offset of one partition, and was told of another number")
	}
	got := resp.Topics[0].Partitions[0]
	return got.Offset, kerr.ErrorForCode(got.ErrorCode)
}

// readOnce is one try of read. If a transaction holds it up, held is where.
func (p *progressTopic) readOnce(ctx context.Context) (found *progress, held int64, err error) {
	held = -1
	at, err := p.locate(ctx)
	if err != nil {
		return nil, held, err
	}
	end, err := p.offset(ctx, at, -1)
	if err != nil {
		return nil, held, err
	}
	before := p.before
	p.before = progressRead{} // unless all goes well
	found = &progress{map[string]progressEntry{}, end}
	next, known := before.from(at, end)
	if known {
		maps.Copy(found.newest, before.newest)
	} else if next, err = p.offset(ctx, at, -2); err != nil {
		return nil, held, err
	}
	waits := p.clock.Now().Add(heldFor)
	for next < end {
		if held >= 0 && !waits.IsZero() && p.clock.Now().After(waits) {
			waits = time.Time{}
			p.log.Warn("waiting for the end of a transaction that is open", "topic", p.name, "error", p.holder(ctx, held, errHeld))
		}
		part, err := p.fetch(ctx, at, next, committedOnly)
		if err != nil {
			return nil, held, err
		}
		// The last records may have been compacted away: then there is nothing up
		// to an end that is stable.
		if len(part.RecordBatches) == 0 && part.LastStableOffset >= end {
			break
		}
		held = part.LastStableOffset
		records, after := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			Offset: next, IsolationLevel: kgo.ReadCommitted(), Topic: p.name,
		}, part, kgo.DefaultDecompressor(), nil)
		if records.Err != nil {
			return nil, held, records.Err
		}
		for _, r := range records.Records {
			if r.Value == nil {
				delete(found.newest, string(r.Key))
				continue
			}
			found.newest[string(r.Key)] = progressEntry{r.Offset, r.Value, identity{r.ProducerID, r.ProducerEpoch}}
		}
		if after > next {
			waits = p.clock.Now().Add(heldFor)
		}
		next = after
	}
	p.before = progressRead{found.newest, next, at.leaderEpoch, at.id}
	return found, held, nil
}

// untouched makes sure that from one offset up to another no record of a key was
// written. It is asked once the record at the end of these is there, which only
// the true leader of the topic can have taken. So it finds what a reading missed
// that was answered by a broker that was the leader once, and didn't know better.
func (p *progressTopic) untouched(ctx context.Context, from, to int64, key []byte) error {
	for from < to {
		next, err := p.scan(ctx, from, to, key)
		if err != nil && !kerr.IsRetriable(err) {
			return fmt.Errorf("topic %s: reading what was written meanwhile: %w", p.name, err)
		}
		if next == from {
			if pause := env.Pause(ctx, p.clock, readPause); pause != nil {
				return fmt.Errorf("topic %s: reading what was written meanwhile: %w", p.name, cmp.Or(err, pause))
			}
		}
		from = next
	}
	return nil
}

// errHeld says why a reading doesn't come to the topic's end.
var errHeld = errors.New("the job's progress can't be read to its end")

// errMissed says that a reading has missed a record.
var errMissed = errors.New("a record of this sink is there that wasn't when the job's progress was read")

// scan looks for a key among the next records, and tells how far it came.
func (p *progressTopic) scan(ctx context.Context, from, to int64, key []byte) (next int64, err error) {
	at, err := p.locate(ctx)
	if err != nil {
		return from, err
	}
	part, err := p.fetch(ctx, at, from, openToo)
	if err != nil {
		return from, err
	}
	records, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: from, Topic: p.name}, part, kgo.DefaultDecompressor(), nil)
	for _, r := range records.Records {
		if r.Offset < to && bytes.Equal(r.Key, key) {
			return from, fmt.Errorf("offset %d: %w", r.Offset, errMissed)
		}
	}
	return next, records.Err
}

// What is read: committed records only, or those of open transactions too.
const (
	openToo       int8 = 0
	committedOnly int8 = 1
)

// fetch reads from an offset on.
func (p *progressTopic) fetch(ctx context.Context, at progressPlace, from int64, isolation int8) (*kmsg.FetchResponseTopicPartition, error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(fetchWait.Milliseconds()), 1, fetchBytes
	req.IsolationLevel = isolation
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = p.name, at.id
	part := kmsg.NewFetchRequestTopicPartition()
	part.CurrentLeaderEpoch, part.FetchOffset, part.PartitionMaxBytes = at.leaderEpoch, from, fetchBytes
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	answer, err := at.leader.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, ok := answer.(*kmsg.FetchResponse)
	if !ok {
		return nil, errors.New("asked for records, and got something else")
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("asked for the records of one partition, and got those of another number")
	}
	got := &resp.Topics[0].Partitions[0]
	return got, kerr.ErrorForCode(got.ErrorCode)
}

// holder adds to an error who holds up the reading, if that can be found.
func (p *progressTopic) holder(ctx context.Context, held int64, err error) error {
	if held < 0 {
		return err
	}
	ctx, cancel := env.Within(ctx, p.clock, 5*time.Second)
	defer cancel()
	admin := kadm.NewClient(p.client)
	set := kadm.TopicsSet{}
	set.Add(p.name, 0)
	topics, failed := admin.DescribeProducers(ctx, set)
	if failed != nil {
		return fmt.Errorf("a transaction is open since offset %d: %w", held, err)
	}
	var ids []int64
	topics.EachProducer(func(d kadm.DescribedProducer) {
		if d.CurrentTxnStartOffset >= 0 {
			ids = append(ids, d.ProducerID)
		}
	})
	var names []string
	if listed, failed := admin.ListTransactions(ctx, ids, nil); failed == nil && len(ids) > 0 {
		for _, l := range listed.Sorted() {
			names = append(names, l.TxnID)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("a transaction is open since offset %d (producer ids %v, transactional ids %q); brokers end it after its time-out, kafka-transactions.sh at once: %w", held, ids, names, err)
}
