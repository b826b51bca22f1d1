// Package texts holds the texts of all error types to their form, as a test: one
// line that names the job and the thing, says what was expected and found where
// there is such, and ends with the way out.
package texts
