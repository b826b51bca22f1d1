// Command steps is a job that can be stopped at each of its steps: before and
// after each call of the clock, of randomness and of the file system. A step has
// a name and a number, the how-manieth of its name. It is given both and a
// signal, which it sends to itself there, or it records what steps it takes.
//
// Any command but run is the job's usual command line. The job runs in the
// working directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/faultenv"
	"github.com/sluicestream/sluice/store"
)

const storeFolder = "store"

// settings are what differs from one run to the next.
type settings struct {
	shape        shape
	upgrade      bool
	rollback     bool
	again        bool
	replace      bool
	backfill     bool
	soak         time.Duration
	takeOver     bool
	lease, grace time.Duration
	epochBytes   int64
	epoch        time.Duration
	keepEpochs   int
	savepoints   string
	leaps        bool
	steps        steps
}

func main() {
	if len(os.Args) < 2 || os.Args[1] != "run" {
		sluice.Main(build(shape{}))
	}
	if err := run(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code := 1
		if coded := (interface{ ExitCode() int })(nil); errors.As(err, &coded) {
			code = coded.ExitCode()
		}
		os.Exit(code)
	}
}

func run(args []string) error {
	var s settings
	f := flag.NewFlagSet("run", flag.ExitOnError)
	f.BoolVar(&s.shape.second, "second", false, "run the job's second version")
	f.BoolVar(&s.shape.third, "third", false, "run the job's third version")
	f.BoolVar(&s.shape.fourth, "fourth", false, "run the job's fourth version")
	f.BoolVar(&s.shape.windows, "windows", false, "run the job with windows")
	f.BoolVar(&s.upgrade, "upgrade", false, "take over from another version")
	f.BoolVar(&s.rollback, "rollback", false, "go back to this version")
	f.BoolVar(&s.again, "again", false, "go back once more")
	f.BoolVar(&s.replace, "replace", false, "run a version that was replaced")
	f.BoolVar(&s.backfill, "backfill", false, "fill sinks that are new before the branch takes over")
	f.DurationVar(&s.soak, "soak", 0, "how long a branch follows before it takes over")
	f.BoolVar(&s.shape.follow, "follow", false, "follow the input as it grows")
	f.BoolVar(&s.shape.hanging, "hanging", false, "never end a delivery of receipts")
	f.BoolVar(&s.shape.waiting, "waiting", false, "end deliveries of receipts when told to stop, not before")
	f.BoolVar(&s.takeOver, "takeover", false, "take the branch from an owner that lives")
	f.DurationVar(&s.lease, "lease", 10*time.Second, "how long an owner may be silent")
	f.DurationVar(&s.grace, "grace", 10*time.Second, "how long deliveries may take at the end")
	f.DurationVar(&s.epoch, "epoch", time.Second, "length of an epoch")
	f.Int64Var(&s.epochBytes, "epoch-bytes", 600, "bytes per epoch")
	f.IntVar(&s.keepEpochs, "keep-epochs", 2, "how many epochs are kept, besides those of the last millisecond")
	f.StringVar(&s.savepoints, "savepoints", "", "the schedule of savepoints")
	f.BoolVar(&s.leaps, "leaps", false, "let the wall clock leap by hours and years at each reading")
	f.StringVar(&s.steps.record, "record", "", "write each step and how often it came to this file")
	f.StringVar(&s.steps.at, "at", "", "the step, such as \"link manifest after\", at which to send the signal")
	f.IntVar(&s.steps.nth, "nth", 1, "the how-manieth of its name")
	f.StringVar(&s.steps.behind, "behind", "", "count steps only behind a line of the log that begins with this")
	f.BoolVar(&s.steps.pause, "pause", false, "stop there until SIGCONT comes, instead of being killed")
	if err := f.Parse(args); err != nil {
		return err
	}
	err := s.run()
	return errors.Join(err, s.steps.write())
}

func (s *settings) run() error {
	world := faultenv.Wrap(env.Real(), faultenv.Places{Store: storeFolder, Sinks: []string{receipts, accounts, ledger, seen, short, long}, Inputs: inputs}, s.steps.hooks())
	if s.leaps {
		world.Clock = faultenv.Stepping(world.Clock, leap)
	}
	folder, err := store.OpenFolder(world, storeFolder)
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer restore()
	rewrite := map[string]string{}
	if s.shape.second {
		rewrite["accounts"] = "all"
	}
	start := func(job *sluice.Job, o sluice.Options) error { return job.Run(ctx, o) }
	switch change := (sluice.Upgrade{Auto: true, Soak: s.soak, Again: s.again, Backfill: s.backfill}); {
	case s.upgrade:
		start = func(job *sluice.Job, o sluice.Options) error { return job.Upgrade(ctx, o, change) }
	case s.rollback:
		start = func(job *sluice.Job, o sluice.Options) error { return job.Rollback(ctx, o, change) }
	}
	return start(build(s.shape), sluice.Options{
		Rewrite: rewrite,
		Env:     world, Store: folder, Shards: 2, Workers: 2, Epoch: s.epoch, EpochBytes: s.epochBytes, BatchRecords: 8,
		Grace: s.grace, Lease: s.lease, TakeOver: s.takeOver, Replace: s.replace, Keep: time.Millisecond, KeepEpochs: s.keepEpochs, Savepoints: s.savepoints,
		Volatile:  true, // what a kill leaves does not hang on a disk, and in memory it is tried in a tenth of the time
		Log:       slog.New(s.steps.listen(slog.NewTextHandler(os.Stderr, nil))),
		Committed: func(c sluice.Committed) { fmt.Println("committed", c.Epoch) },
	})
}

// leap is how far the wall clock leaps before its n-th reading: to and fro.
func leap(n int) time.Duration {
	const year = 365 * 24 * time.Hour
	return []time.Duration{time.Hour, -2 * time.Hour, year, -2 * year, time.Hour, year}[n%6]
}
