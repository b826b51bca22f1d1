package sluicetest

import (
	"context"
	"sync"

	"github.com/sluicestream/sluice/store"
)

// crashing is a store that answers nothing any more after the n-th write.
type crashing struct {
	store.Store
	mu      sync.Mutex
	left    int // writes until the crash; 0: no crash is wanted
	crashed bool
}

func (c *crashing) arm(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.crashed = n, false
}

func (c *crashing) disarm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	crashed := c.crashed
	c.left, c.crashed = 0, false
	return crashed
}

// write counts a write, and tells whether it happens.
func (c *crashing) write() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return errCrashed
	}
	if c.left > 0 {
		if c.left--; c.left == 0 {
			c.crashed = true
			return errCrashed
		}
	}
	return nil
}

func (c *crashing) Create(ctx context.Context, name string, data []byte) error {
	if err := c.write(); err != nil {
		return err
	}
	return c.Store.Create(ctx, name, data)
}

func (c *crashing) Upload(ctx context.Context, name string) (store.Upload, error) {
	up, err := c.Store.Upload(ctx, name)
	return &crashingUpload{up, c}, err
}

type crashingUpload struct {
	store.Upload
	c *crashing
}

func (u *crashingUpload) Commit(ctx context.Context) error {
	if err := u.c.write(); err != nil {
		return err
	}
	return u.Upload.Commit(ctx)
}
