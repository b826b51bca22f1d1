package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// farmStart starts the job of a farm, and measures the time until its opening
// stands and until it reads, which comes after the state is loaded.
// Nothing is cleaned up but in the variants that end in "cleaning".
func farmStart(t task) (sample, error) {
	f, rest, err := farmOf(t)
	if err != nil {
		return nil, err
	}
	folder, err := store.OpenFolder(env.Real(), f.dir)
	if err != nil {
		return nil, err
	}
	st := &firstManifest{Store: folder}
	o := sluice.Options{Store: st, Log: quiet(), KeepEpochs: -1}
	if rest == "cleaning" {
		o.KeepEpochs = 0 // the default
	}
	var reads time.Time
	job := farming(farmRecords, func() error { reads = time.Now(); return nil })
	if err := job.Run(context.Background(), o); err != nil {
		return nil, err
	}
	if st.at.IsZero() || reads.IsZero() {
		return nil, errors.New("the job has not opened its branch and read")
	}
	started := time.Unix(0, t.Started)
	return sample{wallSeconds: st.at.Sub(started).Seconds(), "reads": reads.Sub(started).Seconds(), "creates": float64(st.creates)}, nil
}

func measureMillion(b *bench) ([]Result, error) {
	many, few := b.setting.scale(1_000_000), 1000
	defer b.fell(many)
	defer b.fell(few)
	var bytes float64
	for _, epochs := range []int{few, many} {
		s, err := b.child("farm", fmt.Sprint(epochs))
		if err != nil {
			return nil, err
		}
		bytes = s["bytes"]
	}
	s, floor, err := b.compareVariants("farm.start", fmt.Sprint(many), fmt.Sprint(few), wallSeconds, 15)
	if err != nil {
		return nil, err
	}
	r := Result{
		Name: "start.million", Value: s[wallSeconds] * 1e3, Unit: "ms",
		What: fmt.Sprintf("from the start of the process to its opening in a log of %d manifests, each a file of one folder; floor: the same with %d", many, few),
	}.against(floor[wallSeconds] * 1e3).atMost(1.2)
	r.note("a manifest has %.0f bytes; until it reads, with the state loaded, it takes %.1f ms, with %d manifests %.1f ms", bytes, s["reads"]*1e3, few, floor["reads"]*1e3)
	var cleaning sample
	for range 5 {
		c, err := b.child("farm.start", fmt.Sprintf("%d cleaning", many))
		if err != nil {
			return nil, err
		}
		cleaning = lesser(cleaning, c, "reads")
	}
	r.note("with a clean-up of what is older than ten minutes under way: %.1f ms to the opening, %.1f ms to the first look for input", cleaning[wallSeconds]*1e3, cleaning["reads"]*1e3)
	return []Result{r}, nil
}
