package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Need is what a state will take once it is loaded.
type Need struct {
	// State is its name.
	State string
	// Rows are the rows of its segments, deletes and older values among them.
	Rows int64
	// Bytes is what all its segments take together: an upper bound. AtLeast is
	// what its largest segment takes: a lower bound.
	Bytes, AtLeast int64
}

// engineShare is what a job takes besides its state, at the very least: the
// runtime, batches, buffers of segments.
const engineShare = 16 << 20

// toldAtMost is the number of states that an error names: the largest.
const toldAtMost = 5

// Admit tells whether a state may be loaded. It refuses, with a [TooLargeError],
// only what can't fit for certain: the lower bounds of all states and a fixed
// share for the engine. A limit of 0 admits everything.
func Admit(at epoch.At, needs []Need, limit Limit) error {
	least := int64(engineShare)
	for _, n := range needs {
		least = sum(least, n.AtLeast)
	}
	if limit.Bytes <= 0 || least <= limit.Bytes {
		return nil
	}
	return &TooLargeError{At: at, Needs: largest(needs), Least: least, Limit: limit}
}

// largest are the needs in order, the largest first.
func largest(needs []Need) []Need {
	return slices.SortedFunc(slices.Values(needs), func(a, b Need) int {
		return cmp.Or(cmp.Compare(b.AtLeast, a.AtLeast), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.State, b.State))
	})
}

// TooLargeError says that a job's state doesn't fit in the memory that its
// process may have: known from what is stored, or found while loading it.
type TooLargeError struct {
	epoch.At
	// Needs are the states, the largest first; known before loading.
	Needs []Need
	// Least is what all need together for certain, in bytes; 0 if it was found
	// while loading.
	Least int64
	// Loading is the state that was being loaded, of which Loaded of Rows rows
	// were in memory, when the process needed InUse bytes.
	Loading      string
	Loaded, Rows int64
	InUse        int64
	Limit        Limit
}

// Error implements error.
func (e *TooLargeError) Error() string {
	ways := fmt.Sprintf("Nothing was changed. To run it, %s; a state that the job can do without is dropped by a build without it and `job run --drop STATE`.", e.Limit.wayOut())
	if e.Least == 0 {
		return fmt.Sprintf("%s: the state does not fit in memory: at %d of the %d rows of state %s the process needs %s, the limit is %s. %s",
			e.At, e.Loaded, e.Rows, e.Loading, size(e.InUse), e.Limit, ways)
	}
	return fmt.Sprintf("%s: the state does not fit in memory: it needs at least %s (%s), the limit is %s. %s",
		e.At, size(e.Least), tellNeeds(e.Needs), e.Limit, ways)
}

// ExitCode is the exit code of the command line.
func (e *TooLargeError) ExitCode() int { return 17 }

// tellNeeds lists the largest states with their figures.
func tellNeeds(needs []Need) string {
	var told []string
	for _, n := range needs[:min(len(needs), toldAtMost)] {
		told = append(told, fmt.Sprintf("%s %s to %s in %d rows", n.State, size(n.AtLeast), size(max(n.Bytes, n.AtLeast)), n.Rows))
	}
	if more := len(needs) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("%d more states", more))
	}
	return strings.Join(append(told, "the engine "+size(engineShare)), ", ")
}
