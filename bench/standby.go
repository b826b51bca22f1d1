package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicestream/sluice"
)

// standbyLive follows whoever runs the job, takes its place once that is gone, and runs
// until it is killed. It says when it has caught up, and when it is live.
func standbyLive(t task) (sample, error) {
	st, err := t.Live.store(t.setting)
	if err != nil {
		return nil, err
	}
	o := sluice.Options{
		Store: st, Log: slog.New(telling{slog.DiscardHandler, map[string]string{"caught up": saysStands, "live": saysLeads}}),
		Epoch: liveEpoch, Lease: takeoverLease(t.setting), Standby: true,
	}
	return sample{}, t.Live.job(t.Kafka).Run(context.Background(), o)
}

// standbyUsers is how many users the job has, of whom one each millisecond gets an order.
const standbyUsers = 10_000

// stoodIn is what the death of a job has taken, in seconds from then on.
type stoodIn struct {
	live   float64 // until the standby was
	output float64 // until an output of the standby could be read
}

// standIn kills a job beside which another process stands by.
func (b *bench) standIn() (stoodIn, error) {
	l, clean, err := b.newLive(nil)
	if err != nil {
		return stoodIn{}, err
	}
	defer clean()
	ctx, cancel := context.WithCancel(context.Background())
	w, ended, written := &outputWatch{latencies: map[string]float64{}}, make(chan error, 2), make(chan struct{})
	go func() { ended <- w.run(ctx, task{setting: b.setting, Live: l}) }()
	go func() { ended <- writeUsers(ctx, b.setting.Kafka, l.Topic, standbyUsers, written) }()
	took, err := b.killBeside(l, w, ended)
	cancel()
	return took, errors.Join(err, <-ended, <-ended)
}

func (b *bench) killBeside(l live, w *outputWatch, ended <-chan error) (took stoodIn, err error) {
	l.Records = standbyUsers
	owner, err := b.talkAbout(task{setting: b.setting, Name: "kafka.live", Live: l}, true)
	if err != nil {
		return took, err
	}
	defer owner.cmd.Wait()
	defer owner.cmd.Process.Kill()
	if err := owner.says(saysRuns); err != nil {
		return took, err
	}
	next, err := b.talkAbout(task{setting: b.setting, Name: "kafka.standby", Live: l}, false)
	if err != nil {
		return took, err
	}
	defer next.cmd.Wait()
	defer next.cmd.Process.Kill()
	if err := next.says(saysStands); err != nil {
		return took, err
	}
	lease := takeoverLease(b.setting)
	time.Sleep(lease / 4) // it has followed a few epochs
	killed := time.Now()
	if err := owner.cmd.Process.Kill(); err != nil {
		return took, err
	}
	bound := time.AfterFunc(lease+probesWithin, func() { next.cmd.Process.Kill() })
	defer bound.Stop()
	if err := next.says(saysLeads); err != nil {
		return took, err
	}
	took.live = time.Since(killed).Seconds()
	for until := time.Now().Add(probesWithin); time.Now().Before(until) && len(ended) == 0; time.Sleep(liveEpoch) {
		// What the owner had committed may still have been on its way; then comes the gap.
		gap := longestGap(w.arrived(), span{killed, time.Now()})
		if gap.length() >= lease/2 {
			took.output = gap.to.Sub(killed).Seconds()
			return took, nil
		}
	}
	return took, fmt.Errorf("no output has come within %v of being live: %s", probesWithin, &next.said)
}

func measureStandby(b *bench) ([]Result, error) {
	on, err := b.onKafka()
	if err != nil {
		return nil, err
	}
	times := 3
	if b.setting.Quick {
		times = 1
	}
	var live []float64
	value, all, err := median(times, func() (float64, error) {
		took, err := on.standIn()
		live = append(live, took.live)
		return took.output, err
	})
	if err != nil {
		return nil, err
	}
	const beyond = 1
	lease := takeoverLease(b.setting).Seconds()
	r := Result{
		Name: "standby", Value: value * 1e3, Unit: "ms",
		What: fmt.Sprintf("a job between two topics of a real broker killed by SIGKILL, as seen from another machine, with a standby that follows it: to the first output of the standby that a consumer of committed records sees, epochs of %v (median of %d); floor: the lease", liveEpoch, times),
		Why:  "the standby measures the lease from the look at which it saw the last change, and seals the branch, goes live and begins its first epoch then",
	}.against(lease * 1e3).within((lease + beyond) * 1e3)
	r.note("all: %s ms; until the standby is live: %s ms", inMilliseconds(all), inMilliseconds(slices.Sorted(slices.Values(live))))
	return []Result{r}, nil
}
