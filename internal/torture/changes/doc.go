// Package changes tries every kind of change of a job: for each, what the plan
// says, what a run does, and the state after it, against answers written by hand.
package changes
