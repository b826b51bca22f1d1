package cli

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Job is what the command line of a job's own binary has to know of it.
type Job struct {
	// Name is the job's name.
	Name string
	// Check tells what is wrong with the job as it was put together.
	Check func() error
	// Version describes the job. It is called once Check has found nothing.
	Version func() epoch.Version
	// Ways say how the job's states come from what is stored, by their names. It is
	// called once Check has found nothing.
	Ways func(stored func(name string) *carry.Stored) map[string]*carry.Way
	// CheckSinks asks the sinks that can tell whether this build could open them.
	CheckSinks func(ctx context.Context, o SinkChecks) []SinkCheck
	// CheckSources asks the sources whether they still have what lies behind offsets.
	CheckSources func(ctx context.Context, o SourceChecks) []SourceCheck
	// Run runs the job until its input ends, or ctx does.
	Run func(ctx context.Context, s Settings) error
	// Follow begins a branch that follows the live one and takes its place, and runs the
	// job from then on.
	Follow func(ctx context.Context, s Settings, f FollowSettings) error
	// Deliver delivers what sinks are owed that the live build lacks.
	Deliver func(ctx context.Context, s Settings) ([]Rest, error)
	// Import makes the job's first epoch.
	Import func(ctx context.Context, s ImportSettings) (Imported, error)
}

// Settings are how the job is to run.
type Settings struct {
	Store           store.Store
	Epoch, Grace    time.Duration
	Shards, Workers int
	Drop, Gap       []string
	SetAside        map[string]string
	// Rewrite is what is to be written anew, by sink.
	Rewrite map[string]string
	Replace bool
	Log     *slog.Logger
	// TransactionPrefix begins the names of the job's transactions; empty: as it was
	// made.
	TransactionPrefix string
	// Lease, TakeOver, Keep, KeepEpochs, Savepoints, MemoryLimit, Volatile, Listener
	// and Asked are the job's options of these names.
	Lease time.Duration
	// ResumeAfter, Resume, Standby, Fresh, FreshFrom and RepeatOutputs are the job's
	// options of these names.
	ResumeAfter            time.Duration
	Resume, Standby, Fresh bool
	FreshFrom              string
	AbandonAfter           time.Duration
	FollowAfterCut         bool
	// OnSuperseded is exit or wait: what a process does whose build was replaced.
	OnSuperseded  string
	RepeatOutputs []string
	TakeOver      bool
	Keep          time.Duration
	KeepEpochs    int
	Savepoints    string
	MemoryLimit   int64
	Volatile      bool
	Listener      net.Listener
	Asked         func(what, by string)
	// Committed is told of each epoch that was committed.
	Committed func(Committed)
}

// Committed is an epoch that was committed.
type Committed struct {
	Epoch, Position      uint64
	Records, DeadLetters int64
	// Partitions tell how far each partition has been read.
	Partitions []Partition
}

// Partition is how far a partition has been read.
type Partition struct {
	Source    string `json:"source"`
	Partition string `json:"partition"`
	// Next is the offset to be read next, End that behind the last record.
	Next int64 `json:"next"`
	End  int64 `json:"end"`
}

// RunJob is the command line of a job's own binary. It returns the exit code.
func RunJob(job Job, args []string) int {
	return execute(jobCommand(job), args, os.Stdout, os.Stderr)
}

func jobCommand(job Job) *cobra.Command {
	p := new(place)
	root := &cobra.Command{
		Use:   filepath.Base(os.Args[0]),
		Short: "The job " + job.Name,
		Long: "The job " + job.Name + `.

Every flag can be set in the environment as well, --epoch as SLUICE_EPOCH, or in a
file of settings, as a line epoch = 2s: sluice.conf in the working folder, or what
--config or SLUICE_CONFIG names. A flag goes before the environment, the environment
before the file; run --print-settings shows what holds, and why.

` + exitCodes(),
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return settle(c, settingNames(c.Root()), nil)
		},
	}
	p.addTo(root)
	addConfig(root)
	status := statusCommand(p)
	status.Use, status.Args = "status", arguments(0, 0)
	status.RunE = func(c *cobra.Command, _ []string) error { return printStatus(c, p, job.Name) }
	stop := stopCommand(p)
	stop.Use, stop.Args = "stop", arguments(0, 0)
	group(root, printsSettings(runCommand(job, p)), upgradeCommand(job, p), rollbackCommand(job, p), resumeCommand(job, p), deliverCommand(job, p), jobBranchCommand(job, p), planCommand(job, p), importCommand(job, p), stop, status, describeCommand(job))
	completer{p, job.Name}.complete(root)
	return root
}
