package connector

import (
	"context"
	"errors"
)

// Checker is a Sink that can tell beforehand, for a plan, whether a build could
// open it.
type Checker interface {
	Sink
	// Check looks whether the sink could be opened with these rows, and changes
	// nothing: no topic, table, column or schema is made that Open would make. An
	// error that matches [ErrNotAsked] says that this could not be found out; any
	// other says why not.
	Check(ctx context.Context, o Opening) error
}

// ErrNotAsked says that what has to be asked can't be reached, or doesn't answer.
var ErrNotAsked = errors.New("it could not be asked")

// NotAsked returns an error of err's text that matches err and [ErrNotAsked]; nil
// for nil.
func NotAsked(err error) error {
	if err == nil {
		return nil
	}
	return &notAsked{err}
}

type notAsked struct{ cause error }

// Error implements error.
func (e *notAsked) Error() string { return e.cause.Error() }

// Unwrap returns the cause, and what it comes to.
func (e *notAsked) Unwrap() []error { return []error{e.cause, ErrNotAsked} }
