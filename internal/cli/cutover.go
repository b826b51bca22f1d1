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

// cuttingOver are the flags of cutover.
type cuttingOver struct{ wait time.Duration }

func cutoverCommand(p *place) *cobra.Command {
	var o cuttingOver
	c := &cobra.Command{
		Use:   "cutover [JOB] BRANCH",
		Short: "Ask a follower to take the live branch's place",
		Long: `Ask the process that follows on a branch to take the live branch's place: from any machine
that reaches the store. It sees the request with its next heartbeat, every third of a
lease; when it has caught up it ends the live branch, covers its last epoch and goes
live. Until then nothing changes. A request that finds nobody is not made.

With --wait the command waits until the branch is live, and otherwise says what is
missing, or which guard objects, with exit code 1.`,
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return o.ask(c, p, args) },
	}
	c.Flags().DurationVar(&o.wait, "wait", 0, "the `time` to wait at most until the branch is live; 0: don't wait")
	c.Flags().Bool("json", false, "write what came of it as a JSON object (default false)")
	return c
}

// cutOver is what came of a request to cut over.
type cutOver struct {
	Job     string         `json:"job"`
	Branch  string         `json:"branch"`
	Request uint64         `json:"request"`
	Behind  epoch.Position `json:"behind"` // when it was asked
	Live    bool           `json:"live"`   // the branch is live by now
	// Generation is that of the branch, once it is live.
	Generation *epoch.Generation `json:"generation,omitempty"`
}

func (o cuttingOver) ask(c *cobra.Command, p *place, args []string) error {
	if o.wait < 0 {
		return usagef("--wait %v: 0 or more", o.wait)
	}
	ctx := c.Context()
	job, bs, b, err := jobAndBranch(c, p, args)
	if err != nil {
		return err
	}
	if why := obstacle(job.Name(), b, p.env.Clock.Now()); why != "" {
		return fmt.Errorf("%s: branch %s: %s. Nothing was asked for", job.Name(), b.Name, why)
	}
	request, err := job.AskCutover(ctx, b.Name, epoch.ThisProcess().String())
	if err != nil {
		return err
	}
	out := cutOver{Job: job.Name(), Branch: b.Name, Request: request.N}
	out.Behind, _ = bs.Behind(b)
	if o.wait > 0 {
		if out.Generation, err = o.await(ctx, p, job, b.Name); err != nil {
			return err
		}
		out.Live = true
	}
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), out)
	}
	return out.write(c.OutOrStdout())
}

// obstacle says why a branch can't be cut over to, or not now, and the way out; empty if
// it can.
func obstacle(job string, b upgrade.Branch, now time.Time) string {
	owner := ownership{head: b.Head.Manifest, beat: b.Beat}
	switch {
	case b.Standing == upgrade.Live:
		return "it is the live branch already"
	case b.Standing == upgrade.Sealed || b.Standing == upgrade.Ended:
		return fmt.Sprintf("it was live, as generation %s, and has ended: expected a branch that follows; a rollback goes back to the one that was live before", joined(b.Generations))
	case b.Standing == upgrade.GivenUp:
		return "it was given up: expected a branch that follows; start the upgrade again, which begins another branch"
	case !b.Begun:
		return fmt.Sprintf("nobody follows on it: it has no base yet; ask once `sluice branch list %s` shows an epoch, or start the upgrade again", job)
	case !b.Owned():
		return fmt.Sprintf("nobody follows on it: its owner %s (%s) %s; start the upgrade again", owner.head.Owner, owner.head.Writer, owner.tell(now))
	}
	return ""
}

// await waits until a branch is live, as long as it may become so.
func (o cuttingOver) await(ctx context.Context, p *place, job *epoch.Job, branch string) (generation *epoch.Generation, err error) {
	var missing string
	live, err := await(ctx, p.env.Clock, o.wait, func() (bool, error) {
		bs, b, err := theBranch(ctx, job, branch)
		if err != nil {
			return false, err
		}
		if n := len(b.Generations); n > 0 {
			generation = &b.Generations[n-1]
			return true, nil
		}
		if why := obstacle(job.Name(), b, p.env.Clock.Now()); why != "" {
			return false, fmt.Errorf("%s: branch %s was asked to go live, and can't: %s", job.Name(), branch, why)
		}
		missing = whatIsMissing(bs, b, p.env.Clock.Now())
		return false, nil
	})
	if err == nil && !live {
		err = fmt.Errorf("%s: branch %s is not live within %v: %s; it goes on trying, `sluice status %s` tells how it is", job.Name(), branch, o.wait, missing, job.Name())
	}
	return generation, err
}

// whatIsMissing says why a follower is not live yet.
func whatIsMissing(bs upgrade.Branches, b upgrade.Branch, now time.Time) string {
	live, _ := bs.LiveBranch()
	behind, _ := bs.Behind(b)
	owner := ownership{head: b.Head.Manifest, beat: b.Beat}
	text := fmt.Sprintf("its owner %s", owner.tell(now))
	switch objections := owner.objections(); {
	case len(objections) > 0:
		text = fmt.Sprintf("it objects: %s; %s", strings.Join(objections, "; "), text)
	case behind > 0:
		text = fmt.Sprintf("it is %s behind, and %s", several(int64(behind), "position"), text)
	case live.Standing == upgrade.Sealed:
		text = fmt.Sprintf("it has covered all of branch %s, which has ended, and no live record names it; %s", live.Name, text)
	default:
		text = fmt.Sprintf("it has covered all there is, and branch %s has not ended; %s", live.Name, text)
	}
	return text
}

func (o cutOver) write(w io.Writer) error {
	text := fmt.Sprintf("%s: branch %s is asked to go live (request %d)", o.Job, o.Branch, o.Request)
	switch {
	case o.Live:
		text = fmt.Sprintf("%s: branch %s is live, as generation %d", o.Job, o.Branch, *o.Generation)
	case o.Behind > 0:
		text += fmt.Sprintf("; it is %s behind", several(int64(o.Behind), "position"))
	}
	_, err := io.WriteString(w, printable(text)+"\n")
	return err
}
