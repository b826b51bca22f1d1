// Package golden keeps checkpoints of every format that was ever released, each
// written by the code that brought the format, and reads them with today's.
//
// testdata/<format> is a job's folder as it was left: its input, what its sinks
// have written, and its store, with states of every kind and type, two versions,
// a savepoint, a request to forget, dead letters, and a sink that was dropped. It
// is never written anew once the format has been released;
//
//	go test ./internal/golden -run TestWrite -write
//
// writes that of today's format, until then.
package golden
