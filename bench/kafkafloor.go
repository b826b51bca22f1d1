package main

import (
	"context"
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaFloor is the job written by hand with the client library: one loop polls,
// decodes and counts in a map, and writes the rows that have changed each second.
// After a crash it would have to begin anew.
func kafkaFloor(t task) (sample, error) {
	format := t.Variant
	out, err := newOutput(t)
	if err != nil {
		return nil, err
	}
	defer out.close()
	from := map[int32]kgo.Offset{}
	for part := range int32(kafkaPartitions) {
		from[part] = kgo.NewOffset().AtStart()
	}
	expected := t.scale(allKafkaOrders)
	client, err := kgo.NewClient(kgo.SeedBrokers(t.Kafka), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{ordersTopic(format, expected): from}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	h := &hand{client: client, topic: out.topic, rows: map[string]*handRow{}, decode: decodeJSONOrder, encode: appendJSONSpend}
	if format == "avro" {
		h.decode, h.encode = decodeAvroOrder, appendAvroSpend
	}
	if err := h.run(context.Background(), expected); err != nil {
		return nil, err
	}
	s := sample{cpuSeconds: cpu().Seconds(), "flushes": float64(h.flushes)}
	pprof.StopCPUProfile() // what follows is not the program's
	return s, out.check(s, valueDecoder(format), int64(expected))
}

// hand is what that program holds.
type hand struct {
	client  *kgo.Client
	topic   string
	rows    map[string]*handRow
	changed []*handRow
	decode  func(src []byte, o *order) error
	encode  func(dst []byte, s spend) []byte
	failed  atomic.Pointer[error]
	flushes int
}

type handRow struct {
	key     []byte
	total   spend
	changed bool
}

func (h *hand) run(ctx context.Context, expected int) error {
	flushed := time.Now()
	for n := 0; n < expected; {
		fetches := h.client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var bad error
		var o order // outside of the loop: it is allocated, since its address goes to the decoder
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			o = order{}
			if err := h.decode(r.Value, &o); err != nil {
				bad = fmt.Errorf("offset %d: %w", r.Offset, err)
				return
			}
			h.count(o)
		})
		if bad != nil {
			return bad
		}
		if time.Since(flushed) >= time.Second || n >= expected {
			flushed = time.Now()
			h.flush(ctx)
		}
	}
	if err := h.client.Flush(ctx); err != nil {
		return err
	}
	if err := h.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (h *hand) count(o order) {
	r := h.rows[o.User]
	if r == nil {
		r = &handRow{key: []byte(o.User)}
		h.rows[o.User] = r
	}
	r.total.count(o)
	if !r.changed {
		r.changed = true
		h.changed = append(h.changed, r)
	}
}

// flush writes a record for each row that has changed.
func (h *hand) flush(ctx context.Context) {
	h.flushes++
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			h.failed.Store(&err)
		}
	}
	for _, r := range h.changed {
		r.changed = false
		h.client.Produce(ctx, &kgo.Record{Topic: h.topic, Key: r.key, Value: h.encode(make([]byte, 0, 32), r.total)}, done)
	}
	h.changed = h.changed[:0]
}

func decodeJSONOrder(src []byte, o *order) error { return json.Unmarshal(src, o) }

func decodeAvroOrder(src []byte, o *order) error {
	*o = orderByHand(src)
	return nil
}

func appendJSONSpend(dst []byte, s spend) []byte {
	dst = strconv.AppendInt(append(dst, `{"Orders":`...), s.Orders, 10)
	dst = strconv.AppendInt(append(dst, `,"Cents":`...), s.Cents, 10)
	return append(dst, '}')
}

func appendAvroSpend(dst []byte, s spend) []byte {
	return binary.AppendVarint(binary.AppendVarint(dst, s.Orders), s.Cents)
}

// valueDecoder takes a row's record apart.
func valueDecoder(format string) func(value []byte, row *spend) error {
	if format == "json" {
		return func(value []byte, row *spend) error { return json.Unmarshal(value, row) }
	}
	return func(value []byte, row *spend) error {
		row.Orders, value = takeNumber(value)
		row.Cents, _ = takeNumber(value)
		return nil
	}
}
