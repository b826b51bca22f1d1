// Package generator makes the events of the Nexmark benchmark: people who come to
// an auction house, auctions that open there, and bids on them. It is a source for
// jobs, and a plain function for whoever checks what a job has found.
//
// It follows the benchmark as Apache Beam and Apache Flink have it: of 50 events in
// a row one is a person, three are auctions and 46 are bids; some auctions, sellers
// and bidders are hot; prices spread evenly over six decades. The values themselves
// are this package's own.
//
// Event n of a [Config] is always the same, on any machine and in any order, so that
// reading can begin anywhere:
//
//	g, err := generator.New(generator.Config{Seed: 1})
//	event := g.Event(1_000_000)
package generator
