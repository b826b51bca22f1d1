package connector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluicestream/sluice/env"
)

// Source is a set of partitions of records, each a sequence that can be read
// again from any offset that it once gave out, decoded to values of type T.
type Source[T any] interface {
	// Describe says what the source is, for the job's version.
	Describe() Description
	// Open prepares for reading; it reads nothing yet.
	Open(ctx context.Context, o Opening) (Reader, error)
	// NewDecoder returns the function that decodes record i of a batch into
	// *v, which is zero. It is used by one goroutine at a time. The value must
	// not point into the batch's memory, which is used again. An error is a
	// *[DecodeError] where the field is known, and matches [ErrUnavailable] where
	// the record isn't to blame.
	NewDecoder() func(b *Batch, i int, v *T) error
}

// Opening is what a connector gets when it is opened.
type Opening struct {
	// Env is the world.
	Env *env.Env
	// Log is the job's logger.
	Log *slog.Logger
	// Job is the job's name, JobID what tells it from another of that name, and
	// Name the source's or the sink's in it.
	Job, JobID, Name string
	// Begun tells a source that the job has read from it before: a partition that
	// is opened at the zero Offset is new, and is read from its beginning. If it is
	// false, the source begins where its author says.
	//
	// It tells a sink that the job has noted its record. A sink that makes the place
	// where records are kept when it is opened must not make it anew then: if it is
	// gone, the error matches [ErrRecord].
	Begun bool
	// TransactionPrefix begins the names of the job's transactions, in systems that
	// have such. It is the same for the job's life.
	TransactionPrefix string
}

// Description names a connector's kind and its parameters, which are part of
// the job's version: two jobs that differ in one are not the same job.
type Description struct {
	// Connector is the kind: "file.json", "kafka".
	Connector string
	// Contract is the version of the kind's outbox format; 1 for the first.
	Contract int
	// Target is where a sink writes to (a folder, a topic, a table), for people
	// and for the plan.
	Target string
	// Parameters are the named values that matter, in a fixed order. No secret.
	Parameters []Parameter
}

// Parameter is one named value of a [Description].
type Parameter struct{ Name, Value string }

// Reader is an open source. Its methods are called from one goroutine, those
// of its partitions each from one of their own.
type Reader interface {
	// Partitions lists the names of all partitions there are now. It is called
	// at the start and from time to time; a new name is read from Offset{}.
	Partitions(ctx context.Context) ([]string, error)
	// Partition opens a partition for reading from an offset on. The zero
	// Offset is the partition's beginning, or where [Opening.Begun] says that a new
	// job begins. If the partition can't be the one that the offset was taken from
	// (it was replaced, cut short, lost its beginning), the error says so.
	Partition(ctx context.Context, name string, from Offset) (Partition, error)
	// Bounded tells whether reading ends: Partitions never grows, and each
	// partition's Next returns io.EOF some day.
	Bounded() bool
	// Close releases what Open took.
	Close() error
}

// GroupReader is a Reader of a system that keeps, for people and their tools,
// how far a group of consumers has read.
type GroupReader interface {
	Reader
	// Cluster names the system, so that a [GroupTarget] in the same one can be
	// found.
	Cluster() string
	// Group is the name of the job's group there.
	Group() string
	// CommitOffsets tells the group's offsets. Sluice itself never reads on from
	// them. It may be called from any goroutine, one call at a time.
	CommitOffsets(ctx context.Context, offsets map[string]Offset) error
}

// BranchGroupReader is a GroupReader that also tells how far a branch has read that
// follows the live one, in a group of its own.
type BranchGroupReader interface {
	GroupReader
	// CommitBranchOffsets tells the offsets of a branch's group, whose name it makes of
	// the job's and the branch's. Nobody ever reads on from them.
	CommitBranchOffsets(ctx context.Context, branch string, offsets map[string]Offset) error
}

// CommittedReader is a Reader of a system that keeps how far other groups of
// consumers have read: a job can begin where one of them ended.
type CommittedReader interface {
	Reader
	// CommittedOffsets are the offsets of a group, by partition; one for which the
	// group has none is left out.
	CommittedOffsets(ctx context.Context, group string) (map[string]Offset, error)
}

// TimedReader is a Reader of a system that finds records by their time: a job can begin
// with those from a moment on.
type TimedReader interface {
	Reader
	// OffsetsAt are, by partition, of all that there are now, the offsets of the first
	// record of that time or later; where there is none, of the partition's end.
	OffsetsAt(ctx context.Context, at time.Time) (map[string]Offset, error)
}

// Partition is an open partition of a source.
type Partition interface {
	// Next fills b with the records that come next, b.Limit of them and
	// b.LimitBytes of values at the most (one record may be larger), and
	// nothing from the offset until on, if until is not negative. It waits
	// until there is a record, or the offset moved, or ctx ends. io.EOF:
	// nothing will come any more (or: until has been reached).
	// b.Records, b.Buffer and what they hold may be used again from call to call.
	Next(ctx context.Context, b *Batch, until int64) error
	// End is the offset behind the last record that the partition is known to
	// have, for the lag. It may be called at any time, from any goroutine.
	End() int64
	// Close releases the partition.
	Close() error
}

// StartPartition is a Partition of a source that loses its oldest records in time.
type StartPartition interface {
	Partition
	// Start is the offset of the oldest record that the partition is known to have still.
	// It may be called at any time, from any goroutine.
	Start() int64
}

// FoundPartition is a Partition whose beginning is looked up when it is opened at
// the zero Offset.
type FoundPartition interface {
	Partition
	// From is the offset at which reading begins. The job keeps it before it reads
	// the first record, so that a restart begins there as well.
	From() Offset
}

// Offset is a place in a partition: that of the record to be read next.
type Offset struct {
	// Next is the record's offset: in a file, bytes from the start.
	Next int64
	// LeaderEpoch is the leader epoch of the last record before it, where the
	// source has such.
	LeaderEpoch int32
	// Identity is what tells the partition from another of the same name:
	// a topic's id, a fingerprint of a file's first bytes. Empty before the
	// first read.
	Identity string
}

// Batch is a piece of one partition as it was read.
type Batch struct {
	// Partition is the partition's name.
	Partition string
	// Records are the records, in order.
	Records []Record
	// To is the offset behind the batch. It may lie beyond the last record's.
	To Offset
	// Preamble is what all records of the partition need for being decoded:
	// a CSV file's header line. It stays as it is for the partition's life.
	Preamble []byte
	// Limit and LimitBytes bound what Next may put in.
	Limit, LimitBytes int
	// Buffer is memory that the partition may use for the records' bytes.
	Buffer []byte
}

// Record is one undecoded record. Its bytes are the batch's.
type Record struct {
	// Offset is the record's place in its partition.
	Offset int64
	// Time is the record's own time in microseconds since 1970 UTC, or
	// [NoTime].
	Time int64
	// Key and Value are the record's bytes; nil where the source has none.
	Key, Value []byte
	// Headers are the record's headers, if any.
	Headers []Header
}

// NoTime is the time of a record that has none.
const NoTime = -1 << 63

// Header is a record's header.
type Header struct {
	Key   string
	Value []byte
}

// LostError is an error of [Reader.Partition], or of [Partition.Next], which says that
// records are gone that come next.
type LostError interface {
	error
	// Lost is the offset that was to be read next, and the first that there still is.
	Lost() (next, first int64)
}

// ErrUnavailable says that a record couldn't be decoded, or a row not be made,
// for a reason outside of it, such as a schema registry that does not answer: the
// job stops, and the record is never a dead letter. What a decoder or an
// encoder returns wraps it; so does what a source returns whose system is away or
// refuses, so that another start may help.
var ErrUnavailable = errors.New("not the record's fault")

// DecodeError says which field of a record could not be decoded, and why.
type DecodeError struct {
	// Field is the path of the field; empty if the record as a whole is bad.
	Field string
	// At is the place in the record's bytes, or -1.
	At int64
	// Cause is the reason.
	Cause error
}

// Error implements error.
func (e *DecodeError) Error() string {
	if e.Field == "" {
		return e.Cause.Error()
	}
	return "field " + e.Field + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Cause }
