package codec_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluicestream/sluice/codec"
)

// shelf is a registry that holds what a test put there.
type shelf struct {
	mu      sync.Mutex
	schemas map[uint32]*codec.Schema
	fails   error // of every call
	fetched []uint32
	enrolls []string // subjects
	gate    chan struct{}
}

func (s *shelf) Schema(_ context.Context, id uint32) (*codec.Schema, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, id)
	if s.fails != nil {
		return nil, s.fails
	}
	if found := s.schemas[id]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("shelf: %w", codec.ErrUnknownID)
}

func (s *shelf) Enroll(_ context.Context, subject string, one *codec.Schema, lookUp bool) (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enrolls = append(s.enrolls, subject)
	if s.fails != nil {
		return 0, s.fails
	}
	for id, known := range s.schemas {
		if known.Text == one.Text && known.Format == one.Format {
			return id, nil
		}
	}
	if lookUp {
		return 0, fmt.Errorf("subject %s has no such schema", subject)
	}
	id := uint32(len(s.schemas) + 1)
	s.put(id, one)
	return id, nil
}

func (s *shelf) put(id uint32, one *codec.Schema) {
	if s.schemas == nil {
		s.schemas = map[uint32]*codec.Schema{}
	}
	s.schemas[id] = one
}

func avroShelf(texts map[uint32]string) *shelf {
	s := &shelf{}
	for id, text := range texts {
		s.put(id, &codec.Schema{Format: codec.FormatAvro, Text: text})
	}
	return s
}
