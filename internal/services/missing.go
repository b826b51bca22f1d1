package services

import (
	"errors"
	"os"
	"testing"
)

// MissingError is the error of a server that this machine doesn't have.
type MissingError struct {
	Service string // "Kafka" or "PostgreSQL"
	Reason  string // what was looked for and not found
	Remedy  string // how to get it
}

// Error says what is missing, and how to get it.
func (e *MissingError) Error() string {
	return "no " + e.Service + " on this machine: " + e.Reason + "; " + e.Remedy
}

// required is the environment variable that makes a missing server a failure.
const required = "SLUICE_REAL"

// give ends a test whose server could not be started.
func give(tb testing.TB, err error) {
	tb.Helper()
	missing, ok := errors.AsType[*MissingError](err)
	switch {
	case !ok:
		tb.Fatal(err)
	case os.Getenv(required) == "1":
		tb.Fatalf("%v (%s=1 asks for it)", missing, required)
	default:
		tb.Skipf("not tried against a real %s: %v", missing.Service, missing)
	}
}
