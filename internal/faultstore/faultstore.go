// Package faultstore is a checkpoint store that fails when it is told to, for
// tests: the n-th call, a lost reply, a create that lands late.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluicestream/sluice/store"
)

// ErrInjected is matched by the errors of calls that were made to fail.
var ErrInjected = errors.New("injected fault")

// Call is one call of a store's method.
type Call struct {
	// N counts the calls, from 1.
	N int
	// Operation is create, upload, commit, read, open, exists, list, delete or
	// replace.
	Operation string
	// Name is the object's name, or a listing's prefix.
	Name string
}

// Fault says what becomes of a call.
type Fault int

// The faults. LostReply is for all calls that change something; those that leave
// a doubt otherwise are for creates, and an upload's commit.
const (
	None      Fault = iota
	Fail            // nothing is done, and the error says so
	LostCall        // nothing is done, and the error leaves it open
	LostReply       // it is done, and the error leaves it open
	Late            // nothing is done yet, and the error leaves it open: see Land
)

// Store passes calls on to a store, with faults.
type Store struct {
	inner store.Store

	mu     sync.Mutex
	plan   func(Call) Fault
	calls  []Call
	queued []late
}

// late is a create that is still to come.
type late func(ctx context.Context) error

// New wraps a store. The plan is asked before each call, and may do what it
// likes meanwhile, calls of other stores included: this is how a test lets
// somebody else act between two calls. A nil plan has no faults.
func New(inner store.Store, plan func(Call) Fault) *Store { return &Store{inner: inner, plan: plan} }

// SetPlan replaces the plan.
func (s *Store) SetPlan(plan func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
}

// Calls returns the calls so far.
func (s *Store) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Land lets the oldest late create happen now, and returns what it meets with:
// nil, or an error that matches [store.ErrExists].
func (s *Store) Land(ctx context.Context) error {
	s.mu.Lock()
	if len(s.queued) == 0 {
		s.mu.Unlock()
		return errors.New("no create is late")
	}
	first := s.queued[0]
	s.queued = s.queued[1:]
	s.mu.Unlock()
	return first(ctx)
}

// postpone queues a create.
func (s *Store) postpone(create late) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = append(s.queued, create)
}

func (s *Store) ask(operation, name string) Fault {
	s.mu.Lock()
	call := Call{len(s.calls) + 1, operation, name}
	s.calls = append(s.calls, call)
	plan := s.plan
	s.mu.Unlock()
	if plan == nil {
		return None
	}
	return plan(call)
}

// fails asks the plan about a call that is either done or not.
func (s *Store) fails(operation, name string) error {
	if s.ask(operation, name) == None {
		return nil
	}
	return fmt.Errorf("%s %s: %w", operation, name, ErrInjected)
}

// changes asks the plan about a call that may be done although it fails.
func (s *Store) changes(operation, name string, call func() error) error {
	switch s.ask(operation, name) {
	case None:
		return call()
	case LostReply:
		_ = call() // whatever it says is lost
	}
	return fmt.Errorf("%s %s: %w", operation, name, ErrInjected)
}

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, name string, data []byte) error {
	doubt := fmt.Errorf("create %s: %w: %w", name, store.ErrUnknown, ErrInjected)
	switch s.ask("create", name) {
	case Fail:
		return fmt.Errorf("create %s: %w", name, ErrInjected)
	case LostCall:
		return doubt
	case Late:
		data = append([]byte{}, data...)
		s.postpone(func(ctx context.Context) error { return s.inner.Create(ctx, name, data) })
		return doubt
	case LostReply:
		_ = s.inner.Create(ctx, name, data) // whatever it says is lost
		return doubt
	}
	return s.inner.Create(ctx, name, data)
}

// Upload implements [store.Store].
func (s *Store) Upload(ctx context.Context, name string) (store.Upload, error) {
	if err := s.fails("upload", name); err != nil {
		return nil, err
	}
	u, err := s.inner.Upload(ctx, name)
	if err != nil {
		return nil, err
	}
	return &upload{Upload: u, store: s, name: name}, nil
}

type upload struct {
	store.Upload
	store *Store
	name  string
	late  bool
}

// Abort implements [store.Upload]. An upload that is to land late goes on by
// itself.
func (u *upload) Abort() {
	if !u.late {
		u.Upload.Abort()
	}
}

func (u *upload) Commit(ctx context.Context) error {
	doubt := fmt.Errorf("create %s: %w: %w", u.name, store.ErrUnknown, ErrInjected)
	switch u.store.ask("commit", u.name) {
	case Fail:
		u.Upload.Abort()
		return fmt.Errorf("create %s: %w", u.name, ErrInjected)
	case LostCall:
		u.Upload.Abort()
		return doubt
	case Late:
		u.late = true
		u.store.postpone(u.Upload.Commit)
		return doubt
	case LostReply:
		_ = u.Upload.Commit(ctx) // whatever it says is lost
		return doubt
	}
	return u.Upload.Commit(ctx)
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := s.fails("read", name); err != nil {
		return nil, err
	}
	return s.inner.Read(ctx, name, limit)
}

// Open implements [store.Store].
func (s *Store) Open(ctx context.Context, name string) (store.Object, error) {
	if err := s.fails("open", name); err != nil {
		return nil, err
	}
	return s.inner.Open(ctx, name)
}

// Exists implements [store.Store].
func (s *Store) Exists(ctx context.Context, name string) (bool, error) {
	if err := s.fails("exists", name); err != nil {
		return false, err
	}
	return s.inner.Exists(ctx, name)
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]store.Listed, error) {
	if err := s.fails("list", prefix); err != nil {
		return nil, err
	}
	return s.inner.List(ctx, prefix, after, limit)
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.changes("delete", name, func() error { return s.inner.Delete(ctx, name) })
}

// Replace implements [store.Store].
func (s *Store) Replace(ctx context.Context, name string, data []byte) error {
	return s.changes("replace", name, func() error { return s.inner.Replace(ctx, name, data) })
}

// String implements [store.Store].
func (s *Store) String() string { return s.inner.String() }
