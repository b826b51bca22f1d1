package queries

import (
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/examples/nexmark/generator"
)

// UserBids is how many bids somebody made in a window.
type UserBids struct {
	Start, End   sluice.Instant
	Bidder, Bids int64
}

func userBids(r sluice.Result[int64, count]) UserBids {
	return UserBids{r.Window.Start, r.Window.End, r.Key, r.Value.Bids}
}

// UserSessions is query 11: how many bids each bidder made in each session, in which
// less than the gap lies between two bids.
func UserSessions(c generator.Config, gap time.Duration, out connector.StreamSink[UserBids]) *sluice.Job {
	job := sluice.NewJob("nexmark-q11")
	bids(job, c).
		KeyBy(bidderOf).
		Window(sluice.Session(gap)).
		FoldMerge(sluice.NewState[sluice.In[int64], count]("bids"), (*count).add, (*count).merge).
		Results().
		Map(userBids).
		To("answers", out)
	return job
}

// UserWindows is query 12: how many bids each bidder made in each window of a size, by
// the time at which the job has read them.
func UserWindows(c generator.Config, size time.Duration, out connector.StreamSink[UserBids]) *sluice.Job {
	job := sluice.NewJob("nexmark-q12")
	bids(job, c).
		KeyBy(bidderOf).
		Window(sluice.Tumbling(size).OnClock()).
		Fold(sluice.NewState[sluice.In[int64], count]("bids"), (*count).add).
		Results().
		Map(userBids).
		To("answers", out)
	return job
}
