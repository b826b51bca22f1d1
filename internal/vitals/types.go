package vitals

import "time"

// Role is what a process is to its job at a moment.
type Role string

// The roles, in the order in which a process usually takes them.
const (
	Starting  Role = "starting"  // looks at the store and at what the job needs
	Standby   Role = "standby"   // waits until the job's owner is gone
	Follower  Role = "follower"  // follows the live branch, and keeps its outputs to itself
	Restoring Role = "restoring" // owns the job and loads its states
	Running   Role = "running"   // owns the job, reads and commits
	Stopping  Role = "stopping"  // closes the last epoch and delivers what is owed
	Stopped   Role = "stopped"   // has let go of the job

	Superseded Role = "superseded" // was replaced by another build, and does nothing any more
)

// Roles returns every role, in the order above.
func Roles() []Role {
	return []Role{Starting, Standby, Restoring, Follower, Running, Stopping, Stopped, Superseded}
}

// Identity says which job this is, and which process runs it.
type Identity struct {
	Job    string
	Branch string
	Task   string
	Owner  string // the process's id in the log; empty while it owns nothing
	// Version is the hash of what the job is, and Build a short text on the
	// executable, for people.
	Version string
	Build   string
}

// Commit is one epoch that was committed.
type Commit struct {
	Epoch    uint64
	Position uint64 // of the epoch's outputs, which is what sinks count
	// What the epoch held: records read, those among them that became dead
	// letters, and the bytes of input.
	Records     int64
	DeadLetters int64
	Bytes       int64
	Outputs     map[string]int64 // rows put out, by sink
	// Records whose windows were closed and those that lack a time, by operator, and
	// times too far ahead of the clock, by event time.
	Late, Untimed, Ahead map[string]int64
	// Where the event times stand, and the operators that go by them.
	EventTimes, Operators []Watermark
	Pause                 time.Duration // how long the epoch's end kept the slowest shard from its records
}

// Watermark is how far the times of records have come, of an event time or for an
// operator.
type Watermark struct {
	Name string
	At   time.Time     // zero: there is none yet
	Lag  time.Duration // by which it is behind the epoch's clock; below 0: ahead
}

// State is what one state takes.
type State struct {
	Name    string
	Entries int64 // alive, in memory
	// What is stored: rows and bytes of all segments, and the memory that
	// loading them takes at most, in bytes.
	Rows     int64
	Bytes    int64
	Memory   int64
	Segments int
	// MergeDebt is how many bytes the merges that are under way or due still
	// have to read.
	MergeDebt int64
}

// Partition is how far one partition of a source is read. Next and End are the
// source's own offsets: of records in Kafka, of bytes in files.
type Partition struct {
	Source    string
	Partition string
	Next      int64 // the first that is not read
	End       int64 // behind the last there is, as far as known; below 0 if the source can't tell
	Start     int64 // of the oldest that there still is, of sources that lose such
}

// Sink is how far one sink has come.
type Sink struct {
	Name      string
	Confirmed uint64 // the last position that the sink is known to have
	Pending   int    // deliveries that are owed
	Failing   string // why deliveries fail now; empty while they don't
}

// HotKey is a key that takes a large share of an operator's records.
type HotKey struct {
	Operator string
	Key      string
	Share    float64 // of the operator's sampled records, 0 to 1
}
