package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// account is a value of about 80 bytes, with its key about 100.
type account struct {
	Orders, Cents, Seen int64
	Name, City, Note    string
}

// accountOf is the account number i as it is opened.
func accountOf(i int64) account {
	return account{
		Orders: i % 100, Cents: i * 7919 % 10_000_000, Seen: 1_770_000_000_000_000 + i,
		Name: "Name " + strconv.FormatInt(i*2654435761, 16), City: "Philadelphia", Note: "some note of no importance, " + strconv.FormatInt(i%1000, 10),
	}
}

const (
	allAccounts = 10_000_000
	restoreJobs = "restore" // the job's name
)

func restoreFolder(s setting) string { return filepath.Join(s.Dir, "restore") }

// restoring is a job that holds the accounts; reading is called once they are
// loaded. Their table goes to sinks, if there are any.
func restoring(s setting, reading func() error, sinks ...connector.TableSink[string, account]) *sluice.Job {
	source := numbers[int64]{count: int64(s.scale(allAccounts)), partitions: 4, value: make([]byte, 100), reading: reading, decoder: func() func(*connector.Batch, int, *int64) error {
		return func(b *connector.Batch, i int, v *int64) error {
			*v = b.Records[i].Offset
			return nil
		}
	}}
	job := sluice.NewJob(restoreJobs)
	accounts := job.From("numbers", source).
		KeyBy(accountName).
		Fold(sluice.NewState[string, account]("accounts"), func(a *account, i int64) { *a = accountOf(i) })
	for _, sink := range sinks {
		accounts.To("accounts_out", sink)
	}
	return job
}

// restoreWrite runs the job once, so that there is something to restore.
func restoreWrite(t task) (sample, error) {
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	return sample{}, restoring(t.setting, nil).Run(context.Background(), sluice.Options{Store: st, Log: quiet(), Epoch: time.Hour})
}

// restoreJob measures a restart from its first instruction to the moment at
// which input is about to be read.
func restoreJob(t task) (sample, error) {
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	s := sample{}
	job := restoring(t.setting, func() error {
		s[wallSeconds] = time.Since(time.Unix(0, t.Started)).Seconds()
		return measureRestored(s)
	})
	return s, job.Run(context.Background(), sluice.Options{Store: st, Log: quiet(), Epoch: time.Hour})
}

// measureRestored fills in what the process has taken so far, and what is left
// of the memory once there is no garbage in it.
func measureRestored(s sample) error {
	s[cpuSeconds] = cpu().Seconds()
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s["peak"], s["left"] = float64(peak), float64(m.HeapAlloc)
	return nil
}

// restoreFloor reads the same objects, block by block, decodes the records and
// puts them into a map that has room for them.
func restoreFloor(t task) (sample, error) {
	ctx := context.Background()
	st, err := store.OpenFolder(env.Real(), restoreFolder(t.setting))
	if err != nil {
		return nil, err
	}
	segments, err := storedSegments(ctx, st, restoreJobs, "accounts")
	if err != nil {
		return nil, err
	}
	m := make(map[string]account, t.scale(allAccounts))
	size := int64(0)
	for _, s := range segments {
		size += s.Bytes
		err := loadByHand(ctx, st, restoreJobs, s.Path, func(src []byte) []byte {
			key, a, rest := decodeAccount(src)
			m[key] = a
			return rest
		})
		if err != nil {
			return nil, err
		}
	}
	if len(m) != t.scale(allAccounts) {
		return nil, fmt.Errorf("expected %d accounts, found %d", t.scale(allAccounts), len(m))
	}
	s := sample{"segments": float64(len(segments)), "bytes": float64(size)}
	err = measureRestored(s)
	runtime.KeepAlive(m)
	return s, err
}

func storedSegments(ctx context.Context, st store.Store, jobName, state string) ([]epoch.Segment, error) {
	job, err := epoch.OpenJob(ctx, env.Real(), st, jobName, "")
	if err != nil {
		return nil, err
	}
	head, err := job.Head(ctx, epoch.MainBranch, epoch.FirstTask)
	if err != nil {
		return nil, err
	}
	return head.Manifest.State[state].Segments, nil
}

// loadByHand goes through a segment; load takes the entry that comes next, and
// returns what is behind it.
func loadByHand(ctx context.Context, st store.Store, job, path string, load func(src []byte) []byte) error {
	o, err := st.Open(ctx, job+"/"+path)
	if err != nil {
		return err
	}
	defer o.Close()
	r, err := avrofile.NewReader(io.NewSectionReader(o, 0, o.Size()))
	if err != nil {
		return err
	}
	var block []byte
	for {
		var n int
		if block, n, err = r.Next(block); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for src := block; n > 0; n-- {
			src = load(src)
		}
	}
}

// decodeAccount decodes a record whose bytes are known to be good.
func decodeAccount(src []byte) (key string, a account, rest []byte) {
	_, n := binary.Varint(src) // the slot
	key, src = takeText(src[n:])
	src = src[1:] // there is a value
	a.Orders, src = takeNumber(src)
	a.Cents, src = takeNumber(src)
	a.Seen, src = takeNumber(src)
	a.Name, src = takeText(src)
	a.City, src = takeText(src)
	a.Note, src = takeText(src)
	return key, a, src
}

func takeNumber(src []byte) (int64, []byte) {
	v, n := binary.Varint(src)
	return v, src[n:]
}

func takeText(src []byte) (string, []byte) {
	v, n := binary.Varint(src)
	return string(src[n : n+int(v)]), src[n+int(v):]
}

func measureRestore(b *bench) ([]Result, error) {
	if err := os.RemoveAll(restoreFolder(b.setting)); err != nil {
		return nil, err
	}
	if _, err := b.child("restore.write", ""); err != nil {
		return nil, err
	}
	defer os.RemoveAll(restoreFolder(b.setting))
	s, floor, err := b.compare("restore", "restore.floor", "", cpuSeconds, 2)
	if err != nil {
		return nil, err
	}
	entries := b.setting.scale(allAccounts)
	time := Result{
		Name: "restore", Value: s[cpuSeconds], Unit: "CPU-s",
		What: fmt.Sprintf("from the start of the process to the first input, %.1fM entries of about 100 bytes; floor: decode the same objects by hand into a map of the right size", float64(entries)/1e6),
		Why:  "each of an entry's texts is allocated by itself, here as in the floor; beyond it, the bytes are hashed and held against the manifest",
	}.against(floor[cpuSeconds])
	time = time.within(14 * float64(entries) / allAccounts).both(time.atMost(2))
	time.note("%.0f segments, %.0f MB", floor["segments"], floor["bytes"]/1e6)
	time.note("the value is %s", b.machine.inUnits(s[cpuSeconds]))
	memory := Result{
		Name: "restore.memory", Value: s["peak"] / 1e6, Unit: "MB",
		What: "peak memory of that process; floor: the finished maps",
		Why:  "what is under way between the disk and the tables, and whatever garbage the collector had no reason to collect yet",
	}.against(s["left"] / 1e6).atMost(1.5)
	memory.note("the floor's own peak is %.0f MB, its finished map %.0f MB", floor["peak"]/1e6, floor["left"]/1e6)
	return []Result{time, memory}, nil
}
