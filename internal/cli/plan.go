package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
)

// SinkCheck is what came of asking whether a sink could be opened.
type SinkCheck struct {
	// Sink is its name.
	Sink string
	// Refused says why it could not; nil if it could.
	Refused error
	// Unasked says why that is not known; nil if it is.
	Unasked error
}

// SinkChecks is what sinks are opened with.
type SinkChecks struct {
	Env                      *env.Env
	JobID, TransactionPrefix string
}

// planning are the flags of plan.
type planning struct {
	drop, gap []string
	from      string
	epoch     epochName
	offline   bool
	replace   bool
	follows   bool // plan for a branch that takes the live one's place
	backfill  bool // which fills sinks that are new
	trying    trying
	rollback  bool // plan from where this build was sealed
	version   epoch.Version
}

// planSettings are the settings that plan has in common with run: what its other
// flags mean is something else there.
var planSettings = []string{"store", "drop", "gap"}

func planCommand(job Job, p *place) *cobra.Command {
	var l planning
	c := &cobra.Command{
		Use:   "plan",
		Short: "What becomes of the job's state with this build, before anything is stopped",
		Long: `What becomes of the job's state, sources and sinks if this build goes on with it: it
is held against where the job stands, running or stopped, which is neither disturbed
nor changed. Each part has a line with one of these verdicts:

  same      nothing that matters has changed
  resolves  carried over by Avro's rules, or of no effect on what there is
  migrates  carried over by functions of the job's code
  partial   begins empty, or has lost a part of its past
  consent   data would be dropped: --drop and --gap allow it, here and in run
  replay    can't be carried over: a migration helps, or a new name
  refused   neither

run makes the same plan, and refuses the last two, and the third last without the
flags that it names. What is carried over is tried on some of the stored entries,
those that have not changed for the longest time and the largest values among them:
an entry that fails makes the state refused, and is named. Sinks are asked whether this build could open them (a table's
columns, a registry's rule of compatibility), unless --offline says not to.

` + exitCodes(exitDone, exitError, exitUsage, 14, 20, 21, 22, 23, 24),
		Args: arguments(0, 0),
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return settle(c, settingNames(c.Root()), planSettings)
		},
		RunE: func(c *cobra.Command, _ []string) error { return l.print(c, job, p) },
	}
	f := c.Flags()
	addConsents(f, &l.drop, &l.gap)
	f.StringVar(&l.from, "from", "", "plan from a `savepoint` instead of from where the job stands")
	f.Var(&l.epoch, "epoch", "plan from an `epoch`: its number, as log tells it, or a savepoint (default the newest)")
	f.BoolVar(&l.offline, "offline", false, "don't ask sinks (default false)")
	f.BoolVar(&l.replace, "replace", false, "plan for this build although another one has replaced it (default false)")
	l.trying.addTo(f)
	f.Bool("json", false, "write the plan as a JSON object (default false)")
	return c
}

// planned is a plan with what it is of, for machines and people.
type planned struct {
	Job      string `json:"job"`
	Store    string `json:"store"`
	NeverRan bool   `json:"never_ran,omitzero"`
	// The epoch to go on from, and whose state it is.
	Branch   string         `json:"branch,omitempty"`
	Task     string         `json:"task,omitempty"`
	Epoch    epoch.Epoch    `json:"epoch"`
	Position epoch.Position `json:"position"`
	Stored   *planSide      `json:"stored,omitempty"`
	This     planSide       `json:"this"`

	Lines    []*plan.Line `json:"lines"`
	Verdict  plan.Verdict `json:"verdict"`
	ExitCode int          `json:"exit_code"`

	past bool // it is of an epoch that was asked for
}

// planSide is a build and its version.
type planSide struct {
	Version string      `json:"version"`
	Build   epoch.Build `json:"build"`
}

func (l planning) print(c *cobra.Command, job Job, p *place) error {
	out, unasked, err := l.make(c.Context(), job, p)
	if err != nil {
		return err
	}
	if err := out.write(c); err != nil {
		return err
	}
	if out.ExitCode == exitError {
		return unasked
	}
	return outcome(out.ExitCode)
}

// make makes the plan; unasked names the sinks that could not be asked.
func (l planning) make(ctx context.Context, job Job, p *place) (out planned, unasked, err error) {
	if l.from != "" && l.epoch != "" {
		return out, nil, usagef("--from and --epoch: one of the two")
	}
	if err := l.trying.check(); err != nil {
		return out, nil, err
	}
	if err := job.Check(); err != nil {
		return out, nil, err
	}
	version := job.Version()
	out = planned{Job: job.Name, Store: p.absolute(), Lines: []*plan.Line{}, past: l.from != "" || l.epoch != ""}
	if out.This.Version, err = version.Hash(); err != nil {
		return out, nil, err
	}
	if out.This.Build, err = epoch.ThisExecutable(); err != nil {
		return out, nil, err
	}
	out.This.Build.Version = out.This.Version
	stored, m, err := l.stands(ctx, job.Name, p)
	if err != nil {
		return out, nil, err
	}
	if stored == nil {
		out.NeverRan = true
		return out, nil, nil
	}
	var in plan.Input
	looks := 0
	trials, err := l.trying.try(ctx, p.env, stored, func(ctx context.Context) (epoch.Manifest, map[string]*carry.Way, error) {
		if looks++; looks > 1 { // the epoch was cleaned away
			if stored, m, err = l.stands(ctx, job.Name, p); err != nil {
				return m, nil, err
			}
		}
		in, err = plan.Gather(ctx, stored, m, plan.Build{Version: version, Ways: job.Ways, Drop: l.drop, Gap: l.gap, Build: out.This.Build, Replace: l.replace, Follows: l.follows, Backfill: l.backfill})
		return m, in.Ways, err
	})
	if err != nil {
		return out, nil, err
	}
	made := plan.Compare(in)
	if !out.past {
		waiting, err := plan.ReadForgetting(ctx, stored, m)
		if err != nil {
			return out, nil, err
		}
		made.Await(waiting, plan.Moved(m, in.Ways, func(name string) bool { _, has := version.States[name]; return has }))
	}
	made.Attach(trials, plan.InTheWay(p.env.Files, l.trying.setAside))
	unasked = l.ask(ctx, job, stored, p.env, made)
	out.Branch, out.Task, out.Epoch, out.Position = m.Branch, m.Task, m.Epoch, m.Position
	out.Stored = &planSide{m.Version, m.Build}
	out.Lines, out.Verdict, out.ExitCode = made.Lines, made.Worst(), made.ExitCode()
	if unasked != nil && out.Verdict < plan.Refused {
		out.ExitCode = exitError
	}
	return out, unasked, nil
}

// stands finds the job and the epoch to plan from; nil if it has never run.
func (l planning) stands(ctx context.Context, name string, p *place) (*epoch.Job, epoch.Manifest, error) {
	job, err := p.held(ctx, name)
	if job == nil || err != nil {
		return nil, epoch.Manifest{}, err
	}
	var m epoch.Manifest
	if l.rollback {
		version, err := l.version.Hash()
		if err != nil {
			return job, m, err
		}
		from, err := job.SealedAt(ctx, epoch.FirstTask, version)
		if err != nil {
			return job, m, err
		}
		m, err = job.Manifest(ctx, from.Branch, epoch.FirstTask, from.Tasks[epoch.FirstTask])
		return job, m, err
	}
	if l.from != "" {
		m, err = savepointManifest(ctx, job, l.from, "")
	} else {
		m, err = l.epoch.manifest(ctx, job, "")
	}
	if none := (*epoch.NoLogError)(nil); errors.As(err, &none) {
		return nil, m, nil
	}
	if err == nil && m.Kind == epoch.Seal {
		err = fmt.Errorf("%s: epoch %d is the branch's seal, which has no state; plan from an epoch before it", name, m.Epoch)
	}
	return job, m, err
}

// held opens a job, and makes nothing; nil if the store, or the job, is not there.
func (p *place) held(ctx context.Context, name string) (*epoch.Job, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if info, err := p.env.Files.Stat(p.path); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() && !p.holdsJob(name) {
		return nil, nil
	}
	s, err := p.open()
	if err != nil {
		return nil, err
	}
	return epoch.FindJob(ctx, p.env, s, name)
}

// ask asks the sinks whether this build could open them. The error names those
// that could not be asked.
func (l planning) ask(ctx context.Context, job Job, stored *epoch.Job, e *env.Env, made *plan.Plan) error {
	if l.offline || job.CheckSinks == nil {
		return nil
	}
	var names []string
	for _, s := range job.CheckSinks(ctx, SinkChecks{Env: e, JobID: stored.ID(), TransactionPrefix: stored.TransactionPrefix()}) {
		if s.Refused != nil {
			made.Unfit(s.Sink, s.Refused)
		}
		if s.Unasked != nil {
			names = append(names, s.Sink)
			made.Unasked(s.Sink, s.Unasked)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: the plan lacks what could not be asked: sink %s; make it reachable, or leave such questions out with --offline", job.Name, strings.Join(names, ", "))
}

func (d planned) write(c *cobra.Command) error {
	w := c.OutOrStdout()
	if asJSON(c) {
		return writeJSON(w, d)
	}
	if d.NeverRan {
		_, err := fmt.Fprintf(w, "job %s has never run in the store %s: it begins with nothing\n", d.Job, printable(d.Store))
		return err
	}
	if _, err := io.WriteString(w, d.summary(stylesFor(w))); err != nil {
		return err
	}
	if err := d.table(stylesFor(w)).write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s (exit code %d)\n", printable(d.advice()), d.ExitCode)
	return err
}

// summary is what the plan is of.
func (d planned) summary(style styles) string {
	var b strings.Builder
	line := func(name, text string) { fmt.Fprintf(&b, "%-8s%s\n", name, printable(text)) }
	fmt.Fprintf(&b, "%s %s, branch %s, epoch %d, position %d\n", style.head("plan of"), d.Job, d.Branch, d.Epoch, d.Position)
	line("store", d.Store)
	line("stored", d.Stored.Build.String())
	line("this", d.This.Build.String())
	b.WriteByte('\n')
	return b.String()
}

// table has a row for each cause, note and thing to do, the part's name at the
// first.
func (d planned) table(style styles) *table {
	t := newTable(text("part"), text("name"), column{name: "verdict", paint: style.verdict}, text("why"))
	for _, l := range d.Lines {
		why := append([]string(nil), l.Causes...)
		for _, n := range l.Notes {
			why = append(why, "note: "+n)
		}
		if l.Trial != nil && l.Verdict != plan.Same {
			why = append(why, "tried: "+tried(l.Trial))
		}
		if l.Do != "" {
			why = append(why, "do: "+l.Do)
		}
		if len(why) == 0 {
			why = []string{""}
		}
		t.row(string(l.Part), l.Name, l.Verdict.String(), why[0])
		for _, more := range why[1:] {
			t.row("", "", "", more)
		}
	}
	return t
}

// verdict colours a verdict: those that a run is refused for, and those that
// lose something.
func (s styles) verdict(word, padded string) string {
	var v plan.Verdict
	switch err := v.UnmarshalText([]byte(word)); {
	case err != nil || v == plan.Same:
		return padded
	case v >= plan.Consent:
		return s.bad(padded)
	case v == plan.Partial:
		return s.warn(padded)
	}
	return s.good(padded)
}

// advice says what a run would do.
func (d planned) advice() string {
	var flags []string
	for _, l := range d.Lines {
		flags = append(flags, l.Flags...)
	}
	for i, f := range flags { // as a shell takes it
		flag, name, _ := strings.Cut(f, " ")
		if strings.ContainsAny(name, "[]{} ") {
			flags[i] = flag + " " + strconv.Quote(name)
		}
	}
	switch {
	case d.past:
		return d.Verdict.String() + ": what this build would find there; a run goes on from the newest epoch"
	case d.Verdict >= plan.Replay:
		return d.Verdict.String() + ": a run is refused, and changes nothing"
	case d.Verdict == plan.Consent:
		return d.Verdict.String() + ": a run is refused, and changes nothing, without " + strings.Join(flags, " ")
	}
	return d.Verdict.String() + ": a run goes on from here"
}
