//go:build race

package epoch

// underRace tells whether the race detector looks on.
const underRace = true
