package epoch

import (
	"encoding/json"
	"strings"
)

// EventTime is how far the times of records have come that get them in one place.
type EventTime struct {
	// Watermark is what no time before is expected any more; [NoTime]: there is none yet.
	Watermark Moment `json:"watermark,omitzero"`
	// Partitions are the partitions that times came of, by source and partition.
	Partitions map[string]map[string]PartitionTime `json:"partitions,omitempty"`
}

// PartitionTime is how far the times of a partition have come.
type PartitionTime struct {
	Watermark Moment `json:"watermark,omitzero"`
	Seen      Moment `json:"seen,omitzero"` // the latest
}

// Moment is a time in microseconds since 1970 UTC. [NoTime] is left out of JSON.
type Moment int64

// NoTime is the moment that never was.
const NoTime Moment = -1 << 63

// IsZero tells whether there is no time.
func (m Moment) IsZero() bool { return m == NoTime }

// UnmarshalJSON implements json.Unmarshaler: what is left out is [NoTime].
func (e *EventTime) UnmarshalJSON(data []byte) error {
	type plain EventTime
	read := plain{Watermark: NoTime}
	err := json.Unmarshal(data, &read)
	*e = EventTime(read)
	return err
}

// UnmarshalJSON implements json.Unmarshaler: what is left out is [NoTime].
func (p *PartitionTime) UnmarshalJSON(data []byte) error {
	type plain PartitionTime
	read := plain{NoTime, NoTime}
	err := json.Unmarshal(data, &read)
	*p = PartitionTime(read)
	return err
}

// What the names of counts begin with that are by operator, or by event time: see
// [Manifest.Counts].
const (
	LateCount    = "late."
	UntimedCount = "untimed."
	AheadCount   = "ahead."
)

// CountsOf are those of a manifest's counts whose names begin so, by the rest of their
// names.
func (m Manifest) CountsOf(prefix string) (counts map[string]int64) {
	for name, n := range m.Counts {
		if of, ok := strings.CutPrefix(name, prefix); ok {
			if counts == nil {
				counts = map[string]int64{}
			}
			counts[of] = n
		}
	}
	return counts
}

// PartitionName is what a partition of a source is called where both are in one text.
func PartitionName(source, partition string) string { return source + "/" + partition }

// SplitPartition takes such a text apart: no source has a slash in its name.
func SplitPartition(name string) (source, partition string) {
	source, partition, _ = strings.Cut(name, "/")
	return source, partition
}
