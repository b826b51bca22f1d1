package fsck

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// The end of every JSON object: the sha256 of all bytes before it.
const (
	sumBegin = `,"sum":"`
	sumEnd   = "\"}\n"
	hashLen  = 64
)

// body takes the sum off an object, if it is that of its bytes.
func body(data []byte) ([]byte, error) {
	cut := len(data) - len(sumBegin) - hashLen - len(sumEnd)
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	if cut < 1 || !bytes.HasPrefix(data[cut:], []byte(sumBegin)) || !bytes.HasSuffix(data, []byte(sumEnd)) {
		return nil, fmt.Errorf("it ends, after %d bytes, without its sum", len(data))
	}
	told, found := string(data[cut+len(sumBegin):len(data)-len(sumEnd)]), epoch.Hash(data[:cut])
	if told != found {
		return nil, fmt.Errorf("its sum is %s, that of its bytes %s", told, found)
	}
	return append(bytes.Clone(data[:cut]), '}'), nil
}

// decode reads an object into v, whose fields it may have and no others.
func decode[T any](data []byte, v *T) error {
	data, err := body(data)
	if err != nil {
		return err
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Format > epoch.Format {
		return &epoch.FormatError{Object: "the object", Format: head.Format, Newest: epoch.Format}
	}
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// outcome is what became of reading an object.
type outcome int

const (
	good outcome = iota
	absent
	damaged
)

// read reads an object and decodes it. Damage is found at once; only an error
// that ends the check is returned as one.
func read[T any](ctx context.Context, c *checker, path string, breaks ...string) (v T, o outcome, err error) {
	data, o, err := c.bytes(ctx, path, breaks...)
	if o != good || err != nil {
		return v, o, err
	}
	err = decode(data, &v)
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
