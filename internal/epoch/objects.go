package epoch

import "math"

// MainBranch is the branch that a job starts with.
const MainBranch = "main"

// FirstTask is the task of a job that one process runs alone: task 0 of
// layout 0, which owns every slot.
const FirstTask = "0.0"

// AllEpochs as a floor says that a whole log has been cleaned away.
const AllEpochs Epoch = math.MaxUint64

// JobFile is job.json: what a job is called and the random id that keeps it
// apart from any other job of that name.
type JobFile struct {
	Format int    `json:"format"`
	Job    string `json:"job"`
	JobID  string `json:"job_id"`
	// TransactionPrefix begins the Kafka transactional ids of the job's sinks.
	TransactionPrefix string `json:"transaction_prefix"`
	Time              int64  `json:"time"` // microseconds since 1970 UTC
}

// Layout says which tasks there are, and what each owns.
type Layout struct {
	Format int    `json:"format"`
	JobID  string `json:"job_id"`
	Layout int    `json:"layout"`
	// Hash is the function whose top 16 bits over a key's Avro encoding are
	// the key's slot.
	Hash string `json:"hash"`
	// Partitions is the rule by which a source's partition goes to a task, so
	// that partitions added later have a place.
	Partitions string `json:"partitions"`
	Tasks      []Task `json:"tasks"`
}

// Task is the unit of ownership.
type Task struct {
	Name  string `json:"name"`
	Slots Slots  `json:"slots"`
}

// BranchFile is branch.json: why a branch exists and where it starts.
type BranchFile struct {
	Format int        `json:"format"`
	JobID  string     `json:"job_id"`
	Branch string     `json:"branch"`
	Build  Build      `json:"build"`
	Kind   BranchKind `json:"kind"`
	Layout int        `json:"layout"`
	// Base is where the branch starts from; nil for a job's first branch.
	Base *Point `json:"base,omitempty"`
	// Asked is how a person said where it begins: earliest, latest, live-10m, a savepoint
	// or an epoch; empty for live.
	Asked string `json:"asked,omitempty"`
	// Starts says for each sink that was new when the branch was made whether
	// it starts at the cut or at the base.
	Starts map[string]string `json:"starts,omitempty"`
	By     string            `json:"by,omitempty"`
	Time   int64             `json:"time"`
}

// BranchKind says how a branch, or a generation, came to be.
type BranchKind string

// The kinds of branches and generations.
const (
	First     BranchKind = "first"
	Upgrade   BranchKind = "upgrade"
	Rollback  BranchKind = "rollback"
	Resume    BranchKind = "resume"
	Failover  BranchKind = "failover"
	Fresh     BranchKind = "fresh"
	Reshard   BranchKind = "reshard"
	Rehearsal BranchKind = "rehearsal" // a branch that is compared, and never live
	GivenUp   BranchKind = "given up"  // a branch that was given up before it had a record
)

// Functions are the names that a build has for the functions of a job, where they
// differ from those in the version's description.
type Functions struct {
	Format     int               `json:"format"`
	JobID      string            `json:"job_id"`
	Version    string            `json:"version"`
	Executable string            `json:"executable"` // sha256 of the file, in hex
	Functions  map[string]string `json:"functions"`  // by the part that calls them
}

// Point is an epoch of each task of a branch.
type Point struct {
	Branch string           `json:"branch"`
	Tasks  map[string]Epoch `json:"tasks"`
}

// Pin is a pin or a savepoint: an epoch that clean-up leaves alone.
type Pin struct {
	Format int    `json:"format"`
	JobID  string `json:"job_id"`
	Point
	// Reader says that a process reads the epoch, and builds nothing on it: such a
	// pin may go at any time, and does when it is old.
	Reader bool   `json:"reader,omitzero"`
	By     string `json:"by,omitempty"`
	Time   int64  `json:"time"`
}

// Savepoint is a name pinned to an epoch of each task, safe from clean-up.
type Savepoint struct {
	Format int    `json:"format"`
	JobID  string `json:"job_id"`
	Name   string `json:"name"`
	Point
	By   string `json:"by,omitempty"`
	Time int64  `json:"time"`
	// Schedule is that which made it, as "hourly"; empty if a person did. The
	// schedule drops none but its own.
	Schedule string `json:"schedule,omitempty"`

	// ID is the random part of the object's name, which keeps savepoints of one name
	// apart.
	ID string `json:"-"`
}

// LiveRecord makes a branch the one whose outputs are delivered.
type LiveRecord struct {
	Format int        `json:"format"`
	JobID  string     `json:"job_id"`
	N      Generation `json:"n"`
	Kind   BranchKind `json:"kind"`
	Branch string     `json:"branch"`
	Layout int        `json:"layout"`
	// Ends is where the generation before ended; nil in the first.
	Ends *Ends `json:"ends,omitempty"`
	// Covers is the branch's own epoch that covers those ends, per task.
	Covers map[string]Epoch       `json:"covers"`
	Sinks  map[string]SinkConsent `json:"sinks,omitempty"`
	By     string                 `json:"by,omitempty"`
	Time   int64                  `json:"time"`
}

// Ends is the end of a generation.
type Ends struct {
	Live   Generation       `json:"live"`
	Branch string           `json:"branch"`
	Tasks  map[string]Final `json:"tasks"`
}

// Final is the last manifest before a seal.
type Final struct {
	Epoch    Epoch    `json:"epoch"`
	Position Position `json:"position"`
	SHA256   string   `json:"sha256"`
}

// SinkConsent is what a cut settles for a sink.
type SinkConsent struct {
	Start   string `json:"start,omitempty"`   // a new name: "cut" or "base"
	Gap     string `json:"gap,omitempty"`     // a name that is back without backfill: "consented"
	Dropped string `json:"dropped,omitempty"` // "consented", or "to drain"
}

// Drain says that a sink which a generation dropped has got all that it was owed.
type Drain struct {
	Format int        `json:"format"`
	JobID  string     `json:"job_id"`
	Live   Generation `json:"live"`
	Task   string     `json:"task"`
	Sink   string     `json:"sink"`
	// Span is where all of the sink's rows stand.
	Span *Span `json:"span,omitempty"`
	Time int64 `json:"time"`
}

// Floor is clean-up's word that manifests of a log under an epoch are going.
// The epoch in its name counts; the rest is for people.
type Floor struct {
	Format int    `json:"format"`
	JobID  string `json:"job_id"`
	Branch string `json:"branch"`
	Task   string `json:"task"`
	Epoch  Epoch  `json:"epoch"`
	By     string `json:"by,omitempty"`
	Time   int64  `json:"time"`
}

// soleLayout is layout 0: one task with everything.
func soleLayout(jobID string) Layout {
	return Layout{
		Format: Format, JobID: jobID, Hash: "xxhash64", Partitions: "partition mod tasks",
		Tasks: []Task{{FirstTask, AllSlots}},
	}
}
