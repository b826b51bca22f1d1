package connector

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/schema"
)

// Sink is the half of a sink that knows no types of Go: it delivers frozen
// rows. Any build of a job that has the sink can finish what another froze.
type Sink interface {
	// Describe says what the sink is, for the job's version.
	Describe() Description
	// Open prepares for deliveries by one task of a job.
	Open(ctx context.Context, o Opening, key RecordKey) (Target, error)
}

// PartedSink is a Sink whose deliveries have bounds. An epoch's rows beyond them
// are delivered in parts, whose ends are frozen with the rows.
type PartedSink interface {
	Sink
	// PartLimits bound the rows of one delivery, and the bytes of these as they are
	// frozen. A row that is larger by itself is a part of its own. 0: no bound.
	PartLimits() (rows, bytes int64)
}

// EqualSkipper is a Sink that can leave rows out which it has already, as they are.
type EqualSkipper interface {
	Sink
	// SkipsEqual has its targets do so for a [Delivery] that asks for it.
	SkipsEqual()
}

// RivalSink is a Sink that can't stand beside every other in one job.
type RivalSink interface {
	Sink
	// Rivals says why this sink and another can't both be in one job;
	// nil if they can.
	Rivals(other Sink) error
}

// StreamSink is a sink for a stream's records, each of which is appended.
type StreamSink[T any] interface {
	Sink
	// Rows returns what turns records into rows.
	Rows() (Rows[T], error)
}

// TableSink is a sink for a table: a row for each key, put or deleted.
type TableSink[K comparable, S any] interface {
	Sink
	// TableRows returns what turns entries into rows.
	TableRows() (TableRows[K, S], error)
}

// Rows is the typed half of a stream's sink.
type Rows[T any] struct {
	// Schema is the rows' schema: a record.
	Schema *schema.Schema
	// Function is the name of the user's function that makes the row, if any;
	// for notes in the plan.
	Function string
	// NewAppend returns a function that appends the row of *v, by the schema,
	// to dst. It is used by one goroutine.
	NewAppend func() func(dst []byte, v *T) ([]byte, error)
	// NewWire returns a function that appends what the connector delivers,
	// where that isn't the row. Nil: it is.
	NewWire func() func(dst []byte, v *T) ([]byte, error)
}

// TableRows is the typed half of a table's sink.
type TableRows[K comparable, S any] struct {
	// Schema is the rows' schema: a record.
	Schema *schema.Schema
	// Function is the name of the user's function that makes the row, if any.
	Function string
	// NewAppend returns a function that appends the row of an entry, by the
	// schema, to dst. It is used by one goroutine.
	NewAppend func() func(dst []byte, k K, s *S) ([]byte, error)
	// NewWire returns a function that appends what the connector delivers,
	// where that isn't the row. Nil: it is. For a delete s is nil.
	NewWire func() func(dst []byte, k K, s *S) ([]byte, error)
}

// Position numbers the epochs of a task whose outputs are delivered. It never
// restarts, whatever branch or build is live.
type Position uint64

// RecordKey is the identity of a sink's record: one per job, task and sink.
type RecordKey struct{ JobID, Task, Sink string }

// SinkRecord is what a sink remembers, in its own transaction with the rows.
type SinkRecord struct {
	// Position is that of the last delivery applied, or of the start.
	Position Position
	// Part is the number of the last part applied of the delivery behind
	// Position; 0 for none: deliveries of one part go from 0 to the next
	// Position's 0.
	Part int
	// ID is the random name that the record was made with.
	ID string
	// Job, Target, Live, Branch, Epoch and Manifest say for people and for
	// checks what was applied last: the job's name, the sink's target, the
	// generation, branch and epoch, and the manifest's hash.
	Job, Target string
	Live        uint64
	Branch      string
	Epoch       uint64
	Manifest    string
}

// Verdict is what is to be done with a delivery, given the sink's record.
type Verdict int

// The verdicts.
const (
	// Apply: the record stands where the delivery begins.
	Apply Verdict = iota
	// Skip: the delivery has been applied before.
	Skip
	// Disagree: the record fits neither; nothing may be written.
	Disagree
)

// ErrRecord says that a sink's record is there and can't be relied on: it is
// damaged, another sink's, or a later release's. Trying again can't help, so that
// a person has to look. What a [Target] returns wraps it.
var ErrRecord = errors.New("the sink's record can't be relied on")

// ErrRejected says that the sink's system refuses a row of a delivery for what it
// holds, or the job's user, and would refuse it again: a person has to mend one of the
// two. The delivery stays owed. What [Target.Deliver] returns wraps it.
var ErrRejected = errors.New("the sink refuses a row")

// ErrKept says that a sink's system doesn't let the rows of a target be removed, as a
// topic of Kafka does that keeps the newest of each key: a person has to make the target
// anew. What [EmptyTarget.Replace] returns wraps it.
var ErrKept = errors.New("the rows can't be removed")

// Target is an open sink of one task. Its methods are called one at a time.
type Target interface {
	// Record returns the sink's record, or nil if there is none.
	Record(ctx context.Context) (*SinkRecord, error)
	// Make writes a first record if there is none, without overwriting, and
	// returns the one that stands there then.
	Make(ctx context.Context, first SinkRecord) (SinkRecord, error)
	// Deliver does all of this in one step that happens wholly or not at all,
	// alone: reads the record, asks d.Decide, and if the verdict is [Apply],
	// writes the rows and sets the record to d.Record. It returns the verdict
	// and the record that was found. It tries once: after an error the outcome is
	// unknown, and the delivery is tried again, once it is sure that no other
	// process owns the job by now, unless the error matches [ErrRecord] or
	// [ErrRejected].
	Deliver(ctx context.Context, d *Delivery) (Verdict, *SinkRecord, error)
	// Close releases what Open took.
	Close() error
}

// GroupTarget is a Target in a system that keeps how far groups of consumers have
// read, and that can tell it in the transaction of a delivery.
type GroupTarget interface {
	Target
	// Cluster names the system, as [GroupReader] does.
	Cluster() string
}

// OpenEndsTarget is a Target in whose system a process that died can leave something
// open that others have to wait for: other sinks of the job, too.
type OpenEndsTarget interface {
	Target
	// EndOpen ends what a process before this one has left open of the sink, and
	// writes nothing. It is called by the job's owner before any first record is made.
	EndOpen(ctx context.Context) error
}

// ReadyTarget is a Target whose first delivery is faster if it could prepare for it:
// connections, and whatever has to be looked up.
type ReadyTarget interface {
	Target
	// Ready prepares for a first delivery that may be near. It changes nothing that
	// anybody else can see: another process owns the job, and delivers. It may be called
	// again, so that what is prepared stays fresh, and it may come to nothing; Close
	// releases what it took. After an error Deliver does without.
	Ready(ctx context.Context) error
}

// EmptyTarget is a Target that can be filled before a branch is live, and begun anew if
// that came to nothing. Others can be filled once.
type EmptyTarget interface {
	Target
	// Empty tells whether there are no rows yet.
	Empty(ctx context.Context) (bool, error)
	// Replace removes all rows, and puts first in the place of the record with the id
	// old, of a branch that was given up before it was live. As long as that record
	// stands some rows may; with first there is none. A record with another id is left
	// as it is, with the rows. It returns the one that stands there then. An error that
	// matches [ErrKept] says that a person has to remove the rows.
	Replace(ctx context.Context, old string, first SinkRecord) (SinkRecord, error)
}

// SpanTarget is a Target that notes with its record, in the same step, where the sink's
// rows stand: what consumers have to know that leave one sink of a job for another.
type SpanTarget interface {
	Target
	// Span is that of the record which the last call had found, or has written. It is
	// asked for behind a call of Make or Deliver that had no error.
	Span() Span
}

// Span is where a sink's rows stand in a system whose partitions have offsets, by the
// partitions' names.
type Span struct {
	// Begins are the offsets before which there is no row; nil if that isn't known,
	// since the record was made by a release that didn't note it.
	Begins map[string]int64
	// Ends are the offsets behind the last row, of partitions that have got one.
	Ends map[string]int64
}

// CommittedTarget is a Target in a system that keeps how far groups of consumers have
// read.
type CommittedTarget interface {
	Target
	// CommittedOffsets are the offsets of a group as they are now, by partition, of all
	// the system's partitions for which the group has one. The group may have members,
	// which move them.
	CommittedOffsets(ctx context.Context, group string) (map[string]Offset, error)
}

// GroupOffsets are how far a group has read one source.
type GroupOffsets struct {
	// Group is the group's name.
	Group string
	// Offsets are those of the source's partitions, by their names.
	Offsets map[string]Offset
}

// Delivery is one epoch's outbox, or a part of it, on its way to the sink.
type Delivery struct {
	// Record is what the sink remembers once the delivery is applied.
	Record SinkRecord
	// Filling tells that what is delivered is from before the branch was live, so that
	// more has to come before the sink's rows are whole. A sink that shows rows to
	// readers under a name of its own doesn't yet.
	Filling bool
	// Offsets are to be told with the rows. Only a [GroupTarget] gets any.
	Offsets []GroupOffsets
	// SkipEqual asks an [EqualSkipper] to leave puts out of rows that it has already.
	SkipEqual bool
	// Decide tells what to do, given the record that the sink has (nil: none).
	Decide func(found *SinkRecord) Verdict
	// Key is the schema of the rows' keys; nil for streams, and if there are no
	// rows.
	Key *schema.Schema
	// Schema is that of the rows, as the build had it that froze them; nil if
	// there are no rows.
	Schema *schema.Schema
	// Rows are the rows: tables' in (slot, key) order, streams' in the order of
	// the inputs. It may be called again. A row's bytes hold until the next.
	Rows iter.Seq2[Row, error]
}

// Op is what is to be done with a row.
type Op uint8

// The operations.
const (
	// Append adds a row.
	Append Op = iota
	// Put writes the row of a key.
	Put
	// Delete removes the row of a key.
	Delete
)

// String is the operation in a word.
func (op Op) String() string {
	switch op {
	case Append:
		return "append"
	case Put:
		return "put"
	case Delete:
		return "delete"
	}
	return fmt.Sprintf("operation %d", op)
}

// Row is one frozen row.
type Row struct {
	// Op says what to do with it.
	Op Op
	// Slot is the hash range of the key; 0 for streams.
	Slot uint16
	// Key is the key's encoding; nil for streams.
	Key []byte
	// Row is the row's encoding; nil for [Delete].
	Row []byte
	// Wire is what the connector made of it; nil if it delivers Row, and for a
	// [Delete] if it needs no more than the key.
	Wire []byte
}
