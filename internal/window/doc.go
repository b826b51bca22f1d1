// Package window says which windows of time a record belongs to, and what becomes
// of them when a job's windows change. It is pure: no engine, no clock, no state.
//
// Times are microseconds since 1970 UTC and may be negative. A [Span] is a
// half-open interval of them. A [Definition] puts a time into spans, which come in
// the order of their starts, and each of which holds the time:
//
//	tumbling   one after the other, all of one size
//	hopping    of one size, begun at every slide, so that they overlap
//	calendar   days, weeks or months of a time zone, or several of them
//	sliding    the time and what came before it: [t-size+1, t+1)
//	session    [t, t+gap); those of a key that overlap are one
//	custom     what a function of the author's says
//
// The instants at which windows of the first three begin are their edges: they are
// the same whatever the records are. That makes a change of windows exact. From a
// [Boundary] on, an edge of the old definition and of the new one, windows begin
// under the new one; those that began before go on under the old one until they
// end. A [Succession] holds the definitions that this leaves in force. Where two
// definitions have no edge in common, the windows are cut at an instant instead,
// and those that are not whole can be told by [Succession.Partial].
//
// A [Finder] is the way through a succession for every record: it remembers the
// windows it has found last.
//
// # Days
//
// A day of a zone begins at the first instant at which the zone's clocks show its
// date or a later one, and ends where the next begins. So days have no gaps and
// don't overlap, whatever a zone has done: a day has 23 or 25 hours where clocks
// change, begins at one o'clock where there was no midnight, at the first of two
// midnights, and isn't there at all if it was skipped. Where clocks went back over
// midnight, what is shown of the evening for a second time belongs to the day that
// had begun.
//
// Weeks begin on Monday. Several days, weeks or months in one window are counted
// from 1970-01-01, weeks from Monday 1970-01-05.
//
// The rules of zones come from the machine, or from this package where the machine
// has none. What is to give the same windows twice needs the same rules.
package window
