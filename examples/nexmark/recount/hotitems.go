package recount

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/sluicestream/sluice/examples/nexmark/generator"
	"github.com/sluicestream/sluice/schema"
)

// HotItem is an auction that had as many bids in a window as any other.
type HotItem struct {
	Start, End schema.Instant
	// Auction is the auction's ID, Bids how many it had.
	Auction, Bids int64
}

// HotItems answers query 5: which auctions had the most bids in each window of a size,
// of which one begins with each slide. All that had equally many are answers. The
// benchmark's size and slide are an hour and a minute, in Beam 10 and 5 seconds, in
// Flink 10 and 2. Answers are in the order of Start, then Auction.
func HotItems(events iter.Seq2[int64, generator.Event], size, slide time.Duration, late Late) (items []HotItem) {
	length, step := span("the size of windows", size), span("their slide", slide)
	counts := map[schema.Instant]map[int64]int64{} // by start, by auction
	for n, bid := range bids(events) {
		for _, start := range startsOf(bid.DateTime, length, step) {
			if late.leavesOut(n, start) {
				continue
			}
			if counts[start] == nil {
				counts[start] = map[int64]int64{}
			}
			counts[start][bid.Auction]++
		}
	}
	for start, auctions := range counts {
		most := slices.Max(slices.Collect(maps.Values(auctions)))
		for auction, count := range auctions {
			if count == most {
				items = append(items, HotItem{start, start + length, auction, count})
			}
		}
	}
	slices.SortFunc(items, func(a, b HotItem) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Auction, b.Auction))
	})
	return items
}
