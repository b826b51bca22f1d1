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

// SourceCheck is what came of asking whether a source still has what comes next.
type SourceCheck struct {
	Source, Partition string
	// Needed is the offset that comes next, and First the first that there still is, where
	// that lies behind it.
	Needed, First int64
	// Unasked says why that is not known; nil if it is.
	Unasked error
}

// SourceChecks is what sources are opened with, and how far they have been read.
type SourceChecks struct {
	SinkChecks
	At map[string]epoch.SourceState
}

// planning are the flags of plan.
type planning struct {
	drop, gap []string
	from      string
	epoch     epochName
	begins    string // where a branch is to begin, by a savepoint's name or BRANCH:NUMBER
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
an entry that fails makes the state refused, and is named. Sinks are asked whether this
build could open them (a table's columns, a registry's rule of compatibility), and topics
whether they still have what comes next, unless --offline says not to.

With --rollback it is the plan of a rollback to this build, from where it was replaced.

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
	f.BoolVar(&l.offline, "offline", false, "don't ask sinks and sources (default false)")
	f.BoolVar(&l.replace, "replace", false, "plan for this build although another one has replaced it (default false)")
	f.BoolVar(&l.rollback, "rollback", false, "plan for going back to this build, from where another one has replaced it (default false)")
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

	past   bool   // it is of an epoch that was asked for
	goesOn string // what goes on from there: a run, an upgrade, a rollback
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
	switch {
	case l.from != "" && l.epoch != "":
		return out, nil, usagef("--from and --epoch: one of the two")
	case l.rollback && (l.from != "" || l.epoch != ""):
		return out, nil, usagef("--rollback goes from where this build was replaced: leave --from and --epoch out")
	}
	if l.rollback {
		l.replace, l.follows = true, true
	}
	if err := l.trying.check(); err != nil {
		return out, nil, err
	}
	if err := job.Check(); err != nil {
		return out, nil, err
	}
	l.version = job.Version()
	out = planned{Job: job.Name, Store: p.absolute(), Lines: []*plan.Line{}, past: l.from != "" || l.epoch != "", goesOn: l.goesOn()}
	if out.This.Version, err = l.version.Hash(); err != nil {
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
		in, err = plan.Gather(ctx, stored, m, plan.Build{Version: l.version, Ways: job.Ways, Drop: l.drop, Gap: l.gap, Build: out.This.Build, Replace: l.replace, Follows: l.follows, Backfill: l.backfill})
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
		made.Await(waiting, plan.Moved(m, in.Ways, func(name string) bool { _, has := l.version.States[name]; return has }))
	}
	made.Attach(trials, plan.InTheWay(p.env.Files, l.trying.setAside))
	unasked = l.ask(ctx, job, stored, m, p.env, made)
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
	switch {
	case l.begins != "":
		m, err = pointOf(ctx, job, "", l.begins)
	case l.from != "":
		m, err = savepointManifest(ctx, job, l.from, "")
	default:
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

// ask asks the sinks whether this build could open them, and the sources whether they
// still have what lies behind an epoch. The error names those that could not be asked.
func (l planning) ask(ctx context.Context, job Job, stored *epoch.Job, m epoch.Manifest, e *env.Env, made *plan.Plan) error {
	if l.offline {
		return nil
	}
	var names []string
	with := SinkChecks{Env: e, JobID: stored.ID(), TransactionPrefix: stored.TransactionPrefix()}
	if job.CheckSources != nil {
		for _, s := range job.CheckSources(ctx, SourceChecks{with, m.Sources}) {
			if s.Unasked != nil {
				names = append(names, "source "+s.Source)
				made.Unread(s.Source, s.Unasked)
			} else {
				made.Lost(s.Source, s.Partition, s.Needed, s.First, l.afterLoss())
			}
		}
	}
	if job.CheckSinks != nil {
		for _, s := range job.CheckSinks(ctx, with) {
			if s.Refused != nil {
				made.Unfit(s.Sink, s.Refused)
			}
			if s.Unasked != nil {
				names = append(names, "sink "+s.Sink)
				made.Unasked(s.Sink, s.Unasked)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: the plan lacks what could not be asked: %s; make it reachable, or leave such questions out with --offline", job.Name, strings.Join(names, ", "))
}

// afterLoss says what to do where inputs are gone.
func (l planning) afterLoss() string {
	switch {
	case l.rollback:
		return "let this build go on with the newer one's state: run --replace"
	case l.from != "" || l.epoch != "" || l.begins != "":
		return "begin later"
	}
	return "give the source another name, under which it is read from where it begins"
}

// goesOn is what goes on from there, in words.
func (l planning) goesOn() string {
	switch {
	case l.rollback:
		return "a rollback"
	case l.follows:
		return "an upgrade"
	}
	return "a run"
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

// advice says what would come of going on.
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
		return d.Verdict.String() + ": " + d.goesOn + " is refused, and changes nothing"
	case d.Verdict == plan.Consent:
		return d.Verdict.String() + ": " + d.goesOn + " is refused, and changes nothing, without " + strings.Join(flags, " ")
	}
	return d.Verdict.String() + ": " + d.goesOn + " goes on from here"
}
