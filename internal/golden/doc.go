// Package golden keeps checkpoints of every format that was ever released, each
// written by the code that brought the format, and reads them with today's.
//
// testdata/<format> is a folder as four jobs have left it: their input, what their
// sinks have written, and their store. golden has states of every kind and type, two
// versions, savepoints, requests to forget, dead letters, a sink that was dropped, and
// one that is owed a delivery. moves has upgrades, a rollback, tables' sinks that are
// written anew, sinks that were filled, and what killed processes leave. topics has a
// Kafka, in the folder broker, and two processes at once. windows has event time, windows
// that change while some are open, sessions and windows that share panes, timers, a sorted
// state, and records that came too late. Each field of each object
// stands in it, but for those that a test names with the reason. It is never written
// anew once the format has been released;
//
//	go test ./internal/golden -run TestWrite -write
//
// writes that of today's format, until then, and -run TestWrite/windows what that job
// leaves alone.
package golden
