// Package migrate carries a state over from what is stored to what this build
// has: it reads the stored entries, converts them side by side, and writes one
// new segment. Package carry says how each entry is converted.
//
// The entries of a state are read in order, cut into batches, converted by
// several goroutines and put back into their order, so that the same state gives
// the same bytes on every machine. Where keys change, the new entries are
// collected in memory, as the state itself will be.
package migrate
