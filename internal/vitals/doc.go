// Package vitals is where a running job notes how it is: its role, what it has
// committed, how far its sources and sinks are, what its states take. The
// running job writes to a [Board], about once a second and at each commit,
// never for a record; metrics, health checks and status pages read a copy of
// it, a [Snapshot].
//
// All ages, waits and rates are differences of the clock's monotonic readings,
// so a wall clock that steps doesn't disturb them.
package vitals
