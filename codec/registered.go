package codec

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/connector"
)

// Format is a language of schemas, by its name in schema registries.
type Format string

// The formats of schemas that this package reads and writes.
const (
	// FormatAvro is Avro's JSON form.
	FormatAvro Format = "AVRO"
	// FormatProtobuf is the text of a .proto file.
	FormatProtobuf Format = "PROTOBUF"
)

// Schema is a schema as a registry holds it.
type Schema struct {
	// Format is its language.
	Format Format
	// Text is the schema.
	Text string
	// References are the schemas that it refers to, in the order in which it
	// does.
	References []Reference
}

// Reference is a schema that another refers to.
type Reference struct {
	// Name is what the other calls it: a full name of a type in Avro, the path of
	// an import in Protobuf.
	Name string
	// Schema is the schema.
	Schema *Schema
}

// Registry is what codecs need of a schema registry; package
// codec/registry has one. Any number of goroutines may use it. An error that is
// the fault of no record wraps [connector.ErrUnavailable].
type Registry interface {
	// Schema returns the schema that an id stands for, with all that it refers
	// to. If the registry answers that it knows no such id, the error wraps
	// [ErrUnknownID].
	Schema(ctx context.Context, id uint32) (*Schema, error)
	// Enroll returns the id that a schema has under a subject. If it isn't there,
	// it is registered, once it is known to be compatible; unless lookUp says
	// that this is for others to do.
	Enroll(ctx context.Context, subject string, s *Schema, lookUp bool) (id uint32, err error)
}

// ErrUnknownID says that a registry knows no schema of an id.
var ErrUnknownID = errors.New("the registry knows no schema of this id")

// Use says what the records of a codec are for.
type Use struct {
	// Topic is the topic that they are written to.
	Topic string
	// Key tells whether they are keys there; else they are values.
	Key bool
}

// Preparer is a codec that has something to do before the first record can be
// encoded. A sink calls Prepare when it is opened.
type Preparer interface {
	// Prepare makes everything ready for encoding, which else happens at the
	// first record, with the same errors. It may be called again.
	Prepare(ctx context.Context, use Use) error
}

// Checker is a codec that can be of no use, because of its type or its options.
type Checker interface {
	// Check says what is wrong, before the first record.
	Check() error
}

// Check returns what is wrong with a codec that has no use, because of its type
// or its options; nil for others. Sources and sinks call it when the job is
// built; later, every record would fail.
func Check[T any](c Codec[T]) error {
	if c, ok := c.(Checker); ok {
		return c.Check()
	}
	return nil
}

// placed is a codec whose encoding depends on what the records are for.
type placed[T any] interface{ at(use Use) Codec[T] }

// For returns the codec for one use. A sink that knows its topic encodes with
// what this returns, so that one codec can serve several sinks, and so that what
// was not prepared (a replay) knows the topic too.
func For[T any](c Codec[T], use Use) Codec[T] {
	if c, ok := c.(placed[T]); ok {
		return c.at(use)
	}
	return c
}

// RegistryOption is a setting of [Registered].
type RegistryOption func(*Registration)

// Subject registers the schema under a subject of this name, whatever the topic.
func Subject(name string) RegistryOption {
	return func(r *Registration) { r.strategy, r.subject = fixedSubject, name }
}

// ByTopic registers the schema under the subject TOPIC-value, or TOPIC-key. This
// is the default.
func ByTopic() RegistryOption { return func(r *Registration) { r.strategy = byTopic } }

// ByRecord registers the schema under the record's full name, whatever the
// topic.
func ByRecord() RegistryOption { return func(r *Registration) { r.strategy = byRecord } }

// ByTopicAndRecord registers the schema under TOPIC-RECORD, so that a topic can
// hold records of several names.
func ByTopicAndRecord() RegistryOption {
	return func(r *Registration) { r.strategy = byTopicAndRecord }
}

// LookUpOnly never registers a schema: it has to be there. Defaults to
// registering it.
func LookUpOnly() RegistryOption { return func(r *Registration) { r.lookUp = true } }

// strategy says what names a subject.
type strategy string

const (
	byTopic          strategy = "topic"
	byRecord         strategy = "record"
	byTopicAndRecord strategy = "topic and record"
	fixedSubject     strategy = "fixed"
)

// Registration is the option of [Avro] and [Protobuf] that [Registered] returns.
type Registration struct {
	registry Registry
	strategy strategy
	subject  string // where it is fixed
	lookUp   bool
}

// Registered has records begin with a byte 0 and the four bytes, big-endian, of
// the id by which a schema registry knows the schema that they were written
// with. Decoders fetch the schema of an id once, and keep the last 1,000.
// Encoders register theirs before the first record, or look it up. A record waits
// for the registry 10 seconds at the most, so that a job can be stopped; then the
// job stops, and nothing is lost.
func Registered(registry Registry, opts ...RegistryOption) Registration {
	r := Registration{registry: registry, strategy: byTopic}
	for _, o := range opts {
		o(&r)
	}
	return r
}

// subjectOf returns the subject for a record of a name; use is nil if it isn't
// known.
func (r *Registration) subjectOf(record string, use *Use) (string, error) {
	needsTopic := r.strategy == byTopic || r.strategy == byTopicAndRecord
	switch {
	case needsTopic && (use == nil || use.Topic == ""):
		return "", errNoTopic
	case r.strategy == byTopic && use.Key:
		return use.Topic + "-key", nil
	case r.strategy == byTopic:
		return use.Topic + "-value", nil
	case r.strategy == byTopicAndRecord:
		return use.Topic + "-" + record, nil
	case r.strategy == byRecord:
		return record, nil
	case r.subject == "":
		return "", errors.New("codec.Subject needs a name")
	}
	return r.subject, nil
}

var errNoTopic = errors.New("the subject of the schema is named by the topic, which is not known: codec.For tells it, codec.Subject and codec.ByRecord do without")

// parameters are those that matter to what is encoded.
func (r *Registration) parameters() []connector.Parameter {
	p := []connector.Parameter{{Name: "framing", Value: "registry"}, {Name: "subject", Value: string(r.strategy)}}
	if r.strategy == fixedSubject {
		p[1].Value = r.subject
	}
	return p
}
