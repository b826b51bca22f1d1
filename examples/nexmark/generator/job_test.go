package generator

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// counted is how many bids an auction had, and what they came to.
type counted struct{ Bids, Cents int64 }

func (c *counted) add(b Bid) {
	c.Bids++
	c.Cents += b.Price
}

// jobConfig is that of the job's events, as out of order as their partitions allow.
var jobConfig = Config{Seed: 11, OutOfOrder: 30, Partitions: 4, Count: 2000}

// badPrice is what the job refuses.
const badPrice = 5_000_000

func bidsOf(e Event) iter.Seq[Bid] {
	return func(yield func(Bid) bool) {
		if e.Bid != nil {
			yield(*e.Bid)
		}
	}
}

func countJob() *sluice.Job {
	job := sluice.NewJob("auctions")
	job.From("events", Source(jobConfig)).
		FlatMap(bidsOf).
		TryMap(func(b Bid) (Bid, error) {
			if b.Price > badPrice {
				return b, errors.New("too much")
			}
			return b, nil
		}).
		KeyBy(func(b Bid) int64 { return b.Auction }).
		Fold(sluice.NewState[int64, counted]("bids"), (*counted).add).
		To("bids", file.Upsert("unused", func(_ int64, c counted) counted { return c }))
	job.DeadLetter("dead", file.Append[sluice.DeadLetter]("unused"))
	return job
}

// TestJob crashes a job at each of its writes, and expects it to count each event once,
// and to name those that it refused by their numbers: there are no bytes to show.
func TestJob(t *testing.T) {
	want, refused := map[int64]counted{}, []int64(nil)
	for n, e := range made(t, jobConfig).Events(0, jobConfig.Count) {
		switch {
		case e.Bid == nil:
		case e.Bid.Price > badPrice:
			refused = append(refused, n)
		default:
			c := want[e.Bid.Auction]
			want[e.Bid.Auction] = counted{c.Bids + 1, c.Cents + e.Bid.Price}
		}
	}
	if len(refused) == 0 || len(want) < 100 {
		t.Fatalf("%d bids would be refused, %d auctions have some", len(refused), len(want))
	}
	test := sluicetest.New(t, countJob())
	for n := 1; test.Crash(n); n++ {
	}
	test.Step()
	if got := sluicetest.Table[int64, counted](test, "bids"); !maps.Equal(got, want) {
		t.Errorf("counted\n%v\nexpected\n%v", got, want)
	}
	var dead []int64
	for _, d := range sluicetest.Rows[sluice.DeadLetter](test, "dead") {
		if d.Partition != strconv.FormatInt(d.Offset%jobConfig.Partitions, 10) || len(d.RecordKey)+len(d.Bytes) > 0 {
			t.Errorf("dead letter %+v", d)
		}
		dead = append(dead, d.Offset)
	}
	slices.Sort(dead)
	if !slices.Equal(dead, refused) {
		t.Errorf("refused %v, expected %v", dead, refused)
	}
	test.Replay(func(o *sluice.Options) { o.Workers, o.BatchRecords = 3, 7 })
}
