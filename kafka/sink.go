package kafka

import (
	"fmt"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// Append writes a stream's records to a topic, each as the codec makes it. The
// records of one epoch are written in one transaction, or in several if they are
// many; see [MaxDelivery].
//
// Without [AppendSink.Key], or a sibling of it, records have no key, and are
// spread over the topic's partitions.
func Append[T any](topic string, value codec.Codec[T], opts ...SinkOption) AppendSink[T] {
	s := AppendSink[T]{topicSink: newTopicSink(topic, "append", opts)}
	if value != nil {
		s.value = codec.For(value, codec.Use{Topic: topic})
		s.values = madeBy(s.value)
	}
	return s
}

// AppendSink is a [connector.StreamSink] of a topic. Its methods return a changed
// copy, so that calls follow one another.
type AppendSink[T any] struct {
	topicSink
	value     codec.Codec[T]
	key       func() func(dst []byte, v *T) ([]byte, error) // nil: no key
	headers   func(T) []connector.Header
	partition func(v T, partitions int) int
	time      func(T) time.Time
}

// Key gives each record a key: bytes, or nil for none.
func (s AppendSink[T]) Key(key func(T) []byte) AppendSink[T] {
	s.keys = made{name: "function"}
	s.key = func() func(dst []byte, v *T) ([]byte, error) {
		return func(dst []byte, v *T) ([]byte, error) {
			k := key(*v)
			if k == nil {
				return nil, nil
			}
			return append(dst, k...), nil
		}
	}
	return s
}

// KeyAs gives each record a key, as a codec makes it.
func (s AppendSink[T]) KeyAs[K any](key func(T) K, c codec.Codec[K]) AppendSink[T] {
	c = codec.For(c, codec.Use{Topic: s.topic, Key: true})
	s.keys = madeBy(c)
	s.key = func() func(dst []byte, v *T) ([]byte, error) {
		encode, k := c.NewEncoder(), new(K) // used again, since encode takes its address
		return func(dst []byte, v *T) ([]byte, error) {
			*k = key(*v)
			return encode(dst, k)
		}
	}
	return s
}

// Headers gives records headers.
func (s AppendSink[T]) Headers(headers func(T) []connector.Header) AppendSink[T] {
	s.uses("headers")
	s.headers = headers
	return s
}

// PartitionBy chooses the partition of each record, from 0 up to, but not, the
// number of partitions. Defaults to the hash of the key, as Kafka's own clients
// have it (murmur2); records without a key are spread.
func (s AppendSink[T]) PartitionBy(partition func(v T, partitions int) int) AppendSink[T] {
	s.uses("partition")
	s.partition = partition
	return s
}

// Time is the records' own time, which Kafka keeps in milliseconds. Defaults to
// that of the delivery. A time that the topic would refuse is a [RecordTimeError].
func (s AppendSink[T]) Time(at func(T) time.Time) AppendSink[T] {
	s.uses("time")
	s.time = at
	return s
}

// Rows implements [connector.StreamSink].
func (s AppendSink[T]) Rows() (connector.Rows[T], error) {
	if s.value == nil {
		return connector.Rows[T]{}, fmt.Errorf("topic %s: no codec for the records", s.topic)
	}
	if err := s.fit(); err != nil {
		return connector.Rows[T]{}, err
	}
	rows, err := connector.RowsOf[T]()
	if err != nil {
		return rows, fmt.Errorf("topic %s: %w", s.topic, err)
	}
	rows.NewWire = s.newWire
	return rows, nil
}

func (s AppendSink[T]) newWire() func(dst []byte, v *T) ([]byte, error) {
	encode := s.value.NewEncoder()
	var key func(dst []byte, v *T) ([]byte, error)
	if s.key != nil {
		key = s.key()
	}
	w := newWireWriter(s.topicSink)
	return func(dst []byte, v *T) (_ []byte, err error) {
		r := wireRecord{partition: -1, time: connector.NoTime}
		if key != nil {
			if r.key, err = w.key(func(dst []byte) ([]byte, error) { return key(dst, v) }); err != nil {
				return dst, err
			}
		}
		if s.headers != nil {
			r.headers = s.headers(*v)
		}
		if s.time != nil {
			r.time = s.time(*v).UnixMilli()
		}
		if s.partition != nil {
			if r.partition, err = w.partition(func(n int) int { return s.partition(*v, n) }); err != nil {
				return dst, err
			}
		}
		return w.append(dst, &r, func(dst []byte) ([]byte, error) { return encode(dst, v) })
	}
}

// Upsert writes a table's changes to a topic: for each key that changed what row
// makes of its entry, and for a key that is gone a tombstone, which is a record
// without a value. With the topic's cleanup.policy=compact, the topic keeps the
// table. Keys and rows are written as the codecs make them.
func Upsert[K comparable, S, R any](topic string, row func(K, S) R, key codec.Codec[K], value codec.Codec[R], opts ...SinkOption) UpsertSink[K, S, R] {
	s := UpsertSink[K, S, R]{topicSink: newTopicSink(topic, "upsert", opts), row: row}
	if key != nil {
		s.key = codec.For(key, codec.Use{Topic: topic, Key: true})
		s.keys = madeBy(s.key)
	}
	if value != nil {
		s.value = codec.For(value, codec.Use{Topic: topic})
		s.values = madeBy(s.value)
	}
	return s
}

// UpsertSink is a [connector.TableSink] of a topic. Its methods return a changed
// copy, so that calls follow one another.
type UpsertSink[K comparable, S, R any] struct {
	topicSink
	row       func(K, S) R
	key       codec.Codec[K]
	value     codec.Codec[R]
	headers   func(K, R) []connector.Header
	partition func(k K, partitions int) int
	time      func(K, R) time.Time
}

// Headers gives rows headers. A tombstone has none.
func (s UpsertSink[K, S, R]) Headers(headers func(K, R) []connector.Header) UpsertSink[K, S, R] {
	s.uses("headers")
	s.headers = headers
	return s
}

// PartitionBy chooses the partition of each key, from 0 up to, but not, the number
// of partitions. Defaults to the hash of the key's bytes, as Kafka's own clients
// have it (murmur2).
func (s UpsertSink[K, S, R]) PartitionBy(partition func(k K, partitions int) int) UpsertSink[K, S, R] {
	s.uses("partition")
	s.partition = partition
	return s
}

// Time is the rows' own time, which Kafka keeps in milliseconds. Defaults to that
// of the delivery, which tombstones have in any case. A time that the topic would
// refuse is a [RecordTimeError].
func (s UpsertSink[K, S, R]) Time(at func(K, R) time.Time) UpsertSink[K, S, R] {
	s.uses("time")
	s.time = at
	return s
}

// TableRows implements [connector.TableSink].
func (s UpsertSink[K, S, R]) TableRows() (connector.TableRows[K, S], error) {
	if s.key == nil || s.value == nil || s.row == nil {
		return connector.TableRows[K, S]{}, fmt.Errorf("topic %s: a table needs a codec for keys, one for rows, and a function that makes these", s.topic)
	}
	if err := s.fit(); err != nil {
		return connector.TableRows[K, S]{}, err
	}
	rows, err := connector.TableRowsOf(s.row)
	if err != nil {
		return rows, fmt.Errorf("topic %s: %w", s.topic, err)
	}
	rows.NewWire = s.newWire
	return rows, nil
}

func (s UpsertSink[K, S, R]) newWire() func(dst []byte, k K, v *S) ([]byte, error) {
	encodeKey, encode := s.key.NewEncoder(), s.value.NewEncoder()
	w := newWireWriter(s.topicSink)
	key, row := new(K), new(R) // used again, since the encoders take their addresses
	return func(dst []byte, k K, v *S) (_ []byte, err error) {
		r := wireRecord{partition: -1, time: connector.NoTime}
		*key = k
		if r.key, err = w.key(func(dst []byte) ([]byte, error) { return encodeKey(dst, key) }); err != nil {
			return dst, err
		}
		if s.partition != nil {
			if r.partition, err = w.partition(func(n int) int { return s.partition(k, n) }); err != nil {
				return dst, err
			}
		}
		if v == nil {
			return w.append(dst, &r, nil)
		}
		*row = s.row(k, *v)
		if s.headers != nil {
			r.headers = s.headers(k, *row)
		}
		if s.time != nil {
			r.time = s.time(k, *row).UnixMilli()
		}
		return w.append(dst, &r, func(dst []byte) ([]byte, error) { return encode(dst, row) })
	}
}

// wireWriter is what the wire forms of a sink's records are made with, by one
// goroutine.
type wireWriter struct {
	topicSink
	last []byte // the key's memory
}

func newWireWriter(s topicSink) *wireWriter { return &wireWriter{topicSink: s} }

// key makes a key, which holds until the next; nil if there is none.
func (w *wireWriter) key(encode func(dst []byte) ([]byte, error)) ([]byte, error) {
	if w.last == nil {
		w.last = make([]byte, 0, 64)
	}
	key, err := encode(w.last[:0])
	if err != nil {
		return nil, fmt.Errorf("the key of a record for topic %s: %w", w.topic, err)
	}
	if key != nil {
		w.last = key
	}
	return key, nil
}

// partition has the partition chosen.
func (w *wireWriter) partition(choose func(partitions int) int) (int32, error) {
	n := w.bounds.partitions.Load()
	if n == 0 {
		return 0, fmt.Errorf("how many partitions topic %s has is not known before the sink is opened: %w", w.topic, connector.ErrUnavailable)
	}
	p := choose(int(n))
	if p < 0 || p >= int(n) {
		return 0, fmt.Errorf("function PartitionBy chose partition %d of topic %s, which has %d, numbered from 0", p, w.topic, n)
	}
	return int32(p), nil
}

// append appends a record whose value encode appends; nil for a tombstone.
func (w *wireWriter) append(dst []byte, r *wireRecord, encode func(dst []byte) ([]byte, error)) ([]byte, error) {
	if err := w.bounds.times.Load().check(w.topic, r.time); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = r.appendHead(dst, encode == nil)
	head := len(dst)
	if encode != nil {
		out, err := encode(dst)
		if err != nil {
			return dst[:start], fmt.Errorf("a record for topic %s: %w", w.topic, err)
		}
		dst = out
	}
	if err := w.bounds.check(w.topic, r, len(dst)-head); err != nil {
		return dst[:start], err
	}
	return dst, nil
}
