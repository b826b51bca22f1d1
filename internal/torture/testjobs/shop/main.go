// Command shop is a job to be killed: orders are keyed by user, what comes of
// that is keyed by shop, and the users' accounts are regrouped by level, into
// five sinks. It tells through a shared page how many records it has taken up,
// which survives its death, and prints when it starts, when the first record has
// come, and when an epoch is committed.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/store"
)

// settings are what differs from one run to the next.
type settings struct {
	folder     string
	follow     bool
	shards     int
	epoch      time.Duration
	epochBytes int64
	batch      int
	faults     uint64
}

func main() {
	var s settings
	flag.StringVar(&s.folder, "folder", ".", "holds in, out, store and progress")
	flag.BoolVar(&s.follow, "follow", false, "follow the input as it grows")
	flag.IntVar(&s.shards, "shards", 2, "shards")
	flag.DurationVar(&s.epoch, "epoch", 50*time.Millisecond, "length of an epoch")
	flag.Int64Var(&s.epochBytes, "epoch-bytes", 64<<10, "bytes per epoch")
	flag.IntVar(&s.batch, "batch", 256, "records per batch")
	flag.Uint64Var(&s.faults, "faults", 0, "seed by which calls of the file system go wrong; 0: none do")
	flag.Parse()
	seen, err := openCounter(filepath.Join(s.folder, "progress"))
	if err == nil {
		err = run(s, seen)
	}
	for s.faults != 0 && err != nil { // as a supervisor would
		fmt.Fprintln(os.Stderr, "again, after:", err)
		s.faults++
		err = run(s, seen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(s settings, seen *counter) error {
	e := env.Real()
	if s.faults != 0 {
		e = faultenv.Wrap(e, faultenv.Places{Store: filepath.Join(s.folder, "store")}, faultenv.Hooks{Before: faults(s.faults)})
	}
	folder, err := store.OpenFolder(e, filepath.Join(s.folder, "store"))
	if err != nil {
		return err
	}
	seen.started.Do(func() { fmt.Println("started") })
	return shop(s, seen).Run(context.Background(), sluice.Options{
		Env: e, Store: folder, Volatile: true, Shards: s.shards, Epoch: s.epoch, EpochBytes: s.epochBytes, BatchRecords: s.batch,
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Committed: func(sluice.Committed) { fmt.Println("committed") },
	})
}

// oneOf is how many calls of the file system there are for one that goes wrong.
const oneOf = 400

// faults lets some calls of the file system go wrong: they are not done, or they
// are and their reply is lost.
func faults(seed uint64) func(faultenv.Call) faultenv.Fault {
	return func(c faultenv.Call) faultenv.Fault {
		rng := rand.New(rand.NewPCG(seed, uint64(c.N)))
		if c.Path == "" || rng.IntN(oneOf) != 0 {
			return faultenv.Fault{}
		}
		errs := []syscall.Errno{syscall.EIO, syscall.EIO, syscall.ENOSPC, syscall.EACCES}
		return faultenv.Fault{Err: errs[rng.IntN(len(errs))], Done: rng.IntN(2) == 0}
	}
}

// counter counts records in a page that is shared with the file behind it.
type counter struct {
	count          *atomic.Uint64
	started, first sync.Once
}

func openCounter(path string) (*counter, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, binary.Size(uint64(0)), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &counter{count: (*atomic.Uint64)(unsafe.Pointer(&page[0]))}, nil
}

// see counts a record. It keeps all of them.
func (c *counter) see(Order) bool {
	c.count.Add(1)
	c.first.Do(func() { fmt.Println("first record") })
	return true
}
