package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/store"
)

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
		o := state.ExportOptions{Workers: runtime.GOMAXPROCS(0), Plain: t.Variant == "plain"}
		rows, err = state.Export(ctx, st, restoreJobs, form, head.Manifest.State["accounts"].Segments, out, o)
		return err
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

func measureExport(b *bench) ([]Result, error) {
	if err := os.RemoveAll(restoreFolder(b.setting)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(restoreFolder(b.setting))
	defer os.Remove(exportPath(b.setting))
	if _, err := b.child("restore.write", ""); err != nil {
		return nil, err
	}
	flat, err := b.child("export.rate", "")
	if err != nil {
		return nil, err
	}
	half := func(variant string) (sample, error) {
		return startChild(task{setting: b.setting, Name: "export.job", Variant: variant, Load: load{Rate: flat["rate"] / 2}})
	}
	alone, err := half("")
	if err != nil {
		return nil, err
	}
	exporting, err := half("export")
	if err != nil {
		return nil, err
	}
	copying, err := half("export.copy")
	if err != nil {
		return nil, err
	}
	speed := func(s sample) float64 { return s["bytes"] / 1e6 / s[wallSeconds] }
	r := Result{
		Name: "export", Value: speed(exporting), Unit: "MB/s",
		What: fmt.Sprintf("export of %.1fM entries of about 100 bytes to Avro while their job runs at half load, that is half the rate up to which its lag stays flat, all of it for %d keys; both files are synced; floor: a copy of the exported file while it does; medians", float64(b.setting.scale(allAccounts))/1e6, exportKeys),
		Why:  "what is copied is hashed, to be held against the manifest; blocks that newer segments touch are unpacked, merged and packed again",
	}.against(speed(copying)).atLeast(0.5)
	r.note("%.0f MB in %.2f s with %.2f s of CPU, the median of %.0f; the copy in %.2f s with %.2f s, of %.0f", exporting["bytes"]/1e6, exporting[wallSeconds], exporting[cpuSeconds], exporting["times"], copying[wallSeconds], copying[cpuSeconds], copying["times"])
	r.note("lag stays flat up to %.1fM records/s; at full input it is %.1fM/s, within a fifth", flat["rate"]/1e6, flat["full"]/1e6)
	run := Result{
		Name: "export.run", Value: exporting["per record"] * 1e9, Unit: "ns",
		What: "CPU per record of that job at half load while it is exported from, again and again; floor: without",
	}.against(alone["per record"] * 1e9).atMost(1.1)
	run.note("%.1fM records with exports, %.1fM without; while the file is copied again and again: %.0f ns", exporting["records"]/1e6, alone["records"]/1e6, copying["per record"]*1e9)
	if err := b.noteStopped(&r, speed); err != nil {
		return nil, err
	}
	return []Result{r, run}, nil
}

// noteStopped measures exports with the job stopped, of states few of whose blocks
// newer segments touch, and all.
func (b *bench) noteStopped(r *Result, speed func(sample) float64) error {
	both := func(variant string) (exported, copied sample, err error) {
		if _, err := b.child("export", variant); err != nil { // what is copied first
			return nil, nil, err
		}
		return b.compare("export", "export.copy", variant, wallSeconds, 3)
	}
	few, copied, err := both("")
	if err != nil {
		return err
	}
	r.note("with the job stopped %.0f MB/s and %.2f s of CPU, a copy %.0f MB/s, the best of 3", speed(few), few[cpuSeconds], speed(copied))
	if _, err := startChild(task{setting: b.setting, Name: "export.spread", Load: load{Rate: spreadRate}}); err != nil {
		return err
	}
	all, copied, err := both("")
	if err != nil {
		return err
	}
	plain, copiedPlain, err := both("plain")
	if err != nil {
		return err
	}
	r.note("stopped after changes that lie evenly in all of it, so that nothing can be copied: %.0f MB/s and %.2f s of CPU, a copy %.0f MB/s; uncompressed %.0f MB/s and %.2f s of CPU, a copy %.0f MB/s", speed(all), all[cpuSeconds], speed(copied), speed(plain), plain[cpuSeconds], speed(copiedPlain))
	return nil
}

// spreadRate is the rate of changes that lie evenly in all accounts, a second.
const spreadRate = 200_000
