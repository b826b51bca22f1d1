// Package epoch is a job's epoch log: manifests that are created only if
// absent, so that whoever takes the next name owns the branch, and the records
// around them (the live branch, branches, layouts, versions, floors).
//
// The decisions (the Decide functions, [HeadSearch], [NextPosition],
// [Supersede]) are pure and use nothing but the standard library; [Job] and
// [Owner] carry them out on a store.
package epoch

import (
	"iter"
	"maps"
)

// Epoch numbers the manifests of one log, from 0, without gaps.
type Epoch uint64

// Position numbers the data epochs of live branches along a task's chain of
// logs. It never restarts.
type Position uint64

// Generation numbers live records.
type Generation uint64

// Slot is one of the 65,536 hash ranges of keys: the top 16 bits of the hash.
type Slot uint16

// Slots is a range of slots, both ends included.
type Slots struct {
	First Slot `json:"first"`
	Last  Slot `json:"last"`
}

// AllSlots is the range of every slot.
var AllSlots = Slots{0, 65535}

// Kind says what a manifest is.
type Kind string

// The kinds of manifests.
const (
	Base Kind = "base" // the first of a log
	Open Kind = "open" // an owner's opening, or a note without data
	Data Kind = "data" // inputs, state changes and outputs
	Seal Kind = "seal" // ends the log
)

// Manifest is one epoch of one log, once it exists under its name.
//
// Like every object of this package it is stored as one line of JSON that
// begins with its format and ends with a check sum of what stands before it;
// see [Manifest.Encode].
type Manifest struct {
	Format   int      `json:"format"`
	JobID    string   `json:"job_id"`
	Branch   string   `json:"branch"`
	Task     string   `json:"task"`
	Epoch    Epoch    `json:"epoch"`
	Kind     Kind     `json:"kind"`
	Parent   string   `json:"parent"` // sha256 of the manifest before, in hex; "" for a base that starts from none
	Owner    string   `json:"owner"`
	Attempt  string   `json:"attempt"`
	Position Position `json:"position"`
	Version  string   `json:"version"`
	Build    Build    `json:"build"`
	Writer   Writer   `json:"writer"`
	// WriterBuild is the build of the process that wrote it, where that is not the
	// one whose run the state is: in the first of two openings (T6).
	WriterBuild Build `json:"writer_build,omitzero"`
	Time        int64 `json:"time"` // microseconds since 1970 UTC

	// By is who asked for a seal; it decides nothing.
	By string `json:"by,omitempty"`

	// What follows is absent from seals.

	Live   *Generation         `json:"live,omitempty"`
	Covers map[string]Position `json:"covers,omitempty"`
	Now    int64               `json:"now,omitzero"` // the epoch's frozen clock, microseconds
	Runs   []Run               `json:"runs,omitempty"`
	// Steps are the epochs that this one covers, in their order, if there is more than
	// one: each has a clock of its own, and the tables put out what it has changed at its
	// end.
	Steps      []Step                 `json:"steps,omitempty"`
	Sources    map[string]SourceState `json:"sources,omitempty"`
	Watermarks map[string]EventTime   `json:"watermarks,omitempty"` // by the event time's name
	// Idle are the partitions, by event time, as source/partition, that held no watermark
	// back in the epoch.
	Idle    map[string][]string `json:"idle,omitempty"`
	Windows map[string]Windows  `json:"windows,omitempty"` // by the operator's name
	// Advanced is to where watermarks were moved, by event time, in an epoch that closes
	// all windows behind the last record.
	Advanced   map[string]Moment     `json:"advanced,omitempty"`
	State      map[string]StateEntry `json:"state,omitempty"`
	Partial    map[string]Partial    `json:"partial,omitempty"`
	Superseded []Build               `json:"superseded,omitempty"`
	Request    uint64                `json:"request,omitzero"`
	Edits      []Edit                `json:"edits,omitempty"`
	// EditsOf is the request of which the edits are a part, behind which others come;
	// 0 if they are the last of their requests.
	EditsOf uint64               `json:"edits_of,omitzero"`
	Unmet   []Unmet              `json:"unmet,omitempty"`
	Sinks   map[string]SinkState `json:"sinks,omitempty"`
	// Counts are this epoch's sums for people: records read, dead letters, and with a
	// name at their end the entries written by state, late and untimed records by
	// operator, and times too far ahead by event time.
	Counts map[string]int64 `json:"counts,omitempty"`
}

// Data goes through the data objects that the manifest refers to, with their
// sizes in bytes: the segments of its states, and its outboxes.
func (m Manifest) Data() iter.Seq2[string, int64] {
	return func(yield func(path string, bytes int64) bool) {
		for _, s := range m.State {
			for _, segment := range s.Segments {
				if !yield(segment.Path, segment.Bytes) {
					return
				}
			}
		}
		for _, s := range m.Sinks {
			for _, o := range s.Outbox {
				if !yield(o.Path, o.Bytes) {
					return
				}
			}
		}
	}
}

// Build is what ran: the source's revision, the executable, and the version of
// the job that it ran as.
type Build struct {
	Revision   string `json:"revision,omitempty"`
	Executable string `json:"executable"` // sha256 of the file, in hex
	Version    string `json:"version"`
}

// Writer is the process that wrote a manifest.
type Writer struct {
	Host         string `json:"host,omitempty"`
	Machine      string `json:"machine,omitempty"`
	Boot         string `json:"boot,omitempty"`
	PIDNamespace string `json:"pid_namespace,omitempty"`
	PID          int    `json:"pid,omitzero"`
	Started      string `json:"started,omitempty"`
}

// Run is one batch as it was first read.
type Run struct {
	Source    string `json:"source"`
	Partition string `json:"partition"`
	Next      int64  `json:"next"`
}

// Step is one of the epochs that an epoch covers.
type Step struct {
	Now  int64 `json:"now"`  // its frozen clock
	Runs int   `json:"runs"` // the number of its runs
	// Idle is the epoch's, as in [Manifest.Idle]. Found are the partitions, as
	// source/partition, that hold watermarks back from the next one on.
	Idle  map[string][]string `json:"idle,omitempty"`
	Found []string            `json:"found,omitempty"`
	// Advanced is the epoch's, as in [Manifest.Advanced].
	Advanced map[string]Moment `json:"advanced,omitempty"`
}

// SourceState is where a source's partitions stand after an epoch.
type SourceState struct {
	Partitions map[string]Offset `json:"partitions"`
}

// Offset is the place of the record that a partition is to give next. Its
// identity tells the partition from another of the same name: a topic's id, a
// fingerprint of a file.
type Offset struct {
	Next        int64  `json:"next"`
	LeaderEpoch int32  `json:"leader_epoch,omitzero"`
	Identity    string `json:"identity,omitempty"`
}

// StateEntry is one state: its schemas and its segments, oldest first.
type StateEntry struct {
	Key      string    `json:"key"`               // Avro schema of the key, JSON
	Element  string    `json:"element,omitempty"` // of the element, in map and list states
	Value    string    `json:"value"`
	Segments []Segment `json:"segments"`
	// Edited is the newest epoch with edits of the state whose deleted entries the
	// segments may still hold, below the record that they are deleted; 0: none does.
	Edited Epoch `json:"edited,omitzero"`
}

// Segment is a file of state entries.
type Segment struct {
	Path   string `json:"path"` // below the job's folder
	Slots  Slots  `json:"slots"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`  // of the file
	Memory int64  `json:"memory"` // of the entries once they are loaded, measured
	SHA256 string `json:"sha256"`
}

// Partial says why a state is not what it would be had it seen all inputs.
type Partial struct {
	Why   string `json:"why"`
	Until int64  `json:"until,omitzero"` // microseconds since 1970 UTC; 0: for ever
}

// Edit is an entry that was deleted by request before the epoch's first record;
// of a map or a list all elements of the key.
type Edit struct {
	State string `json:"state"`
	Slot  Slot   `json:"slot"`
	Hash  string `json:"hash"` // of the key, by [EditHash]
}

// SinkState is what an epoch holds for a sink.
type SinkState struct {
	Outbox    []Object `json:"outbox,omitempty"`
	Parts     []int64  `json:"parts,omitempty"`
	Record    string   `json:"record,omitempty"` // id of the sink's record, once made
	Start     Position `json:"start"`
	Confirmed Position `json:"confirmed"`
	Dropped   string   `json:"dropped,omitempty"`
	Note      string   `json:"note,omitempty"`
	// Span is where the sink's rows stand, as of what is confirmed; nil for systems
	// without offsets.
	Span *Span `json:"span,omitempty"`
	// Rewrite is what is to be written anew of a table's sink, and Rewrote what this
	// epoch has.
	Rewrite *Rewrite `json:"rewrite,omitempty"`
	Rewrote *Rewrote `json:"rewrote,omitempty"`
	// Fill is how far a sink has been filled before its branch was live; nil once it has
	// got what came behind that, and if it wasn't.
	Fill *Fill `json:"fill,omitempty"`
	// Takes is the record of another branch that is to be replaced by this one's (D10).
	Takes string `json:"takes,omitempty"`
}

// Span is where a sink's rows stand in a system whose partitions have offsets, by the
// partitions' names.
type Span struct {
	// Begins are the offsets before which there is no row; nil if that isn't known. A
	// partition that it lacks came later, and begins with its first offset.
	Begins map[string]int64 `json:"begins,omitempty"`
	// Ends are the offsets behind the last row, of partitions that have got one.
	Ends map[string]int64 `json:"ends,omitempty"`
}

// Equal tells whether two are alike.
func (s *Span) Equal(other *Span) bool {
	if s == nil || other == nil {
		return s == other
	}
	return maps.Equal(s.Begins, other.Begins) && maps.Equal(s.Ends, other.Ends)
}

// Object is a file of an outbox.
type Object struct {
	Path   string `json:"path"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}
