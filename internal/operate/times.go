package operate

import (
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/vitals"
)

func timeFamilies() []family {
	counts := func(read func(vitals.Snapshot) map[string]int64) func(vitals.Snapshot, emit) {
		return func(s vitals.Snapshot, emit emit) {
			counted := read(s)
			for _, name := range slices.Sorted(maps.Keys(counted)) {
				emit(number(counted[name]), name)
			}
		}
	}
	of := func(all func(vitals.Commit) []vitals.Watermark, read func(vitals.Watermark) value) func(vitals.Snapshot, emit) {
		return func(s vitals.Snapshot, emit emit) {
			for _, w := range all(s.Last) {
				if !w.At.IsZero() {
					emit(read(w), w.Name)
				}
			}
		}
	}
	at := func(w vitals.Watermark) value { return number(float64(w.At.UnixMicro()) / 1e6) }
	lag := func(w vitals.Watermark) value { return number(w.Lag.Seconds()) }
	times := func(c vitals.Commit) []vitals.Watermark { return c.EventTimes }
	operators := func(c vitals.Commit) []vitals.Watermark { return c.Operators }
	operator, eventTime := []string{"operator"}, []string{"event_time"}
	return []family{
		{"sluice_late_records_total", "Records that came too late for an operator: what they belong to was closed. In committed epochs.", counter,
			operator, counts(func(s vitals.Snapshot) map[string]int64 { return s.Late })},
		{"sluice_untimed_records_total", "Records without a time, for an operator that goes by it, in committed epochs.", counter,
			operator, counts(func(s vitals.Snapshot) map[string]int64 { return s.Untimed })},
		{"sluice_ahead_records_total", "Records whose times were too far ahead of the clock to move the watermark, in committed epochs.", counter,
			eventTime, counts(func(s vitals.Snapshot) map[string]int64 { return s.Ahead })},
		{"sluice_watermark_seconds", "The watermark of an event time as of the last commit, in seconds since 1970; absent before there is one.", gauge,
			eventTime, of(times, at)},
		{"sluice_watermark_lag_seconds", "How far the watermark of an event time was behind the clock of the last epoch; below 0 if it was ahead.", gauge,
			eventTime, of(times, lag)},
		{"sluice_operator_watermark_seconds", "The watermark that an operator goes by as of the last commit, the least of its event times', in seconds since 1970; absent before there is one.", gauge,
			operator, of(operators, at)},
		{"sluice_operator_watermark_lag_seconds", "How far the watermark that an operator goes by was behind the clock of the last epoch; below 0 if it was ahead.", gauge,
			operator, of(operators, lag)},
	}
}
