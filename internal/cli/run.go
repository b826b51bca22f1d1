package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/operate"
)

// running are the flags of run.
type running struct {
	settings  Settings
	level     string
	json      bool
	gcPercent int
	memory    string
	listen    string
	rewrite   []string
}

// defaultListen is where metrics, health and profiles are served: on this
// machine only.
const defaultListen = "localhost:7070"

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
	r.addTo(c.Flags())
	f, s := c.Flags(), &r.settings
	f.BoolVar(&s.Replace, "replace", false, "run this build although another one has replaced it (default false)")
	f.BoolVar(&s.Standby, "standby", false, "follow the process that runs the job, and take its place when it gives no sign of life for a lease (default false)")
	f.BoolVar(&s.Fresh, "fresh", false, "begin anew with an empty state, on a new branch that is live at once; the old one is kept (default false)")
	f.StringVar(&s.FreshFrom, "from", "", "where --fresh begins: `earliest`, latest, or the first records from a time on, as 2026-11-30T09:00:00Z (default none)")
	f.StringArrayVar(&s.RepeatOutputs, "repeat-outputs", nil, "let a `sink` that is appended to get outputs again that it has, with --fresh; may be repeated (default none)")
	return c
}

// addTo adds the flags of whatever runs the job.
func (r *running) addTo(f *pflag.FlagSet) {
	s := &r.settings
	f.DurationVar(&s.Epoch, "epoch", time.Second, "the `time` after its first record at which an epoch is committed")
	f.IntVar(&s.Shards, "shards", runtime.GOMAXPROCS(0), "the `number` of goroutines that own the state")
	f.IntVar(&s.Workers, "workers", runtime.GOMAXPROCS(0), "the `number` of goroutines that decode")
	f.DurationVar(&s.Grace, "grace", 20*time.Second, "the `time` that deliveries may take once the job is to stop")
	addConsents(f, &s.Drop, &s.Gap)
	addSetAside(f, &s.SetAside, "put entries of a state that a migration can't carry over into a file, as `STATE=FILE`")
	f.StringArrayVar(&r.rewrite, "rewrite", nil, "at a change of the version, write a table's sink anew, as `SINK=MODE`: touched writes rows as their keys change, all writes all, changed those of all that differ; may be repeated (default touched; all at a rollback, and where a branch begins with a state of its own)")
	f.StringVar(&s.TransactionPrefix, "transaction-prefix", "", "what the `names` of the job's transactions in Kafka begin with; fixed at the first start (default the job's name and a slash)")
	f.DurationVar(&s.Lease, "lease", 10*time.Second, "the `time` without a sign of life after which a process that stands by takes the job over")
	f.BoolVar(&s.TakeOver, "takeover", false, "take the job over from a process that runs it, now; that one ends with exit code 11 (default false)")
	f.DurationVar(&s.Keep, "keep", 10*time.Minute, "the `time` for which epochs are kept at least")
	f.IntVar(&s.KeepEpochs, "keep-epochs", 100, "the `number` of epochs that are kept at least; -1 keeps all")
	f.StringVar(&s.Savepoints, "savepoints", "", "make savepoints by a `schedule` such as hourly=24,daily=7,10m=6: of the first epoch in each full hour, day, week (weekly) or other time, UTC, and how many of them are kept (default none)")
	addMemoryLimit(f, &r.memory)
	f.BoolVar(&s.Volatile, "volatile", false, "let the store be on a file system that forgets it when the machine stops (default false)")
	f.StringVar(&r.listen, "listen", defaultListen, "the `address` that serves metrics, health and profiles; empty: none")
	mayBeEmpty(f, "listen")
	f.DurationVar(&s.ResumeAfter, "resume-after", time.Minute, "the `time` after which this build goes on behind a branch that was sealed, if no other does")
	f.DurationVar(&s.AbandonAfter, "abandon-after", 7*24*time.Hour, "the `time` without a sign of life after which a branch that follows this one is given up")
	f.BoolVar(&s.FollowAfterCut, "follow-after-cut", false, "go on following, on a new branch, once another build has taken over (default false)")
	f.StringVar(&s.OnSuperseded, "on-superseded", "exit", "`what` to do once another build has taken over: exit (code 12), or wait, alive and not ready, until the process is ended")
	f.StringVar(&r.level, "log-level", "info", "what is logged, from this `level` on: debug, info, warn or error")
	f.BoolVar(&r.json, "json", false, "write each event as a JSON object to standard output (default false)")
	f.IntVar(&r.gcPercent, "gc-percent", memory.DefaultGCPercent, "the garbage collector's target, a `number` as GOGC has it")
}

func (r *running) run(c *cobra.Command, job Job, p *place) error {
	return r.start(c, job, p, func(ctx context.Context, _ *report) error { return job.Run(ctx, r.settings) })
}

// start readies the process, and has run run the job until it ends or a signal comes.
func (r *running) start(c *cobra.Command, job Job, p *place, run func(ctx context.Context, show *report) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return err
	}
	var err error
	if r.settings.Rewrite, err = parseRewrite(r.rewrite); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(r.level)); err != nil {
		return usagef("--log-level %s: use debug, info, warn or error", r.level)
	}
	limit, err := memoryLimit(r.memory)
	if err != nil {
		return err
	}
	if r.memory != "" {
		r.settings.MemoryLimit = limit.Bytes
	}
	memory.Tune(limit, r.gcPercent, c.Flags().Changed("gc-percent"), os.Getenv)
	s, err := p.open()
	if err != nil {
		return err
	}
	show := newReport(job.Name, c.OutOrStdout(), c.ErrOrStderr(), r.json, level, lagUnits(job.Version()))
	r.settings.Store, r.settings.Log, r.settings.Committed = s, show.log, show.committed
	show.start()
	show.own.Info("starting", "store", p.absolute())

	asked := ""
	r.settings.Asked = func(what, by string) { asked = what + " requested by " + by }
	if err := r.open(c, job.Name, show.own); err != nil {
		return err
	}
	why, err := untilSignal(c.Context(), func() {
		show.own.Info("stopping: the open epoch is committed and delivered; once more ends the process at once", "grace", r.settings.Grace.String())
	}, func(ctx context.Context) error { return run(ctx, show) })
	if asked != "" && err == nil {
		why = asked
	}
	show.stopped(err, why)
	return err
}

// parseRewrite reads what is to be written anew, by sink.
func parseRewrite(flags []string) (map[string]string, error) {
	modes := map[string]string{}
	for _, text := range flags {
		sink, mode, ok := strings.Cut(text, "=")
		if !ok || !slices.Contains([]string{"touched", "changed", "all"}, mode) {
			return nil, usagef("--rewrite %s: SINK=touched, SINK=changed or SINK=all", text)
		}
		modes[sink] = mode
	}
	return modes, nil
}

// open opens the address at which the job is to be looked at. The default one
// is left out if something else has it: a second copy on a machine is to run all
// the same.
func (r *running) open(c *cobra.Command, job string, log *slog.Logger) error {
	if r.listen == "" {
		return nil
	}
	l, err := operate.Listen(c.Context(), job, r.listen)
	if err != nil && !c.Flags().Changed("listen") {
		log.Warn("metrics and health are not served: the default address is taken; name another one with --listen", "address", r.listen)
		return nil
	}
	r.settings.Listener = l
	return err
}

// isAddress tells whether a text is a host and a port.
func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	n, nerr := strconv.ParseUint(port, 10, 16)
	return err == nil && nerr == nil && n <= 65535
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

// mostShards bounds the goroutines that decode, and those that own the state:
// more than any machine has cores.
const mostShards = 1024

// shortestLease leaves an owner time to say that it lives.
const shortestLease = 100 * time.Millisecond

func (r *running) check() error {
	s := r.settings
	switch {
	case s.OnSuperseded != "exit" && s.OnSuperseded != "wait":
		return usagef("--on-superseded %s: exit or wait", s.OnSuperseded)
	case s.AbandonAfter <= 0:
		return usagef("--abandon-after %v: a time above 0, such as 168h", s.AbandonAfter)
	case s.Fresh && s.Standby:
		return usagef("--fresh and --standby: one of the two")
	case s.Fresh != (s.FreshFrom != ""):
		return usagef("--fresh and --from: both or none, as --fresh --from earliest")
	case len(s.RepeatOutputs) > 0 && !s.Fresh:
		return usagef("--repeat-outputs: only with --fresh")
	case s.Epoch <= 0:
		return usagef("--epoch %v: a time above 0, such as 1s", s.Epoch)
	case s.Shards < 1 || s.Shards > mostShards:
		return usagef("--shards %d: 1 to %d", s.Shards, mostShards)
	case s.Workers < 1 || s.Workers > mostShards:
		return usagef("--workers %d: 1 to %d", s.Workers, mostShards)
	case r.listen != "" && !isAddress(r.listen):
		return usagef("--listen %s: an address as host:port, such as %s; empty for none", r.listen, defaultListen)
	case s.Grace <= 0:
		return usagef("--grace %v: a time above 0, such as 20s", s.Grace)
	case s.Lease < shortestLease:
		return usagef("--lease %v: at least %v, such as 10s", s.Lease, shortestLease)
	case s.Keep <= 0:
		return usagef("--keep %v: a time above 0, such as 10m", s.Keep)
	case s.KeepEpochs < 1 && s.KeepEpochs != -1:
		return usagef("--keep-epochs %d: at least 1, or -1 to keep all", s.KeepEpochs)
	}
	if _, err := epoch.ParseSchedules(s.Savepoints); err != nil {
		return usagef("--savepoints: %w", err)
	}
	return nil
}

// addMemoryLimit adds the flag that says how much memory the job may have.
func addMemoryLimit(f *pflag.FlagSet, size *string) {
	f.StringVar(size, "memory-limit", "", "the memory that the process may use, as a `size` such as 2GiB (default what the cgroup, GOMEMLIMIT and the machine allow)")
}

// memoryLimit is what that flag says, or what the process may have.
func memoryLimit(size string) (memory.Limit, error) {
	if size == "" {
		return memory.OfProcess(), nil
	}
	bytes, err := memory.ParseSize(size)
	if err != nil {
		return memory.Limit{}, usagef("--memory-limit: %w", err)
	}
	return memory.Limit{Bytes: bytes, Source: memory.FromFlag}, nil
}

// addConsents adds the flags that let data go.
func addConsents(f *pflag.FlagSet, drop, gap *[]string) {
	f.StringArrayVar(drop, "drop", nil, "drop the data of a `state`, of a field as STATE.FIELD, or of a sink's column as SINK.COLUMN; may be repeated (default none)")
	f.StringArrayVar(gap, "gap", nil, "let a `sink` that is back go on without what it did not get meanwhile; may be repeated (default none)")
}
