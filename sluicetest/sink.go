package sluicetest

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// sink keeps what is delivered to it. It stands for the world outside: a crash
// of the job does not touch it.
type sink struct {
	of     connector.Sink
	mu     sync.Mutex
	record *connector.SinkRecord
	rows   []row
}

// row is a delivered row with the schemas that it was frozen with.
type row struct {
	connector.Row
	key, schema *schema.Schema
}

func (s *sink) Describe() connector.Description { return s.of.Describe() }

func (s *sink) Open(context.Context, connector.Opening, connector.RecordKey) (connector.Target, error) {
	return target{s}, nil
}

type target struct{ s *sink }

func (t target) Record(context.Context) (*connector.SinkRecord, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.s.record, nil
}

func (t target) Make(_ context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.record == nil {
		t.s.record = &first
	}
	return *t.s.record, nil
}

func (t target) Deliver(_ context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	found := t.s.record
	verdict := d.Decide(found)
	if verdict != connector.Apply {
		return verdict, found, nil
	}
	rows := slices.Clip(t.s.rows)
	for r, err := range d.Rows {
		if err != nil {
			return verdict, found, err
		}
		r.Key, r.Row, r.Wire = slices.Clone(r.Key), slices.Clone(r.Row), slices.Clone(r.Wire)
		rows = append(rows, row{r, d.Key, d.Schema})
	}
	t.s.rows, t.s.record = rows, &d.Record
	return verdict, found, nil
}

func (target) Close() error { return nil }
