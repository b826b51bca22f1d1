package main

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/schema"
)

// unsynced is a file system that leaves it to the operating system when what was
// written gets to the disk.
type unsynced struct{ env.FS }

// Create implements [env.FS].
func (f unsynced) Create(name string) (env.File, error) {
	file, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{file}, nil
}

// SyncDir implements [env.FS].
func (unsynced) SyncDir(string) error { return nil }

type unsyncedFile struct{ env.File }

// Sync implements [env.File].
func (unsyncedFile) Sync() error { return nil }

// leastSink writes a table to a topic at least once: by a producer without
// transactions, and with a record that no restart would find.
type leastSink struct {
	topic, brokers string
	value          codec.Codec[spend]
}

// Describe implements [connector.Sink].
func (s leastSink) Describe() connector.Description {
	return connector.Description{Connector: "bench.least", Contract: 1, Target: s.topic}
}

// PartLimits implements [connector.PartedSink], with the limits of kafka.Upsert.
func (leastSink) PartLimits() (rows, bytes int64) { return 200_000, 32 << 20 }

// TableRows implements [connector.TableSink]. The wire form is the key's length,
// the key and the value.
func (s leastSink) TableRows() (connector.TableRows[string, spend], error) {
	t, err := schema.Of[spend]("row")
	if err != nil {
		return connector.TableRows[string, spend]{}, err
	}
	return connector.TableRows[string, spend]{
		Schema: t.Schema(),
		NewAppend: func() func(dst []byte, k string, v *spend) ([]byte, error) {
			row := new(spend)
			return func(dst []byte, k string, v *spend) ([]byte, error) {
				*row = sameSpend(k, *v)
				return t.Append(dst, row)
			}
		},
		NewWire: func() func(dst []byte, k string, v *spend) ([]byte, error) {
			encode, row := s.value.NewEncoder(), new(spend)
			return func(dst []byte, k string, v *spend) ([]byte, error) {
				*row = sameSpend(k, *v)
				dst = append(binary.AppendUvarint(dst, uint64(len(k))), k...)
				return encode(dst, row)
			}
		},
	}, nil
}

// Open implements [connector.Sink].
func (s leastSink) Open(context.Context, connector.Opening, connector.RecordKey) (connector.Target, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.MaxBufferedRecords(20_000), kgo.DefaultProduceTopic(s.topic))
	if err != nil {
		return nil, err
	}
	return &leastTarget{client: client}, nil
}

type leastTarget struct {
	client *kgo.Client
	record *connector.SinkRecord
}

// Record implements [connector.Target].
func (t *leastTarget) Record(context.Context) (*connector.SinkRecord, error) { return t.record, nil }

// Make implements [connector.Target].
func (t *leastTarget) Make(_ context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	if t.record == nil {
		t.record = &first
	}
	return *t.record, nil
}

// Deliver implements [connector.Target].
func (t *leastTarget) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	found := t.record
	if verdict := d.Decide(found); verdict != connector.Apply {
		return verdict, found, nil
	}
	var failed atomic.Pointer[error]
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Store(&err)
		}
	}
	memory := newRecordMemory()
	for row, err := range d.Rows {
		if err != nil {
			return connector.Disagree, found, err
		}
		t.client.Produce(ctx, memory.record(row.Wire), done)
	}
	if err := t.client.Flush(ctx); err != nil {
		return connector.Disagree, found, err
	}
	if err := failed.Load(); err != nil {
		return connector.Disagree, found, *err
	}
	record := d.Record
	t.record = &record
	return connector.Apply, found, nil
}

// Close implements [connector.Target].
func (t *leastTarget) Close() error {
	t.client.Close()
	return nil
}

// recordMemory holds records until they are written, in pieces.
type recordMemory struct {
	bytes   []byte
	records []kgo.Record
}

func newRecordMemory() *recordMemory { return &recordMemory{} }

// record makes a record of its wire form.
func (m *recordMemory) record(wire []byte) *kgo.Record {
	if len(wire) > cap(m.bytes)-len(m.bytes) {
		m.bytes = make([]byte, 0, max(64<<10, len(wire)))
	}
	start := len(m.bytes)
	m.bytes = append(m.bytes, wire...)
	size, n := binary.Uvarint(m.bytes[start:])
	key := start + n
	value := key + int(size)
	if len(m.records) == 0 {
		m.records = make([]kgo.Record, 128)
	}
	r := &m.records[0]
	m.records = m.records[1:]
	r.Key, r.Value = m.bytes[key:value:value], m.bytes[value:len(m.bytes):len(m.bytes)]
	return r
}
