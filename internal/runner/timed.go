package runner

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/vitals"
	"github.com/sluicestream/sluice/store"
)

// timedStore tells a board how long a store's calls take.
type timedStore struct {
	store.Store
	clock env.Clock
	board *vitals.Board
}

// call measures one call. That a name is taken, or that there is no such object,
// is an answer and no failure.
func (s timedStore) call(operation string, do func() error) error {
	began := s.clock.Now()
	err := do()
	failure := err
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
		failure = nil
	}
	s.board.StoreCall(operation, s.clock.Now().Sub(began), failure)
	return err
}

// Create implements [store.Store].
func (s timedStore) Create(ctx context.Context, name string, data []byte) error {
	return s.call("create", func() error { return s.Store.Create(ctx, name, data) })
}

// Upload implements [store.Store].
func (s timedStore) Upload(ctx context.Context, name string) (u store.Upload, err error) {
	u, err = s.Store.Upload(ctx, name)
	if err != nil {
		return nil, err
	}
	return timedUpload{u, s}, nil
}

type timedUpload struct {
	store.Upload
	store timedStore
}

// Commit implements [store.Upload].
func (u timedUpload) Commit(ctx context.Context) error {
	return u.store.call("commit", func() error { return u.Upload.Commit(ctx) })
}

// Read implements [store.Store].
func (s timedStore) Read(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = s.call("read", func() error {
		data, err = s.Store.Read(ctx, name, limit)
		return err
	})
	return data, err
}

// Open implements [store.Store].
func (s timedStore) Open(ctx context.Context, name string) (o store.Object, err error) {
	err = s.call("open", func() error {
		o, err = s.Store.Open(ctx, name)
		return err
	})
	return o, err
}

// Exists implements [store.Store].
func (s timedStore) Exists(ctx context.Context, name string) (there bool, err error) {
	err = s.call("exists", func() error {
		there, err = s.Store.Exists(ctx, name)
		return err
	})
	return there, err
}

// List implements [store.Store].
func (s timedStore) List(ctx context.Context, prefix, after string, limit int) (found []store.Listed, err error) {
	err = s.call("list", func() error {
		found, err = s.Store.List(ctx, prefix, after, limit)
		return err
	})
	return found, err
}

// Delete implements [store.Store].
func (s timedStore) Delete(ctx context.Context, name string) error {
	return s.call("delete", func() error { return s.Store.Delete(ctx, name) })
}

// Replace implements [store.Store].
func (s timedStore) Replace(ctx context.Context, name string, data []byte) error {
	return s.call("replace", func() error { return s.Store.Replace(ctx, name, data) })
}
