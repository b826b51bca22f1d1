package engine

import (
	"fmt"
)

// RecordError says that a record can't be processed: it could not be decoded,
// or a function of the job failed on it. Nothing of the record's epoch is kept.
type RecordError struct {
	// Source, Partition and Offset are where the record stands.
	Source, Partition string
	Offset            int64
	// Operator is the step that failed: the source for decoding, else the
	// state, sink or function.
	Operator string
	// Key is the record's key there, if it had one.
	Key string
	// Cause is what went wrong.
	Cause error
}

// Error implements error.
func (e *RecordError) Error() string {
	key := ""
	if e.Key != "" {
		key = fmt.Sprintf(", key %q", e.Key)
	}
	return fmt.Sprintf("source %s, partition %s, offset %d: %s%s: %v", e.Source, e.Partition, e.Offset, e.Operator, key, e.Cause)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Cause }

// SourceError says that a source can't be read on.
type SourceError struct {
	// Source is the source's name, Partition the partition's, if it is one's.
	Source, Partition string
	// Cause is what went wrong.
	Cause error
}

// Error implements error.
func (e *SourceError) Error() string {
	if e.Partition == "" {
		return fmt.Sprintf("source %s: %v", e.Source, e.Cause)
	}
	return fmt.Sprintf("source %s, partition %s: %v", e.Source, e.Partition, e.Cause)
}

// Unwrap returns the cause.
func (e *SourceError) Unwrap() error { return e.Cause }

// StateError says that an entry of a state can't be encoded, decoded, or passed
// on as a change or a row.
type StateError struct {
	// State and Key name the entry.
	State, Key string
	// Cause is what went wrong.
	Cause error
}

// Error implements error.
func (e *StateError) Error() string {
	return fmt.Sprintf("state %s, key %q: %v", e.State, e.Key, e.Cause)
}

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Cause }

// PanicError is a panic of a function of the job.
type PanicError struct {
	// Value is what it panicked with.
	Value string
	// Stack is where.
	Stack string
}

// Error implements error.
func (e *PanicError) Error() string { return "panic: " + e.Value }

// DeadLetter is a record that could not be processed.
type DeadLetter struct {
	// Source, Partition and Offset are where the record stands.
	Source    string
	Partition string
	Offset    int64
	// Operator is the step that failed, Key the record's key there.
	Operator string
	Key      string
	// Error is what went wrong.
	Error string
	// RecordKey and Bytes are the record's own key, if the source has such, and its
	// value, as they were read.
	RecordKey, Bytes []byte
}
