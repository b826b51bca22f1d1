package kafka

import (
	"bytes"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// Message is a record with what Kafka knows about it.
type Message[T any] struct {
	// Topic, Partition and Offset are where it lies.
	Topic     string
	Partition int32
	Offset    int64
	// Time is the record's time stamp, the producer's or the broker's as the
	// topic's settings have it; -1 µs for a record without one.
	Time schema.Instant
	// Key is the record's key; nil if it has none, and if it is empty.
	Key []byte
	// Headers are the record's headers, in their order.
	Headers []Header
	// Value is the decoded value; zero for a tombstone.
	Value T
	// Tombstone tells that the record has a null for its value, which in a
	// compacted topic deletes the key.
	Tombstone bool
}

// Header is a record's header.
type Header struct {
	// Key is its name.
	Key string
	// Value are its bytes.
	Value []byte
}

// noTime is the time of a message without one.
const noTime schema.Instant = -1

// newMessageDecoder returns a function that decodes whole messages.
func newMessageDecoder[T any](decode func(src []byte, v *T) error) func(b *connector.Batch, i int, m *Message[T]) error {
	name, at := "", place{}
	return func(b *connector.Batch, i int, m *Message[T]) error {
		if b.Partition != name {
			p, err := parsePlace(b.Partition)
			if err != nil {
				return err
			}
			name, at = b.Partition, p
		}
		r := &b.Records[i]
		m.Topic, m.Partition, m.Offset, m.Time = at.topic, at.number, r.Offset, noTime
		if r.Time != connector.NoTime {
			m.Time = schema.Instant(r.Time)
		}
		if len(r.Key) > 0 {
			m.Key = bytes.Clone(r.Key)
		}
		if len(r.Headers) > 0 {
			m.Headers = make([]Header, len(r.Headers))
			for n, h := range r.Headers {
				m.Headers[n] = Header{Key: h.Key, Value: bytes.Clone(h.Value)}
			}
		}
		if m.Tombstone = r.Value == nil; m.Tombstone {
			return nil
		}
		return decode(r.Value, &m.Value)
	}
}
