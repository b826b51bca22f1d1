package sluice

import (
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/runner"
)

// The errors that a run ends with, for errors.As. Each text names the job and
// the thing, what was expected and found, and the way out.
type (
	// RecordError says that a record can't be processed: Source, Partition and
	// Offset, the Operator that failed, the record's Key there, and the Cause.
	RecordError = engine.RecordError
	// SourceError says that a source can't be read on: Source, Partition, Cause.
	SourceError = engine.SourceError
	// InputError is what a run returns for either, with the job, and the epoch
	// that was dropped.
	InputError = runner.InputError
	// UnavailableError says that no record is to blame: what is needed to read or
	// to make rows is away or refuses, such as a cluster or a schema registry.
	UnavailableError = runner.UnavailableError
	// StateError says that an entry of a state can't be encoded or decoded, or
	// its change passed on: State, Key and Cause.
	StateError = engine.StateError
	// PanicError is the cause where a function of the job panicked.
	PanicError = engine.PanicError
	// RefusedError says that this build can't go on from what is stored.
	RefusedError = runner.RefusedError
	// MigrationError says which entry of a state can't be carried over.
	MigrationError = runner.MigrationError
	// WaitingForgetError says that a request to forget waits for a state that this
	// build would move away from under it.
	WaitingForgetError = runner.WaitingForgetError
	// ConsentError says that a consent names what would not be dropped.
	ConsentError = runner.ConsentError
	// DisagreeError says that a sink and the epoch log disagree.
	DisagreeError = deliver.DisagreeError
	// RejectedError says that a sink refuses a row for what it holds, so that the
	// job can't go on until a person has mended one of the two.
	RejectedError = deliver.RejectedError
	// FencedError says that another process has taken the job over.
	FencedError = epoch.FencedError
	// VoidError says that a process slept while others went on, and is fenced.
	VoidError = epoch.VoidError
	// SealedError says that the branch has ended, and another goes on.
	SealedError = epoch.SealedError
	// TooLargeError says that the state doesn't fit in memory.
	TooLargeError = memory.TooLargeError
	// SupersededError says that this build was replaced by another.
	SupersededError = epoch.SupersededError
	// DamagedError says that an object in the store is damaged or gone.
	DamagedError = epoch.DamagedError
)
