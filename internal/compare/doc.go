// Package compare holds the outputs of two branches against each other: what each
// has frozen for one sink over the same positions, read from their outboxes.
//
// The two sides are cut into spans, the shortest runs of positions that both begin
// and end with a step of theirs. Where each side has one step, the span lines up:
// a table is compared key by key, a stream record by record in its order. Where a
// side took several positions in one step, a table is compared by the last row of
// each key, and a stream as a multiset.
//
// Rows are compared by column, by name and by value: a column that was retyped is
// equal where the values are.
package compare
