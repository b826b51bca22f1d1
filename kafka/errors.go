package kafka

import (
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/connector"
)

// ReplacedError says that a topic is not the one that was read before: it was
// deleted and made anew.
type ReplacedError struct {
	// Topic is its name, Partition the number of the one that was to be read on
	// from Offset.
	Topic     string
	Partition int32
	Offset    int64
	// Expected and Found are the topic's id as it was and as it is.
	Expected, Found string
}

// Error implements error.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("topic %s has been deleted and made anew: expected the id %s, found %s; offset %d of partition %d, which is to be read next, means nothing in it; give the source another name, under which the new topic is read from its beginning",
		e.Topic, e.Expected, e.Found, e.Offset, e.Partition)
}

// VanishedError says that a topic, or a partition of one, is not there.
type VanishedError struct {
	// Topic is its name, Partition the number, or -1 for the whole topic.
	Topic     string
	Partition int32
}

// Error implements error.
func (e *VanishedError) Error() string {
	if e.Partition < 0 {
		return fmt.Sprintf("topic %s is not there: expected a topic that exists; mend the name, or make it", e.Topic)
	}
	return fmt.Sprintf("topic %s has no partition %d: expected the one that was read before; bring it back, or give the source another name", e.Topic, e.Partition)
}

// LostError says that records are gone that were not read yet: the log begins
// behind the offset to be read next.
type LostError struct {
	// Topic and Partition name the log.
	Topic     string
	Partition int32
	// From is the offset that was to be read next, To the first that there is.
	From, To int64
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("topic %s, partition %d: what lay at offsets %d to %d was removed before it was read: expected offset %d, found that the log begins at %d; nothing was skipped; give the source another name, under which the topic is read from where it begins, and let retention keep more",
		e.Topic, e.Partition, e.From, e.To-1, e.From, e.To)
}

// Lost implements [connector.LostError].
func (e *LostError) Lost() (next, first int64) { return e.From, e.To }

// OutsideError says that a partition is to begin at an offset that its log doesn't
// have: one that a person, the author or a group gives, since nothing was read yet.
type OutsideError struct {
	// Topic and Partition name the log.
	Topic     string
	Partition int32
	// Offset is the one that is given. Start is the first that there is, End the one
	// behind the last.
	Offset, Start, End int64
}

// Error implements error.
func (e *OutsideError) Error() string {
	where := "beyond its end"
	if e.Offset < e.Start {
		where = "before its start: retention has removed what lay there"
	}
	return fmt.Sprintf("topic %s, partition %d: expected an offset from %d, where the log starts, to %d, where it ends; found that reading is to begin at %d, %s; give one of those, or another beginning",
		e.Topic, e.Partition, e.Start, e.End, e.Offset, where)
}

// CutError says that a log lost its end: records that were read are not in it any
// more, and others may have taken their offsets. That is what an unclean election
// of a leader does.
type CutError struct {
	// Topic and Partition name the log.
	Topic     string
	Partition int32
	// From is the first offset of what is gone, To the one that was to be read
	// next. If From is negative, the broker can't tell where the log was cut.
	From, To int64
	// LeaderEpoch is the leader epoch of the last record that was read, or -1.
	LeaderEpoch int32
}

// Error implements error.
func (e *CutError) Error() string {
	what := fmt.Sprintf("what was read at offsets %d to %d is not in the log any more", e.From, e.To-1)
	if e.From < 0 {
		what = fmt.Sprintf("the log was cut before offset %d, nobody knows where", e.To)
	}
	return fmt.Sprintf("topic %s, partition %d: %s: expected to read on at offset %d, leader epoch %d; other records may stand there now; start from a savepoint that is older than the cut, or give the source another name, under which the topic is read from its beginning",
		e.Topic, e.Partition, what, e.To, e.LeaderEpoch)
}

// GroupInUseError says that the job's group is somebody else's. With members in the
// group it matches [connector.ErrUnavailable], since they may leave.
type GroupInUseError struct {
	// Group is its name.
	Group string
	// Job and Found are the ids of the job that was to use it and of the one that
	// does. Found is empty if members or offsets of other consumers are there.
	Job, Found string
	// Members are those that consume in the group now, if any.
	Members []string
}

// Error implements error.
func (e *GroupInUseError) Error() string {
	const out = "give the job's group another name with kafka.Group, or use kafka.NoGroup"
	switch {
	case e.Found != "":
		return fmt.Sprintf("group %s is another job's: expected offsets of the job with the id %s, found those of %s; two jobs of one name are in one cluster, or the store of one was lost; %s", e.Group, e.Job, e.Found, out)
	case len(e.Members) > 0:
		return fmt.Sprintf("group %s is in use: expected no members, found %s, which must stop first; %s", e.Group, shorten(e.Members), out)
	}
	return fmt.Sprintf("group %s has offsets that are no job's of Sluice: expected a group that nobody else uses, or a job that takes it over by kafka.FromGroup(%q); %s", e.Group, e.Group, out)
}

// Unwrap returns [connector.ErrUnavailable] while members are there: they may go.
func (e *GroupInUseError) Unwrap() error {
	if e.Found == "" && len(e.Members) > 0 {
		return connector.ErrUnavailable
	}
	return nil
}

// NoBeginningError says that nothing tells where a new job begins to read some
// partitions.
type NoBeginningError struct {
	// Group is the group that was asked; empty if offsets were given.
	Group string
	// Partitions are those that are missing, as topic/number.
	Partitions []string
}

// Error implements error.
func (e *NoBeginningError) Error() string {
	from := "kafka.Offsets"
	if e.Group != "" {
		from = "group " + e.Group
	}
	return fmt.Sprintf("%s has no offset for %s: expected one for each partition; use Otherwise to tell where those begin, as in kafka.FromGroup(…).Otherwise(kafka.Earliest())", from, shorten(e.Partitions))
}

// PermissionError says that the cluster doesn't allow what a source or a sink
// needs. It matches [connector.ErrUnavailable]: no record is to blame.
type PermissionError struct {
	// Resource is what it is about: "topic orders", "group spend".
	Resource string
	// Operation is the one that is missing: "Read", "Describe".
	Operation string
}

// Error implements error.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s: the job's user may not %s it: expected the permission, found none; allow %s on %s (an ACL for the user, host and resource)",
		e.Resource, strings.ToLower(e.Operation), e.Operation, e.Resource)
}

// Unwrap returns what it comes to.
func (e *PermissionError) Unwrap() error { return connector.ErrUnavailable }

// UnreachableError says that no broker answered. It matches
// [connector.ErrUnavailable]: no record is to blame.
type UnreachableError struct {
	// Brokers are the addresses that were tried.
	Brokers []string
	// Hint says what may be the matter, if anything tells.
	Hint string
	// Cause is what the last try ended with.
	Cause error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	hint := e.Hint
	if hint == "" {
		hint = "start the cluster, or mend the addresses"
	}
	return fmt.Sprintf("no broker of Kafka can be used: expected one at %s, found: %s; %s", strings.Join(e.Brokers, ", "), oneLine(e.Cause), hint)
}

// Unwrap returns the cause, and what it comes to.
func (e *UnreachableError) Unwrap() []error { return []error{e.Cause, connector.ErrUnavailable} }

// shorten lists the first few of many.
func shorten(all []string) string {
	const shown = 10
	if len(all) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:shown], ", "), len(all)-shown)
	}
	return strings.Join(all, ", ")
}

// oneLine is an error's text without its line ends.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
