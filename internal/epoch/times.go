package epoch

import (
	"encoding/json"
	"strings"

	"github.com/sluicestream/sluice/internal/window"
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

// Windows is how far an operator's windows have come. What is left out of JSON is
// [NoTime].
type Windows struct {
	// Seen is the latest time of a record that has come into one.
	Seen Moment `json:"seen,omitzero"`
	// Closed is where windows end that are closed: they stay so, wherever the watermark of
	// another version is and however long its windows wait. Late is the latest time of
	// records that are late for sessions, whatever their gap: they were under another one.
	Closed Moment `json:"closed,omitzero"`
	Late   Moment `json:"late,omitzero"`
	// LateRecords and UntimedRecords are how many records came too late since the first
	// epoch of the operator, and how many had no time.
	LateRecords    int64 `json:"late_records,omitzero"`
	UntimedRecords int64 `json:"untimed_records,omitzero"`
	// Succession are the definitions of the windows; nil: only that of the version.
	Succession *window.Succession `json:"succession,omitempty"`
}

// noWindows is how far windows have come that nothing has come into.
var noWindows = Windows{Seen: NoTime, Closed: NoTime, Late: NoTime}

// UnmarshalJSON implements json.Unmarshaler: what is left out is [NoTime].
func (w *Windows) UnmarshalJSON(data []byte) error {
	type plain Windows
	read := plain(noWindows)
	err := json.Unmarshal(data, &read)
	*w = Windows(read)
	return err
}

// WindowsOf is how far an operator's windows have come.
func (m Manifest) WindowsOf(operator string) Windows {
	if w, ok := m.Windows[operator]; ok {
		return w
	}
	return noWindows
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
