package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
	"github.com/sluicestream/sluice/store"
)

func fsckCommand(p *place) *cobra.Command {
	var deep, probe bool
	c := &cobra.Command{
		Use:   "fsck [JOB]",
		Short: "Check every object of a job",
		Long: `Checks every object of a job: its sum and its name, manifests against those before
them, every segment and outbox against the manifests that refer to it. It tells what
is damaged, what can't be done without it, and the newest epoch that is whole, and
changes nothing. The job may be running.

A hash finds all damage that was done to a file. By default each file is decoded as
well, which also finds what was written wrongly before it was hashed, and takes
about as long again; --deep=false leaves that out.

With --probe the folder itself is tried instead: two processes race for some
thousand names, of which each must have one winner, and the file system is named.

` + exitCodes(exitDone, exitError, exitUsage, 14),
		Args: arguments(0, 1),
	}
	f := c.Flags()
	f.BoolVar(&deep, "deep", true, "decode every file")
	f.BoolVar(&probe, "probe", false, "try whether the folder can be a store (default false)")
	f.Bool("json", false, "write what was found as a JSON object (default false)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if probe {
			return probeStore(c, p)
		}
		name, _ := argument(args, 1)
		return checkJob(c, p, name, deep)
	}
	return c
}

// damageError says that a check has found damage.
type damageError struct {
	job     string
	damaged int64
}

// Error implements error.
func (e damageError) Error() string {
	are := "is"
	if e.damaged != 1 {
		are = "are"
	}
	return fmt.Sprintf("%s: %s %s damaged: expected what was written, found what is listed above. Nothing was changed. Restore them from a copy of the store", e.job, several(e.damaged, "object"), are)
}

// ExitCode is the exit code of the command line.
func (e damageError) ExitCode() int { return 14 }

func checkJob(c *cobra.Command, p *place, name string, deep bool) error {
	s, name, err := p.findAny(c.Context(), name)
	if err != nil {
		return err
	}
	o := fsck.Options{Shallow: !deep}
	screen := &screen{w: c.ErrOrStderr()}
	if _, ok := terminal(screen.w); ok {
		o.Progress = (&checking{screen: screen, clock: p.env.Clock, began: p.env.Clock.Now()}).tell
	}
	report, err := fsck.Check(c.Context(), s, name, o)
	if o.Progress != nil {
		screen.show("")
	}
	if err != nil {
		return err
	}
	if asJSON(c) {
		err = writeJSON(c.OutOrStdout(), report)
	} else {
		err = writeReport(c.OutOrStdout(), report)
	}
	if err == nil && !report.Whole() {
		err = damageError{name, int64(len(report.Findings)) + report.More}
	}
	return err
}

// findAny opens a store and finds a job's name, also if the job's own record is
// what is missing.
func (p *place) findAny(ctx context.Context, name string) (store.Store, string, error) {
	entries, err := p.entries()
	if err != nil {
		return nil, "", err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && p.holdsJob(e.Name()) {
			names = append(names, e.Name())
		}
	}
	switch {
	case len(names) == 0:
		return nil, "", p.empty()
	case name == "" && len(names) > 1:
		return nil, "", usagef("the store %s has several jobs: %s; say which", p.absolute(), strings.Join(names, ", "))
	case name == "":
		name = names[0]
	case !slices.Contains(names, name):
		return nil, "", fmt.Errorf("%w It has: %s.", &epoch.NoJobError{Job: name, Store: p.absolute()}, strings.Join(names, ", "))
	}
	s, err := p.open()
	return s, name, err
}

// holdsJob tells whether a folder of the store is a job's.
func (p *place) holdsJob(name string) bool {
	for _, path := range []string{epoch.JobPath, "branches", "live"} {
		if _, err := p.env.Files.Stat(strings.Join([]string{p.path, name, path}, "/")); err == nil {
			return epoch.CheckName("job", name) == nil
		}
	}
	return false
}

// checking shows how far a check is.
type checking struct {
	screen *screen
	clock  env.Clock
	began  time.Time
	told   time.Time
}

// tellEach is the time between two looks at the progress.
const tellEach = 100 * time.Millisecond

func (c *checking) tell(p fsck.Progress) {
	now := c.clock.Now()
	if now.Sub(c.told) < tellEach {
		return
	}
	c.told = now
	c.screen.show(checkingLine(p, now.Sub(c.began)))
}

// checkingLine is the progress of a check that has taken some time.
func checkingLine(p fsck.Progress, took time.Duration) string {
	line := fmt.Sprintf("%s objects · %s of %s", count(p.Objects), size(p.Bytes), size(p.Total))
	rate := float64(p.Bytes) / took.Seconds()
	if took <= 0 || rate <= 0 {
		return line
	}
	left := time.Duration(float64(max(p.Total-p.Bytes, 0)) / rate * float64(time.Second))
	return fmt.Sprintf("%s · %s/s · about %s left", line, size(int64(rate)), left.Round(time.Second))
}

func writeReport(w io.Writer, r fsck.Report) error {
	style := stylesFor(w)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s, %s of files compared\n", style.head("job"), r.Job, several(r.Objects, "object"), size(r.Bytes))
	if r.LeftOvers > 0 {
		fmt.Fprintf(&b, "%s (%s) that nothing refers to: clean-up takes them in time\n", several(r.LeftOvers, "left-over file"), size(r.LeftOverBytes))
	}
	if r.ForeignCount > 0 {
		fmt.Fprintf(&b, "%s, left alone: %s%s\n", several(r.ForeignCount, "foreign object"), printable(strings.Join(r.Foreign, ", ")), dots(r.ForeignCount > int64(len(r.Foreign))))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n%s %s\n  expected  %s\n  found     %s\n", style.bad("damaged"), printable(f.Object), printable(f.Expected), printable(f.Found))
		for _, breaks := range f.Breaks {
			fmt.Fprintf(&b, "  breaks    %s\n", printable(breaks))
		}
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "\nand %s more\n", count(r.More))
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if err := logsTable(r.Logs).write(w); err != nil {
		return err
	}
	if r.Whole() {
		_, err := fmt.Fprintln(w, "\nnothing is damaged")
		return err
	}
	return nil
}

// several is a number of things.
func several(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(n) + " " + thing
}

func dots(more bool) string {
	if more {
		return ", …"
	}
	return ""
}

// logsTable says what can still be read.
func logsTable(logs []fsck.Log) *table {
	t := newTable(text("branch"), text("task"), number("epochs"), number("from"), number("head"), text("sealed"), number("newest whole"))
	for _, l := range logs {
		if l.Gone {
			t.row(l.Branch, l.Task, "0", "", "", "gone", "")
			continue
		}
		sealed, whole := "", "none"
		if l.Sealed {
			sealed = "yes"
		}
		if l.Whole != nil {
			whole = fmt.Sprint(*l.Whole)
		}
		t.row(l.Branch, l.Task, count(l.Epochs), fmt.Sprint(l.Floor), fmt.Sprint(l.Head), sealed, whole)
	}
	return t
}
