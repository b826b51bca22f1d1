package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

// exportKeys is the number of accounts that the job touches while they are exported.
const exportKeys = 1000

// exportRunning is the job that holds the accounts, with input without end for a few
// of them, or for all, at a rate unless that is 0.
func exportRunning(rate float64, all int64) *sluice.Job {
	var names [exportKeys]string
	for i := range names {
		names[i] = accountName(int64(i))
	}
	name := func(i int64) string { return names[i%exportKeys] }
	if all > 0 {
		name = func(i int64) string { return accountName(i * 7919 % all) }
	}
	source := numbers[int64]{count: 1 << 50, partitions: 4, rate: rate, value: []byte("x"), decoder: func() func(*connector.Batch, int, *int64) error {
		return func(b *connector.Batch, i int, v *int64) error {
			*v = b.Records[i].Offset
			return nil
		}
	}}
	job := sluice.NewJob(restoreJobs)
	job.From("numbers", source).
		KeyBy(name).
		Fold(sluice.NewState[string, account]("accounts"), func(a *account, i int64) { *a = accountOf(i) })
	return job
}

// loaded is a job that runs.
type loaded struct {
	stop  context.CancelFunc
	ended chan error

	mu      sync.Mutex
	records int64     // since the counting began
	began   time.Time // of the counting
	usage   []usage   // at the end of each epoch since
	lags    []float64 // records that were there and not committed, at each epoch's end
}

// usage is what the process has used until an epoch's end, and the records since the
// counting began.
type usage struct {
	cpu     time.Duration
	records int64
}

// warmEpochs find caches cold.
const warmEpochs = 3

// startLoaded starts the job and returns once its caches are warm and the state's
// segments have been merged: what was written without a pause is in many large ones.
func startLoaded(t task, all int64) (*loaded, error) {
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	l, err := startWarm(exportRunning(t.Load.Rate, all), st, t.Load.Rate)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		segments, err := storedSegments(context.Background(), st, restoreJobs, "accounts")
		if err == nil && !merging(segments) {
			break
		}
		if err == nil && time.Now().After(until) {
			err = fmt.Errorf("the state still has %d segments to merge", len(segments))
		}
		if err != nil {
			return nil, errors.Join(err, l.end())
		}
	}
	l.count()
	return l, nil
}

// startWarm starts a job that has input without end at a rate, and returns once its
// caches are warm.
func startWarm(job *sluice.Job, st store.Store, rate float64) (*loaded, error) {
	ctx, stop := context.WithCancel(context.Background())
	l := &loaded{stop: stop, ended: make(chan error, 1)}
	epochs, warm := 0, make(chan struct{})
	var first time.Time
	var committed int64
	o := sluice.Options{Store: st, Log: quiet(), Committed: func(c sluice.Committed) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.Records == 0 {
			return
		}
		if epochs++; epochs == warmEpochs {
			close(warm)
		}
		if first.IsZero() {
			first = time.Now()
		} else {
			committed += c.Records
		}
		l.records += c.Records
		l.usage = append(l.usage, usage{cpu(), l.records})
		l.lags = append(l.lags, time.Since(first).Seconds()*rate-float64(committed))
	}}
	go func() { l.ended <- job.Run(ctx, o) }()
	select {
	case err := <-l.ended:
		stop()
		return nil, fmt.Errorf("the job ended by itself: %w", errors.Join(err, errors.New("too early")))
	case <-warm:
	}
	l.count()
	return l, nil
}

// merging tells whether a merge of all segments is due, or has to be under way.
func merging(segments []epoch.Segment) bool {
	from, _, ok := state.PlanMerge(segments)
	return ok && from == 0
}

// count begins to count.
func (l *loaded) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records, l.began, l.usage, l.lags = 0, time.Now(), nil, nil
}

// counted is what has been counted, the CPU from one epoch's end to another's.
func (l *loaded) counted() (sample, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.usage) < 2 {
		return nil, errors.New("the job has committed too few epochs")
	}
	first, last := l.usage[0], l.usage[len(l.usage)-1]
	used, records := (last.cpu - first.cpu).Seconds(), float64(last.records-first.records)
	return sample{
		"records": records, "rate": float64(l.records) / time.Since(l.began).Seconds(), cpuSeconds: used, "per record": used / records,
	}, nil
}

// end stops the job.
func (l *loaded) end() error {
	l.stop()
	return <-l.ended
}

// flatFor is the length of a try whether lag stays flat.
const flatFor = 6 * time.Second

// exportRate finds the highest rate, within a fifth, at which the job's lag stays
// flat: by what it reads at full input, and tries from there on.
func exportRate(t task) (sample, error) {
	once := func(rate float64) (s sample, lags []float64, err error) {
		t.Load.Rate = rate
		l, err := startLoaded(t, 0)
		if err != nil {
			return nil, nil, err
		}
		l.count()
		time.Sleep(flatFor)
		s, err = l.counted()
		l.mu.Lock()
		lags = slices.Clone(l.lags)
		l.mu.Unlock()
		return s, lags, errors.Join(err, l.end())
	}
	s, _, err := once(0)
	if err != nil {
		return nil, err
	}
	const tries = 8
	rate := s["rate"]
	for range tries {
		_, lags, err := once(rate)
		if err != nil {
			return nil, err
		}
		half := len(lags) / 2
		if half > 0 && middle(lags[half:]) <= middle(lags[:half])+0.05*rate {
			return sample{"rate": rate, "full": s["rate"]}, nil
		}
		rate *= 0.8
	}
	return nil, fmt.Errorf("lag grows even at %.0f records/s", rate)
}

// middle is the one in the middle of numbers, the upper one of two.
func middle(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// exportJob runs the job at the load's rate, and measures its own CPU per record. In
// the variants "export" and "export.copy" another process does that meanwhile, again
// and again; the median is told.
func exportJob(t task) (sample, error) {
	l, err := startLoaded(t, 0)
	if err != nil {
		return nil, err
	}
	var all []sample
	for until := time.Now().Add(cleanLength(t.setting)); time.Now().Before(until); {
		if t.Variant == "" {
			time.Sleep(time.Until(until))
			continue
		}
		s, err := startChild(task{setting: t.setting, Name: t.Variant})
		if err != nil {
			return nil, errors.Join(err, l.end())
		}
		all = append(all, s)
	}
	s, err := l.counted()
	if err := errors.Join(err, l.end()); err != nil {
		return nil, err
	}
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b sample) int { return int(1e9 * (a[wallSeconds] - b[wallSeconds])) })
		middle := all[len(all)/2]
		s[wallSeconds], s["bytes"], s["times"], s[cpuSeconds] = middle[wallSeconds], middle["bytes"], float64(len(all)), middle[cpuSeconds]
	}
	return s, nil
}

// exportSpread runs the job for a while on all accounts, so that newer segments touch
// all blocks.
func exportSpread(t task) (sample, error) {
	l, err := startLoaded(t, int64(t.scale(allAccounts)))
	if err != nil {
		return nil, err
	}
	time.Sleep(flatFor)
	return sample{}, l.end()
}

// accountName is the key of an account.
func accountName(i int64) string {
	return "customer-" + strconv.FormatInt(i*2654435761%100_000_000_000, 10)
}
