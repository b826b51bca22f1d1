// Package queries has queries 5, 7, 11 and 12 of the Nexmark benchmark as jobs: each
// reads the generator's events, and puts its answers out once nothing can change them
// any more. Package recount answers the same from all events at once.
package queries
