package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// running are the flags of run.
type running struct {
	settings  Settings
	level     string
	json      bool
	gcPercent int
}

func runCommand(job Job, p *place) *cobra.Command {
	var r running
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the job, or go on where it stood",
		Long: `Run the job from where it stood, until its input ends or it is told to stop.

SIGTERM and ^C close the open epoch, commit it and deliver what is pending for at
most --grace; a second one ends the process at once, which loses nothing either.

On a terminal a line shows how far the job is; otherwise its log goes to standard
error. With --json each event is a JSON object in a line of standard output:
opened, committed (with the epoch's number, position and records, and how far each
partition has been read), stopped, and whatever else is logged.

The garbage collector is told to let the heap grow to five times what is live
(GOGC=400) within 90% of the memory that the process may use, by its cgroup or by
the machine. GOGC, --gc-percent and GOMEMLIMIT overrule that.`,
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return r.run(c, job, p) },
	}
	f := c.Flags()
	s := &r.settings
	f.DurationVar(&s.Epoch, "epoch", time.Second, "the `time` after its first record at which an epoch is committed")
	f.IntVar(&s.Shards, "shards", runtime.GOMAXPROCS(0), "the `number` of goroutines that own the state")
	f.IntVar(&s.Workers, "workers", runtime.GOMAXPROCS(0), "the `number` of goroutines that decode")
	f.DurationVar(&s.Grace, "grace", 20*time.Second, "the `time` that deliveries may take once the job is to stop")
	f.StringArrayVar(&s.Drop, "drop", nil, "drop the data of a `state`, or of a field as STATE.FIELD; may be repeated (default none)")
	f.StringArrayVar(&s.Gap, "gap", nil, "let a `sink` that is back go on without what it did not get meanwhile; may be repeated (default none)")
	f.BoolVar(&s.Replace, "replace", false, "run this build although another one has replaced it (default false)")
	f.StringVar(&r.level, "log-level", "info", "what is logged, from this `level` on: debug, info, warn or error")
	f.BoolVar(&r.json, "json", false, "write each event as a JSON object to standard output (default false)")
	f.IntVar(&r.gcPercent, "gc-percent", defaultGCPercent, "the garbage collector's target, a `number` as GOGC has it")
	return c
}

func (r *running) run(c *cobra.Command, job Job, p *place) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(r.level)); err != nil {
		return usagef("--log-level %s: use debug, info, warn or error", r.level)
	}
	tuneMemory(r.gcPercent, c.Flags().Changed("gc-percent"))
	s, err := p.open()
	if err != nil {
		return err
	}
	show := newReport(c.OutOrStdout(), c.ErrOrStderr(), r.json, level, lagUnits(job.Version()))
	r.settings.Store, r.settings.Log, r.settings.Committed = s, show.log, show.committed
	show.start()
	show.log.Info("starting", "job", job.Name, "store", p.absolute())

	why, err := untilSignal(c.Context(), func() {
		show.log.Info("stopping: the open epoch is committed and delivered; once more ends the process at once", "grace", r.settings.Grace.String())
	}, func(ctx context.Context) error { return job.Run(ctx, r.settings) })
	show.stopped(err, why)
	return err
}

// untilSignal calls run with a context that the first signal ends, and says why
// it came to an end. A second signal ends the process.
func untilSignal(ctx context.Context, stopping func(), run func(ctx context.Context) error) (why string, err error) {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer restore()
	told := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		restore() // to what a signal does by itself
		stopping()
		close(told)
	})
	err = run(ctx)
	if forget() {
		if err != nil {
			return "error", err
		}
		return "end of input", nil
	}
	<-told
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it was still starting, and has begun nothing
	}
	return "signal", err
}

func (r *running) check() error {
	s := r.settings
	switch {
	case s.Epoch <= 0:
		return usagef("--epoch %v: a time above 0, such as 1s", s.Epoch)
	case s.Shards < 1:
		return usagef("--shards %d: at least 1", s.Shards)
	case s.Workers < 1:
		return usagef("--workers %d: at least 1", s.Workers)
	case s.Grace <= 0:
		return usagef("--grace %v: a time above 0, such as 20s", s.Grace)
	}
	return nil
}
