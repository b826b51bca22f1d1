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
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
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
}

func main() {
	var s settings
	flag.StringVar(&s.folder, "folder", ".", "holds in, out, store and progress")
	flag.BoolVar(&s.follow, "follow", false, "follow the input as it grows")
	flag.IntVar(&s.shards, "shards", 2, "shards")
	flag.DurationVar(&s.epoch, "epoch", 50*time.Millisecond, "length of an epoch")
	flag.Int64Var(&s.epochBytes, "epoch-bytes", 64<<10, "bytes per epoch")
	flag.IntVar(&s.batch, "batch", 256, "records per batch")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	seen, err := openCounter(filepath.Join(s.folder, "progress"))
	if err != nil {
		return err
	}
	e := env.Real()
	folder, err := store.OpenFolder(e, filepath.Join(s.folder, "store"))
	if err != nil {
		return err
	}
	fmt.Println("started")
	return shop(s, seen).Run(context.Background(), sluice.Options{
		Env: e, Store: folder, Volatile: true, Shards: s.shards, Epoch: s.epoch, EpochBytes: s.epochBytes, BatchRecords: s.batch,
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Committed: func(sluice.Committed) { fmt.Println("committed") },
	})
}

// counter counts records in a page that is shared with the file behind it.
type counter struct {
	count *atomic.Uint64
	first sync.Once
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
