package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// cleanLength is for how long the job is measured, with clean-up and without.
func cleanLength(s setting) time.Duration {
	if s.Quick {
		return 3 * time.Second
	}
	return 20 * time.Second
}

// cleanFarm cleans up a farm as the command gc does, and measures the CPU.
func cleanFarm(t task) (sample, error) {
	f, _, err := farmOf(t)
	if err != nil {
		return nil, err
	}
	st, err := store.OpenFolder(env.Real(), f.dir)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	job, err := epoch.FindJob(ctx, env.Real(), st, farmName)
	if err != nil {
		return nil, err
	}
	before, began := cpu(), time.Now()
	r, err := clean.New(job, clean.Options{}).All(ctx)
	if err != nil {
		return nil, err
	}
	removed := r.Manifests + r.Objects
	if removed < int64(f.epochs) {
		return nil, fmt.Errorf("of %d epochs %d objects were removed", f.epochs, removed)
	}
	return sample{
		cpuSeconds: (cpu() - before).Seconds() / float64(removed), wallSeconds: time.Since(began).Seconds(),
		"removed": float64(removed), "kept": float64(r.Left.Kept),
	}, nil
}

// farmRun runs the job of a farm at full input for a while, and measures its CPU
// per record, clean-up's included. In the variants that end in "cleaning" there
// is one, and it must have enough to do for all of the time.
func farmRun(t task) (sample, error) {
	f, rest, err := farmOf(t)
	if err != nil {
		return nil, err
	}
	st, err := store.OpenFolder(env.Real(), f.dir)
	if err != nil {
		return nil, err
	}
	deleting := &countingDeletes{Folder: st}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := sluice.Options{Store: deleting, Log: quiet(), KeepEpochs: -1}
	if rest == "cleaning" {
		o.KeepEpochs = 0 // the default
	}
	var records int64
	var began time.Duration
	var first atomic.Int64
	o.Committed = func(c sluice.Committed) {
		if first.Add(1) > 2 { // the first ones find caches cold
			records += c.Records
			return
		}
		began, records = cpu(), 0
	}
	timer := time.AfterFunc(cleanLength(t.setting), stop)
	defer timer.Stop()
	if err := farming(1<<50, nil).Run(ctx, o); err != nil {
		return nil, err
	}
	if records == 0 {
		return nil, errors.New("the job has committed too few epochs")
	}
	return sample{
		cpuSeconds: (cpu() - began).Seconds() / float64(records), "records": float64(records),
		"removed": float64(deleting.n.Load()), "still deleting": deleting.tellLate(),
	}, nil
}

// countingDeletes counts what is deleted.
type countingDeletes struct {
	*store.Folder
	n    atomic.Int64
	last atomic.Int64 // when, in nanoseconds since 1970
}

// Delete implements [store.Store].
func (s *countingDeletes) Delete(ctx context.Context, name string) error {
	s.n.Add(1)
	s.last.Store(time.Now().UnixNano())
	return s.Folder.Delete(ctx, name)
}

// tellLate is how many seconds have passed since the last.
func (s *countingDeletes) tellLate() float64 {
	return time.Since(time.Unix(0, s.last.Load())).Seconds()
}

func measureClean(b *bench) ([]Result, error) {
	epochs := b.setting.scale(100_000)
	farm := fmt.Sprintf("%d segments", epochs)
	defer b.fell(epochs)
	if _, err := b.child("farm", farm); err != nil {
		return nil, err
	}
	with, without, err := b.compareVariants("farm.run", fmt.Sprintf("%d cleaning", epochs), fmt.Sprint(epochs), cpuSeconds, 3)
	if err != nil {
		return nil, err
	}
	if err := b.fell(epochs); err != nil {
		return nil, err
	}
	if _, err := b.child("farm", farm); err != nil {
		return nil, err
	}
	s, err := b.child("clean", fmt.Sprint(epochs))
	if err != nil {
		return nil, err
	}
	r := Result{
		Name: "gc", Value: s[cpuSeconds] * 1e6, Unit: "µs",
		What: fmt.Sprintf("CPU per object that a clean-up of %d epochs removes from a folder", epochs),
	}.within(1000)
	r.note("%.0f objects in %.1f s; %.0f epochs are kept", s["removed"], s[wallSeconds], s["kept"])
	run := Result{
		Name: "gc.run", Value: with[cpuSeconds] * 1e9, Unit: "ns",
		What: fmt.Sprintf("CPU per record of a job at full input while it cleans up %d epochs, the clean-up's CPU included; floor: the same with --keep-epochs -1", epochs),
	}.against(without[cpuSeconds] * 1e9).atMost(1.1)
	run.note("%.0f objects were removed in that time, the last one %.1f s before its end; %.0fM records", with["removed"], with["still deleting"], with["records"]/1e6)
	return []Result{r, run}, nil
}
