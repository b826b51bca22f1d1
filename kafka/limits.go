package kafka

import (
	"fmt"
	"sync/atomic"
)

// bounds are what a sink learns of its topic when it is opened, for those who make
// rows. A sink that was never opened, as in a trial of the job, knows of none.
type bounds struct {
	record     atomic.Int64               // the largest record's size as a batch by itself; 0: unknown
	partitions atomic.Int32               // how many the topic has; 0: unknown
	times      atomic.Pointer[timeBounds] // nil: any time is taken, or it isn't known
}

// defaultRecord is Kafka's default for max.message.bytes, largestRequest that for
// socket.request.max.bytes, which no batch can exceed whatever its topic allows.
const (
	defaultRecord  = 1_048_588
	largestRequest = 100 << 20
	requestHead    = 1 << 10 // what a request has besides the batch, at the most
)

// batchHead is what a batch has besides its records; recordHead is what a record
// has besides its key, value and headers, at the most.
const (
	batchHead  = 61
	recordHead = 5 + 1 + 10 + 5 + 5 + 5 + 5
	headerHead = 5 + 5
)

// size is what the record is as a batch by itself, not compressed, or a few bytes
// more than that.
func (r *wireRecord) size(value int) int64 {
	n := int64(batchHead + recordHead + len(r.key) + value)
	for _, h := range r.headers {
		n += int64(headerHead + len(h.Key) + len(h.Value))
	}
	return n
}

// check refuses a record that brokers would refuse.
func (b *bounds) check(topic string, r *wireRecord, value int) error {
	limit := b.record.Load()
	if size := r.size(value); limit > 0 && size > limit {
		return &RecordTooLargeError{Topic: topic, Size: size, Limit: limit, Key: len(r.key), Value: value}
	}
	return nil
}

// RecordTooLargeError says that a record is larger than its topic takes.
type RecordTooLargeError struct {
	// Topic is where it was to be written to.
	Topic string
	// Size is that of a batch with the record alone, before it is compressed, and
	// Limit what the topic takes, in bytes.
	Size, Limit int64
	// Key and Value are the lengths of these.
	Key, Value int
}

// Error implements error.
func (e *RecordTooLargeError) Error() string {
	return fmt.Sprintf("topic %s takes batches of at most %d bytes, and this record needs %d (key %d, value %d): make it smaller, or raise the topic's max.message.bytes and start again",
		e.Topic, e.Limit, e.Size, e.Key, e.Value)
}
