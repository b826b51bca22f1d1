package sluice_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// weight is a record whose value is a float, so that sums show in which order they were
// made.
type weight struct {
	Key   string
	At    sluice.Instant
	Value float64
}

type weighed struct {
	Key string
	End sluice.Instant
	Sum float64
}

func addWeight(sum *float64, w weight)  { *sum += w.Value }
func mergeWeights(into, other *float64) { *into += *other }

// TestFloatsInPanes sums floats in windows that share panes, with restarts, crashes and
// other numbers of shards on the way: a replay in one piece gives the same bytes.
func TestFloatsInPanes(t *testing.T) {
	for name, windows := range map[string]sluice.Windows{
		"hopping": sluice.Hopping(20*time.Second, 300*time.Millisecond),
		"sliding": sluice.Sliding(5 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 4))
			job := sluice.NewJob("weights")
			job.From("weights", file.JSONLines[weight]("unused.jsonl")).
				EventTime(func(w weight) sluice.Instant { return w.At }, 2*time.Second).
				KeyBy(func(w weight) string { return w.Key }).
				Window(windows).FoldMerge(sluice.NewState[sluice.In[string], float64]("sums"), addWeight, mergeWeights).Results().
				Map(func(r sluice.Result[string, float64]) weighed { return weighed{r.Key, r.Window.End, r.Value} }).
				To("sums", file.Append[weighed](t.TempDir()))
			test := sluicetest.New(t, job)
			options := func(o *sluice.Options) {
				o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(40)
			}
			clock := int64(0)
			for range 8 {
				var feed []weight
				for range 100 {
					clock += r.Int64N(second / 3)
					feed = append(feed, weight{fmt.Sprint("key-", r.IntN(3)), sluice.Instant(clock - r.Int64N(3*second)), math.Ldexp(r.Float64()-0.5, r.IntN(60))})
				}
				sluicetest.Feed(test, "weights", feed...)
				test.Options(options)
				if r.IntN(2) == 0 {
					test.Crash(1 + r.IntN(6))
				}
				test.Step()
			}
			if n := len(sluicetest.Rows[weighed](test, "sums")); n < 100 {
				t.Errorf("%d windows have closed, which is too few to tell anything", n)
			}
			for range 3 {
				test.Replay(options)
			}
		})
	}
}
