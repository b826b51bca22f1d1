package kafka

import (
	"slices"

	"github.com/sluicestream/sluice/connector"
)

// topicSink is the half of a sink that knows no types: a topic that deliveries
// are written to.
type topicSink struct {
	topic     string
	mode      string // "append" or "upsert"
	settings  sinkSettings
	bounds    *bounds
	keyName   string
	keyMore   []connector.Parameter
	keyCodec  any // nil, or a codec
	functions []string
}

func newTopicSink(topic, mode string, opts []SinkOption) topicSink {
	return topicSink{topic: topic, mode: mode, settings: newSinkSettings(opts), bounds: &bounds{}, keyName: "none"}
}

// keyed notes how keys are made.
func (s *topicSink) keyed(name string, more []connector.Parameter, c any) {
	s.keyName, s.keyMore, s.keyCodec = name, more, c
}

// uses notes that a function of the user's decides about something.
func (s *topicSink) uses(what string) {
	if !slices.Contains(s.functions, what) {
		s.functions = append(slices.Clone(s.functions), what)
	}
}

// describe says what the sink is, given the codec of the values.
func (s *topicSink) describe(value string, more []connector.Parameter) connector.Description {
	parameters := []connector.Parameter{{Name: "mode", Value: s.mode}, {Name: "key", Value: s.keyName}}
	for _, p := range s.keyMore {
		parameters = append(parameters, connector.Parameter{Name: "key." + p.Name, Value: p.Value})
	}
	parameters = append(parameters, connector.Parameter{Name: "value", Value: value})
	for _, p := range more {
		parameters = append(parameters, connector.Parameter{Name: "value." + p.Name, Value: p.Value})
	}
	slices.Sort(s.functions)
	for _, f := range s.functions {
		parameters = append(parameters, connector.Parameter{Name: f, Value: "function"})
	}
	return connector.Description{Connector: "kafka", Contract: wireVersion, Target: s.topic, Parameters: parameters}
}

// PartLimits implements [connector.PartedSink].
func (s topicSink) PartLimits() (rows, bytes int64) { return s.settings.rows, s.settings.bytes }
