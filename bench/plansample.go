package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/migrate"
	"github.com/sluicestream/sluice/internal/plan"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// parcel is a value of about 200 bytes, most of which can't be compressed.
type parcel struct {
	Grams, Cents, Sent int64
	City, Token        string
}

// parcelNow is what became of it.
type parcelNow struct {
	Grams, Cents, Sent int64
	City, Token        string
	Heavy              bool
}

func weigh(p parcel) (parcelNow, error) {
	return parcelNow{p.Grams, p.Cents, p.Sent, p.City, p.Token, p.Grams > 1000}, nil
}

// parcelOf is the parcel number i.
func parcelOf(i int64) parcel {
	token, x := make([]byte, 0, 160), uint64(i)
	for range 9 {
		x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
		x ^= x >> 27
		token = strconv.AppendUint(token, x, 16)
	}
	return parcel{Grams: i % 30_000, Cents: i * 7919 % 1_000_000, Sent: 1_770_000_000_000_000 + i, City: "Philadelphia", Token: string(token)}
}

const (
	allParcels  = 5_800_000
	parcelJob   = "parcels" // the job's name
	parcelState = "parcels"
)

func parcelFolder(s setting) string { return filepath.Join(s.Dir, "parcels") }

// writeParcels runs a job once that keeps the parcels.
func writeParcels(t task) (sample, error) {
	st, err := store.OpenFolder(env.Real(), parcelFolder(t.setting))
	if err != nil {
		return nil, err
	}
	source := numbers[int64]{count: int64(t.scale(allParcels)), partitions: 4, value: make([]byte, 100), decoder: func() func(*connector.Batch, int, *int64) error {
		return func(b *connector.Batch, i int, v *int64) error {
			*v = b.Records[i].Offset
			return nil
		}
	}}
	job := sluice.NewJob(parcelJob)
	job.From("numbers", source).
		KeyBy(func(i int64) string { return "parcel-" + strconv.FormatInt(i*2654435761%100_000_000_000, 10) }).
		Fold(sluice.NewState[string, parcel](parcelState), func(p *parcel, i int64) { *p = parcelOf(i) })
	return sample{}, job.Run(context.Background(), sluice.Options{Store: st, Log: quiet(), Epoch: time.Hour})
}

// parcelsNow is the job at its newest epoch, and how its state comes from that.
func parcelsNow(ctx context.Context, s setting) (job *epoch.Job, old epoch.Version, head epoch.Manifest, way *carry.Way, err error) {
	st, err := store.OpenFolder(env.Real(), parcelFolder(s))
	if err != nil {
		return nil, old, head, nil, err
	}
	if job, err = epoch.FindJob(ctx, env.Real(), st, parcelJob); err != nil {
		return nil, old, head, nil, err
	}
	newest, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		return nil, old, head, nil, err
	}
	head = newest.Manifest
	if old, err = job.Version(ctx, head.Version); err != nil {
		return nil, old, head, nil, err
	}
	stored, err := plan.Stored(old, head)
	if err != nil {
		return nil, old, head, nil, err
	}
	typ, err := schema.Of[parcelNow](parcelState)
	if err != nil {
		return nil, old, head, nil, err
	}
	key, err := schema.Parse([]byte(`"string"`))
	if err != nil {
		return nil, old, head, nil, err
	}
	carrier, err := carry.New(carry.Target{Kind: "value", Form: state.Form{Name: parcelState, Key: key, Value: typ.Schema()}},
		carry.Codec[string, parcelNow]{AppendKey: func(dst []byte, key *string) []byte { return appendText(dst, *key) }, Value: typ},
		carry.Spec[string, parcelNow]{Chain: carry.First(weigh)})
	if err != nil {
		return nil, old, head, nil, err
	}
	return job, old, head, carrier.Find(stored), nil
}

// planParcels makes a plan for a build that has another type, and tries it on a
// sample; measured from the start of the process.
func planParcels(t task) (sample, error) {
	ctx := context.Background()
	job, old, head, way, err := parcelsNow(ctx, t.setting)
	if err != nil {
		return nil, err
	}
	ways := map[string]*carry.Way{parcelState: way}
	p := plan.Compare(plan.Input{
		Job: parcelJob, At: epoch.At{Job: parcelJob, Branch: head.Branch, Task: head.Task, Epoch: head.Epoch},
		Head: head, Old: old, New: old, Ways: ways,
	})
	trials, err := plan.Try(ctx, plan.TrialOptions{Env: env.Real(), Job: job, Look: func(context.Context) (epoch.Manifest, map[string]*carry.Way, error) {
		return head, ways, nil
	}})
	if err != nil {
		return nil, err
	}
	p.Attach(trials, nil)
	took := time.Since(time.Unix(0, t.Started))
	trial := trials[parcelState]
	if p.Worst() != plan.Migrates || trial.Tried != 1000 || trial.Failed != 0 {
		return nil, fmt.Errorf("verdict %s, %d entries tried, %d failed", p.Worst(), trial.Tried, trial.Failed)
	}
	s := sample{wallSeconds: took.Seconds(), "estimate": trial.Seconds, "growth": trial.Growth()}
	for _, segment := range head.State[parcelState].Segments {
		s["segments"]++
		s["bytes"] += float64(segment.Bytes)
	}
	return s, nil
}

// migrateParcels does what the plan says.
func migrateParcels(t task) (sample, error) {
	ctx := context.Background()
	job, _, head, way, err := parcelsNow(ctx, t.setting)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	_, _, err = migrate.State(ctx, migrate.Options{
		Store: job.Store(), Job: parcelJob, Way: way, Stored: head.State, Path: "migrated.avro", Workers: runtime.GOMAXPROCS(0),
		Memory: func(_, bytes int64) int64 { return bytes },
	})
	if err != nil {
		return nil, err
	}
	return sample{wallSeconds: time.Since(began).Seconds()}, job.Store().Delete(ctx, parcelJob+"/migrated.avro")
}

// chill has the system forget what it has read of the parcels' segments; false if
// there is no command for that.
func chill(s setting) bool {
	all, err := filepath.Glob(filepath.Join(parcelFolder(s), parcelJob, "*", "*.avro"))
	if err != nil || len(all) == 0 {
		return false
	}
	for _, file := range all {
		if exec.Command("dd", "if="+file, "iflag=nocache", "count=0", "status=none").Run() != nil {
			return false
		}
	}
	return true
}

func measurePlan(b *bench) ([]Result, error) {
	if err := os.RemoveAll(parcelFolder(b.setting)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(parcelFolder(b.setting))
	if _, err := b.child("parcels.write", ""); err != nil {
		return nil, err
	}
	cold, forgotten := sample(nil), chill(b.setting)
	if forgotten {
		var err error
		if cold, err = b.child("plan.sample", ""); err != nil {
			return nil, err
		}
	}
	var best sample
	for range 3 {
		s, err := b.child("plan.sample", "")
		if err != nil {
			return nil, err
		}
		best = lesser(best, s, wallSeconds)
	}
	whole, err := b.child("parcels.migrate", "")
	if err != nil {
		return nil, err
	}
	if best["bytes"] < float64(b.setting.scale(1e9)) {
		return nil, errors.New("the state is too small")
	}
	r := Result{
		Name: "plan.sample", Value: best[wallSeconds], Unit: "s",
		What: fmt.Sprintf("from the start of the process to a plan for a state of %.2f GB that is to be migrated, tried on 1,000 entries", best["bytes"]/1e9),
	}.within(2)
	r.note("%.0f segments; the plan says that the migration takes %.1f s; it takes %.1f s and %.1f CPU-s on %d processors", best["segments"], best["estimate"], whole[wallSeconds], whole[processCPU], runtime.GOMAXPROCS(0))
	if forgotten {
		r.note("with nothing of the segments in memory it takes %.2f s", cold[wallSeconds])
	}
	return []Result{r}, nil
}
