package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// fileJob runs a whole job over the files, as it is by default: epochs of 1 s,
// a folder for a store, all of it synced.
func fileJob(t task) (sample, error) {
	dir, err := os.MkdirTemp(t.Dir, "job-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	st, err := store.OpenFolder(env.Real(), filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	job := countOrders(t.setting, t.Variant, filepath.Join(dir, "out"), sluice.NewState[string, spend]("spend"))
	var records, epochs atomic.Int64
	err = job.Run(context.Background(), sluice.Options{Store: st, Log: quiet(), Committed: func(c sluice.Committed) {
		records.Add(c.Records)
		epochs.Add(1)
	}})
	if err != nil {
		return nil, err
	}
	if expected := int64(t.scale(allOrders)); records.Load() != expected {
		return nil, fmt.Errorf("expected %d records, the job counted %d", expected, records.Load())
	}
	written, rows, err := countOutput(filepath.Join(dir, "out", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	return sample{"epochs": float64(epochs.Load()), "output bytes": written, "output files": rows}, nil
}

// countOrders is a job that counts the orders of a distribution's files by user, and
// writes the table to files.
func countOrders(s setting, distribution, out string, state sluice.State[string, spend]) *sluice.Job {
	job := sluice.NewJob("spend")
	job.From("orders", file.JSONLines[order](filepath.Join(ordersFolder(s, distribution), "*.jsonl"))).
		KeyBy(order.user).
		Fold(state, (*spend).count).
		To("spend_by_user", file.Upsert(out, sameSpend))
	return job
}

// countOutput returns the bytes and the number of the files of a pattern.
func countOutput(pattern string) (bytes, files float64, err error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return 0, 0, err
		}
		bytes += float64(info.Size())
	}
	return bytes, float64(len(names)), nil
}

func measureZipf(b *bench) ([]Result, error) {
	r, _, err := b.measureFiles("zipf", 1.5)
	return []Result{r}, err
}

func measureUniform(b *bench) ([]Result, error) {
	r, s, err := b.measureFiles("uniform", 2)
	r.Why = "half of the CPU goes into decoding JSON, which the floor does with the same decoder; nearly every record changes an entry of its own, which is encoded twice (for the state and for the sink), sorted twice, hashed, compressed and read back for its delivery"
	if err != nil {
		return nil, err
	}
	share, err := b.mergeShare("uniform")
	if err != nil {
		return nil, err
	}
	merge := share * s[processCPU] / float64(b.setting.scale(allOrders)) * 1e9
	r.note("merges take %.0f ns of that per record (%.1f%% of the job's CPU, by a profile of a run of its own)", merge, share*100)
	return []Result{r}, nil
}

func (b *bench) measureFiles(distribution string, target float64) (Result, sample, error) {
	if err := makeOrders(b.setting, distribution); err != nil {
		return Result{}, nil, err
	}
	const times = 2
	s, floor, err := b.compare("file", "file.floor", distribution, processCPU, times)
	if err != nil {
		return Result{}, nil, err
	}
	n := float64(b.setting.scale(allOrders))
	r := Result{
		Name: "job.file." + distribution, Value: s[processCPU] / n * 1e9, Unit: "ns",
		What: fmt.Sprintf("CPU per record of the whole job: %.0fM JSON records of about 150 bytes from 4 files, 1M keys (%s), epochs of 1 s, fsync on, the table written to files; floor: decode and count with a goroutine per core, the same outputs, no checkpoint", n/1e6, distribution),
		Why:  fileWhy,
	}.against(floor[processCPU] / n * 1e9).atMost(target)
	r.note("%.0f epochs and %.0f MB of output in files; the floor: %.0f flushes and %.0f MB", s["epochs"], s["output bytes"]/1e6, floor["flushes"], floor["output bytes"]/1e6)
	return r, s, nil
}

const fileWhy = "two thirds of a job's CPU go into decoding JSON, which the floor does with the same decoder; beyond it, changed entries are encoded twice (for the state and for the sink), sorted, hashed and compressed, and the outbox is read back for its delivery"

// mergeShare runs the job once more under a profile and returns the share of
// its CPU that merges take.
func (b *bench) mergeShare(distribution string) (float64, error) {
	t := task{setting: b.setting, Name: "file", Variant: distribution}
	if t.Profile == "" {
		t.Profile = t.Dir
	}
	if _, err := startChild(t); err != nil {
		return 0, err
	}
	return shareOf(profileFile(t), `internal/state\.Merge$`)
}

var accounted = regexp.MustCompile(`accounting for [^,]+, ([0-9.]+)% of`)

// shareOf is the share of a profile's samples that have a function on their
// stack.
func shareOf(profile, function string) (float64, error) {
	out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-focus="+function, profile).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("reading the profile: %w: %s", err, out)
	}
	m := accounted.FindSubmatch(out)
	if m == nil {
		return 0, nil // no sample has it
	}
	percent, err := strconv.ParseFloat(string(m[1]), 64)
	return percent / 100, err
}
