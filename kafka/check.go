package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// Check implements [connector.Checker]: it asks the brokers for the topic, and
// schema registries whether they would take the schemas.
func (s topicSink) Check(ctx context.Context, o connector.Opening) error {
	if err := s.fit(); err != nil {
		return err
	}
	ctx, cancel := env.Within(ctx, o.Env.Clock, openWithin)
	defer cancel()
	if err := s.rehearse(ctx); err != nil {
		return err
	}
	client, brokers, err := s.settings.cluster.newClient(o.Job)
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := reach(ctx, o.Env, client, brokers)
	if err != nil {
		return connector.NotAsked(err)
	}
	if err := found.has(s.needs()...); err != nil {
		return err
	}
	if err = s.look(ctx, client, found); err == nil || isAnswer(err) {
		return err
	}
	return connector.NotAsked(err)
}

// rehearse asks the codecs whether they could be prepared.
func (s *topicSink) rehearse(ctx context.Context) error {
	for i, m := range []made{s.values, s.keys} {
		r, ok := m.preparer.(codec.Rehearser)
		if !ok {
			continue
		}
		if err := r.Rehearse(ctx, codec.Use{Topic: s.topic, Key: i == 1}); err != nil {
			return fmt.Errorf("topic %s: %w", s.topic, err)
		}
	}
	return nil
}

// look looks at the brokers and the topic, as opening does, and makes nothing.
func (s *topicSink) look(ctx context.Context, client *kgo.Client, brokers *answer) error {
	if _, err := s.checkTransactions(brokers.versions); err != nil {
		return err
	}
	state, err := describeTopic(ctx, client, s.topic)
	if err != nil {
		return err
	}
	if state.partitions > 0 {
		_, err = s.checkSettings(ctx, client, state)
		return err
	}
	if s.settings.create != nil {
		return nil
	}
	return s.noTopic()
}

// isAnswer tells whether an error is about what brokers have answered, rather than
// that they did not.
func isAnswer(err error) bool {
	if answered, ok := errors.AsType[*kerr.Error](err); ok {
		return !answered.Retriable
	}
	var lost interface {
		error
		Timeout() bool // what errors of the network have
	}
	return !errors.As(err, &lost) && !isCut(err) && !errors.Is(err, context.Canceled)
}
