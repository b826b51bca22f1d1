package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

func replayedFolder(s setting) string { return filepath.Join(s.Dir, "replayed") }

// replayPlain runs a build alone from the first record on.
func replayPlain(t task) (sample, error) {
	if err := os.RemoveAll(replayedFolder(t.setting)); err != nil {
		return nil, err
	}
	return replayed(t, 0, (*sluice.Job).Run)
}

// replayFollowing has the next build follow what the one before has read, from the first
// record on.
func replayFollowing(t task) (sample, error) {
	return replayed(t, 1, func(job *sluice.Job, ctx context.Context, o sluice.Options) error {
		return job.Upgrade(ctx, o, sluice.Upgrade{From: "main:0"})
	})
}

// replayed measures a process until it has committed all of the orders.
func replayed(t task, meaning int, run func(job *sluice.Job, ctx context.Context, o sluice.Options) error) (sample, error) {
	folder := replayedFolder(t.setting)
	st, err := store.OpenFolder(env.Real(), filepath.Join(folder, "store"))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, records := sample{}, int64(0)
	all := int64(t.scale(allOrders))
	o := sluice.Options{Store: st, Log: quiet(), Committed: func(c sluice.Committed) {
		s["epochs"]++
		if records += c.Records; records == all && s[wallSeconds] == 0 {
			s[wallSeconds], s[cpuSeconds] = time.Since(time.Unix(0, t.Started)).Seconds(), cpu().Seconds()
			stop()
		}
	}}
	if err := run(countOrders(t.setting, t.Variant, filepath.Join(folder, "out"), stateOf[spend]("spend", meaning)), ctx, o); err != nil {
		return nil, err
	}
	if records != all {
		return nil, fmt.Errorf("expected %d records, the job counted %d", all, records)
	}
	return s, nil
}

func measureFollowRate(b *bench) ([]Result, error) {
	const distribution = "zipf"
	defer os.RemoveAll(replayedFolder(b.setting))
	if err := makeOrders(b.setting, distribution); err != nil {
		return nil, err
	}
	s, floor, err := b.compare("replayed.follow", "replayed.plain", distribution, wallSeconds, 2)
	if err != nil {
		return nil, err
	}
	n := float64(b.setting.scale(allOrders))
	r := Result{
		Name: "follow.rate", Value: n / s[wallSeconds], Unit: "records/s",
		What: fmt.Sprintf("a branch catching up from the first record on, the whole process: %.0fM JSON records of about 150 bytes from 4 files, 1M keys (%s), the outputs of both branches compared; floor: the run that it follows, of the same job alone, up to its last commit", n/1e6, distribution),
		Why:  "what the run alone spends on its deliveries, the branch spends on comparing",
	}.against(n / floor[wallSeconds]).atLeast(0.9)
	r.note("%.2f s and %.2f CPU-s, %.0f epochs; alone %.2f s and %.2f CPU-s, %.0f epochs", s[wallSeconds], s[cpuSeconds], s["epochs"], floor[wallSeconds], floor[cpuSeconds], floor["epochs"])
	return []Result{r}, nil
}
