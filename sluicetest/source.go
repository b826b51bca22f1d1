package sluicetest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/connector"
)

// source is a source of records that a test feeds. An offset is the number of
// records before it.
type source[T any] struct {
	name string
	mu   sync.Mutex
	fed  map[string][]T // by partition
	bad  map[string]map[int]string
}

func (s *source[T]) Describe() connector.Description {
	return connector.Description{Connector: "sluicetest", Contract: 1, Target: s.name}
}

func (s *source[T]) Open(context.Context, connector.Opening) (connector.Reader, error) {
	return &reader[T]{s}, nil
}

// NewDecoder gives the record that was fed. It is a copy as far as T is a value.
func (s *source[T]) NewDecoder() func(b *connector.Batch, i int, v *T) error {
	return func(b *connector.Batch, i int, v *T) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := int(b.Records[i].Offset)
		if why, ok := s.bad[b.Partition][at]; ok {
			return &connector.DecodeError{At: -1, Cause: fmt.Errorf("%s", why)}
		}
		*v = s.fed[b.Partition][at]
		return nil
	}
}

func (s *source[T]) feed(partition string, records []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fed[partition] = append(s.fed[partition], records...)
}

func (s *source[T]) feedBad(partition, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var zero T
	if s.bad[partition] == nil {
		s.bad[partition] = map[int]string{}
	}
	s.bad[partition][len(s.fed[partition])] = why
	s.fed[partition] = append(s.fed[partition], zero)
}

func (s *source[T]) len(partition string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.fed[partition]))
}

type reader[T any] struct{ s *source[T] }

func (r *reader[T]) Partitions(context.Context) ([]string, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var names []string
	for name := range r.s.fed {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (r *reader[T]) Partition(_ context.Context, name string, from connector.Offset) (connector.Partition, error) {
	if end := r.s.len(name); from.Next > end {
		return nil, fmt.Errorf("offset %d lies beyond the %d records that were fed", from.Next, end)
	}
	return &partition[T]{r.s, name, from.Next}, nil
}

func (r *reader[T]) Bounded() bool { return true }
func (r *reader[T]) Close() error  { return nil }

type partition[T any] struct {
	s    *source[T]
	name string
	next int64
}

func (p *partition[T]) Next(_ context.Context, b *connector.Batch, until int64) error {
	end := p.s.len(p.name)
	if until >= 0 {
		end = min(end, until)
	}
	if p.next >= end {
		return io.EOF
	}
	for p.next < end && len(b.Records) < b.Limit {
		b.Records = append(b.Records, connector.Record{Offset: p.next, Time: connector.NoTime})
		p.next++
	}
	b.To = connector.Offset{Next: p.next}
	return nil
}

func (p *partition[T]) End() int64   { return p.s.len(p.name) }
func (p *partition[T]) Close() error { return nil }
