// Package torture tests the whole: job binaries that are built, run, killed,
// rebuilt with other code and other types, and run again, against answers that
// are worked out from their input alone. Its tests share no code with the
// engine; they look at files, exit codes and what is printed.
//
// The job steps is stopped at each step that it takes, which are before and after
// each call of its environment: a run that records them makes the list.
//
// The job windows goes by event time, and builds with other windows go on in its place:
// what its windows and timers come to is a batch's result over what was not late.
//
// The jobs are in testjobs. `go test` runs a short history of kills;
// SLUICE_TORTURE=1 a long one. A history's seed is printed, and
// SLUICE_TORTURE_SEED replays its choices.
package torture
