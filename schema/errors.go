package schema

import (
	"fmt"
	"strings"
)

// Fault is one part of a Go type that has no schema.
type Fault struct {
	// Path leads to the part: "Tags[].Name"; "" is the whole.
	Path string
	// Reason says what is wrong and what to do.
	Reason string
}

// UnsupportedError says why a Go type has no schema, no key or no copy: every
// fault by its path.
type UnsupportedError struct {
	// Name is the record's name, or the Go type's where there is none.
	Name string
	// Faults are all that is wrong, in the order of the fields.
	Faults []Fault
}

// Error names every fault by its path, in one line.
func (e *UnsupportedError) Error() string {
	parts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		parts[i] = join(e.Name, f.Path) + ": " + f.Reason
	}
	return strings.Join(parts, "; ")
}

// ResolveError says why data of one schema can't be read as another.
type ResolveError struct {
	// Name is the name of what was to be read.
	Name string
	// Differences are all between the two, those that resolve included.
	Differences []Difference
}

// Error names every difference that doesn't resolve, in one line.
func (e *ResolveError) Error() string {
	var parts []string
	for _, d := range e.Differences {
		if !d.Resolves {
			parts = append(parts, join(e.Name, d.Path)+": "+d.text())
		}
	}
	return "stored data can't be read as the type of now: " + strings.Join(parts, "; ")
}

// ValueError says which part of a value can't be written, or of stored bytes
// can't be read.
type ValueError struct {
	// Path leads to the part and begins with the record's name.
	Path string
	// Reason says what was expected and what was found.
	Reason string
}

// Error returns the path and the reason, in one line.
func (e *ValueError) Error() string { return e.Path + ": " + e.Reason }

func valueError(path, format string, args ...any) error {
	return &ValueError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// join puts a name in front of a path.
func join(name, path string) string {
	switch {
	case path == "":
		return name
	case name == "" || path[0] == '[' || path[0] == '{':
		return name + path
	}
	return name + "." + path
}
