package queries

import (
	"iter"
	"slices"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
)

// HotItem is an auction that had as many bids in a window as any other.
type HotItem struct {
	Start, End    sluice.Instant
	Auction, Bids int64
}

type auctionBids = sluice.Result[int64, count]

// hottest are the auctions with the most bids.
type hottest struct {
	Bids     int64
	Auctions []int64
	Start    sluice.Instant
}

func (h *hottest) add(r auctionBids) {
	if r.Value.Bids > h.Bids {
		h.Bids, h.Auctions, h.Start = r.Value.Bids, h.Auctions[:0], r.Window.Start
	}
	if r.Value.Bids == h.Bids {
		h.Auctions = append(h.Auctions, r.Key)
	}
}

func endOf(r auctionBids) sluice.Instant { return r.Window.End }

func hotItems(r sluice.Result[sluice.Instant, hottest]) iter.Seq[HotItem] {
	slices.Sort(r.Value.Auctions)
	return func(yield func(HotItem) bool) {
		for _, auction := range r.Value.Auctions {
			if !yield(HotItem{r.Value.Start, r.Key, auction, r.Value.Bids}) {
				return
			}
		}
	}
}

// HotItems is query 5: which auctions had the most bids in each window of a size, of
// which one begins with each slide. The bids of an auction share the pieces of its
// windows; a window's counts come out with its end, and the next windows, of one slide
// each, gather those that end together.
func HotItems(c generator.Config, size, slide time.Duration, out connector.StreamSink[HotItem]) *sluice.Job {
	job := sluice.NewJob("nexmark-q5")
	bids(job, c).
		KeyBy(auctionOf).
		Window(sluice.Hopping(size, slide)).
		FoldMerge(sluice.NewState[sluice.In[int64], count]("bids"), (*count).add, (*count).merge).
		Results().
		KeyBy(endOf).
		Window(sluice.Tumbling(slide)).
		Fold(sluice.NewState[sluice.In[sluice.Instant], hottest]("hottest"), (*hottest).add).
		Results().
		FlatMap(hotItems).
		To("answers", out)
	return job
}
