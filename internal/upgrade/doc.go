// Package upgrade looks at a job's branches beside each other: where each stands, and
// what each has put out.
package upgrade
