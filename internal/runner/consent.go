package runner

import (
	"fmt"
	"strings"
)

// checkFirst refuses consents of a job that has never run: nothing can be
// dropped.
func (r *runner) checkFirst() error {
	for _, name := range r.o.Drop {
		return &ConsentError{Job: r.o.Job, Flag: "drop", Name: name}
	}
	for _, name := range r.o.Gap {
		if !r.hasSink(name) {
			return &ConsentError{Job: r.o.Job, Flag: "gap", Name: name}
		}
	}
	return nil
}

// ConsentError says that a flag names something that it is not for: --drop what
// would not be dropped, --set-aside what is no state.
type ConsentError struct {
	Job, Flag, Name string
	// Names are those that it could have.
	Names []string
}

// Error implements error.
func (e *ConsentError) Error() string {
	could := "leave it out"
	if len(e.Names) > 0 {
		could = "name one of " + strings.Join(e.Names, ", ") + ", or leave it out"
	}
	return fmt.Sprintf("%s: --%s %s: the job has nothing of that name for it; %s", e.Job, e.Flag, e.Name, could)
}

// ExitCode is the exit code of the command line.
func (e *ConsentError) ExitCode() int { return 13 }
