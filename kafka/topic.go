package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicPlan says how a topic is made.
type topicPlan struct {
	partitions, replication int // replication 0: as the cluster has it
	configs                 map[string]string
}

// topicSettings is what brokers say of a topic.
type topicSettings struct {
	name       string
	partitions int
	cluster    string // the cluster's id
	brokers    int
	allowed    []kadm.ACLOperation // nil: brokers don't tell
}

// describeTopic asks for a topic; nil if it isn't there.
func describeTopic(ctx context.Context, client *kgo.Client, name string) (*topicSettings, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(name)
	req.Topics = []kmsg.MetadataRequestTopic{t}
	req.IncludeTopicAuthorizedOperations = true
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("asking for topic %s: %w", name, err)
	}
	if len(resp.Topics) != 1 {
		return nil, fmt.Errorf("asked for topic %s, and was told of %d topics", name, len(resp.Topics))
	}
	found := resp.Topics[0]
	s := &topicSettings{name: name, partitions: len(found.Partitions), brokers: len(resp.Brokers)}
	if resp.ClusterID != nil {
		s.cluster = *resp.ClusterID
	}
	switch err := kerr.ErrorForCode(found.ErrorCode); {
	case err == nil:
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		s.partitions = 0
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		// Sinks write to all topics that they ask for; Write implies Describe.
		return nil, &PermissionError{Resource: "topic " + name, Operation: "Write"}
	default:
		return nil, fmt.Errorf("topic %s: %w", name, err)
	}
	if found.AuthorizedOperations > 0 {
		s.allowed = kadm.DecodeACLOperations(found.AuthorizedOperations)
	}
	return s, nil
}

// operationNames are the names of what a sink does to topics.
var operationNames = map[kadm.ACLOperation]string{kmsg.ACLOperationRead: "Read", kmsg.ACLOperationWrite: "Write"}

// need checks that an operation is allowed, where brokers tell.
func (s *topicSettings) need(ops ...kadm.ACLOperation) error {
	for _, op := range ops {
		if s.allowed != nil && !slices.Contains(s.allowed, op) && !slices.Contains(s.allowed, kmsg.ACLOperationAll) {
			return &PermissionError{Resource: "topic " + s.name, Operation: operationNames[op]}
		}
	}
	return nil
}

// topicSettleWithin bounds how long a topic that was just made is waited for.
const topicSettleWithin = 20 * time.Second

// createTopic makes a topic unless it is there by now, and waits until brokers
// know of it.
func createTopic(ctx context.Context, client *kgo.Client, clock env.Clock, name string, t *topicPlan) (*topicSettings, error) {
	configs := make(map[string]*string, len(t.configs))
	for _, k := range slices.Sorted(maps.Keys(t.configs)) {
		configs[k] = kadm.StringPtr(t.configs[k])
	}
	replication := int16(t.replication)
	if replication == 0 {
		replication = -1
	}
	made, err := kadm.NewClient(client).CreateTopic(ctx, int32(t.partitions), replication, configs, name)
	if isForbidden(err) {
		err = &PermissionError{Resource: "topic " + name, Operation: "Create"}
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		if made.ErrMessage != "" {
			err = fmt.Errorf("%w (%s)", err, made.ErrMessage)
		}
		return nil, fmt.Errorf("topic %s isn't there and can't be made: %w", name, err)
	}
	ctx, cancel := env.Within(ctx, clock, topicSettleWithin)
	defer cancel()
	for {
		s, err := describeTopic(ctx, client, name)
		if err == nil && s.partitions > 0 {
			return s, nil
		}
		if pause := env.Pause(ctx, clock, 50*time.Millisecond); pause != nil {
			return nil, fmt.Errorf("topic %s was made, and brokers don't know of it after %v: %w", name, topicSettleWithin, context.Cause(ctx))
		}
	}
}

// isForbidden tells whether brokers refuse what a client asks for about a topic.
func isForbidden(err error) bool {
	_, denied := errors.AsType[*kadm.AuthError](err)
	return denied || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// topicConfigs are a topic's settings, those that it has from the cluster among
// them; nil if they may not be read.
func topicConfigs(ctx context.Context, client *kgo.Client, name string) (map[string]string, error) {
	found, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, name)
	if err == nil && len(found) == 1 {
		err = found[0].Err
	}
	if isForbidden(err) {
		return nil, nil
	}
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("the settings of topic %s: %w", name, err)
	}
	configs := map[string]string{}
	for _, c := range found[0].Configs {
		configs[c.Key] = c.MaybeValue()
	}
	return configs, nil
}

// A topic that somebody has just made is not known to every broker at once, so
// that one that is missing is looked for this many times, with such pauses.
const (
	topicLooks = 5
	topicPause = 200 * time.Millisecond
)

// findTopic asks for a topic, and looks again for so many times in all if it isn't
// there.
func findTopic(ctx context.Context, client *kgo.Client, clock env.Clock, name string, looks int) (*topicSettings, error) {
	state, err := describeTopic(ctx, client, name)
	for look := 1; err == nil && state.partitions == 0 && look < looks; look++ {
		if err = env.Pause(ctx, clock, topicPause); err == nil {
			state, err = describeTopic(ctx, client, name)
		}
	}
	return state, err
}

// countPartitions learns how many partitions the topic has by now: it may have been
// made anew.
func (s *topicSink) countPartitions(ctx context.Context, client *kgo.Client) error {
	state, err := describeTopic(ctx, client, s.topic)
	if err != nil {
		return err
	}
	if state.partitions == 0 {
		return fmt.Errorf("topic %s isn't there any more: make it again, and the delivery goes on", s.topic)
	}
	s.bounds.partitions.Store(int32(state.partitions))
	return nil
}

// ends are the ends of the topic's partitions, by their numbers.
func (s *topicSink) ends(ctx context.Context, client *kgo.Client) (map[int32]int64, error) {
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, s.topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the ends of topic %s: %w", s.topic, err)
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}

// checkTopic finds the sink's topic, makes it if that was asked for, and learns
// its bounds.
func (s *topicSink) checkTopic(ctx context.Context, client *kgo.Client, clock env.Clock, log *slog.Logger) (*topicSettings, error) {
	looks := topicLooks
	if s.settings.create != nil {
		looks = 1
	}
	state, err := findTopic(ctx, client, clock, s.topic, looks)
	if err != nil {
		return nil, err
	}
	if state.partitions == 0 {
		if s.settings.create == nil {
			return nil, s.noTopic()
		}
		if state, err = createTopic(ctx, client, clock, s.topic, s.settings.create); err != nil {
			return nil, err
		}
		log.Info("the topic wasn't there and was made", "topic", s.topic, "partitions", state.partitions)
	}
	configs, err := s.checkSettings(ctx, client, state)
	if err != nil {
		return nil, err
	}
	limit := s.settings.record
	if limit == 0 {
		limit = defaultRecord
		if text, ok := configs["max.message.bytes"]; ok {
			if limit, err = strconv.ParseInt(text, 10, 64); err != nil || limit <= 0 {
				return nil, fmt.Errorf("topic %s: max.message.bytes is %q, expected a number of bytes", s.topic, text)
			}
		}
	}
	if s.mode == "upsert" && configs["cleanup.policy"] == "delete" {
		log.Warn("the topic of a table has cleanup.policy=delete, expected compact: rows are lost when they are older than what it keeps", "topic", s.topic)
	}
	times, err := newTimeBounds(clock, s.topic, configs)
	if err != nil {
		return nil, err
	}
	s.bounds.record.Store(min(limit, largestRequest-requestHead))
	s.bounds.times.Store(times)
	s.bounds.partitions.Store(int32(state.partitions))
	return state, nil
}

func (s *topicSink) noTopic() error {
	return fmt.Errorf("topic %s isn't there; make it, or have the sink do so by kafka.CreateTopic", s.topic)
}

// checkSettings says whether a topic that is there takes what the sink writes.
func (s *topicSink) checkSettings(ctx context.Context, client *kgo.Client, state *topicSettings) (configs map[string]string, err error) {
	if err := state.need(kmsg.ACLOperationWrite); err != nil {
		return nil, err
	}
	if configs, err = topicConfigs(ctx, client, s.topic); err != nil {
		return nil, err
	}
	if policy := configs["cleanup.policy"]; s.mode == "append" && s.keys.name == keyless && strings.Contains(policy, "compact") {
		return nil, fmt.Errorf("topic %s has cleanup.policy=%s, which takes records with keys only: expected delete, or a sink with keys; give the records a key by AppendSink.Key, or change the topic's setting", s.topic, policy)
	}
	return configs, nil
}

// leastTransactions is the version of transactions, as a feature of the cluster,
// with which no late request can get into another transaction.
const (
	transactionFeature = "transaction.version"
	leastTransactions  = 2
)

// checkTransactions makes sure that the brokers' transactions are enough to keep what
// a sink promises. It tells whether they are old.
func (s *topicSink) checkTransactions(brokers *kmsg.ApiVersionsResponse) (old bool, err error) {
	var found int16
	for _, f := range brokers.FinalizedFeatures {
		if f.Name == transactionFeature {
			found = f.MaxVersionLevel
		}
	}
	if found >= leastTransactions {
		return false, nil
	}
	if s.settings.oldBrokers {
		return true, nil
	}
	return true, fmt.Errorf("topic %s: the cluster has the feature %s at %d, expected at least %d (Kafka 4.0, kafka-features.sh upgrade): below it a request that was held up in the network may come after its transaction was undone, and hold up all that read committed records; kafka.AllowOldBrokers accepts that",
		s.topic, transactionFeature, found, leastTransactions)
}
