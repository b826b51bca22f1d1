package fsck

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// outcome is what became of reading an object.
type outcome int

const (
	good outcome = iota
	absent
	damaged
)

// read reads an object and decodes it. Damage is found at once; only an error
// that ends the check is returned as one.
func read[T epoch.Stored](ctx context.Context, c *checker, path string, breaks ...string) (v T, o outcome, err error) {
	data, o, err := c.bytes(ctx, path, breaks...)
	if o != good || err != nil {
		return v, o, err
	}
	v, err = epoch.Decode[T](data)
	if later, ok := errors.AsType[*epoch.FormatError](err); ok {
		later.Object = c.object(path)
		return v, damaged, later
	}
	if err != nil {
		c.found(path, "an object as it was written", "that "+err.Error(), breaks...)
		return v, damaged, nil
	}
	return v, good, nil
}

// bytes reads an object. Damage is found at once.
func (c *checker) bytes(ctx context.Context, path string, breaks ...string) ([]byte, outcome, error) {
	c.counted(1, 0)
	data, o, wrong, err := c.fetch(ctx, path)
	if o == damaged && err == nil {
		c.found(path, wrong.expected, wrong.found, breaks...)
	}
	return data, o, err
}

// fetch reads an object and says what is wrong if it can't be had as a whole.
func (c *checker) fetch(ctx context.Context, path string) (data []byte, o outcome, wrong fault, err error) {
	data, err = c.store.Read(ctx, c.object(path), epoch.MaxObject)
	switch {
	case err == nil:
		return data, good, wrong, nil
	case ctx.Err() != nil:
		return nil, damaged, wrong, ctx.Err()
	case errors.Is(err, store.ErrNotFound):
		return nil, absent, wrong, nil
	case errors.Is(err, store.ErrTooLarge):
		return nil, damaged, fault{fmt.Sprintf("at most %d bytes", epoch.MaxObject), "more"}, nil
	}
	return nil, damaged, fault{"an object that can be read", err.Error()}, nil
}
