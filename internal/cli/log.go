package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
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
	// Records that came too late and those without a time, by operator, and times too
	// far ahead, by event time.
	Late    map[string]int64 `json:"late,omitempty"`
	Untimed map[string]int64 `json:"untimed,omitempty"`
	Ahead   map[string]int64 `json:"ahead,omitempty"`
	Build   epoch.Build      `json:"build"`
	Owner   string           `json:"owner"`
	Writer  epoch.Writer     `json:"writer"`
	By      string           `json:"by,omitempty"` // who sealed the branch

	micros int64
}

// stateCount begins the names under which manifests count the entries written.
const stateCount = "state."

func entryOf(m epoch.Manifest) entry {
	e := entry{
		Epoch: m.Epoch, Kind: m.Kind, Position: m.Position, Time: stamp(m.Time), micros: m.Time,
		Records: m.Counts["records"], DeadLetters: m.Counts["dead_letters"],
		Outputs: map[string]int64{}, States: map[string]int64{},
		Late: m.CountsOf(epoch.LateCount), Untimed: m.CountsOf(epoch.UntimedCount), Ahead: m.CountsOf(epoch.AheadCount),
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
	graph         bool
}

func logCommand(p *place) *cobra.Command {
	var l logging
	c := &cobra.Command{
		Use:   "log [JOB]",
		Short: "The epochs of a job, newest first",
		Long: `The epochs of a job's branch, the newest first: what each has read, put out and
changed in the state, and the build that wrote it. An epoch of the kind data holds
records; base begins a branch, open is an owner's beginning or note, seal ends the
branch. With --json each is an object in a line of its own.

--graph shows the epochs of all branches, and draws where each starts from: * is an
epoch of the live branch of its time, o one of a follower, x a seal.`,
		Args: arguments(0, 1),
	}
	f := c.Flags()
	f.IntVarP(&l.limit, "limit", "n", 20, "the `number` of epochs shown at most; 0: all that are kept")
	f.StringVar(&l.since, "since", "", "only epochs of the last `time`, as 10m, or since one, as 2026-01-31T12:00:00Z")
	f.StringVar(&l.branch, "branch", "", "the `branch`; defaults to the live one")
	f.BoolVar(&l.graph, "graph", false, "the epochs of all branches, drawn as a graph (default false)")
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
	if l.graph && l.branch != "" {
		return usagef("--graph shows all branches, --branch one; use one of the two")
	}
	since, err := sinceTime(l.since, p.env.Clock.Now())
	if err != nil {
		return err
	}
	job, err := p.job(c.Context(), name)
	if err != nil {
		return err
	}
	if l.graph {
		return l.printGraph(c, job, since.UnixMicro())
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
	return writeAll(c, entries, writeEntries)
}

func (l logging) printGraph(c *cobra.Command, job *epoch.Job, since int64) error {
	entries, err := graphOf(c.Context(), job, l.limit, since)
	if err != nil {
		return err
	}
	return writeAll(c, entries, writeGraph)
}

// writeAll writes things as a table, or with --json each in a line of its own.
func writeAll[T any](c *cobra.Command, all []T, table func(w io.Writer, all []T) error) error {
	if !asJSON(c) {
		return table(c.OutOrStdout(), all)
	}
	for _, one := range all {
		if err := writeJSON(c.OutOrStdout(), one); err != nil {
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
	last := head.Manifest.Epoch
	if head.Sealed() {
		last = head.Seal.Epoch
	}
	var entries []entry
	for m, err := range newestFirst(ctx, job, branch, last, limit, since) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entryOf(m))
	}
	return entries, nil
}

// newestFirst reads the epochs of a branch from one on backwards: at most limit of
// them, if that is not 0, and none from before a time.
func newestFirst(ctx context.Context, job *epoch.Job, branch string, last epoch.Epoch, limit int, since int64) iter.Seq2[epoch.Manifest, error] {
	return func(yield func(epoch.Manifest, error) bool) {
		told := 0
		for to := last; ; {
			page := epoch.Epoch(logPage)
			if limit > 0 {
				page = min(page, epoch.Epoch(limit-told))
			}
			from := to - min(to, page-1)
			var older []epoch.Manifest
			for m, err := range job.Manifests(ctx, branch, epoch.FirstTask, from, to) {
				if err != nil {
					yield(m, err)
					return
				}
				older = append(older, m)
			}
			for _, m := range slices.Backward(older) {
				if m.Time < since || !yield(m, nil) {
					return
				}
				told++
			}
			// Fewer than were asked for: clean-up has been here.
			if from == 0 || epoch.Epoch(len(older)) < to-from+1 || told == limit && limit > 0 {
				return
			}
			to = from - 1
		}
	}
}

func writeEntries(w io.Writer, entries []entry) error {
	columns := []column{number("epoch"), text("kind"), number("position"), text("time"), number("records"), number("dead")}
	timed := slices.ContainsFunc(entries, func(e entry) bool { return len(e.Late)+len(e.Untimed)+len(e.Ahead) > 0 })
	if timed {
		columns = append(columns, number("late"), number("untimed"), number("ahead"))
	}
	t := newTable(append(columns, number("rows out"), number("state rows"), text("build"))...)
	for _, e := range entries {
		cells := []string{fmt.Sprint(e.Epoch), string(e.Kind), fmt.Sprint(e.Position), moment(e.micros), count(e.Records), count(e.DeadLetters)}
		if timed {
			cells = append(cells, count(total(e.Late)), count(total(e.Untimed)), count(total(e.Ahead)))
		}
		t.row(append(cells, count(total(e.Outputs)), count(total(e.States)), buildName(e.Build))...)
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
