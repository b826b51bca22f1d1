package kafka

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// Source reads topics, whose values are decoded to T. Make one with [Topic],
// [Topics] or [Pattern]; it is a [connector.Source], and what [Messages] takes.
type Source[T any] struct {
	topics   selection
	codec    codec.Codec[T]
	settings sourceSettings
	fault    error // of the options; Open tells it
}

// selection says which topics a source has.
type selection struct {
	names   []string
	pattern *regexp.Regexp // nil: the names
}

// Topic reads a topic.
func Topic[T any](topic string, c codec.Codec[T], opts ...SourceOption) *Source[T] {
	return Topics([]string{topic}, c, opts...)
}

// Topics reads several topics whose values are alike.
func Topics[T any](topics []string, c codec.Codec[T], opts ...SourceOption) *Source[T] {
	s := newSource(c, opts)
	s.topics.names = slices.Sorted(slices.Values(topics))
	if len(topics) == 0 {
		s.fault = errors.New("no topic is named")
	}
	for i, name := range s.topics.names {
		if err := checkTopic(name); err != nil {
			s.fault = err
		} else if i > 0 && name == s.topics.names[i-1] {
			s.fault = fmt.Errorf("topic %s is named twice", name)
		}
	}
	return s
}

// Pattern reads all topics whose whole name fits a regular expression, those that
// are made later included. Topics of Kafka itself are left out.
func Pattern[T any](expression string, c codec.Codec[T], opts ...SourceOption) *Source[T] {
	s := newSource(c, opts)
	var err error
	if s.topics.pattern, err = regexp.Compile("^(?:" + expression + ")$"); err != nil {
		s.topics.pattern = regexp.MustCompile("$^")
		s.fault = fmt.Errorf("the pattern of topics: %w", err)
	}
	s.topics.names = []string{expression}
	return s
}

func newSource[T any](c codec.Codec[T], opts []SourceOption) *Source[T] {
	s := &Source[T]{codec: c, settings: newSourceSettings(opts)}
	if s.fault = s.settings.check(); s.fault == nil {
		s.fault = codec.Check(c)
	}
	return s
}

// checkTopic tells what is wrong with the name of a topic.
func checkTopic(name string) error {
	const longest = 249
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	if name == "" || name == "." || name == ".." || len(name) > longest || strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }) {
		return fmt.Errorf("%.300q is no name of a topic: expected 1 to %d of a-z, A-Z, 0-9, dot, underscore and hyphen", name, longest)
	}
	return nil
}

// Describe implements [connector.Source].
func (s *Source[T]) Describe() connector.Description {
	d := connector.Description{Connector: "kafka", Contract: 1, Target: strings.Join(s.topics.names, ",")}
	kind := "topics"
	if s.topics.pattern != nil {
		kind = "pattern"
	}
	d.Parameters = []connector.Parameter{{Name: kind, Value: d.Target}, {Name: "codec", Value: s.codec.Name()}}
	for _, p := range s.codec.Parameters() {
		d.Parameters = append(d.Parameters, connector.Parameter{Name: "codec." + p.Name, Value: p.Value})
	}
	return d
}

// NewDecoder implements [connector.Source].
func (s *Source[T]) NewDecoder() func(b *connector.Batch, i int, v *T) error {
	decode := s.codec.NewDecoder()
	return func(b *connector.Batch, i int, v *T) error {
		value := b.Records[i].Value
		if value == nil {
			return &connector.DecodeError{At: -1, Cause: errNull}
		}
		return decode(value, v)
	}
}

// errNull is what there is to say about a record without a value.
var errNull = errors.New("a null value: a tombstone, which deletes the key in a compacted topic; use kafka.Messages, which has them")

// Open implements [connector.Source].
func (s *Source[T]) Open(ctx context.Context, o connector.Opening) (connector.Reader, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	return openReader(ctx, o, s.topics, s.settings)
}

// Messages reads a source's records with their keys, headers, times and places,
// and tombstones among them.
func Messages[T any](s *Source[T]) connector.Source[Message[T]] { return messages[T]{s} }

// messages is a source of whole messages.
type messages[T any] struct{ of *Source[T] }

func (s messages[T]) Describe() connector.Description {
	d := s.of.Describe()
	d.Connector = "kafka.messages"
	return d
}

func (s messages[T]) NewDecoder() func(b *connector.Batch, i int, m *Message[T]) error {
	return newMessageDecoder(s.of.codec.NewDecoder())
}

func (s messages[T]) Open(ctx context.Context, o connector.Opening) (connector.Reader, error) {
	return s.of.Open(ctx, o)
}
