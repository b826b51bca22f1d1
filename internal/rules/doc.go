// Package rules holds the repository to its own rules, as a test: which folder
// may import which, what the API may not contain, what every exported name
// owes its reader, and what code and tests never do.
//
// A rule's exceptions stand beside it, each with its reason. An exception that
// nothing needs any more is a fault as well.
package rules
