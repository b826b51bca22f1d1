package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// epochRecords are the records of an epoch: ten for each key that it changes.
const epochRecords = 10 * dirtyEntries

// stallEpochs is the number of epochs: the last percent of them must be more
// than one.
func stallEpochs(s setting) int {
	if s.Quick {
		return 30
	}
	return 200
}

// stallJob measures, for each epoch and shard, the longest time between two
// records. In the variant "without" there is but one epoch, in which the records
// between two looks are as many as an epoch's otherwise.
func stallJob(t task) (sample, error) {
	names, r := userNames(), newRandom(2)
	keys := r.Perm(allKeys)
	count := int64(allKeys + stallEpochs(t.setting)*epochRecords)
	source := numbers[payment]{count: count, partitions: 1, value: []byte("x"), decoder: func() func(*connector.Batch, int, *payment) error {
		return func(b *connector.Batch, i int, v *payment) error {
			*v = payment{names[keys[stallKey(b.Records[i].Offset)]], b.Records[i].Offset & 1023}
			return nil
		}
	}}
	dir, err := os.MkdirTemp(t.Dir, "stall-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	st, err := store.OpenFolder(env.Real(), filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	o := sluice.Options{Store: st, Log: quiet(), Epoch: time.Hour, EpochBytes: epochRecords}
	w := &watch{}
	if t.Variant == "without" {
		o.EpochBytes = 1 << 60
		w.window = epochRecords
	}
	var pauses []time.Duration // of the epochs, as the engine tells them
	o.Committed = func(c sluice.Committed) { pauses = append(pauses, c.Pause) }
	job := sluice.NewJob("stall")
	state := sluice.NewState[string, spend]("spend")
	job.From("payments", source).KeyBy(payment.user).Process(func(p *sluice.Setup[string, spend]) func(*sluice.Context[string, spend], payment) {
		s, shard := p.State(state), w.shard()
		return func(c *sluice.Context[string, spend], p payment) {
			shard.record(c.Now())
			s.Update().add(p)
		}
	}).Discard()
	if err := job.Run(context.Background(), o); err != nil {
		return nil, err
	}
	gaps := w.gaps()
	pauses = pauses[min(3, len(pauses)-1):] // as of the gaps, the first ones fill the table
	slices.Sort(pauses)
	return sample{
		"pause 99%": pauses[len(pauses)*99/100].Seconds(), "pause median": pauses[len(pauses)/2].Seconds(),
		"99%": gaps[len(gaps)*99/100].Seconds(), "median": gaps[len(gaps)/2].Seconds(), "epochs": float64(len(gaps)),
	}, nil
}

// stallKey is the place among the keys of record i: first each key once, then
// for each epoch as many as it is to change.
func stallKey(i int64) int64 {
	if i < allKeys {
		return i
	}
	i -= allKeys
	return (i/epochRecords*dirtyEntries + i%dirtyEntries) % allKeys
}

// watch looks at the times at which the shards take records.
type watch struct {
	window int // records between two looks; 0: an epoch's
	mu     sync.Mutex
	shards []*watched
}

// watched is one shard; what it does belongs to that alone.
type watched struct {
	window  int
	began   time.Time
	last    time.Duration
	longest time.Duration
	epoch   sluice.Instant
	count   int
	gaps    []time.Duration
}

func (w *watch) shard() *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &watched{window: w.window, began: time.Now()}
	w.shards = append(w.shards, s)
	return s
}

// record notes that the shard has taken a record.
func (s *watched) record(epoch sluice.Instant) {
	now := time.Since(s.began)
	gap := now - s.last
	s.last = now
	s.count++
	if s.window > 0 && s.count == s.window || s.window == 0 && epoch != s.epoch {
		s.gaps = append(s.gaps, s.longest)
		s.count, s.epoch, s.longest = 0, epoch, 0
	}
	s.longest = max(s.longest, gap)
}

// filling is the number of epochs that are left out: the first changes every
// entry, and those after it still find little room made.
const filling = 3

// gaps are the longest gaps of the epochs of all shards, in order.
func (w *watch) gaps() []time.Duration {
	var all []time.Duration
	for _, s := range w.shards {
		if len(s.gaps) > filling {
			all = append(all, s.gaps[filling:]...)
		}
	}
	slices.Sort(all)
	return all
}

func measureStall(b *bench) ([]Result, error) {
	s, floor, err := b.compareVariants("stall", "with", "without", "pause 99%", 2)
	if err != nil {
		return nil, err
	}
	r := Result{
		Name: "barrier.stall", Value: s["pause 99%"] * 1e3, Unit: "ms",
		What: fmt.Sprintf("longest time, by the clock, that a shard takes no record because an epoch has ended that changed %d of %d entries: what it does at once, or a slice of its encoding; 99th percentile of the epochs", dirtyEntries, allKeys),
		Why:  "the scheduler may take the core away in the middle of a slice, which by itself is a tenth of a millisecond",
	}.within(10)
	r.note("median %.2f ms; %.0f epochs of all shards", s["pause median"]*1e3, s["epochs"])
	r.note("longest time between two records of a shard, for whatever reason, in an epoch: 99th percentile %.2f ms, median %.2f ms; in the same run with one single epoch %.2f and %.2f ms: on two cores with six busy goroutines it is the scheduler that makes a shard wait", s["99%"]*1e3, s["median"]*1e3, floor["99%"]*1e3, floor["median"]*1e3)
	r.note("the value is %s", b.machine.inUnits(s["pause 99%"]))
	return []Result{r}, nil
}
