package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// farmName is the name of the job with a long past, farmRecords what it reads
// before that is made up, farmUsers the number of its keys: few, since a start is
// measured, and not how long it loads.
const (
	farmName    = "farm"
	farmRecords = 100_000
	farmUsers   = 1000
)

// farm is a store in which a job has many epochs.
type farm struct {
	epochs int
	dir    string
}

// farmOf is the farm that a task's variant names: its epochs, and after a space
// whatever else the task wants to know.
func farmOf(t task) (f farm, rest string, err error) {
	number, rest, _ := strings.Cut(t.Variant, " ")
	if f.epochs, err = strconv.Atoi(number); err != nil {
		return f, "", fmt.Errorf("a farm's epochs: %w", err)
	}
	return farm{f.epochs, filepath.Join(t.Dir, "farm-"+number)}, rest, nil
}

// farming is the job, which reads payments up to a count.
func farming(count int64, reading func() error) *sluice.Job {
	var names [farmUsers]string
	for i := range names {
		names[i] = userName(i)
	}
	source := numbers[payment]{count: count, partitions: 4, value: []byte("x"), reading: reading, decoder: func() func(*connector.Batch, int, *payment) error {
		return func(b *connector.Batch, i int, v *payment) error {
			n := b.Records[i].Offset
			*v = payment{names[n%farmUsers], n & 1023}
			return nil
		}
	}}
	job := sluice.NewJob(farmName)
	job.From("payments", source).KeyBy(payment.user).
		Fold(sluice.NewState[string, spend]("spend"), (*spend).add)
	return job
}

// earlier is a clock of some time ago.
type earlier struct {
	env.Clock
	by time.Duration
}

func (c earlier) Now() time.Time { return c.Clock.Now().Add(-c.by) }

// makeFarm runs the job for a short while, as if that had been long ago, and
// writes an epoch for each second since, past the store and unsynced: what counts
// is that they are there. Each has a segment of its own, which the next ones keep
// for a while, if the variant says so.
func makeFarm(t task) (sample, error) {
	f, rest, err := farmOf(t)
	if err != nil {
		return nil, err
	}
	world := env.Real()
	world.Clock = earlier{world.Clock, time.Duration(f.epochs) * time.Second}
	st, err := store.OpenFolder(world, f.dir)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := farming(farmRecords, nil).Run(ctx, sluice.Options{Store: st, Env: world, Log: quiet(), EpochBytes: farmRecords / 4}); err != nil {
		return nil, err
	}
	job, err := epoch.FindJob(ctx, world, st, farmName)
	if err != nil {
		return nil, err
	}
	head, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		return nil, err
	}
	p := newPlanter(filepath.Join(f.dir, farmName))
	err = p.plant(head, f.epochs, rest == "segments")
	if failed := p.wait(); err == nil {
		err = failed
	}
	syscall.Sync() // or the first fsync of a start would pay for all of it
	return sample{"bytes": float64(p.bytes)}, err
}

// planter writes files, some at once.
type planter struct {
	folder  string
	files   chan plantedFile
	writing sync.WaitGroup
	mu      sync.Mutex
	err     error
	bytes   int // of the last manifest
}

type plantedFile struct {
	path string
	data []byte
}

func newPlanter(folder string) *planter {
	p := &planter{folder: folder, files: make(chan plantedFile, 1000)}
	for range 2 {
		p.writing.Go(func() {
			for file := range p.files {
				if err := os.WriteFile(filepath.Join(folder, file.path), file.data, 0o644); err != nil {
					p.mu.Lock()
					p.err = err
					p.mu.Unlock()
				}
			}
		})
	}
	return p
}

func (p *planter) wait() error {
	close(p.files)
	p.writing.Wait()
	return p.err
}

// segmentsKept is how many of its segments an epoch of the farm refers to.
const segmentsKept = 6

// plant writes the epochs that follow a head.
func (p *planter) plant(head epoch.Head, epochs int, segments bool) error {
	m, hash := head.Manifest, head.Hash
	real := m.State["spend"]
	for i := range 8 { // as many batches as an ordinary epoch has
		m.Runs = append(m.Runs, epoch.Run{Source: "payments", Partition: "0", Next: farmRecords - 8 + int64(i)})
	}
	var planted []epoch.Segment
	for i := range epochs {
		m.Epoch, m.Position, m.Kind, m.Parent = m.Epoch+1, m.Position+1, epoch.Data, hash
		m.Time, m.Now = m.Time+1_000_000, m.Now+1_000_000
		state := real
		if segments && i < epochs-1 { // the last one can be restored
			path := fmt.Sprintf("%sdata/%020d-%s-%d-spend.avro", epoch.LogPath(m.Branch, m.Task), m.Epoch, m.Owner, i+1000)
			p.files <- plantedFile{path, make([]byte, 2000)}
			planted = append(planted, epoch.Segment{Path: path, Slots: epoch.AllSlots, Rows: 50, Bytes: 2000, SHA256: hash})
			planted = planted[max(0, len(planted)-segmentsKept):]
			state.Segments = append(append([]epoch.Segment{}, real.Segments...), planted...)
		}
		m.State = map[string]epoch.StateEntry{"spend": state}
		data, err := m.Encode()
		if err != nil {
			return err
		}
		p.files <- plantedFile{epoch.ManifestPath(m.Branch, m.Task, m.Epoch), data}
		hash, p.bytes = epoch.Hash(data), len(data)
	}
	return nil
}

// fell removes a farm, its files in the order in which they were made: the file
// system's own order takes it several times as long.
func (b *bench) fell(epochs int) error {
	dir := filepath.Join(b.setting.Dir, fmt.Sprintf("farm-%d", epochs))
	for _, folder := range []string{"", "data"} {
		folder = filepath.Join(dir, farmName, epoch.LogPath(epoch.MainBranch, epoch.FirstTask), folder)
		files, err := os.ReadDir(folder) // sorted
		if err != nil {
			break // it was never made
		}
		for _, file := range files {
			if !file.IsDir() {
				os.Remove(filepath.Join(folder, file.Name())) // what stays goes below
			}
		}
	}
	return os.RemoveAll(dir)
}
