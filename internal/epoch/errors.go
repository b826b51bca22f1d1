package epoch

import (
	"fmt"
	"strings"
)

// At is the place in a job's logs that an error is about. Fields that are empty
// are left out of its text; the epoch is told only with a branch.
type At struct {
	Job, Branch, Task string
	Epoch             Epoch
}

// String writes the place as people read it: "spend: branch main, task 0.0,
// epoch 1841".
func (a At) String() string {
	var b strings.Builder
	b.WriteString(a.Job)
	if a.Branch != "" {
		fmt.Fprintf(&b, ": branch %s", a.Branch)
		if a.Task != "" {
			fmt.Fprintf(&b, ", task %s, epoch %d", a.Task, a.Epoch)
		}
	}
	return b.String()
}

// FencedError says that another owner has taken the branch; what this process
// had in hand is dropped.
type FencedError struct {
	At // the epoch that was lost
	// Owner is the id of the other, Writer its process.
	Owner  string
	Writer Writer
}

// Error implements error.
func (e *FencedError) Error() string {
	return fmt.Sprintf("%s: fenced: owner %s (%s) has taken this epoch. Nothing of this process's counts from here on; the other goes on from epoch %d. Leave the job to it, or start this one again to stand by.",
		e.At, e.Owner, e.Writer, e.Epoch)
}

// ExitCode is the exit code of the command line.
func (e *FencedError) ExitCode() int { return 11 }

// VoidError says that a process slept so long that the epoch it wanted to write
// had been written by others and cleaned away since.
type VoidError struct {
	At
	// Floor is the oldest epoch that is kept; [AllEpochs] if the log is gone.
	Floor Epoch
}

// Error implements error.
func (e *VoidError) Error() string {
	if e.Floor == AllEpochs {
		return fmt.Sprintf("%s: fenced: this log has ended and was cleaned away; another branch goes on in its place. Start the build of that branch; `sluice status` names it.", e.At)
	}
	return fmt.Sprintf("%s: fenced: others have passed this epoch, and those before %d were cleaned away. Nothing of this process's counts from here on; start it again.", e.At, e.Floor)
}

// ExitCode is the exit code of the command line.
func (e *VoidError) ExitCode() int { return 11 }

// SealedError says that a branch has ended: another goes on in its place.
type SealedError struct {
	At // the epoch of the seal
	// By is who sealed it.
	By string
	// Next is the branch that is live instead; empty if it isn't known, or if
	// there is none yet.
	Next string
}

// Error implements error.
func (e *SealedError) Error() string {
	if e.Next != "" {
		return fmt.Sprintf("%s: sealed by %s: this branch has ended, branch %s is live in its place. Start the build of that branch; `sluice status` names it.", e.At, orUnknown(e.By), e.Next)
	}
	return fmt.Sprintf("%s: sealed by %s: this branch has ended, and another goes on in its place. Start the build of that branch; `sluice status` names it.",
		e.At, orUnknown(e.By))
}

// ExitCode is the exit code of the command line.
func (e *SealedError) ExitCode() int { return 12 }

// SupersededError says that this build was replaced by another.
type SupersededError struct {
	At // the head that says so
	// Build is this one, Now the one whose run the head is.
	Build, Now Build
}

// Error implements error.
func (e *SupersededError) Error() string {
	return fmt.Sprintf("%s: superseded: this build (%s) was replaced; the job runs %s. A person brings it back: `upgrade --again` upgrades to it once more, `rollback` goes back to its own state, and `run --replace` runs it in place, from where the job stands.",
		e.At, e.Build, e.Now)
}

// ExitCode is the exit code of the command line.
func (e *SupersededError) ExitCode() int { return 12 }

// DamagedError says that an object of the store is not what it must be.
type DamagedError struct {
	At
	// Object is its name in the store.
	Object string
	// Expected and Found say what it should be and what it is.
	Expected, Found string
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: %s is damaged: expected %s, found %s. Nothing was changed. Restore it from a copy of the store; `sluice log %s` lists the epochs.",
		e.At, e.Object, e.Expected, e.Found, e.Job)
}

// ExitCode is the exit code of the command line.
func (e *DamagedError) ExitCode() int { return 14 }

// CleanedError says that an epoch was cleaned away while it was being read.
type CleanedError struct {
	At
	// Floor is the oldest epoch that is kept.
	Floor Epoch
}

// Error implements error.
func (e *CleanedError) Error() string {
	return fmt.Sprintf("%s: it was cleaned away while it was read: epochs before %d are gone. Use a newer one; `sluice log %s` lists the epochs.", e.At, e.Floor, e.Job)
}

// TimetableError says that a follower can't go on, since epochs that it has not
// covered were cleaned away (H20).
type TimetableError struct {
	At // the followed log, and the oldest epoch that it keeps
	// Follower is the branch that follows, Covers the position that it has covered.
	Follower string
	Covers   Position
}

// Error implements error.
func (e *TimetableError) Error() string {
	return fmt.Sprintf("%s: branch %s has covered position %d, and the epoch behind that was cleaned away, so that nothing tells any more in which order and at which times the inputs were read. Nothing was changed. Give the branch up and begin it anew, or let it read by its own clock with --own-clock.",
		e.At, e.Follower, e.Covers)
}

// ExitCode is the exit code of the command line.
func (e *TimetableError) ExitCode() int { return 13 }

// NoJobError says that a store has no such job.
type NoJobError struct {
	Job string
	// Store is the store's own name for itself.
	Store string
}

// Error implements error.
func (e *NoJobError) Error() string {
	return fmt.Sprintf("%s: there is no such job in the store %s. Look at its name, and at --store and SLUICE_STORE.", e.Job, e.Store)
}

// NoLogError says that a branch has no epochs: it doesn't exist, or its base is
// still to come.
type NoLogError struct {
	At
}

// Error implements error.
func (e *NoLogError) Error() string {
	return fmt.Sprintf("%s: branch %s has no epochs for task %s. Look at the branch's name, and at the store.", e.Job, e.Branch, e.Task)
}

// String tells a person which process it is.
func (w Writer) String() string {
	if w.Host == "" && w.PID == 0 {
		return "unknown process"
	}
	return fmt.Sprintf("process %d on %s", w.PID, orUnknown(w.Host))
}

// String tells a person which build it is.
func (b Build) String() string {
	revision := b.Revision
	if revision == "" {
		revision = "no revision"
	}
	return fmt.Sprintf("%s, executable %.12s, version %.12s", revision, orUnknown(b.Executable), orUnknown(b.Version))
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// PrefixError says that a job is to have another prefix for its transactions than
// it was made with. Under another name a transaction of an owner before could not
// be ended.
type PrefixError struct{ Job, Expected, Found string }

// Error implements error.
func (e *PrefixError) Error() string {
	return fmt.Sprintf("%s: the names of the job's transactions begin with %q for its life, and %q was asked for; leave the setting out, or set it back", e.Job, e.Expected, e.Found)
}

// ExitCode is the exit code of the command line.
func (e *PrefixError) ExitCode() int { return 13 }
