// Package carry finds how what an older version has stored of a state becomes
// what this build has, and converts the entries. It does no I/O.
//
// A [Carrier] is a state of this build with its types. Find holds it against
// what is stored and gives a [Way]: whether entries stay as they are, are
// resolved by Avro's rules, or go through the author's functions; what would be
// dropped; and why not, where neither helps. A Way's converters then turn
// stored entries into new ones, one by one, for whoever reads and writes them.
package carry
