package recount

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/schema"
)

// HighestBid is a bid with the highest price of its window.
type HighestBid struct {
	Start, End schema.Instant
	Bid        generator.Bid
}

// HighestBids answers query 7: the bids with the highest price in each window of a
// size, 10 seconds in Beam and Flink. All bids with that price are answers, as in the
// benchmark: equal ones as often as they were made. Answers are in the order of Start,
// then the bid's DateTime, Auction, Bidder, Channel.
func HighestBids(events iter.Seq2[int64, generator.Event], size time.Duration, late Late) (highest []HighestBid) {
	length := span("the size of windows", size)
	windows := map[schema.Instant][]generator.Bid{} // by start
	for n, bid := range bids(events) {
		if start := startOf(bid.DateTime, length); !late.leavesOut(n, start) {
			windows[start] = append(windows[start], *bid)
		}
	}
	for start, all := range windows {
		most := slices.MaxFunc(all, func(a, b generator.Bid) int { return cmp.Compare(a.Price, b.Price) }).Price
		for _, bid := range all {
			if bid.Price == most {
				highest = append(highest, HighestBid{start, start + length, bid})
			}
		}
	}
	slices.SortFunc(highest, func(a, b HighestBid) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Bid.DateTime, b.Bid.DateTime),
			cmp.Compare(a.Bid.Auction, b.Bid.Auction), cmp.Compare(a.Bid.Bidder, b.Bid.Bidder), cmp.Compare(a.Bid.Channel, b.Bid.Channel))
	})
	return highest
}
