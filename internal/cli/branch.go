package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

func branchCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "branch",
		Short: "The branches of a job: what is live, and what follows",
		Long: `A job begins with the branch main. An upgrade begins another one, which follows the live
branch until it takes its place; a rollback does as well. A branch is

  live      its outputs are delivered
  follower  it follows, and may go live
  sealed    it was live until it was ended, and none has come after it yet
  ended     it was live, and another is
  given up  it was ended without having been live`,
	}
	return group(c, branchListCommand(p), branchShowCommand(p), branchDropCommand(p))
}

// listedBranch is a branch in a list.
type listedBranch struct {
	Branch string           `json:"branch"`
	Kind   epoch.BranchKind `json:"kind,omitempty"`
	State  upgrade.Standing `json:"state"`
	// Generations are those that it has been live as.
	Generations []epoch.Generation `json:"generations,omitempty"`
	Base        *basePoint         `json:"base,omitempty"`
	// Gone says that all of its log was cleaned away; then, and without a base, it has
	// no epoch.
	Gone     bool            `json:"gone"`
	Epoch    *epoch.Epoch    `json:"epoch,omitempty"` // the newest that is no seal
	Position *epoch.Position `json:"position,omitempty"`
	// Covers is the position up to which a follower has covered the live branch, and
	// Behind how many are left.
	Covers *epoch.Position `json:"covers,omitempty"`
	Behind *epoch.Position `json:"behind,omitempty"`
	// Owned says that a process may be at work on it, Alive how that is, in words.
	Owned            bool   `json:"owned"`
	Alive            string `json:"alive,omitempty"`
	RecordsPerSecond int64  `json:"records_per_second,omitzero"`
	// Objections are what keeps a follower that is to go live from that.
	Objections []string        `json:"objections,omitempty"`
	Begun      string          `json:"begun,omitempty"`
	By         string          `json:"by,omitempty"`
	Build      *epoch.Build    `json:"build,omitempty"` // of the newest epoch, or that began it
	Partial    []partialStatus `json:"partial,omitempty"`
	Sources    []sourceStatus  `json:"sources,omitempty"`

	micros int64 // when it was begun
	depth  int   // how many branches lie between it and the first that is listed
}

// basePoint is the epoch that a branch starts from.
type basePoint struct {
	Branch string      `json:"branch"`
	Epoch  epoch.Epoch `json:"epoch"`
}

func (p *basePoint) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.Branch, p.Epoch)
}

// listBranches tells of all branches, each behind the one that it starts from.
func listBranches(bs upgrade.Branches, now time.Time) []listedBranch {
	listed := make([]listedBranch, 0, len(bs.All))
	depths := map[string]int{}
	for _, b := range bs.All {
		one := listBranch(bs, b, now)
		if depth, listed := depths[b.Parent()]; listed {
			one.depth = depth + 1
		}
		depths[b.Name] = one.depth
		listed = append(listed, one)
	}
	return listed
}

func listBranch(bs upgrade.Branches, b upgrade.Branch, now time.Time) listedBranch {
	one := listedBranch{
		Branch: b.Name, Kind: b.File.Kind, State: b.Standing, Generations: b.Generations, Base: baseOf(b, bs.Task), Gone: b.Gone,
		Owned: b.Owned(), By: b.File.By,
	}
	if b.File.Time != 0 {
		one.Begun, one.Build, one.micros = stamp(b.File.Time), &b.File.Build, b.File.Time
	}
	if b.Name == epoch.MainBranch && one.Kind == "" {
		one.Kind = epoch.First
	}
	if b.Gone || !b.Begun {
		return one
	}
	m := b.Head.Manifest
	one.Epoch, one.Position, one.Build = &m.Epoch, &m.Position, &m.Build
	if behind, ok := bs.Behind(b); ok {
		covers := b.Covers()
		one.Covers, one.Behind = &covers, &behind
	}
	one.Partial = partialsOf(m)
	one.Sources = sourcesOf(m, b.Beat)
	if b.Standing == upgrade.Live || b.Standing == upgrade.Follows {
		owner := ownership{head: m, beat: b.Beat}
		if one.Alive = owner.tell(now); b.Owned() && b.Beat != nil {
			one.RecordsPerSecond = b.Beat.RecordsPerSecond
			one.Objections = owner.objections()
		}
	}
	return one
}

func baseOf(b upgrade.Branch, task string) *basePoint {
	if b.File.Base == nil {
		return nil
	}
	return &basePoint{b.File.Base.Branch, b.File.Base.Tasks[task]}
}

// stands says how a branch stands, in words.
func (b listedBranch) stands() string {
	text := string(b.State)
	if len(b.Generations) > 0 {
		text += ", generation " + joined(b.Generations)
	}
	switch {
	case b.Gone:
		text += ", cleaned away"
	case b.Epoch == nil && b.State == upgrade.Follows:
		text += ", without a base yet"
	}
	return text
}

func joined(generations []epoch.Generation) string {
	texts := make([]string, len(generations))
	for i, n := range generations {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}

// owner says who is at work on the branch, in words.
func (b listedBranch) owner() string {
	switch {
	case b.State == upgrade.Follows && b.Epoch != nil && !b.Owned:
		return "nobody follows on it: its owner " + b.Alive
	default:
		return b.Alive
	}
}

// optional writes a number that there may not be.
func optional[N ~uint64](n *N) string {
	if n == nil {
		return ""
	}
	return count(*n)
}

// tree is the name of a branch below that of the one it starts from.
func (b listedBranch) tree() string {
	if b.depth == 0 {
		return b.Branch
	}
	return strings.Repeat("   ", b.depth-1) + "`- " + b.Branch
}

// lookAtBranches reads all branches of a job.
func lookAtBranches(ctx context.Context, job *epoch.Job) (upgrade.Branches, error) {
	return upgrade.Look(ctx, job, epoch.FirstTask)
}

// jobAndBranch reads the arguments [JOB] BRANCH, and how the branch stands.
func jobAndBranch(c *cobra.Command, p *place, args []string) (*epoch.Job, upgrade.Branches, upgrade.Branch, error) {
	ctx := c.Context()
	of, rest := argument(args, 2)
	if len(args) == 2 {
		rest = args[1:]
	}
	job, err := p.job(ctx, of)
	if err != nil {
		return nil, upgrade.Branches{}, upgrade.Branch{}, err
	}
	bs, b, err := theBranch(ctx, job, rest[0])
	return job, bs, b, err
}

// theBranch finds a branch by the name that a person gave.
func theBranch(ctx context.Context, job *epoch.Job, name string) (bs upgrade.Branches, b upgrade.Branch, err error) {
	if err := epoch.CheckName("branch", name); err != nil {
		return bs, b, usageError{err}
	}
	if bs, err = lookAtBranches(ctx, job); err != nil {
		return bs, b, err
	}
	b, ok := bs.Named(name)
	if !ok {
		return bs, b, fmt.Errorf("%s: there is no branch %s; `sluice branch list %s` lists them", job.Name(), name, job.Name())
	}
	return bs, b, nil
}

func branchListCommand(p *place) *cobra.Command {
	c := &cobra.Command{
		Use:   "list [JOB]",
		Short: "The branches of a job",
		Long: `The branches of a job, each behind the one that it starts from: how it stands, its
newest epoch and position, what it has covered of the live branch and by how many
positions it is behind that, and whether a process is at work on it. With --json each
is an object in a line of its own.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			job, err := p.job(c.Context(), name)
			if err != nil {
				return err
			}
			bs, err := lookAtBranches(c.Context(), job)
			if err != nil {
				return err
			}
			return writeAll(c, listBranches(bs, p.env.Clock.Now()), writeBranches)
		},
	}
	c.Flags().Bool("json", false, "write JSON (default false)")
	return c
}

func writeBranches(w io.Writer, listed []listedBranch) error {
	t := newTable(text("branch"), text("kind"), text("state"), text("base"), number("epoch"), number("position"),
		number("covers"), number("behind"), text("begun"), text("build"), text("owner"))
	for _, b := range listed {
		begun, build := "", ""
		if b.micros != 0 {
			begun = moment(b.micros)
		}
		if b.Build != nil {
			build = buildName(*b.Build)
		}
		t.row(b.Branch, string(b.Kind), b.stands(), b.Base.String(), optional(b.Epoch), optional(b.Position),
			optional(b.Covers), optional(b.Behind), begun, build, b.owner())
	}
	return t.write(w)
}

func branchDropCommand(p *place) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "drop [JOB] BRANCH",
		Short: "Give up a branch that follows",
		Long: `Give up a branch that follows: it is ended, its process ends as well, and clean-up removes
it. The live branch goes on as before. A branch that is or was live can't be dropped.
It may be run again after it was interrupted. On a terminal the command asks first;
elsewhere it needs --yes.

` + exitCodes(exitDone, exitError, exitUsage, 13),
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			job, _, b, err := jobAndBranch(c, p, args)
			if err != nil {
				return err
			}
			return dropBranch(c, job, b, yes)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "don't ask (default false)")
	c.Flags().Bool("json", false, "write what came of it as a JSON object (default false)")
	return c
}

// droppedBranch is what a drop did.
type droppedBranch struct {
	Job    string `json:"job"`
	Branch string `json:"branch"`
	// Before says that it had been given up already.
	Before bool        `json:"before"`
	Begun  bool        `json:"begun"` // it has epochs
	Epoch  epoch.Epoch `json:"epoch"` // its last
	// Owned says that a process was at work on it, and Writer which.
	Owned  bool         `json:"owned"`
	Writer epoch.Writer `json:"writer,omitzero"`
}

func dropBranch(c *cobra.Command, job *epoch.Job, b upgrade.Branch, yes bool) error {
	if b.Standing == upgrade.Follows && !yes { // any other changes nothing
		question := fmt.Sprintf("Give up branch %s of job %s? It can't be taken back.", b.Name, job.Name())
		sure, err := sure(c, question, "--yes")
		if err != nil {
			return err
		}
		if !sure {
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s: branch %s goes on, nothing was changed\n", job.Name(), printable(b.Name))
			return err
		}
	}
	if err := job.GiveUp(c.Context(), b.Name, epoch.ThisProcess(), epoch.ThisProcess().String()); err != nil {
		return err
	}
	out := droppedBranch{
		Job: job.Name(), Branch: b.Name, Before: b.Standing == upgrade.GivenUp, Begun: b.Begun && !b.Gone, Epoch: b.Head.Manifest.Epoch,
	}
	if !b.Gone && b.Begun { // its owner may have gone on meanwhile
		head, err := job.HeadNear(c.Context(), b.Name, epoch.FirstTask, out.Epoch)
		if err != nil {
			return err
		}
		out.Epoch = head.Manifest.Epoch
	}
	if b.Owned() {
		out.Owned, out.Writer = true, b.Head.Manifest.Writer
	}
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), out)
	}
	return out.write(c.OutOrStdout())
}

func (d droppedBranch) write(w io.Writer) error {
	text := fmt.Sprintf("%s: branch %s is given up", d.Job, d.Branch)
	if d.Before {
		text = fmt.Sprintf("%s: branch %s had been given up before", d.Job, d.Branch)
	}
	if d.Begun {
		text += fmt.Sprintf("; its last epoch is %d", d.Epoch)
	}
	if d.Owned {
		text += fmt.Sprintf("; its process (%s) ends when it next commits", d.Writer)
	}
	_, err := fmt.Fprintf(w, "%s; clean-up removes it once its end is older than --keep\n", printable(text))
	return err
}
