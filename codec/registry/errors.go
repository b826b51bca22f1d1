package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sluicestream/sluice/connector"
)

// Error says that a registry gave no answer, or refused. It matches
// [connector.ErrUnavailable].
type Error struct {
	// Registry is its URLs, without secrets.
	Registry string
	// What was asked for.
	What string
	// Status is the HTTP status of the last answer; 0 without one.
	Status int
	// Attempts is how often it was asked, Waited for how long.
	Attempts int
	Waited   time.Duration
	// Cause is what happened last.
	Cause error

	page bool // what answered is no registry
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("schema registry %s: %s: %v", e.Registry, e.What, e.Cause)
	if e.Attempts > 1 {
		s += fmt.Sprintf(" (asked %d times in %v)", e.Attempts, e.Waited.Round(100*time.Millisecond))
	}
	return s + "; " + e.repair()
}

// repair is the way out.
func (e *Error) repair() string {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "registry.BasicAuth and registry.Bearer say who asks"
	case e.page || e.Status == http.StatusNotFound:
		return "is a schema registry there? Mend the URL, or the proxy in between"
	case e.Status == http.StatusConflict:
		return "the subject's schemas or its mode stand in the way: look at them in the registry, or use another subject"
	case e.Status == http.StatusTooManyRequests:
		return "start again later, or let the registry take more requests"
	case e.Status >= http.StatusInternalServerError:
		return "look into the registry's log, and start again once it answers"
	case e.Status != 0:
		return "look into the registry's log for why it refuses"
	case errors.Is(e.Cause, context.Canceled):
		return "given up, since the job stops"
	case errors.Is(e.Cause, context.DeadlineExceeded):
		return "start again once the registry answers"
	}
	return "start the registry, or mend the URL"
}

// Unwrap returns the cause, and what it comes to.
func (e *Error) Unwrap() []error { return []error{e.Cause, connector.ErrUnavailable} }

// IncompatibleError says that a schema doesn't fit those that a subject has. It
// matches [connector.ErrUnavailable].
type IncompatibleError struct {
	// Registry is its URLs, without secrets.
	Registry string
	// Subject is where the schema was to be registered.
	Subject string
	// Mode is the subject's compatibility mode: "BACKWARD".
	Mode string
	// Version is the newest version that the schema clashes with; 0 if the
	// registry doesn't tell.
	Version int
	// Messages are what the registry says.
	Messages []string
}

// Error implements error.
func (e *IncompatibleError) Error() string {
	with := "what is there"
	if e.Version != 0 {
		with = fmt.Sprintf("version %d", e.Version)
	}
	s := fmt.Sprintf("schema registry %s: subject %s: expected a schema that is compatible with %s in mode %s, found one that isn't", e.Registry, e.Subject, with, e.Mode)
	if len(e.Messages) > 0 {
		s += ": " + strings.Join(e.Messages, "; ")
	}
	return s + ". Nothing was registered; bring the type back in line with it, or use another topic or subject"
}

// Unwrap returns what it comes to.
func (e *IncompatibleError) Unwrap() error { return connector.ErrUnavailable }

// MissingError says that a schema which was only to be looked up isn't there. It
// matches [connector.ErrUnavailable].
type MissingError struct {
	// Registry is its URLs, without secrets.
	Registry string
	// Subject is where the schema was looked for.
	Subject string
	// Newest is the subject's newest version; 0 if there is no such subject.
	Newest int
}

// Error implements error.
func (e *MissingError) Error() string {
	found := "no such subject"
	if e.Newest != 0 {
		found = fmt.Sprintf("others up to version %d", e.Newest)
	}
	return fmt.Sprintf("schema registry %s: subject %s: expected the schema of the records there, found %s. Nothing was registered; leave out codec.LookUpOnly to have it done here", e.Registry, e.Subject, found)
}

// Unwrap returns what it comes to.
func (e *MissingError) Unwrap() error { return connector.ErrUnavailable }
