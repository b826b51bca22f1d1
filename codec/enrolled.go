package codec

import (
	"context"
	"fmt"
	"sync"
)

// enrolled is a schema under one subject, once its id is known.
type enrolled struct {
	*Registration
	codec, record string
	schema        func() (*Schema, error)

	mu  sync.Mutex
	use *Use
	id  uint32
	has bool
}

// prepare finds the id; it is known afterwards.
func (e *enrolled) prepare(ctx context.Context, use Use) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.use != nil && *e.use != use && e.strategy != byRecord && e.strategy != fixedSubject {
		return unfit(e.codec, fmt.Errorf("prepared for %s, and used for %s as well: codec.For makes one for each", e.use, use))
	}
	e.use = &use
	return e.find(ctx)
}

// first returns the id for the first record.
func (e *enrolled) first() (uint32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := waiting()
	defer cancel()
	err := e.find(ctx)
	return e.id, err
}

func (e *enrolled) find(ctx context.Context) error {
	if e.has {
		return nil
	}
	subject, err := e.subjectOf(e.record, e.use)
	if err != nil {
		return unfit(e.codec, err)
	}
	s, err := e.schema()
	if err != nil {
		return unfit(e.codec, err)
	}
	if e.id, err = e.registry.Enroll(ctx, subject, s, e.lookUp); err != nil {
		return unfit(e.codec, err)
	}
	e.has = true
	return nil
}

// String names a use to people.
func (u Use) String() string {
	if u.Key {
		return "keys of topic " + u.Topic
	}
	return "values of topic " + u.Topic
}
