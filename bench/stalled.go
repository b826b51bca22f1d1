package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// stallLength is for how long the store takes nothing, warmEpochs are the epochs
// before that.
func stallLength(s setting) (stall time.Duration, warmEpochs int64) {
	if s.Quick {
		return 5 * time.Second, 5
	}
	return time.Minute, 30
}

// stallingStore is a folder that takes nothing while it stalls.
type stallingStore struct {
	*store.Folder
	stalled atomic.Bool
	over    chan struct{} // closed when the stall is over
}

func (s *stallingStore) wait() {
	if s.stalled.Load() {
		<-s.over
	}
}

// Create implements [store.Store].
func (s *stallingStore) Create(ctx context.Context, name string, data []byte) error {
	s.wait()
	return s.Folder.Create(ctx, name, data)
}

// Replace implements [store.Store].
func (s *stallingStore) Replace(ctx context.Context, name string, data []byte) error {
	s.wait()
	return s.Folder.Replace(ctx, name, data)
}

// Upload implements [store.Store].
func (s *stallingStore) Upload(ctx context.Context, name string) (store.Upload, error) {
	up, err := s.Folder.Upload(ctx, name)
	return stallingUpload{up, s}, err
}

type stallingUpload struct {
	store.Upload
	s *stallingStore
}

// Commit implements [store.Upload].
func (u stallingUpload) Commit(ctx context.Context) error {
	u.s.wait()
	return u.Upload.Commit(ctx)
}

// stalledJob runs a job at full input, lets its store stall, and measures the
// most memory that it has had until then and until the stall's end. It fails if
// the job doesn't go on afterwards.
func stalledJob(t task) (sample, error) {
	dir, err := os.MkdirTemp(t.Dir, "stalled-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	folder, err := store.OpenFolder(env.Real(), filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	st := &stallingStore{Folder: folder, over: make(chan struct{})}
	length, warm := stallLength(t.setting)
	s, told := sample{}, make(chan int64, 1000)
	var epochs atomic.Int64
	o := sluice.Options{Store: st, Log: quiet(), Committed: func(sluice.Committed) { told <- epochs.Add(1) }}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- endlessPayments(dir).Run(ctx, o) }()
	until := func(n int64) error {
		for {
			select {
			case e := <-told:
				if e >= n {
					return nil
				}
			case err := <-ended:
				return fmt.Errorf("the job has ended before epoch %d: %v", n, err)
			}
		}
	}
	if err := until(warm); err != nil {
		return nil, err
	}
	st.stalled.Store(true)
	if err := notePeak(s, "before"); err != nil {
		return nil, err
	}
	time.Sleep(length)
	if err := notePeak(s, "stalled"); err != nil {
		return nil, err
	}
	s["meanwhile"] = float64(epochs.Load() - warm)
	st.stalled.Store(false)
	close(st.over)
	if err := until(epochs.Load() + 5); err != nil {
		return nil, err
	}
	stop()
	return s, <-ended
}

func notePeak(s sample, name string) error {
	peak, err := peakMemory()
	s[name] = float64(peak)
	return err
}

// endlessPayments is a job that reads as fast as it can, and delivers its table
// to files.
func endlessPayments(dir string) *sluice.Job {
	names := userNames()
	source := numbers[payment]{count: 1 << 50, partitions: 4, value: make([]byte, 100), decoder: func() func(*connector.Batch, int, *payment) error {
		return func(b *connector.Batch, i int, v *payment) error {
			n := uint64(b.Records[i].Offset) * 0x9E3779B97F4A7C15
			*v = payment{names[n%allKeys], int64(n >> 54)}
			return nil
		}
	}}
	job := sluice.NewJob("stalled")
	job.From("payments", source).KeyBy(payment.user).
		Fold(sluice.NewState[string, spend]("spend"), (*spend).add).
		To("spend_by_user", file.Upsert(filepath.Join(dir, "out"), func(_ string, s spend) spend { return s }))
	return job
}

func measureStalled(b *bench) ([]Result, error) {
	s, err := b.child("stalled", "")
	if err != nil {
		return nil, err
	}
	length, warm := stallLength(b.setting)
	r := Result{
		Name: "stalled.memory", Value: s["stalled"] / 1e6, Unit: "MB",
		What: fmt.Sprintf("peak memory of a job at full input, 1M keys, whose store takes nothing for %v; floor: the peak before, %d epochs of 1 s", length, warm),
	}.against(s["before"] / 1e6).atMost(1.3)
	r.note("%.0f epochs were committed from the stall's begin to its end; afterwards the job went on", s["meanwhile"])
	return []Result{r}, nil
}
