package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// branchAccounts begins a branch of the job that holds the accounts, by a build that has
// a sink more, and measures the time until it follows and has caught up. Then it gives
// the branch up.
func branchAccounts(t task) (sample, error) {
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	out := filepath.Join(t.Dir, "accounts")
	defer os.RemoveAll(out)
	job := restoring(t.setting, nil, file.Upsert(out, func(_ string, a account) account { return a }))
	s := sample{}
	err = job.Upgrade(context.Background(), sluice.Options{Store: st, Log: quiet()}, sluice.Upgrade{From: "live", Rehearse: true, Told: func(sluice.UpgradeProgress) {
		if s[wallSeconds] == 0 { // the first word comes when there is nothing left to follow
			s[wallSeconds] = time.Since(time.Unix(0, t.Started)).Seconds()
			s[cpuSeconds] = cpu().Seconds()
		}
	}})
	if err == nil && s[wallSeconds] == 0 {
		err = errors.New("the branch has not caught up")
	}
	return s, err
}

func measureBranching(b *bench) ([]Result, error) {
	if err := os.RemoveAll(restoreFolder(b.setting)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(restoreFolder(b.setting))
	if _, err := b.child("restore.write", ""); err != nil {
		return nil, err
	}
	s, floor, err := b.compare("branch", "restore", "", wallSeconds, 3)
	if err != nil {
		return nil, err
	}
	const beyond = 1
	r := Result{
		Name: "branch.1GB", Value: s[wallSeconds], Unit: "s",
		What: fmt.Sprintf("from the start of an upgrade's process until its branch follows, with %.1fM entries of about 100 bytes of the same schema; floor: a restart of the job, up to its first input", float64(b.setting.scale(allAccounts))/1e6),
		Why:  "a branch refers to the segments that there are, and loads them as a restart does",
	}.against(floor[wallSeconds])
	r.Target, r.Reached = fmt.Sprintf("≤ %d s beyond the floor", beyond), r.Value <= r.Floor+beyond
	r.note("%.0f ms beyond the floor; %.2f CPU-s, the restart %.2f CPU-s; the best of 3", (r.Value-r.Floor)*1e3, s[cpuSeconds], floor[cpuSeconds])
	return []Result{r}, nil
}
