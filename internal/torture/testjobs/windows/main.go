// Command windows is a job to be killed that goes by event time: windows that tumble,
// those that hop and share panes, sessions, and a timer, each with an output for what
// came too late. It prints when it starts, when the first record has come, and when an
// epoch is committed, and kills itself at a step that it is given: before or after a call
// of its environment, by its name and the how-manieth of that name it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/store"
)

func main() {
	folder := flag.String("folder", ".", "holds in, out and store")
	size := flag.Duration("size", 4*time.Second, "of the tumbling windows")
	follow := flag.Bool("follow", false, "follow the input as it grows")
	at := flag.String("at", "", "the step, such as \"link manifest after\", at which to die")
	nth := flag.Int("nth", 1, "the how-manieth of its name")
	var o sluice.Options
	flag.IntVar(&o.Shards, "shards", 2, "shards")
	flag.DurationVar(&o.Epoch, "epoch", 50*time.Millisecond, "length of an epoch")
	flag.Int64Var(&o.EpochBytes, "epoch-bytes", 64<<10, "bytes per epoch")
	flag.IntVar(&o.BatchRecords, "batch", 256, "records per batch")
	flag.Parse()
	if err := run(o, *folder, *size, *follow, death{*at, *nth}); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(o sluice.Options, folder string, size time.Duration, follow bool, d death) error {
	stored, out := filepath.Join(folder, "store"), filepath.Join(folder, "out")
	places := faultenv.Places{Store: stored, Inputs: filepath.Join(folder, "in")}
	for _, sink := range []string{"tumbling", "hopping", "sessions", "buckets"} {
		places.Sinks = append(places.Sinks, filepath.Join(out, sink), filepath.Join(out, "late_"+sink))
	}
	var err error
	o.Env = faultenv.Wrap(env.Real(), places, d.hooks())
	if o.Store, err = store.OpenFolder(o.Env, stored); err != nil {
		return err
	}
	fmt.Println("started")
	var first sync.Once
	job := windows(folder, size, follow, func(Tick) bool {
		first.Do(func() { fmt.Println("first record") })
		return true
	})
	o.Volatile, o.Log = true, slog.New(slog.NewTextHandler(os.Stderr, nil))
	o.Committed = func(sluice.Committed) { fmt.Println("committed") }
	return job.Run(context.Background(), o)
}

// death is a step at which the process dies.
type death struct {
	step string
	nth  int
}

func (d death) hooks() faultenv.Hooks {
	return faultenv.Hooks{
		Before: func(c faultenv.Call) faultenv.Fault {
			d.reach(c.Name+" before", c.Nth)
			return faultenv.Fault{}
		},
		After: func(c faultenv.Call) { d.reach(c.Name+" after", c.Nth) },
	}
}

func (d death) reach(step string, nth int) {
	if step != d.step || nth != d.nth {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // it comes at once, but not before the next line
}
