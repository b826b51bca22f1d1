package recount

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/schema"
)

// UserBids is how many bids somebody made in a window.
type UserBids struct {
	Start, End schema.Instant
	// Bidder is the person's ID.
	Bidder, Bids int64
}

// UserSessions answers query 11: how many bids each bidder made in each session. A bid
// is in the session of the one before it if it came less than the gap later, as in Beam;
// in Flink also if it came exactly a gap later. The gap is 10 seconds in both. A session
// begins with its first bid, and ends a gap after its last.
//
// Late is asked for each bid, with the bid's own time as start: whether it is left out
// of all sessions. Sessions are those of the bids that are left, whatever the order in
// which these came. Answers are in the order of Start, then Bidder.
func UserSessions(events iter.Seq2[int64, generator.Event], gap time.Duration, late Late) (sessions []UserBids) {
	pause := span("the gap of sessions", gap)
	times := map[int64][]schema.Instant{} // of bids, by bidder
	for n, bid := range bids(events) {
		if !late.leavesOut(n, bid.DateTime) {
			times[bid.Bidder] = append(times[bid.Bidder], bid.DateTime)
		}
	}
	for bidder, all := range times {
		slices.Sort(all)
		session := UserBids{Start: all[0], End: all[0] + pause, Bidder: bidder}
		for _, t := range all {
			if t >= session.End {
				sessions = append(sessions, session)
				session = UserBids{Start: t, Bidder: bidder}
			}
			session.End = t + pause
			session.Bids++
		}
		sessions = append(sessions, session)
	}
	sortUserBids(sessions)
	return sessions
}

// UserWindows answers query 12: how many bids each bidder made in each window of
// processing time of a size, 10 seconds in Beam and Flink. The function processed tells
// when the event of a number was processed. Windows are as in Flink: they begin at
// multiples of their size, not with a bidder's first bid. Answers are in the order of
// Start, then Bidder.
func UserWindows(events iter.Seq2[int64, generator.Event], size time.Duration, processed func(number int64) schema.Instant) (windows []UserBids) {
	length := span("the size of windows", size)
	type window struct {
		start  schema.Instant
		bidder int64
	}
	counts := map[window]int64{}
	for n, bid := range bids(events) {
		counts[window{startOf(processed(n), length), bid.Bidder}]++
	}
	for w, count := range counts {
		windows = append(windows, UserBids{w.start, w.start + length, w.bidder, count})
	}
	sortUserBids(windows)
	return windows
}

func sortUserBids(all []UserBids) {
	slices.SortFunc(all, func(a, b UserBids) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Bidder, b.Bidder))
	})
}
