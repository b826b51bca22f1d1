package operate

import (
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/internal/vitals"
)

func sourceFamilies() []family {
	source, both := []string{"source"}, []string{"source", "partition"}
	return []family{
		{"sluice_source_partitions", "Partitions of a source that this process reads.", gauge,
			source, ofSources(func(t sourceTotal) (value, bool) { return number(t.partitions), true })},
		{"sluice_source_lag_offsets", "What a source holds that is not read, over all partitions, in its own offsets: records in Kafka, bytes in files.", gauge,
			source, ofSources(func(t sourceTotal) (value, bool) { return number(t.lag), t.ended })},
		{"sluice_source_lag_seconds", "How long the oldest record of a source that is not read has waited, as far as this process has seen it wait.", gauge,
			source, ofSources(func(t sourceTotal) (value, bool) { return number(t.waited.Seconds()), t.timed })},
		{"sluice_partition_next_offset", "The offset from which a partition is read next.", gauge,
			both, ofPartitions(func(p vitals.PartitionLag) (value, bool) { return number(p.Next), true })},
		{"sluice_partition_lag_offsets", "What a partition holds that is not read, in its own offsets: records in Kafka, bytes in files.", gauge,
			both, ofPartitions(func(p vitals.PartitionLag) (value, bool) { return number(p.Lag()), p.End >= 0 })},
		{"sluice_partition_lag_seconds", "How long the oldest record of a partition that is not read has waited, as far as this process has seen it wait.", gauge,
			both, ofPartitions(func(p vitals.PartitionLag) (value, bool) { return number(p.Waited.Seconds()), p.Timed })},
	}
}

// sourceTotal is a source's partitions taken together.
type sourceTotal struct {
	partitions int
	lag        int64
	waited     time.Duration
	ended      bool // the lag of one of them is known at least
	timed      bool // and its wait
}

// ofSources emits a value for each source that has it.
func ofSources(read func(sourceTotal) (value, bool)) func(vitals.Snapshot, emit) {
	return func(s vitals.Snapshot, emit emit) {
		totals := map[string]sourceTotal{}
		for _, p := range s.Partitions {
			t := totals[p.Source]
			t.partitions++
			t.lag += p.Lag()
			t.waited = max(t.waited, p.Waited)
			t.ended = t.ended || p.End >= 0
			t.timed = t.timed || p.Timed
			totals[p.Source] = t
		}
		for _, source := range slices.Sorted(maps.Keys(totals)) {
			if v, known := read(totals[source]); known {
				emit(v, source)
			}
		}
	}
}

// ofPartitions emits a value for each partition that has it.
func ofPartitions(read func(vitals.PartitionLag) (value, bool)) func(vitals.Snapshot, emit) {
	return func(s vitals.Snapshot, emit emit) {
		for _, p := range s.Partitions {
			if v, known := read(p); known {
				emit(v, p.Source, p.Partition.Partition)
			}
		}
	}
}
