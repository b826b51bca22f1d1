package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// topicSink is the half of a sink that knows no types: a topic that deliveries
// are written to.
type topicSink struct {
	topic     string
	mode      string // "append" or "upsert"
	settings  sinkSettings
	bounds    *bounds
	keys      made
	values    made
	functions []string // what functions of the user's decide about, sorted
}

// made says what makes bytes of values: a codec, or a function.
type made struct {
	name     string
	more     []connector.Parameter
	preparer codec.Preparer // nil: there is nothing to prepare
	check    func() error   // says what is wrong with the codec; nil for a function
}

func madeBy[T any](c codec.Codec[T]) made {
	preparer, _ := c.(codec.Preparer)
	return made{c.Name(), c.Parameters(), preparer, func() error { return codec.Check(c) }}
}

// keyless is how the keys of records without any are made.
const keyless = "none"

func newTopicSink(topic, mode string, opts []SinkOption) topicSink {
	return topicSink{topic: topic, mode: mode, settings: newSinkSettings(opts), bounds: &bounds{}, keys: made{name: keyless}}
}

// uses notes that a function of the user's decides about something.
func (s *topicSink) uses(what string) {
	if !slices.Contains(s.functions, what) {
		s.functions = append(slices.Clone(s.functions), what)
		slices.Sort(s.functions)
	}
}

// Describe implements [connector.Sink].
func (s topicSink) Describe() connector.Description {
	parameters := []connector.Parameter{{Name: "mode", Value: s.mode}}
	parameters = s.keys.appendTo(parameters, "key")
	parameters = s.values.appendTo(parameters, "value")
	for _, f := range s.functions {
		parameters = append(parameters, connector.Parameter{Name: f, Value: "function"})
	}
	return connector.Description{Connector: "kafka", Contract: wireVersion, Target: s.topic, Parameters: parameters}
}

func (m *made) appendTo(parameters []connector.Parameter, what string) []connector.Parameter {
	parameters = append(parameters, connector.Parameter{Name: what, Value: m.name})
	for _, p := range m.more {
		parameters = append(parameters, connector.Parameter{Name: what + "." + p.Name, Value: p.Value})
	}
	return parameters
}

// PartLimits implements [connector.PartedSink].
func (s topicSink) PartLimits() (rows, bytes int64) { return s.settings.rows, s.settings.bytes }

// openWithin bounds how long opening takes.
const openWithin = time.Minute

// Open implements [connector.Sink].
func (s topicSink) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	if err := s.fit(); err != nil {
		return nil, err
	}
	if err := checkTopic(o.Job + progressSuffix); err != nil {
		return nil, fmt.Errorf("the topic of the job's progress: %w", err)
	}
	client, brokers, err := s.settings.cluster.newClient(o.Job)
	if err != nil {
		return nil, err
	}
	found, err := reach(ctx, o.Env, client, brokers)
	if err == nil {
		err = found.has(s.needs()...)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	ctx, cancel := env.Within(ctx, o.Env.Clock, openWithin)
	defer cancel()
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("sink", key.Sink)
	t := &target{
		env: o.Env, log: log, key: key, sink: s, job: o.Job, client: client,
		transaction: o.TransactionPrefix + key.JobID + "/" + key.Task + "/" + key.Sink,
		progress:    progressTopic{client: client, clock: o.Env.Clock, log: log, name: o.Job + progressSuffix},
	}
	err = s.prepare(ctx)
	if err == nil {
		err = t.open(ctx, found, o.Begun, log)
	}
	if err != nil {
		client.Close()
		if context.Cause(ctx) == env.ErrTooLong {
			err = fmt.Errorf("%w after %v: %w", env.ErrTooLong, openWithin, err)
		}
		return nil, err
	}
	return t, nil
}

// needs are what the brokers must have.
func (s *topicSink) needs() [][]need {
	if s.settings.oldBrokers {
		return [][]need{sinkNeeds}
	}
	return [][]need{sinkNeeds, surelyNeeds}
}

// fit says what is wrong with the sink as the job's author made it.
func (s *topicSink) fit() error {
	if err := checkTopic(s.topic); err != nil {
		return fmt.Errorf("a sink's topic: %w", err)
	}
	if err := s.settings.check(); err != nil {
		return fmt.Errorf("topic %s: %w", s.topic, err)
	}
	for _, m := range []made{s.keys, s.values} {
		if m.check == nil {
			continue
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("topic %s: %w", s.topic, err)
		}
	}
	return nil
}

// prepare has the codecs do what is to be done before the first record.
func (s *topicSink) prepare(ctx context.Context) error {
	for i, m := range []made{s.values, s.keys} {
		if m.preparer == nil {
			continue
		}
		if err := m.preparer.Prepare(ctx, codec.Use{Topic: s.topic, Key: i == 1}); err != nil {
			return fmt.Errorf("topic %s: %w", s.topic, err)
		}
	}
	return nil
}
