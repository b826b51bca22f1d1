package queries

import (
	"cmp"
	"iter"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
)

// Lateness is by how much events of a Config are out of order at the most.
func Lateness(c generator.Config) time.Duration {
	rate := cmp.Or(c.Rate, 10_000) // the generator's own default
	return time.Duration(c.OutOfOrder) * time.Second / time.Duration(rate)
}

// bids are those among the events of a Config, with their times.
func bids(job *sluice.Job, c generator.Config) *sluice.Stream[generator.Bid] {
	return job.From("events", generator.Source(c)).SourceTime(Lateness(c)).FlatMap(bidOf)
}

func bidOf(e generator.Event) iter.Seq[generator.Bid] {
	return func(yield func(generator.Bid) bool) {
		if e.Bid != nil {
			yield(*e.Bid)
		}
	}
}

func auctionOf(b generator.Bid) int64 { return b.Auction }
func bidderOf(b generator.Bid) int64  { return b.Bidder }

// count is how many bids there were.
type count struct{ Bids int64 }

func (c *count) add(generator.Bid)  { c.Bids++ }
func (c *count) merge(other *count) { c.Bids += other.Bids }
