package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/twmb/franz-go/pkg/kgo"
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
	name  string
	more  []connector.Parameter
	codec any
}

func newTopicSink(topic, mode string, opts []SinkOption) topicSink {
	return topicSink{topic: topic, mode: mode, settings: newSinkSettings(opts), bounds: &bounds{}, keys: made{name: "none"}}
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
	if s.topic == "" {
		return nil, errNoTopic
	}
	if err := s.settings.check(); err != nil {
		return nil, fmt.Errorf("topic %s: %w", s.topic, err)
	}
	opts, err := s.settings.cluster.sinkOptions(o.Job)
	if err != nil {
		return nil, err
	}
	ctx, cancel := env.Within(ctx, o.Env.Clock, openWithin)
	defer cancel()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", s.topic, err)
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &target{
		env: o.Env, log: log, key: key, sink: s, opts: opts, client: client,
		transaction: o.TransactionPrefix + key.JobID + "/" + key.Task + "/" + key.Sink,
		progress:    progressTopic{client: client, clock: o.Env.Clock, name: o.Job + progressSuffix},
	}
	if err := t.open(ctx, log); err != nil {
		client.Close()
		if context.Cause(ctx) == env.ErrTooLong {
			err = fmt.Errorf("%w after %v: %w", env.ErrTooLong, openWithin, err)
		}
		return nil, err
	}
	return t, nil
}

// sinkOptions are the client library's, for a sink of the job of the given name.
func (c *Cluster) sinkOptions(job string) ([]kgo.Opt, error) {
	opts, err := c.options(job)
	if err != nil {
		return nil, err
	}
	return append(opts, c.more...), nil
}
