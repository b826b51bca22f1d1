package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// startJob starts a job without input on an empty store, and measures the time
// until its first manifest stands.
func startJob(t task) (sample, error) {
	dir, err := os.MkdirTemp(t.Dir, "start-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	folder, err := store.OpenFolder(env.Real(), filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	st := &firstManifest{Store: folder}
	source := numbers[purchase]{partitions: 1, decoder: func() func(*connector.Batch, int, *purchase) error {
		return func(*connector.Batch, int, *purchase) error { return nil }
	}}
	job := sluice.NewJob("start")
	job.From("purchases", source).
		Filter(purchase.paid).
		Map(purchase.payment).
		KeyBy(payment.user).
		Fold(sluice.NewState[string, spend]("spend"), (*spend).add)
	if err := job.Run(context.Background(), sluice.Options{Store: st, Log: quiet()}); err != nil {
		return nil, err
	}
	if st.at.IsZero() {
		return nil, errors.New("the job has made no manifest")
	}
	return sample{wallSeconds: st.at.Sub(time.Unix(0, t.Started)).Seconds(), "creates": float64(st.creates)}, nil
}

// firstManifest notes when the first manifest has been created.
type firstManifest struct {
	store.Store
	at      time.Time
	creates int // up to then
}

// Probe lets a start try the store, as it does one that isn't watched.
func (s *firstManifest) Probe(ctx context.Context, o store.ProbeOptions) (store.ProbeReport, error) {
	return s.Store.(*store.Folder).Probe(ctx, o)
}

// Create implements [store.Store].
func (s *firstManifest) Create(ctx context.Context, name string, data []byte) error {
	err := s.Store.Create(ctx, name, data)
	if s.at.IsZero() {
		s.creates++
		if err == nil && isManifest(name, data) {
			s.at = time.Now()
		}
	}
	return err
}

// isManifest tells whether an object is an epoch's manifest: it stands in a
// task's log, with a number for a name.
func isManifest(name string, data []byte) bool {
	base := strings.TrimSuffix(filepath.Base(name), ".json")
	return strings.Contains(name, "/branches/") && len(base) == 20 && strings.Trim(base, "0123456789") == "" && bytes.Contains(data, []byte(`"owner"`))
}

func measureStart(b *bench) ([]Result, error) {
	var best sample
	for range 7 {
		s, err := b.child("start", "")
		if err != nil {
			return nil, err
		}
		best = lesser(best, s, wallSeconds)
	}
	r := Result{
		Name: "start.empty", Value: best[wallSeconds] * 1e3, Unit: "ms",
		What: "from the start of the process to the owner's first manifest on an empty store; floor: an empty Go program, from start to end",
		Why:  "the objects that must be durable one after the other, and the hash of the executable",
	}.against(b.machine.empty.Seconds() * 1e3).within(300)
	r.note("%.0f objects are created until then", best["creates"])
	r.note("the value is %s", b.machine.inUnits(best[wallSeconds]))
	return []Result{r}, nil
}
