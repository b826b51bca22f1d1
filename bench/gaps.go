package main

import (
	"slices"
	"time"
)

// span is a time from one moment to another.
type span struct{ from, to time.Time }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// meets tells whether two spans have a moment in common.
func (s span) meets(other span) bool { return !s.from.After(other.to) && !other.from.After(s.to) }

// longestGap is the longest time without an output that reaches into a span; zero if
// there is none. arrivals are the outputs' times, in order.
func longestGap(arrivals []time.Time, within span) (longest span) {
	for i := 1; i < len(arrivals); i++ {
		gap := span{arrivals[i-1], arrivals[i]}
		if gap.meets(within) && gap.length() > longest.length() {
			longest = gap
		}
	}
	return longest
}

// usualGap is the median of the times without an output, outside of some spans. What
// is shorter than least lies within the outputs of one epoch, and does not count.
func usualGap(arrivals []time.Time, least time.Duration, outside []span) time.Duration {
	var lengths []time.Duration
	for i := 1; i < len(arrivals); i++ {
		gap := span{arrivals[i-1], arrivals[i]}
		if gap.length() >= least && !slices.ContainsFunc(outside, gap.meets) {
			lengths = append(lengths, gap.length())
		}
	}
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}
