package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
)

// cleaning are the flags of gc.
type cleaning struct {
	keep   time.Duration
	epochs int
	dryRun bool
}

func gcCommand(p *place) *cobra.Command {
	var g cleaning
	c := &cobra.Command{
		Use:   "gc [JOB]",
		Short: "Remove what no epoch that is kept needs",
		Long: `Remove from the store the epochs of a job that need not be kept, and the segments and
outboxes that only they refer to. Kept are the newest epochs, by their age and their
number, and besides what deliveries, branches that follow, pins and savepoints need.

A running job does it by itself, in the background. The command may be used while the
job runs and while it doesn't, also twice at once, and be stopped at any moment.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			return g.clean(c, p, name)
		},
	}
	f := c.Flags()
	f.DurationVar(&g.keep, "keep", clean.DefaultKeep, "keep the epochs of this `time` before the newest")
	f.IntVar(&g.epochs, "keep-epochs", clean.DefaultKeepEpochs, "keep at least this `number` of epochs")
	f.BoolVar(&g.dryRun, "dry-run", false, "only tell what would be removed (default false)")
	f.Bool("json", false, "write it as a JSON object (default false)")
	return c
}

// cleaned is what a clean-up of a job did.
type cleaned struct {
	Job       string       `json:"job"`
	DryRun    bool         `json:"dry_run"`
	Manifests int64        `json:"epochs_removed"`
	Objects   int64        `json:"objects_removed"`
	Bytes     int64        `json:"bytes"`
	Logs      []cleanedLog `json:"logs"`
}

// cleanedLog is what it did to one log. What is kept counts epochs, each by the
// first reason that it is kept for.
type cleanedLog struct {
	Branch    string      `json:"branch"`
	Task      string      `json:"task"`
	Gone      bool        `json:"gone"` // nothing is kept of the log
	Floor     epoch.Epoch `json:"floor"`
	Manifests int64       `json:"epochs_removed"`
	Objects   int64       `json:"objects_removed"`
	Bytes     int64       `json:"bytes"`
	Kept      int64       `json:"kept"`
	Owed      int64       `json:"kept_for_deliveries"`
	Followed  int64       `json:"kept_for_followers"`
	Pinned    int64       `json:"kept_for_pins"`
}

func (g cleaning) clean(c *cobra.Command, p *place, name string) error {
	switch {
	case g.keep < 0:
		return usagef("--keep %v: 0 or more", g.keep)
	case g.epochs < 1:
		return usagef("--keep-epochs %d: at least 1", g.epochs)
	case g.keep == 0:
		g.keep = -1 // 0 would be the default
	}
	job, err := p.job(c.Context(), name)
	if err != nil {
		return err
	}
	progress, end := gcProgress(c.ErrOrStderr(), p.env.Clock)
	result := cleaned{Job: job.Name(), DryRun: g.dryRun, Logs: []cleanedLog{}}
	cleaner := clean.New(job, clean.Options{Keep: g.keep, KeepEpochs: g.epochs, DryRun: g.dryRun, Progress: progress})
	sum, err := cleaner.Each(c.Context(), func(branch, task string, r clean.Result) {
		result.Logs = append(result.Logs, logOf(branch, task, r))
	})
	end()
	if err != nil {
		return err
	}
	result.Manifests, result.Objects, result.Bytes = sum.Manifests, sum.Objects, sum.Bytes
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), result)
	}
	return result.write(c.OutOrStdout())
}

func logOf(branch, task string, r clean.Result) cleanedLog {
	l := cleanedLog{
		Branch: branch, Task: task, Gone: r.Floor == epoch.AllEpochs, Floor: r.Floor,
		Manifests: r.Manifests, Objects: r.Objects, Bytes: r.Bytes,
		Kept: r.Left.Kept, Owed: r.Left.Owed, Followed: r.Left.Followed, Pinned: r.Left.Pinned,
	}
	if l.Gone {
		l.Floor = 0
	}
	return l
}

// gcProgress tells on a terminal what has gone, and how fast; how much there is to
// remove isn't known before. end takes the line away.
func gcProgress(errs io.Writer, clock env.Clock) (progress func(branch, task string, r clean.Result), end func()) {
	if _, ok := terminal(errs); !ok {
		return nil, func() {}
	}
	line, began := &screen{w: errs}, clock.Now()
	return func(branch, task string, r clean.Result) {
		rate := float64(r.Manifests+r.Objects) / max(clock.Now().Sub(began).Seconds(), 0.001)
		line.show(fmt.Sprintf("branch %s, task %s · %s epochs · %s objects · %s · %s/s",
			branch, task, count(r.Manifests), count(r.Objects), size(r.Bytes), count(int64(rate))))
	}, func() { line.show("") }
}

func (r cleaned) write(w io.Writer) error {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	if _, err := fmt.Fprintf(w, "%s %s epochs, and %s objects of %s\n\n", verb, count(r.Manifests), count(r.Objects), size(r.Bytes)); err != nil {
		return err
	}
	t := newTable(text("branch"), text("task"), number("oldest"), number("removed"), number("kept"),
		number("for deliveries"), number("for followers"), number("for pins"))
	for _, l := range r.Logs {
		oldest := count(l.Floor)
		if l.Gone {
			oldest = "gone"
		}
		t.row(l.Branch, l.Task, oldest, count(l.Manifests), count(l.Kept), count(l.Owed), count(l.Followed), count(l.Pinned))
	}
	return t.write(w)
}
