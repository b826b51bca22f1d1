package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicState is what the brokers say of a topic.
type topicState struct {
	id      topicID
	leaders map[int32]leader // by partition
	err     error
	allowed int32 // the operations, as bits; see [kmsg.ACLOperation]
}

// leader is the broker that has a partition's log.
type leader struct {
	broker int32 // -1: none
	epoch  int32
}

// topicWithin is how long a topic that is named may take to be there: brokers may
// learn of one that was just made a little later.
const topicWithin = 3 * time.Second

// String names what is selected.
func (s selection) String() string {
	if s.pattern != nil {
		return fmt.Sprintf("topics that fit %q", s.names[0])
	}
	return "topics " + strings.Join(s.names, ", ")
}

// has tells whether a topic is selected.
func (s selection) has(topic string) bool {
	if s.pattern != nil {
		return s.pattern.MatchString(topic)
	}
	for _, name := range s.names {
		if name == topic {
			return true
		}
	}
	return false
}

// look finds the topics and their partitions. If all are needed, a topic that is
// named and missing is an error, once it had some time to come up.
func (r *reader) look(ctx context.Context, all bool) error {
	clock := r.opening.Env.Clock
	began := clock.Now()
	return r.ask(ctx, func(ctx context.Context) error {
		names := r.topics.names
		if r.topics.pattern != nil {
			names = nil
		}
		found, err := r.describe(ctx, names)
		if err != nil {
			return err
		}
		for name, t := range found {
			switch {
			case errors.Is(t.err, kerr.UnknownTopicOrPartition) && !all:
				delete(found, name)
				continue
			case errors.Is(t.err, kerr.UnknownTopicOrPartition) && clock.Now().Sub(began) >= topicWithin:
				return final{&VanishedError{name, -1}}
			case t.err != nil:
				return topicError(name, t.err, "Describe")
			}
			if err := t.readable(name); err != nil {
				return final{err}
			}
		}
		r.known = found
		return nil
	})
}

// readable tells whether the brokers, as far as they say, let the topic be read.
func (t topicState) readable(name string) error {
	const unknown = -1 << 31
	if t.allowed != unknown && t.allowed&(1<<kmsg.ACLOperationRead) == 0 {
		return &PermissionError{Resource: "topic " + name, Operation: "Read"}
	}
	return nil
}

// topicError is the error that a broker has for a topic. What is missing if it is a
// permission is what was asked for.
func topicError(name string, err error, operation string) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return final{&PermissionError{Resource: "topic " + name, Operation: operation}}
	}
	return fmt.Errorf("topic %s: %w", name, err)
}

// describe asks for topics by their names; nil: for those of the pattern.
func (r *reader) describe(ctx context.Context, names []string) (map[string]topicState, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return nil, err
	}
	found := make(map[string]topicState, len(resp.Topics))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == nil || names == nil && (t.IsInternal || !r.topics.has(*t.Topic)) {
			continue
		}
		state := topicState{id: t.TopicID, err: kerr.ErrorForCode(t.ErrorCode), allowed: t.AuthorizedOperations, leaders: make(map[int32]leader, len(t.Partitions))}
		for _, p := range t.Partitions {
			state.leaders[p.Partition] = leader{p.Leader, p.LeaderEpoch}
		}
		found[*t.Topic] = state
	}
	return found, nil
}

// What ListOffsets takes for a time.
const (
	listLatest   = -1
	listEarliest = -2
)

// listOffsets asks for the offsets of a time, in milliseconds, or of one of the
// above. -1 says that there is no record of that time or later. Ends are behind
// the last record whose transaction is decided.
func (r *reader) listOffsets(ctx context.Context, places []place, at int64) (out map[place]int64, err error) {
	err = r.ask(ctx, func(ctx context.Context) error {
		out, err = r.listOnce(ctx, places, at)
		return err
	})
	return out, err
}

func (r *reader) listOnce(ctx context.Context, places []place, at int64) (map[place]int64, error) {
	const readCommitted = 1
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = readCommitted
	byTopic := map[string]int{}
	for _, p := range places {
		n, ok := byTopic[p.topic]
		if !ok {
			n = len(req.Topics)
			byTopic[p.topic] = n
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.topic
			req.Topics = append(req.Topics, t)
		}
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = p.number, at
		req.Topics[n].Partitions = append(req.Topics[n].Partitions, part)
	}
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return nil, err
	}
	out := make(map[place]int64, len(places))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, topicError(t.Topic, err, "Describe")
			}
			out[place{t.Topic, p.Partition}] = p.Offset
		}
	}
	for _, p := range places {
		if _, ok := out[p]; !ok {
			return nil, fmt.Errorf("partition %s: %w", p, kerr.UnknownTopicOrPartition)
		}
	}
	return out, nil
}

// checkEpoch tells whether the log still holds what was read before the offset
// next, the last record of which had the given leader epoch.
func (r *reader) checkEpoch(ctx context.Context, at place, next int64, epoch int32) error {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = at.topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.LeaderEpoch = at.number, epoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return fmt.Errorf("partition %s: %w", at, kerr.UnknownTopicOrPartition)
	}
	found := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return topicError(at.topic, err, "Describe")
	}
	if found.EndOffset < next {
		return final{&CutError{Topic: at.topic, Partition: at.number, From: found.EndOffset, To: next, LeaderEpoch: epoch}}
	}
	return nil
}
