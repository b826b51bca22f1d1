package codec

import "context"

// Rehearser is a codec that can tell beforehand what Prepare would come to.
type Rehearser interface {
	Preparer
	// Rehearse asks what [Preparer.Prepare] asks, and changes nothing. Its errors are
	// those that Prepare would have; one that matches [connector.ErrNotAsked] says
	// that this can't be told.
	Rehearse(ctx context.Context, use Use) error
}

// RehearsingRegistry is a Registry that can tell beforehand what Enroll would come
// to.
type RehearsingRegistry interface {
	Registry
	// Rehearse asks what [Registry.Enroll] asks, and registers nothing.
	Rehearse(ctx context.Context, subject string, s *Schema, lookUp bool) error
}

// rehearse asks for one use whether the schema could be enrolled.
func (e *enrolled) rehearse(ctx context.Context, use Use) error {
	registry, ok := e.registry.(RehearsingRegistry)
	if !ok {
		return nil
	}
	subject, err := e.subjectOf(e.record, &use)
	if err != nil {
		return unfit(e.codec, err)
	}
	s, err := e.schema()
	if err == nil {
		err = registry.Rehearse(ctx, subject, s, e.lookUp)
	}
	if err != nil {
		return unfit(e.codec, err)
	}
	return nil
}

// Rehearse implements [Rehearser].
func (c *avroCodec[T]) Rehearse(ctx context.Context, use Use) error {
	if err := c.Check(); err != nil || c.enrolled == nil {
		return err
	}
	return c.enrolled.rehearse(ctx, use)
}

// Rehearse implements [Rehearser].
func (c *protobufCodec[T, M, P]) Rehearse(ctx context.Context, use Use) error {
	if err := c.Check(); err != nil || c.enrolled == nil {
		return err
	}
	return c.enrolled.rehearse(ctx, use)
}
