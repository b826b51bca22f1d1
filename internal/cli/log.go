package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// entry is one epoch of a log.
type entry struct {
	Epoch       epoch.Epoch      `json:"epoch"`
	Kind        epoch.Kind       `json:"kind"`
	Position    epoch.Position   `json:"position"`
	Time        string           `json:"time"`
	Records     int64            `json:"records"`
	DeadLetters int64            `json:"dead_letters"`
	Outputs     map[string]int64 `json:"outputs"` // rows by sink
	States      map[string]int64 `json:"states"`  // entries written by state
	Build       epoch.Build      `json:"build"`
	Owner       string           `json:"owner"`
	Writer      epoch.Writer     `json:"writer"`
	By          string           `json:"by,omitempty"` // who sealed the branch

	micros int64
}

// stateCount begins the names under which manifests count the entries written.
const stateCount = "state."

func entryOf(m epoch.Manifest) entry {
	e := entry{
		Epoch: m.Epoch, Kind: m.Kind, Position: m.Position, Time: stamp(m.Time), micros: m.Time,
		Records: m.Counts["records"], DeadLetters: m.Counts["dead_letters"],
		Outputs: map[string]int64{}, States: map[string]int64{},
		Build: m.Build, Owner: m.Owner, Writer: m.Writer, By: m.By,
	}
	for name, n := range m.Counts {
		if state, ok := strings.CutPrefix(name, stateCount); ok {
			e.States[state] = n
		}
	}
	for name, sink := range m.Sinks {
		for _, o := range sink.Outbox {
			e.Outputs[name] += o.Rows
		}
	}
	return e
}

// logging are the flags of log.
type logging struct {
	limit         int
	since, branch string
}

func logCommand(p *place) *cobra.Command {
	var l logging
	c := &cobra.Command{
		Use:   "log [JOB]",
		Short: "The epochs of a job, newest first",
		Long: `The epochs of a job's branch, the newest first: what each has read, put out and
changed in the state, and the build that wrote it. An epoch of the kind data holds
records; base begins a branch, open is an owner's beginning or note, seal ends the
branch. With --json each is an object in a line of its own.`,
		Args: arguments(0, 1),
	}
	f := c.Flags()
	f.IntVarP(&l.limit, "limit", "n", 20, "the `number` of epochs shown at most; 0: all that are kept")
	f.StringVar(&l.since, "since", "", "only epochs of the last `time`, as 10m, or since one, as 2026-01-31T12:00:00Z")
	f.StringVar(&l.branch, "branch", "", "the `branch`; defaults to the live one")
	f.Bool("json", false, "write JSON (default false)")
	c.RunE = func(c *cobra.Command, args []string) error {
		name, _ := argument(args, 1)
		return l.print(c, p, name)
	}
	return c
}

func (l logging) print(c *cobra.Command, p *place, name string) error {
	if l.limit < 0 {
		return usagef("--limit %d: 0 or more", l.limit)
	}
	since, err := sinceTime(l.since, p.env.Clock.Now())
	if err != nil {
		return err
	}
	job, err := p.job(c.Context(), name)
	if err != nil {
		return err
	}
	if l.branch == "" {
		if l.branch, err = liveBranch(c.Context(), job); err != nil {
			return err
		}
	}
	entries, err := entriesOf(c.Context(), job, l.branch, l.limit, since.UnixMicro())
	if err != nil {
		return err
	}
	if !asJSON(c) {
		return writeEntries(c.OutOrStdout(), entries)
	}
	for _, e := range entries {
		if err := writeJSON(c.OutOrStdout(), e); err != nil {
			return err
		}
	}
	return nil
}

// sinceTime reads a time, or a duration before now; empty is the time 0.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.UnixMicro(0), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d.Abs()), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usagef("--since %s: neither a duration, as 10m, nor a time, as 2026-01-31T12:00:00Z", text)
	}
	return at, nil
}

// logPage is how many epochs are read at once, from the oldest of them on.
const logPage = 100

// entriesOf reads the epochs of a branch, the newest first: at most limit of
// them, if that is not 0, and none from before a time.
func entriesOf(ctx context.Context, job *epoch.Job, branch string, limit int, since int64) ([]entry, error) {
	head, err := job.Head(ctx, branch, epoch.FirstTask)
	if err != nil {
		return nil, err
	}
	var entries []entry
	last := head.Manifest.Epoch
	if head.Sealed() {
		last = head.Seal.Epoch
	}
	for to := last; ; {
		page := epoch.Epoch(logPage)
		if limit > 0 {
			page = min(page, epoch.Epoch(limit-len(entries)))
		}
		from := to - min(to, page-1)
		var older []entry
		for m, err := range job.Manifests(ctx, branch, epoch.FirstTask, from, to) {
			if err != nil {
				return nil, err
			}
			older = append(older, entryOf(m))
		}
		for _, e := range slices.Backward(older) {
			if e.micros < since {
				return entries, nil
			}
			entries = append(entries, e)
		}
		// Fewer than were asked for: clean-up has been here.
		if from == 0 || epoch.Epoch(len(older)) < to-from+1 || len(entries) == limit && limit > 0 {
			return entries, nil
		}
		to = from - 1
	}
}

func writeEntries(w io.Writer, entries []entry) error {
	t := newTable(number("epoch"), text("kind"), number("position"), text("time"), number("records"),
		number("dead"), number("rows out"), number("state rows"), text("build"))
	for _, e := range entries {
		t.row(fmt.Sprint(e.Epoch), string(e.Kind), fmt.Sprint(e.Position), moment(e.micros), count(e.Records),
			count(e.DeadLetters), count(total(e.Outputs)), count(total(e.States)), buildName(e.Build))
	}
	return t.write(w)
}

func total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// buildName names a build shortly: by its source, if that is known, and by its
// executable.
func buildName(b epoch.Build) string {
	if b.Revision == "" {
		return short(b.Executable)
	}
	revision, dirty := strings.CutSuffix(b.Revision, "+dirty")
	if dirty {
		return short(revision) + "+ " + short(b.Executable)
	}
	return short(revision) + " " + short(b.Executable)
}
