package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

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
	// Run runs the job until its input ends, or ctx does.
	Run func(ctx context.Context, s Settings) error
}

// Settings are how the job is to run.
type Settings struct {
	Store           store.Store
	Epoch, Grace    time.Duration
	Shards, Workers int
	Drop, Gap       []string
	Replace         bool
	Log             *slog.Logger
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

Every flag can be set in the environment as well: --epoch as SLUICE_EPOCH.

Exit codes: 0 done, 1 error, 2 wrong usage, 10 stopped with deliveries pending (the
next run makes them first), 11 fenced by another process, 12 replaced by another
build, 13 this build doesn't fit the stored state, 14 damaged store, 15 a sink
disagrees, 16 bad input, 17 the state doesn't fit in memory.`,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return fromEnvironment(c.Flags()) },
	}
	p.addTo(root)
	status := statusCommand(p)
	status.Use, status.Args = "status", arguments(0, 0)
	status.RunE = func(c *cobra.Command, _ []string) error { return printStatus(c, p, job.Name) }
	return group(root, runCommand(job, p), status, describeCommand(job))
}
