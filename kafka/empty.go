package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sluicestream/sluice/connector"
)

// Empty implements [connector.EmptyTarget].
func (t *target) Empty(ctx context.Context) (bool, error) {
	admin := kadm.NewClient(t.client)
	starts, err := admin.ListStartOffsets(ctx, t.sink.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return false, t.explain(err)
	}
	ends, err := admin.ListEndOffsets(ctx, t.sink.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return false, t.explain(err)
	}
	empty := true
	ends.Each(func(end kadm.ListedOffset) {
		start, ok := starts.Lookup(end.Topic, end.Partition)
		empty = empty && ok && start.Offset == end.Offset
	})
	return empty, nil
}

// Replace implements [connector.EmptyTarget]. The producer that it starts fences
// whoever filled the topic, so that nothing comes behind what it removes.
func (t *target) Replace(ctx context.Context, old string, first connector.SinkRecord) (connector.SinkRecord, error) {
	t.drop()
	if _, err := t.start(ctx); err != nil {
		t.drop()
		return connector.SinkRecord{}, t.explain(err)
	}
	if t.known == nil {
		return connector.SinkRecord{}, fmt.Errorf("%w: topic %s has no record of sink %s, expected %s", connector.ErrRecord, t.progress.name, t.key.Sink, old)
	}
	if t.known.ID != old {
		return *t.finds(t.known), nil
	}
	empty, err := t.Empty(ctx)
	if err == nil && !empty {
		err = t.removeRecords(ctx)
	}
	var begins map[int32]int64
	if err == nil {
		begins, err = t.sink.ends(ctx, t.client)
	}
	if err == nil {
		err = t.apply(ctx, &connector.Delivery{Record: first}, topicSpan{begins: begins})
	}
	if err != nil {
		t.drop()
		if errors.Is(err, connector.ErrKept) {
			return connector.SinkRecord{}, err
		}
		return connector.SinkRecord{}, t.explain(err)
	}
	return first, nil
}

// removeRecords removes all records of the topic.
func (t *target) removeRecords(ctx context.Context) error {
	admin := kadm.NewClient(t.client)
	ends, err := admin.ListEndOffsets(ctx, t.sink.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	removed, err := admin.DeleteRecords(ctx, ends.Offsets())
	if err == nil {
		err = removed.Error()
	}
	switch {
	case errors.Is(err, kerr.PolicyViolation):
		err = fmt.Errorf("%w: topic %s has a cleanup.policy that keeps records from being removed: delete the topic and make it anew", connector.ErrKept, t.sink.topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		err = fmt.Errorf("%w: allow Delete on topic %s, or delete it and make it anew: %w", connector.ErrKept, t.sink.topic, err)
	}
	return err
}
