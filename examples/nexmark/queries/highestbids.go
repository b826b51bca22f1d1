package queries

import (
	"iter"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
)

// HighestBid is a bid with the highest price of its window.
type HighestBid struct {
	Start, End sluice.Instant
	Bid        generator.Bid
}

// highest are the bids with the highest price.
type highest struct{ Bids []generator.Bid }

func (h *highest) add(b generator.Bid) {
	if len(h.Bids) > 0 && b.Price > h.Bids[0].Price {
		h.Bids = h.Bids[:0]
	}
	if len(h.Bids) == 0 || b.Price == h.Bids[0].Price {
		h.Bids = append(h.Bids, b)
	}
}

func together(generator.Bid) int64 { return 0 }

func highestBids(r sluice.Result[int64, highest]) iter.Seq[HighestBid] {
	return func(yield func(HighestBid) bool) {
		for _, bid := range r.Value.Bids {
			if !yield(HighestBid{r.Window.Start, r.Window.End, bid}) {
				return
			}
		}
	}
}

// HighestBids is query 7: the bids with the highest price in each window of a size.
func HighestBids(c generator.Config, size time.Duration, out connector.StreamSink[HighestBid]) *sluice.Job {
	job := sluice.NewJob("nexmark-q7")
	bids(job, c).
		KeyBy(together).
		Window(sluice.Tumbling(size)).
		Fold(sluice.NewState[sluice.In[int64], highest]("highest"), (*highest).add).
		Results().
		FlatMap(highestBids).
		To("answers", out)
	return job
}
