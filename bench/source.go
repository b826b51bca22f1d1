package main

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// numbers is a source of records that are made of their numbers, 0 to count-1,
// each partition with its share of them.
type numbers[T any] struct {
	count      int64
	partitions int
	// value is each record's undecoded value; the engine counts its bytes.
	value []byte
	// decoder returns what makes a record of the number in its offset.
	decoder func() func(b *connector.Batch, i int, v *T) error
	// opened, if set, is called when the source is opened: the branch is owned. reading
	// is called once before the first record is read: all state is loaded.
	opened, reading func() error
	// gate, if set, says up to which number may be read.
	gate <-chan int64
	// rate, if not 0, is how many records there are a second, evenly, from the first
	// look on.
	rate float64
}

// Describe implements [connector.Source].
func (s numbers[T]) Describe() connector.Description {
	return connector.Description{Connector: "bench.numbers", Contract: 1}
}

// NewDecoder implements [connector.Source].
func (s numbers[T]) NewDecoder() func(b *connector.Batch, i int, v *T) error { return s.decoder() }

// Open implements [connector.Source].
func (s numbers[T]) Open(context.Context, connector.Opening) (connector.Reader, error) {
	if s.opened != nil {
		if err := s.opened(); err != nil {
			return nil, err
		}
	}
	if s.reading != nil {
		s.reading = sync.OnceValue(s.reading)
	}
	return numbersReader[T]{s}, nil
}

type numbersReader[T any] struct{ numbers[T] }

func (r numbersReader[T]) Partitions(context.Context) ([]string, error) {
	var names []string
	for p := range r.partitions {
		names = append(names, strconv.Itoa(p))
	}
	return names, nil
}

func (r numbersReader[T]) Partition(_ context.Context, name string, from connector.Offset) (connector.Partition, error) {
	n, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, err
	}
	share := func(n int64) int64 { return n * r.count / int64(r.partitions) }
	p := &numbersPartition{next: max(from.Next, share(n)), end: share(n + 1), value: r.value, reading: r.reading, gate: r.gate, rate: r.rate / float64(r.partitions)}
	p.open = p.next
	if p.gate == nil && p.rate == 0 {
		p.open = p.end
	}
	return p, nil
}

func (r numbersReader[T]) Bounded() bool { return true }
func (r numbersReader[T]) Close() error  { return nil }

type numbersPartition struct {
	next, end int64
	value     []byte
	reading   func() error
	gate      <-chan int64
	open      int64 // may be read up to here
	rate      float64
	began     time.Time // of the rate, at the number first
	first     int64
}

// paceEvery is the pause of a source with a rate that has nothing to give.
const paceEvery = 5 * time.Millisecond

// pace waits until there is a record at the rate.
func (p *numbersPartition) pace(ctx context.Context) error {
	if p.began.IsZero() {
		p.began, p.first = time.Now(), p.next
	}
	for {
		p.open = p.first + int64(time.Since(p.began).Seconds()*p.rate)
		if p.next < p.open {
			return nil
		}
		if err := env.Pause(ctx, env.Real().Clock, paceEvery); err != nil {
			return err
		}
	}
}

func (p *numbersPartition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	if p.reading != nil {
		if err := p.reading(); err != nil {
			return err
		}
	}
	end := p.end
	if until >= 0 {
		end = min(end, until)
	}
	if p.next >= end {
		return io.EOF
	}
	if p.rate > 0 {
		if err := p.pace(ctx); err != nil {
			return err
		}
	}
	for p.next >= p.open {
		select {
		case p.open = <-p.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	end = min(end, p.open)
	for len(b.Records) < b.Limit && p.next < end {
		b.Records = append(b.Records, connector.Record{Offset: p.next, Time: connector.NoTime, Value: p.value})
		p.next++
	}
	b.To = connector.Offset{Next: p.next}
	return nil
}

func (p *numbersPartition) End() int64   { return p.end }
func (p *numbersPartition) Close() error { return nil }
