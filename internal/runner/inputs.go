package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// checkInputs refuses a branch that begins in the past, and could not read what has come
// since. One that has begun already has offsets of its own.
func (r *runner) checkInputs(ctx context.Context, m epoch.Manifest, me epoch.Identity) error {
	if r.o.Follow.From == nil {
		return nil // the live branch reads on from there
	}
	build := me.Build
	build.Version = r.o.Build.Version
	if _, begun, err := r.job.Unfinished(ctx, r.beginning(), build); err != nil || begun && !r.o.Follow.Rehearse {
		return err
	}
	at := map[string]map[string]connector.Offset{}
	for name, source := range m.Sources {
		at[name] = deliver.Offsets(source)
	}
	eo := r.o.engineOptions()
	eo.JobID, eo.TransactionPrefix = r.job.ID(), r.job.TransactionPrefix()
	faults := r.o.Graph.Reach(ctx, eo, at)
	if len(faults) == 0 {
		return nil
	}
	source := faults[0]
	point := epoch.At{Job: r.o.Job, Branch: m.Branch, Task: m.Task, Epoch: m.Epoch}
	if errors.Is(source, connector.ErrUnavailable) {
		return &UnavailableError{At: point, Cause: source}
	}
	return &GoneError{At: point, Source: source}
}

// GoneError says that a branch can't begin at an epoch, since the inputs behind that are
// not in their source any more.
type GoneError struct {
	epoch.At
	Source *engine.SourceError
}

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%s: a branch that begins here has to read what came since: %v. Nothing was begun, and the live branch goes on; begin later (`upgrade --from`), or let the older build go on with the newer one's state: `run --replace`.", e.At, e.Source)
}

// Unwrap returns the error of the source.
func (e *GoneError) Unwrap() error { return e.Source }

// ExitCode is the exit code of the command line.
func (e *GoneError) ExitCode() int { return 16 }
