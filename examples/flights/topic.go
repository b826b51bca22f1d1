package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"log/slog"
	"regexp"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/kafka"
)

// topic is the job's output topic, as a consumer of committed records sees it.
type topic struct {
	name   string
	source connector.Source[kafka.Message[row]]
}

// newTopic asks for the topic by a pattern: unlike a name, it may stand for none
// yet. The job makes it.
func newTopic(s *servers) *topic {
	pattern := regexp.QuoteMeta(s.names.Delays)
	return &topic{s.names.Delays, kafka.Messages(kafka.Pattern(pattern, codec.JSON[row](), kafka.On(s.cluster), kafka.NoGroup()))}
}

func (t *topic) String() string { return "topic " + t.name }

// read reads all that the topic holds now. The last record of a key is its row.
func (t *topic) read(ctx context.Context) (map[key]row, error) {
	reader, err := t.source.Open(ctx, connector.Opening{Env: env.Real(), Log: slog.New(slog.DiscardHandler), Job: "flights-check", Name: "topic"})
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	partitions, err := reader.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	rows := map[key]row{}
	for _, name := range partitions {
		if err := t.readPartition(ctx, reader, name, rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (t *topic) readPartition(ctx context.Context, reader connector.Reader, name string, rows map[key]row) error {
	p, err := reader.Partition(ctx, name, connector.Offset{})
	if err != nil {
		return err
	}
	defer p.Close()
	decode := t.source.NewDecoder()
	var b connector.Batch
	for end := p.End(); ; {
		err := p.Next(ctx, &b, end)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range b.Records {
			var m kafka.Message[row]
			if err := decode(&b, i, &m); err != nil {
				return fmt.Errorf("%s, offset %d: %w", name, b.Records[i].Offset, err)
			}
			if err := apply(rows, m); err != nil {
				return fmt.Errorf("%s, offset %d: %w", name, m.Offset, err)
			}
		}
	}
}

// apply takes a record into the table: a row, or the end of one.
func apply(rows map[key]row, m kafka.Message[row]) error {
	var k key
	if err := json.Unmarshal(m.Key, &k); err != nil {
		return fmt.Errorf("its key %q: %w", m.Key, err)
	}
	if m.Tombstone {
		delete(rows, k)
		return nil
	}
	rows[k] = m.Value
	return nil
}
