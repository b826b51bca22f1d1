// Package store is where everything durable of a job lives: named objects in a
// folder (or, later, a bucket) with one strong promise, that an object is
// created only if it is absent.
//
// [Folder] keeps objects as files, [Memory] keeps them in memory for tests.
// Package storetest holds any store against the rules that Sluice relies on.
package store

import (
	"context"
	"errors"
	"io"
)

// Store holds named objects. Names are slash-separated paths of printable
// characters, as [CheckName] has it; others are refused with [ErrName], and no
// object's name may be another's followed by a slash and more.
// Reads and listings see every create that was answered before they began.
// All methods may be called from many goroutines, and from many processes.
type Store interface {
	// Create makes an object that does not exist yet, with exactly these
	// bytes, durable before it is visible and visible as a whole. The error
	// matches [ErrExists] if the name is taken (by whomever, possibly by an
	// earlier try of the caller's own), and [ErrUnknown] if it can't be told
	// whether the object was or will be created; anything else: it was not.
	Create(ctx context.Context, name string, data []byte) error

	// Upload begins the creation of an object that is too large to be held in
	// memory. Nothing is visible before Commit.
	Upload(ctx context.Context, name string) (Upload, error)

	// Read returns a whole object; the error matches [ErrNotFound] if there is
	// none, and [ErrTooLarge] if it is longer than limit bytes.
	Read(ctx context.Context, name string, limit int64) ([]byte, error)

	// Open opens an object for reading in ranges; the error matches
	// [ErrNotFound] if there is none.
	Open(ctx context.Context, name string) (Object, error)

	// Exists tells whether there is an object of this name.
	Exists(ctx context.Context, name string) (bool, error)

	// List returns up to limit objects whose names begin with prefix and come
	// after the name after (empty: from the first), in the order of the names'
	// bytes. A prefix need not end at a slash. Fewer than limit objects mean
	// that there are no more.
	List(ctx context.Context, prefix, after string, limit int) ([]Listed, error)

	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error

	// Replace writes an object whether or not it exists, visible as a whole.
	// Only what decides nothing (a heartbeat) is written in this way.
	Replace(ctx context.Context, name string, data []byte) error

	// String names the store for people: a path, a URL without secrets.
	String() string
}

// Upload is an object under way. Write may be called until Commit or Abort.
type Upload interface {
	io.Writer
	// Commit makes the object visible if its name is still free, with the
	// errors of [Store.Create].
	Commit(ctx context.Context) error
	// Abort drops what was written. After Commit it does nothing.
	Abort()
}

// Object is an open object.
type Object interface {
	io.ReaderAt
	io.Closer
	// Size is the object's length in bytes.
	Size() int64
}

// Listed is an object in a listing.
type Listed struct {
	// Name is the object's whole name.
	Name string
	// Size is its length in bytes.
	Size int64
}

// The errors that a store's answers are told apart by, with errors.Is.
var (
	// ErrExists says that the name is taken.
	ErrExists = errors.New("object exists")
	// ErrNotFound says that there is no such object.
	ErrNotFound = errors.New("object not found")
	// ErrUnknown says that a create may have succeeded, or may succeed later.
	ErrUnknown = errors.New("outcome of the create is unknown")
	// ErrTooLarge says that an object is longer than the reader takes.
	ErrTooLarge = errors.New("object is larger than expected")
	// ErrNoFile says that what has the object's name is a pipe, a device or the
	// like.
	ErrNoFile = errors.New("object is no regular file")
	// ErrName says that a name is not allowed.
	ErrName = errors.New("object name not allowed")
)
