package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/epoch"
)

// FollowSettings are how a branch is to follow and to take the live one's place.
type FollowSettings struct {
	Kind           epoch.BranchKind
	Auto, Again    bool
	Over, Create   bool
	CutOver        <-chan struct{}
	Soak           time.Duration
	Guard          compare.Guard
	Compare        map[string]compare.Options
	DropDeliveries []string
	From           string
	// Import is what the branch begins with; nil: with the state of where it begins.
	Import   *ImportSettings
	OwnClock bool
	Backfill bool
	Rehearse bool
	// WaitGroup is a group of consumers that new topics wait for, WaitGroupFor for how
	// long at most.
	WaitGroup    string
	WaitGroupFor time.Duration
	Check        func(ctx context.Context, p FollowProgress) error
	Told         func(p FollowProgress)
}

// FollowProgress is how a branch follows.
type FollowProgress struct {
	Stage, Branch, Followed string
	Position, Lag           uint64
	Results                 []compare.Result
	Compared                bool
	Objections              []string
}

// upgrading are the flags of upgrade and rollback.
type upgrading struct {
	running
	follow     FollowSettings
	importing  importing
	comparing  comparing
	maxChanged string
	check      string
}

func upgradeCommand(job Job, p *place) *cobra.Command {
	u := upgrading{follow: FollowSettings{Kind: epoch.Upgrade}, importing: importing{flag: "import"}}
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Take a running job over with this build, without a pause and without a loss",
		Long: `Take a running job over with this build.

The plan is printed first, and where it refuses, nothing happens. Otherwise a branch
begins at the live branch's newest epoch, with the state migrated as the plan says, and
follows it: each epoch is worked through in the same order and by the same clock, and
its outputs are kept back and compared with those of the build that is live. When the
branch has caught up, and on your word (y and return, sluice cutover from elsewhere, or
--auto), the live branch is sealed, what is left of it is covered, and this build is
live: the next output is its own. The process that ran the job before finds that out,
and ends with exit code 12.

A process that is killed anywhere is started again with the same command, and goes on
from where it was.

` + exitCodes(exitDone, exitError, exitUsage, exitDiffers, 10, 11, 12, 13, 14, 15, 16, 17),
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return u.start(c, job, p) },
	}
	u.addTo(c.Flags())
	f := c.Flags()
	u.addBegins(f)
	f.StringVar(&u.follow.WaitGroup, "wait-group", "", "once live, write to topics of new sinks only when a `group` of consumers has read to the end of the topics that this build leaves (default none)")
	f.DurationVar(&u.follow.WaitGroupFor, "wait-group-for", time.Minute, "the `time` to wait for --wait-group at most; a start in between begins it anew")
	f.BoolVar(&u.follow.Rehearse, "rehearse", false, "follow up to where the live branch stands, compare, and give the branch up; it begins 5m before, unless --from says otherwise or less is kept. Exit code 3 if a guard objects, without one if outputs differ; 1 if nothing could be compared (default false)")
	return c
}

// addBegins adds the flags of where a branch begins, and with what.
func (u *upgrading) addBegins(f *pflag.FlagSet) {
	f.StringVar(&u.follow.From, "from", "", "where the branch `begins`: live, live-10m, a savepoint or BRANCH:NUMBER with the state of there; earliest, latest, or the first records from a time on, as 2026-11-30T09:00:00Z, with none (default live)")
	f.StringArrayVar(&u.importing.states, "import", nil, "begin with a state from a file, as `STATE=FILE`, at --offsets or --from latest; may be repeated (default none)")
	f.StringArrayVar(&u.importing.offsets, offsetsFlag, nil, "begin at `offsets`, as import has them, with an empty state but for --import; may be repeated (default none)")
	u.importing.addRowFlags(f)
	f.BoolVar(&u.follow.Backfill, "backfill", false, "fill sinks that are new before the cut, those of tables with all rows (default false)")
	f.BoolVar(&u.follow.Over, "over", false, "give up branches by which other builds are to upgrade (default false)")
}

func rollbackCommand(job Job, p *place) *cobra.Command {
	u := upgrading{follow: FollowSettings{Kind: epoch.Rollback}}
	c := &cobra.Command{
		Use:   "rollback",
		Short: "Go back to this build, which another one has replaced",
		Long: `Go back to this build, which another one has replaced: a branch begins where this
build's was sealed, works through the inputs since, and takes the live branch's place
as an upgrade does.

` + exitCodes(exitDone, exitError, exitUsage, 10, 11, 12, 13, 14, 15, 16, 17),
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return u.start(c, job, p) },
	}
	u.addTo(c.Flags())
	return c
}

func resumeCommand(job Job, p *place) *cobra.Command {
	r := running{settings: Settings{Resume: true}}
	c := &cobra.Command{
		Use:   "resume",
		Short: "Go on behind a branch that was sealed, where nobody else has",
		Long: `Go on with this build behind a live branch that was sealed and has no successor: an
upgrade was killed between the two, and is not to be finished. run does the same by
itself after --resume-after.

` + exitCodes(exitDone, exitError, exitUsage, 10, 11, 12, 13, 14, 15, 16, 17),
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return r.run(c, job, p) },
	}
	r.addTo(c.Flags())
	return c
}

func (u *upgrading) addTo(f *pflag.FlagSet) {
	u.running.addTo(f)
	w := &u.follow
	f.BoolVar(&w.Auto, "auto", false, "cut over as soon as the branch has caught up and no guard objects (default false)")
	f.BoolVar(&w.OwnClock, "own-clock", false, "read inputs whose epochs are not kept any more with this process's clock (default false)")
	f.BoolVar(&w.Again, "again", false, "begin another branch although this build is live already, or another one has replaced it since, such as by a rollback (default false)")
	f.DurationVar(&w.Soak, "soak", 0, "follow for at least this `time` once the branch has caught up (default none)")
	f.BoolVar(&w.Guard.RequireEqual, "require-equal", false, "cut over only if all outputs were equal (default false)")
	f.StringVar(&u.maxChanged, "max-changed", "", "cut over only if at most this `share` of each sink's rows differ, as 0.1% (default any)")
	u.comparing.addTo(f)
	f.StringVar(&u.check, "check", "", "cut over only if a `command` says so by ending well; it gets the comparison as JSON (default none)")
	f.StringArrayVar(&w.DropDeliveries, "drop-deliveries", nil, "give up what a `sink` that this build lacks is still owed; may be repeated (default none)")
}

func (u *upgrading) start(c *cobra.Command, job Job, p *place) error {
	if u.maxChanged != "" {
		share, err := parseShare(u.maxChanged)
		if err != nil {
			return usagef("--max-changed %s: %w", u.maxChanged, err)
		}
		u.follow.Guard.MaxChanged = &share
	}
	if u.follow.Soak < 0 {
		return usagef("--soak %v: 0 or more", u.follow.Soak)
	}
	if u.follow.WaitGroup != "" && u.follow.WaitGroupFor <= 0 {
		return usagef("--wait-group-for %v: a time above 0, such as 60s", u.follow.WaitGroupFor)
	}
	if err := u.begins(); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return err
	}
	columns, err := u.comparing.columns(slices.Sorted(maps.Keys(job.Version().Sinks)))
	if err != nil {
		return err
	}
	u.follow.Compare = map[string]compare.Options{}
	for sink, rules := range columns {
		u.follow.Compare[sink] = compare.Options{Columns: rules}
	}
	if err := u.plan(c, job, p); err != nil {
		return err
	}
	if u.check != "" {
		u.follow.Check = u.ask
	}
	return u.running.start(c, job, p, func(ctx context.Context, show *report) error {
		word := make(chan struct{}, 1)
		u.follow.CutOver = word
		f := followReport{show: show, word: word, auto: u.follow.Auto, listen: !u.json && term.IsTerminal(os.Stdin.Fd())}
		u.follow.Told = f.told
		err := job.Follow(ctx, u.settings, u.follow)
		switch {
		case err == nil && f.last.Stage == "rehearsed":
			return u.outcome(c, &f, job.Name)
		case err == nil && f.last.Stage == "begun" && u.json:
			return writeJSON(c.OutOrStdout(), map[string]string{"branch": f.last.Branch})
		case err == nil && f.last.Stage == "begun":
			_, err = fmt.Fprintln(c.OutOrStdout(), f.last.Branch)
		}
		return err
	})
}

// begins reads what the branch is to begin with, if that is not what is there.
func (u *upgrading) begins() error {
	m := &u.importing
	if len(m.states) == 0 && len(m.offsets) == 0 {
		return nil
	}
	var err error
	if m.settings.Files, err = m.files(nil); err != nil {
		return err
	}
	given, err := parseOffsets(offsetsFlag, m.offsets)
	if err != nil {
		return err
	}
	m.settings.Offsets, m.settings.Groups = given.offsets, given.groups
	u.follow.Import = &m.settings
	return nil
}

// plan prints the plan; a run is refused by itself.
func (u *upgrading) plan(c *cobra.Command, job Job, p *place) error {
	back := u.follow.Kind == epoch.Rollback
	l := planning{begins: u.point(), drop: u.settings.Drop, gap: u.settings.Gap, replace: back || u.follow.Again, rollback: back, follows: true, backfill: u.follow.Backfill, version: job.Version(), trying: trying{sample: planSample, setAside: u.settings.SetAside}}
	out, _, err := l.make(c.Context(), job, p)
	if err != nil || u.json {
		return err
	}
	return out.write(c)
}

// point is the epoch at which the branch begins, if --from names one.
func (u *upgrading) point() string {
	from := u.follow.From
	_, err := time.Parse(time.RFC3339, from)
	if err == nil || slices.Contains([]string{"live", "earliest", "latest"}, from) || strings.HasPrefix(from, "live-") {
		return ""
	}
	return from
}

// parseShare reads a share such as 0.1% or 0.001.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("a share from 0%% to 100%%, such as 0.1%%")
	}
	return v, nil
}

// ask runs the command that decides.
func (u *upgrading) ask(ctx context.Context, p FollowProgress) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", u.check)
	cmd.Stdin = strings.NewReader(string(data))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "SLUICE_BRANCH="+p.Branch, "SLUICE_FOLLOWED="+p.Followed)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the check says no: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// followReport tells how a branch follows, and asks for the word to cut over.
type followReport struct {
	show   *report
	word   chan<- struct{}
	auto   bool
	listen bool

	mu   sync.Mutex
	last FollowProgress
	asks sync.Once
}

func (f *followReport) told(p FollowProgress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := p.Stage != f.last.Stage || p.Compared != f.last.Compared
	f.last = p
	f.show.followed(p, news)
	if p.Stage == "caught up" && p.Compared && f.listen && !f.auto { // who is asked has seen what changes
		f.asks.Do(func() { go f.wait() })
	}
}

// wait waits for a person's word.
func (f *followReport) wait() {
	f.show.own.Info("this build has caught up: cut over with y and return")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if answer := strings.ToLower(strings.TrimSpace(lines.Text())); answer == "y" || answer == "yes" {
			f.word <- struct{}{}
			return
		}
		f.show.own.Info("it goes on following; cut over with y and return")
	}
}

// outcome tells what a rehearsal has shown: what its guards say of it, or without one
// whether anything differs.
func (u *upgrading) outcome(c *cobra.Command, f *followReport, job string) error {
	b := comparedOf(job, f.last)
	bad := b.Different
	if u.follow.Guard != (compare.Guard{}) || u.follow.Check != nil {
		bad = len(f.last.Objections) > 0
	}
	if !u.json {
		fmt.Fprintln(c.OutOrStdout())
		if err := b.write(c.OutOrStdout()); err != nil {
			return err
		}
		for _, why := range f.last.Objections {
			if _, err := fmt.Fprintf(c.OutOrStdout(), "a guard objects: %s\n", printable(why)); err != nil {
				return err
			}
		}
	}
	switch {
	case compare.Sum(f.last.Results).Compared() == 0:
		return errors.New("the rehearsal has compared nothing: expected outputs of both builds, from where it began to where the live branch stands. Begin earlier with --from, or try again when there are more; sinks of new names compare to nothing")
	case bad:
		return outcome(exitDiffers)
	}
	return nil
}

// jobBranchCommand begins branches; the rest is the sluice command's, which needs no code
// of the job.
func jobBranchCommand(job Job, p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "branch",
		Short: "Begin a branch for this build; sluice branch lists, shows and drops them",
	}
	return group(c, branchCreateCommand(job, p))
}

func branchCreateCommand(job Job, p *place) *cobra.Command {
	u := upgrading{follow: FollowSettings{Kind: epoch.Upgrade, Create: true}, importing: importing{flag: "import"}}
	c := &cobra.Command{
		Use:   "create",
		Short: "Begin a branch with its first epoch, for an upgrade to go on with",
		Long: `Begin a branch for this build, with the state of where it begins, migrated as the plan
says, as its first epoch, and print its name. The live branch is left alone. The same
build's upgrade with the same --from, --offsets, --import and --backfill goes on with
it; until then clean-up keeps what it has to follow.

` + exitCodes(exitDone, exitError, exitUsage, 10, 11, 12, 13, 14, 15, 16, 17),
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return u.start(c, job, p) },
	}
	u.running.addTo(c.Flags())
	u.addBegins(c.Flags())
	return c
}
