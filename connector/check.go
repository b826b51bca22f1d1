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
