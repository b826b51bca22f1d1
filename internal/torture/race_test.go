//go:build race

package torture

// race builds the jobs with the race detector, as the tests are.
const race = true
