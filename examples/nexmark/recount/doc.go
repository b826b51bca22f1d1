// Package recount answers queries 5, 7, 11 and 12 of the Nexmark benchmark from all
// events at once, in the plainest way: it is what a job's answers are compared with,
// and shares no code with jobs.
//
// A window holds the bids from its Start on to before its End. Windows of a fixed
// size begin at multiples of it, or of their slide, since 1970 UTC. A window without
// bids has no answer.
//
// Events come with numbers, as [generator.Generator.Events] yields them, in any
// order: a number is what a function is asked by that knows more of an event than
// the event itself.
package recount
