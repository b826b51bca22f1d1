package carry

import (
	"fmt"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Stored is a state as a version has stored it.
type Stored struct {
	// Name is the state's name then.
	Name string
	// Kind is value, map, list or sorted.
	Kind string
	// Limit is that of a sorted state.
	Limit state.Limit
	// Meaning is the author's meaning version, KeyMeaning that of the key.
	Meaning, KeyMeaning int
	// Form is its schemas.
	Form state.Form
	// Migrations are the types that the version's functions migrated values from, and
	// MigratesKeys tells that it had a function for keys: what is stored has been
	// through them.
	Migrations   []*schema.Schema
	MigratesKeys bool
}

// Verdict says how a state is carried over.
type Verdict uint8

// The verdicts.
const (
	// Same: the entries are what this build has.
	Same Verdict = iota
	// Resolves: Avro's rules carry them over.
	Resolves
	// Migrates: the author's functions do.
	Migrates
	// Empty: nothing is stored; the state begins empty.
	Empty
	// Refused: neither does.
	Refused
)

// String is the verdict in a word.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return fmt.Sprintf("verdict %d", v)
}

var verdicts = [...]string{"same", "resolves", "migrates", "empty", "refused"}

// Source is a stored state that a way reads.
type Source struct {
	Stored Stored
	// Differences are what Avro's rules make good, between what is stored and what
	// the first function takes, or the state has if there is none. Paths lie below
	// the value.
	Differences []schema.Difference
	// Functions are the author's that each value goes through, in order.
	Functions []string
	// Keys is the author's function that gives the new keys; "" if they stay.
	Keys string

	convert func(w *Way) func(e *state.Entry, put func(Row) error) error
}

// Way is how a state of this build comes from what is stored.
type Way struct {
	// State is the state's name, Form its schemas in this build.
	State   string
	Form    state.Form
	Verdict Verdict
	// Sources are the stored states that it reads, in the order in which they are
	// read: one, but for states that others are taken over into.
	Sources []Source
	// Untaken are the states that the author has it take over, to no effect: since it
	// is stored itself, or else since none of that name is.
	Untaken []string
	// Drops are the paths, below the state's name, whose data would be lost, or some
	// of it: a field that is gone, a type that holds less.
	Drops []string
	// Refusals say why the state can't be carried over.
	Refusals []Refusal
	// Ordered tells that each entry gives one of the same key: those of the only
	// source, in their order, are the state's in its order.
	Ordered bool
	// Numbered tells that the state is a list whose elements are numbered anew.
	Numbered bool
	// Limit is that of a sorted state: what comes of the entries and is behind it is
	// dropped.
	Limit state.Limit
	// Merge puts two encoded values that meet at one key together, the earlier
	// first; nil if the author gave no function for that.
	Merge func(dst, earlier, later []byte) ([]byte, error)
}

// Rewrites tells whether the entries have to be written anew.
func (w *Way) Rewrites() bool {
	switch w.Verdict {
	case Resolves, Migrates:
		return true
	}
	return false
}

// Row is an entry as this build has it, encoded. Its slices hold until put
// returns.
type Row struct {
	Slot                epoch.Slot
	Key, Element, Value []byte
}

// Converter returns what converts entries of the source of a number. It is used
// by one goroutine. It puts any number of rows for an entry; its error is an
// *[EntryError], or what put returns.
func (w *Way) Converter(source int) func(e *state.Entry, put func(Row) error) error {
	return w.Sources[source].convert(w)
}

// EntryError says that an entry can't be carried over.
type EntryError struct {
	// State is the stored state's name, Key the entry's key as text.
	State, Key string
	// Function is the author's function that failed; "" if the entry could not be
	// read.
	Function string
	Cause    error
}

// Error implements error.
func (e *EntryError) Error() string {
	if e.Function == "" {
		return fmt.Sprintf("state %s, key %s: %v", e.State, e.Key, e.Cause)
	}
	return fmt.Sprintf("state %s, key %s: %s: %v", e.State, e.Key, e.Function, e.Cause)
}

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Cause }
