package codec

import (
	"errors"
	"sync"

	"github.com/sluicestream/sluice/connector"
)

// maxReaders bounds how many schemas' readers are kept: topics have a few, and
// each takes some kilobytes.
const maxReaders = 1000

// readers keeps what was made of schemas by their ids, the newest maxReaders of
// them. Each is made once, however many goroutines ask for it.
type readers[R any] struct {
	make func(id uint32) (R, error)

	mu    sync.Mutex
	known map[uint32]*reader[R]
	order []uint32 // of known, the oldest first
}

// reader is one of them, or on its way.
type reader[R any] struct {
	done  chan struct{}
	value R
	err   error
}

func newReaders[R any](fetch func(id uint32) (R, error)) *readers[R] {
	return &readers[R]{make: fetch, known: map[uint32]*reader[R]{}}
}

// of returns what was made of the schema of an id.
func (r *readers[R]) of(id uint32) (R, error) {
	r.mu.Lock()
	known := r.known[id]
	if known == nil {
		known = &reader[R]{done: make(chan struct{})}
		r.keep(id, known)
		r.mu.Unlock()
		r.fill(id, known)
	} else {
		r.mu.Unlock()
		<-known.done
	}
	return known.value, known.err
}

func (r *readers[R]) keep(id uint32, known *reader[R]) {
	if len(r.order) == maxReaders {
		delete(r.known, r.order[0])
		r.order = append(r.order[:0], r.order[1:]...)
	}
	r.known[id] = known
	r.order = append(r.order, id)
}

// fill makes one, and forgets it again unless its outcome can only be the same.
func (r *readers[R]) fill(id uint32, known *reader[R]) {
	known.err = errInterrupted
	defer func() {
		if known.err != nil && !lasting(known.err) {
			r.mu.Lock()
			if r.known[id] == known {
				delete(r.known, id)
				for i := range r.order {
					if r.order[i] == id {
						r.order = append(r.order[:i], r.order[i+1:]...)
						break
					}
				}
			}
			r.mu.Unlock()
		}
		close(known.done)
	}()
	known.value, known.err = r.make(id)
}

var errInterrupted = errors.New("making the schema's reader was interrupted")

// lasting tells whether an error is sure to come again: an id stands for one
// schema for ever, but one that is unknown may be known soon.
func lasting(err error) bool {
	_, bad := errors.AsType[*connector.DecodeError](err)
	return bad && !errors.Is(err, ErrUnknownID)
}

// fetch returns the schema of an id, in the format that is expected.
func (r *Registration) fetch(codec string, id uint32, expected Format) (*Schema, error) {
	ctx, cancel := waiting()
	defer cancel()
	s, err := r.registry.Schema(ctx, id)
	if err != nil {
		return nil, fetchFault(codec, id, err)
	}
	if s.Format != expected {
		return nil, badSchema(id, &formatError{expected: expected, found: s.Format})
	}
	return s, nil
}

// formatError is a schema in another language than the codec's.
type formatError struct{ expected, found Format }

// Error implements error.
func (e *formatError) Error() string {
	return "expected a schema of " + string(e.expected) + ", found one of " + string(e.found)
}
