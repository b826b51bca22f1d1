package kafka

// Option is a setting that sources and sinks both have.
type Option interface {
	SourceOption
	SinkOption
}

// SourceOption is a setting of a source.
type SourceOption interface{ toSource(*sourceSettings) }

// SinkOption is a setting of a sink.
type SinkOption interface{ toSink(*sinkSettings) }

type sourceOption func(*sourceSettings)

func (o sourceOption) toSource(s *sourceSettings) { o(s) }

type sinkOption func(*sinkSettings)

func (o sinkOption) toSink(s *sinkSettings) { o(s) }

// On names the cluster. Defaults to that of the environment; see
// [FromEnvironment].
func On(c *Cluster) Option { return on{c} }

type on struct{ cluster *Cluster }

func (o on) toSource(s *sourceSettings) { s.cluster = o.cluster }
func (o on) toSink(s *sinkSettings)     { s.cluster = o.cluster }
