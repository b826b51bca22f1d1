package sluice_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// order is a record of the tests of timers: what is done with a key's timers.
type order struct {
	Key   string
	At    sluice.Instant
	Timer string         // a or b
	Set   sluice.Instant // 0: it is deleted
}

// rung is what a timer puts out when it is fired.
type rung struct {
	Key, Timer string
	At         sluice.Instant
	Count      int64 // of the key's timers that were fired, with this one
}

var rings = sluice.NewState[string, int64]("rings")

// timersJob sets timers as it is told to. Each that fires for the first time in a
// while, by its count, sets itself again, a second later.
func timersJob(dir string) *sluice.Job {
	job := sluice.NewJob("timers")
	job.From("orders", file.JSONLines[order]("unused.jsonl")).
		EventTime(func(o order) sluice.Instant { return o.At }, 0).
		KeyBy(func(o order) string { return o.Key }).
		Process(func(p *sluice.Setup[string, rung]) func(*sluice.Context[string, rung], order) {
			count := p.State(rings)
			timers := map[string]*sluice.Timer{}
			for _, name := range []string{"a", "b"} {
				timers[name] = p.OnTimer(name, func(c *sluice.Context[string, rung]) {
					n := count.Update()
					*n++
					c.Emit(rung{c.Key(), name, c.Time(), *n})
					if *n%3 == 0 {
						timers[name].Set(c.Time() + sluice.Instant(second))
					}
				})
			}
			return func(_ *sluice.Context[string, rung], o order) {
				if o.Set == 0 {
					timers[o.Timer].Delete()
				} else {
					timers[o.Timer].Set(o.Set)
				}
			}
		}).To("rung", file.Append[rung](dir+"/rung"))
	return job
}

// pending is a timer in the model.
type pending struct {
	key, timer string
	at         sluice.Instant
	since      int // when it was set
}

// TestTimersAgreeWithAModel has one record in each batch, so that the watermark is the
// latest time so far: a model that does one thing after the other says which timers are
// fired, and in which order those of a key.
func TestTimersAgreeWithAModel(t *testing.T) {
	for range 6 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 9))
			test := sluicetest.New(t, timersJob(t.TempDir()))
			var set []pending
			counts, steps := map[string]int64{}, 0
			want := map[string][]rung{}
			watermark := sluice.NoTime
			put := func(p pending) {
				for i, other := range set {
					if other.key == p.key && other.timer == p.timer {
						if other.at == p.at {
							return // as it was
						}
						set = slices.Delete(set, i, i+1)
						break
					}
				}
				set = append(set, p)
			}
			clock := int64(-30 * second)
			for range 15 {
				test.Options(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(4), 1+r.IntN(3), 1 })
				var feed []order
				for range r.IntN(25) {
					clock += r.Int64N(second)
					// Instants are whole seconds, so that many fall together.
					at := (clock/second + r.Int64N(8) - 2) * second
					o := order{fmt.Sprint("key-", r.IntN(3)), sluice.Instant(clock - r.Int64N(3*second)), string(rune('a' + r.IntN(2))), sluice.Instant(at)}
					if r.IntN(6) == 0 {
						o.Set = 0
					}
					feed = append(feed, o)
					steps++
					if o.Set != 0 {
						put(pending{o.Key, o.Timer, o.Set, steps})
					} else {
						set = slices.DeleteFunc(set, func(p pending) bool { return p.key == o.Key && p.timer == o.Timer })
					}
					watermark = max(watermark, o.At)
					for {
						slices.SortFunc(set, func(a, b pending) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.since, b.since)) })
						if len(set) == 0 || set[0].at > watermark {
							break
						}
						p := set[0]
						set = set[1:]
						counts[p.key]++
						want[p.key] = append(want[p.key], rung{p.key, p.timer, p.at, counts[p.key]})
						if steps++; counts[p.key]%3 == 0 {
							put(pending{p.key, p.timer, p.at + sluice.Instant(second), steps})
						}
					}
				}
				sluicetest.Feed(test, "orders", feed...)
				if len(feed) > 0 && r.IntN(2) == 0 {
					test.Crash(1 + r.IntN(4))
				}
				test.Step()
			}
			got := map[string][]rung{}
			for _, x := range sluicetest.Rows[rung](test, "rung") {
				got[x.Key] = append(got[x.Key], x)
			}
			for key := range want {
				if fmt.Sprint(got[key]) != fmt.Sprint(want[key]) {
					t.Errorf("%s: fired\n%v\nwant\n%v", key, got[key], want[key])
				}
			}
			if len(got) != len(want) {
				t.Errorf("timers of %d keys were fired, want %d", len(got), len(want))
			}
			test.Replay(func(o *sluice.Options) { o.Shards, o.Workers, o.BatchRecords = 1+r.IntN(5), 1+r.IntN(3), 1 })
		})
	}
}
