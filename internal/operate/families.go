package operate

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicestream/sluice/internal/vitals"
)

// maxHotKeys bounds the keys that are shown of an operator: a key is a label,
// and each new one is a series for as long as Prometheus keeps data.
const maxHotKeys = 10

// leastHotShare keeps keys out that are only the hottest of many alike: they
// change all the time, and each would leave a series behind.
const leastHotShare = 0.02

// family is one metric: its name, what it says, and how it is read from a
// snapshot.
type family struct {
	name   string
	help   string
	kind   prometheus.ValueType // without meaning for histograms
	labels []string
	read   func(s vitals.Snapshot, emit emit)
}

// emit takes one series of a metric: its value, and one text for each label.
type emit func(v value, labels ...string)

// value is a number or a histogram.
type value struct {
	number    float64
	histogram *vitals.Histogram
}

func number[N int | int64 | uint64 | float64](n N) value { return value{number: float64(n)} }

// truth is 1 for yes and 0 for no.
func truth(yes bool) value {
	if yes {
		return number(1)
	}
	return number(0)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// families are all metrics of a job.
func families() []family {
	return slices.Concat(processFamilies(), progressFamilies(), timeFamilies(), sourceFamilies(), stateFamilies(), sinkFamilies(), storeFamilies())
}

func processFamilies() []family {
	return []family{
		{"sluice_build_info", "Always 1; the labels tell which build of the job this is, and where it runs.", gauge,
			[]string{"branch", "task", "version", "build"}, func(s vitals.Snapshot, emit emit) {
				emit(number(1), s.Identity.Branch, s.Identity.Task, s.Identity.Version, s.Identity.Build)
			}},
		{"sluice_role", "1 for what this process is to its job now: starting, standby, restoring, follower, running, stopping, stopped or superseded; 0 for the others.", gauge,
			[]string{"role"}, func(s vitals.Snapshot, emit emit) {
				for _, r := range vitals.Roles() {
					emit(truth(s.Role == r), string(r))
				}
			}},
		{"sluice_life_age_seconds", "Time since the run loop last gave a sign of life, about one a second while it works.", gauge,
			nil, func(s vitals.Snapshot, emit emit) { emit(number(s.Quiet.Seconds())) }},
		{"sluice_memory_in_use_bytes", "Memory that the process uses, as its limit counts it.", gauge,
			nil, func(s vitals.Snapshot, emit emit) { emit(number(s.MemoryInUse)) }},
		{"sluice_memory_limit_bytes", "Memory that the process may use; absent without a limit.", gauge,
			nil, func(s vitals.Snapshot, emit emit) {
				if s.MemoryLimit > 0 {
					emit(number(s.MemoryLimit))
				}
			}},
	}
}

func progressFamilies() []family {
	return []family{
		{"sluice_epoch", "Number of the last epoch that this process committed; absent before the first.", gauge,
			nil, sinceFirst(func(s vitals.Snapshot) value { return number(s.Last.Epoch) })},
		{"sluice_position", "Position of the last epoch that this process committed; absent before the first.", gauge,
			nil, sinceFirst(func(s vitals.Snapshot) value { return number(s.Last.Position) })},
		{"sluice_last_commit_age_seconds", "Time since this process last committed an epoch; absent before the first. It grows while there is nothing to read, too.", gauge,
			nil, sinceFirst(func(s vitals.Snapshot) value { return number(s.LastAge.Seconds()) })},
		{"sluice_epochs_total", "Epochs committed by this process.", counter,
			nil, func(s vitals.Snapshot, emit emit) { emit(number(s.Epochs)) }},
		{"sluice_records_total", "Records read, in committed epochs.", counter,
			nil, func(s vitals.Snapshot, emit emit) { emit(number(s.Records)) }},
		{"sluice_dead_letters_total", "Records that could not be processed and became dead letters, in committed epochs.", counter,
			nil, func(s vitals.Snapshot, emit emit) { emit(number(s.DeadLetters)) }},
		{"sluice_input_bytes_total", "Bytes of the records read, in committed epochs.", counter,
			nil, func(s vitals.Snapshot, emit emit) { emit(number(s.Bytes)) }},
		{"sluice_output_rows_total", "Rows put out for a sink, in committed epochs.", counter,
			[]string{"sink"}, func(s vitals.Snapshot, emit emit) {
				for sink, rows := range s.Outputs {
					emit(number(rows), sink)
				}
			}},
		{"sluice_barrier_pause_seconds", "How long an epoch's end kept the slowest shard from its records.", gauge,
			nil, func(s vitals.Snapshot, emit emit) { emit(value{histogram: &s.Pauses}) }},
		{"sluice_hot_key_share", "Share, 0 to 1, of an operator's sampled records that its hottest keys take: at most 10 keys of an operator, each with 0.02 at the least. Records that are merged ahead don't count.", gauge,
			[]string{"operator", "key"}, emitHotKeys},
	}
}

// sinceFirst reads what there is from the first commit on.
func sinceFirst(read func(vitals.Snapshot) value) func(vitals.Snapshot, emit) {
	return func(s vitals.Snapshot, emit emit) {
		if s.Epochs > 0 {
			emit(read(s))
		}
	}
}

// emitHotKeys emits the hottest keys of each operator.
func emitHotKeys(s vitals.Snapshot, emit emit) {
	keys := slices.SortedStableFunc(slices.Values(s.HotKeys), func(a, b vitals.HotKey) int { return cmp.Compare(b.Share, a.Share) })
	shown := map[string]int{}
	for _, k := range keys {
		if shown[k.Operator]++; shown[k.Operator] <= maxHotKeys && k.Share >= leastHotShare {
			emit(number(k.Share), k.Operator, k.Key)
		}
	}
}

func stateFamilies() []family {
	of := func(read func(vitals.State) value) func(vitals.Snapshot, emit) {
		return func(s vitals.Snapshot, emit emit) {
			for _, state := range s.States {
				emit(read(state), state.Name)
			}
		}
	}
	state := []string{"state"}
	return []family{
		{"sluice_state_entries", "Entries of a state that are alive in memory.", gauge,
			state, of(func(s vitals.State) value { return number(s.Entries) })},
		{"sluice_state_rows", "Rows in a state's stored segments; what is above its entries goes with the next merges.", gauge,
			state, of(func(s vitals.State) value { return number(s.Rows) })},
		{"sluice_state_stored_bytes", "Bytes of a state's segments in the store.", gauge,
			state, of(func(s vitals.State) value { return number(s.Bytes) })},
		{"sluice_state_memory_bytes", "Memory that loading a state's segments takes at most.", gauge,
			state, of(func(s vitals.State) value { return number(s.Memory) })},
		{"sluice_state_segments", "Segments of a state; reading slows at 10, and 12 are never passed.", gauge,
			state, of(func(s vitals.State) value { return number(s.Segments) })},
		{"sluice_state_merge_debt_bytes", "Bytes that the merges of a state that are under way or due have still to read.", gauge,
			state, of(func(s vitals.State) value { return number(s.MergeDebt) })},
	}
}

func sinkFamilies() []family {
	of := func(read func(vitals.Sink) value) func(vitals.Snapshot, emit) {
		return func(s vitals.Snapshot, emit emit) {
			for _, sink := range s.Sinks {
				emit(read(sink), sink.Name)
			}
		}
	}
	sink := []string{"sink"}
	return []family{
		{"sluice_sink_pending_deliveries", "Deliveries that a sink is owed; reading waits at 100.", gauge,
			sink, of(func(s vitals.Sink) value { return number(s.Pending) })},
		{"sluice_sink_confirmed_position", "The last position that a sink is known to have.", gauge,
			sink, of(func(s vitals.Sink) value { return number(s.Confirmed) })},
		{"sluice_sink_failing", "1 while deliveries to a sink fail and are tried again, else 0; the log has the reason.", gauge,
			sink, of(func(s vitals.Sink) value { return truth(s.Failing != "") })},
	}
}

func storeFamilies() []family {
	operation := []string{"operation"}
	return []family{
		{"sluice_store_call_seconds", "How long calls of the checkpoint store took, those that failed among them.", gauge,
			operation, func(s vitals.Snapshot, emit emit) {
				for _, c := range s.StoreCalls {
					emit(value{histogram: &c.Durations}, c.Operation)
				}
			}},
		{"sluice_store_errors_total", "Calls of the checkpoint store that failed.", counter,
			operation, func(s vitals.Snapshot, emit emit) {
				for _, c := range s.StoreCalls {
					emit(number(c.Errors), c.Operation)
				}
			}},
	}
}
