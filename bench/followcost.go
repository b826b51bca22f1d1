package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

const (
	// followedKeys is the number of keys of the job that is followed.
	followedKeys = 100_000
	// followedShare of what it reads at full input is its rate.
	followedShare = 0.25
)

// followLengths are how far behind the job a branch begins, for how long the job is
// measured without one each time, and how many times.
func followLengths(s setting) (behind, alone time.Duration, times int) {
	if s.Quick {
		return 4 * time.Second, 4 * time.Second, 2
	}
	return 20 * time.Second, 10 * time.Second, 6
}

func followedFolder(s setting) string { return filepath.Join(s.Dir, "followed") }

func followedStore(folder string) (*store.Folder, error) {
	return store.OpenFolder(env.Real(), filepath.Join(folder, "store"))
}

// followedJob counts payments by user, and writes the table to files. Its input has no
// end, and comes at a rate unless that is 0.
func followedJob(folder string, rate float64, meaning int) *sluice.Job {
	names := make([]string, followedKeys)
	for i := range names {
		names[i] = userName(i)
	}
	source := numbers[payment]{count: 1 << 50, partitions: 4, rate: rate, value: make([]byte, 100), decoder: func() func(*connector.Batch, int, *payment) error {
		return func(b *connector.Batch, i int, v *payment) error {
			n := uint64(b.Records[i].Offset) * 0x9E3779B97F4A7C15
			*v = payment{names[n%followedKeys], int64(n >> 54)}
			return nil
		}
	}}
	job := sluice.NewJob("followed")
	job.From("payments", source).KeyBy(payment.user).
		Fold(stateOf[spend]("spend", meaning), (*spend).add).
		To("spend_by_user", file.Upsert(filepath.Join(folder, "out"), sameSpend))
	return job
}

// followedRun runs the job, and measures its own CPU per record by turns: while another
// process follows it, from some time behind until it has caught up, while none does, and
// while a job that has nothing to do with it is as busy.
func followedRun(t task) (sample, error) {
	folder := followedFolder(t.setting)
	st, err := followedStore(folder)
	if err != nil {
		return nil, err
	}
	full, err := startWarm(followedJob(folder, 0, 0), st, 0)
	if err != nil {
		return nil, err
	}
	time.Sleep(flatFor)
	s, err := full.counted()
	if err := errors.Join(err, full.end()); err != nil {
		return nil, err
	}
	rate := followedShare * s["rate"]
	l, err := startWarm(followedJob(folder, rate, 0), st, rate)
	if err != nil {
		return nil, err
	}
	out, err := followedTurns(t, l)
	out["rate"], out["full"] = rate, s["rate"]
	return out, errors.Join(err, l.end())
}

func followedTurns(t task, l *loaded) (sample, error) {
	behind, alone, times := followLengths(t.setting)
	time.Sleep(behind)
	out := sample{}
	turn := func(what string, meanwhile func() error) error {
		l.count()
		if err := meanwhile(); err != nil {
			return err
		}
		s, err := l.counted()
		out[what+" cpu"] += s[cpuSeconds]
		out[what+" records"] += s["records"]
		return err
	}
	rest := func() error {
		time.Sleep(alone)
		return nil
	}
	follow := func() error {
		f, err := startChild(task{setting: t.setting, Name: "followed.follow"})
		out["covered"] += f["records"]
		out["following"] += f[wallSeconds]
		return err
	}
	stranger := func() error {
		_, err := startChild(task{setting: t.setting, Name: "followed.stranger"})
		return err
	}
	for range times {
		if err := turn("alone", rest); err != nil {
			return out, err
		}
		if err := turn("followed", follow); err != nil {
			return out, err
		}
		if err := turn("stranger", stranger); err != nil {
			return out, err
		}
	}
	return out, nil
}

// followOnce follows the job from some time behind until it has caught up, compares the
// outputs, and gives the branch up.
func followOnce(t task) (sample, error) {
	folder := followedFolder(t.setting)
	st, err := followedStore(folder)
	if err != nil {
		return nil, err
	}
	behind, _, _ := followLengths(t.setting)
	s := sample{}
	o := sluice.Options{Store: st, Log: quiet(), Committed: func(c sluice.Committed) { s["records"] += float64(c.Records) }}
	err = followedJob(folder, 0, 1).Upgrade(context.Background(), o, sluice.Upgrade{From: "live-" + behind.String(), Rehearse: true})
	s[wallSeconds] = time.Since(time.Unix(0, t.Started)).Seconds()
	return s, err
}

// strangeRun runs the same job for a while, on its own.
func strangeRun(t task) (sample, error) {
	folder := filepath.Join(followedFolder(t.setting), "stranger")
	st, err := followedStore(folder)
	if err != nil {
		return nil, err
	}
	_, alone, _ := followLengths(t.setting)
	ctx, cancel := context.WithTimeout(context.Background(), alone)
	defer cancel()
	return sample{}, followedJob(folder, 0, 0).Run(ctx, sluice.Options{Store: st, Log: quiet()})
}

func measureFollowCost(b *bench) ([]Result, error) {
	defer os.RemoveAll(followedFolder(b.setting))
	if err := os.RemoveAll(followedFolder(b.setting)); err != nil {
		return nil, err
	}
	s, err := b.child("followed", "")
	if err != nil {
		return nil, err
	}
	behind, alone, times := followLengths(b.setting)
	per := func(what string) float64 { return s[what+" cpu"] / s[what+" records"] * 1e9 }
	r := Result{
		Name: "follow.cost", Value: per("followed"), Unit: "ns",
		What: fmt.Sprintf("CPU per record of a job's own process at a quarter of what it reads at full input, %d keys, the table written to files, while another process follows it from %v behind until it has caught up; floor: the same process while none does, %d times each by turns", followedKeys, behind, times),
		Why:  "the job does nothing for who follows; what the two have in common are the processor's caches, the memory and the disk",
	}.against(per("alone")).atMost(1.05)
	r.note("%.1fM records/s of %.1fM at full input; %.0f s with a follower, which covered %.1fM records, and %.0f s without", s["rate"]/1e6, s["full"]/1e6, s["following"], s["covered"]/1e6, alone.Seconds()*float64(times))
	r.note("while a job that has nothing to do with it is as busy: %.0f ns, %.2f × the floor", per("stranger"), per("stranger")/r.Floor)
	return []Result{r}, nil
}
