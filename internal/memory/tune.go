package memory

import "runtime/debug"

const (
	// DefaultGCPercent lets the heap grow to five times what is live. At Go's
	// 100 a quarter of a job's CPU goes into the collector.
	DefaultGCPercent = 400
	// share is the part of its limit that a process lets itself use: the rest is
	// for what the collector doesn't see.
	share = 0.9
)

// Tune sets the garbage collector's targets: percent as GOGC has it, and 90% of
// the limit. What the environment says in Go's own variables, GOGC and
// GOMEMLIMIT, stays, unless the percentage was asked for or the limit is
// [FromFlag]: a flag is nearer than the environment.
func Tune(limit Limit, percent int, asked bool, getenv func(string) string) {
	if asked || getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if limit.Bytes > 0 && (limit.Source == FromFlag || getenv("GOMEMLIMIT") == "") {
		debug.SetMemoryLimit(int64(float64(limit.Bytes) * share))
	}
}
