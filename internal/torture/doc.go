// Package torture tests the whole: job binaries that are built, run, killed,
// rebuilt with other code and other types, and run again, against answers that
// are worked out from their input alone. Its tests share no code with the
// engine; they look at files, exit codes and what is printed.
//
// The jobs are in testjobs. `go test` runs a short history of kills;
// SLUICE_TORTURE=1 a long one. A history's seed is printed, and
// SLUICE_TORTURE_SEED replays its choices.
package torture
