package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/tabular"
	"github.com/sluicestream/sluice/store"
)

// exportKeys is the number of accounts that the job touches while they are exported.
const exportKeys = 1000

// exportRunning is the job that holds the accounts, with input without end for a few
// of them.
func exportRunning() *sluice.Job {
	var names [exportKeys]string
	for i := range names {
		names[i] = "customer-" + strconv.Itoa(i*2654435761%100_000_000_000)
	}
	source := numbers[int64]{count: 1 << 50, partitions: 4, value: []byte("x"), decoder: func() func(*connector.Batch, int, *int64) error {
		return func(b *connector.Batch, i int, v *int64) error {
			*v = b.Records[i].Offset
			return nil
		}
	}}
	job := sluice.NewJob(restoreJobs)
	job.From("numbers", source).
		KeyBy(func(i int64) string { return names[i%exportKeys] }).
		Fold(sluice.NewState[string, account]("accounts"), func(a *account, i int64) { *a = accountOf(i) })
	return job
}

// exportPath is the exported file.
func exportPath(s setting) string { return filepath.Join(s.Dir, "accounts.avro") }

// exportOnce exports the accounts as the command does.
func exportOnce(t task) (sample, error) {
	ctx := context.Background()
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	job, err := epoch.FindJob(ctx, env.Real(), st, restoreJobs)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(exportPath(t.setting))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	began := time.Now()
	head, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = job.Reading(ctx, []epoch.Manifest{head.Manifest}, "bench", func(error) bool { return false }, func(ctx context.Context) error {
		form, err := state.FormOf("accounts", head.Manifest.State["accounts"])
		if err != nil {
			return err
		}
		buffered := bufio.NewWriterSize(out, 256<<10)
		entries := state.Read(ctx, st, restoreJobs, form, head.Manifest.State["accounts"].Segments, epoch.AllSlots)
		var row []byte
		rows, err = tabular.Write(ctx, buffered, tabular.Avro, tabular.Entries(form.Name, form.Key, nil, form.Value), tabular.WriteOptions{Workers: runtime.GOMAXPROCS(0)}, func(yield func([]byte, error) bool) {
			for e, err := range entries {
				if err == nil {
					row = append(append(row[:0], e.Key...), e.Value...)
				}
				if !yield(row, err) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		return buffered.Flush()
	})
	if err != nil {
		return nil, err
	}
	if rows < int64(t.scale(allAccounts)) {
		return nil, fmt.Errorf("%d rows were exported", rows)
	}
	return told(out, began)
}

// exportCopy copies the exported file.
func exportCopy(t task) (sample, error) {
	in, err := os.Open(exportPath(t.setting))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.Create(exportPath(t.setting) + ".copy")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	began := time.Now()
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 256<<10)); err != nil {
		return nil, err
	}
	return told(out, began)
}

// told is how fast a file was written, to the disk: an export's file is to stay.
func told(out *os.File, began time.Time) (sample, error) {
	if err := out.Sync(); err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	info, err := out.Stat()
	if err != nil {
		return nil, err
	}
	return sample{wallSeconds: took, "bytes": float64(info.Size()), cpuSeconds: cpu().Seconds()}, nil
}

// exportJob runs the job at full input, and measures its own CPU per record. In the
// variants "export" and "export.copy" another process does that meanwhile, again and
// again; its fastest is told.
func exportJob(t task) (sample, error) {
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var records, seen atomic.Int64
	var began time.Duration
	running := make(chan struct{})
	o := sluice.Options{Store: st, Log: quiet(), Committed: func(c sluice.Committed) {
		if n := seen.Add(1); n == 3 { // the first ones find caches cold
			began = cpu()
			close(running)
		} else if n > 3 {
			records.Add(c.Records)
		}
	}}
	ended := make(chan error, 1)
	go func() { ended <- exportRunning().Run(ctx, o) }()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("the job ended by itself: %w", errors.Join(err, errors.New("too early")))
	case <-running:
	}
	best := sample{}
	for until := time.Now().Add(cleanLength(t.setting)); time.Now().Before(until); {
		if t.Variant == "" {
			time.Sleep(time.Until(until))
			continue
		}
		s, err := startChild(task{setting: t.setting, Name: t.Variant})
		if err != nil {
			return nil, err
		}
		if best[wallSeconds] == 0 || s[wallSeconds] < best[wallSeconds] {
			best = s
		}
	}
	used := cpu() - began
	n := records.Load()
	stop()
	if err := <-ended; err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("the job has committed too few epochs")
	}
	best["per record"] = used.Seconds() / float64(n)
	best["records"] = float64(n)
	return best, nil
}

func measureExport(b *bench) ([]Result, error) {
	if err := os.RemoveAll(restoreFolder(b.setting)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(restoreFolder(b.setting))
	defer os.Remove(exportPath(b.setting))
	if _, err := b.child("restore.write", ""); err != nil {
		return nil, err
	}
	alone, err := b.child("export.job", "")
	if err != nil {
		return nil, err
	}
	exporting, err := b.child("export.job", "export")
	if err != nil {
		return nil, err
	}
	copying, err := b.child("export.job", "export.copy")
	if err != nil {
		return nil, err
	}
	idle, err := b.child("export", "")
	if err != nil {
		return nil, err
	}
	speed := func(s sample) float64 { return s["bytes"] / 1e6 / s[wallSeconds] }
	r := Result{
		Name: "export", Value: speed(exporting), Unit: "MB/s",
		what: fmt.Sprintf("export of %.1fM entries of about 100 bytes to Avro while their job runs at full input; both are synced; floor: a copy of the exported file while it does", float64(b.setting.scale(allAccounts))/1e6),
		why:  "the segments' blocks are unpacked, held against their sums, put together of other parts and packed again",
	}.against(speed(copying)).atLeast(0.5)
	r.note("%.0f MB in %.1f s; with the job stopped %.0f MB/s, and %.1f s of CPU", exporting["bytes"]/1e6, exporting[wallSeconds], speed(idle), idle[cpuSeconds])
	run := Result{
		Name: "export.run", Value: exporting["per record"] * 1e9, Unit: "ns",
		what: "CPU per record of that job while it is exported from, again and again; floor: without",
	}.against(alone["per record"] * 1e9).atMost(1.1)
	run.note("%.1fM records with exports, %.1fM without", exporting["records"]/1e6, alone["records"]/1e6)
	return []Result{r, run}, nil
}
