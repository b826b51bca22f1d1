package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Rest is what a sink was owed that the live build lacks.
type Rest struct {
	Sink string `json:"sink"`
	// Delivered and Pending count deliveries: those that were made now, and those that the
	// sink is owed still.
	Delivered int `json:"delivered"`
	Pending   int `json:"pending"`
	// Lacks says that this build lacks the sink as well.
	Lacks bool `json:"lacks,omitzero"`
}

func deliverCommand(job Job, p *place) *cobra.Command {
	var s Settings
	c := &cobra.Command{
		Use:   "deliver",
		Short: "Deliver what sinks are owed that the build which runs the job lacks",
		Long: `Deliver what sinks are still owed that this build has, and the build which runs the job
lacks: the process that was to do so at the cut has died, or its --grace was over.
` + "`status`" + ` tells what is pending. Each row is delivered once, whoever delivers; nothing is
read, and the job that runs is left alone. A process that may still be delivering is
given a --lease first. ^C leaves the rest owed, and the same again goes on with it.

` + exitCodes(exitDone, exitError, exitUsage, 10, 12, 14, 15),
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return deliverRest(c, job, p, s) },
	}
	f := c.Flags()
	f.DurationVar(&s.Lease, "lease", 10*time.Second, "the `time` for which a process that may be delivering is waited for")
	f.Bool("json", false, "write what came of it as a JSON object for each sink (default false)")
	return c
}

func deliverRest(c *cobra.Command, job Job, p *place, s Settings) error {
	if s.Lease < shortestLease {
		return usagef("--lease %v: %v or more, such as 10s", s.Lease, shortestLease)
	}
	if err := job.Check(); err != nil {
		return err
	}
	var err error
	if s.Store, err = p.open(); err != nil {
		return err
	}
	s.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	var all []Rest
	_, failed := untilSignal(c.Context(), func() {}, func(ctx context.Context) (err error) {
		all, err = job.Deliver(ctx, s)
		return err
	})
	if err := cmp.Or(failed, writeAll(c, all, writeRests)); err != nil {
		return err
	}
	var lacks []string
	pending := false
	for _, r := range all {
		pending = pending || r.Pending > 0
		if r.Lacks {
			lacks = append(lacks, r.Sink)
		}
	}
	switch {
	case lacks != nil:
		return fmt.Errorf("%s: this build lacks sink %s too: run `deliver` of one that has it", job.Name, strings.Join(lacks, ", "))
	case pending:
		return outcome(exitPending)
	}
	return nil
}

func writeRests(w io.Writer, all []Rest) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "nothing is owed to sinks that the build which runs the job lacks")
		return err
	}
	t := newTable(text("sink"), number("delivered"), number("pending"))
	for _, r := range all {
		t.row(r.Sink, count(r.Delivered), count(r.Pending))
	}
	return t.write(w)
}
