package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
)

// stopping are the flags of stop.
type stopping struct {
	drain bool
	wait  time.Duration
}

func stopCommand(p *place) *cobra.Command {
	var s stopping
	c := &cobra.Command{
		Use:   "stop [JOB]",
		Short: "Ask the processes that run a job to stop",
		Long: `Ask the processes that run a job, or stand by for it, to stop: from any machine that
reaches the store. The owner closes its epoch, commits, delivers for at most its
--grace and ends with exit code 0 (10 if deliveries are pending, which is safe);
those that stand by end with 0. With --drain it first reads all input that there is
at that moment. They see the request with their next heartbeat, every third of a
lease. Processes that are started later are not asked.

The command waits until the owner has let go, for at most --wait.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			return s.ask(c, p, name)
		},
	}
	f := c.Flags()
	f.BoolVar(&s.drain, "drain", false, "read all input of the moment before (default false)")
	f.DurationVar(&s.wait, "wait", 2*time.Minute, "the `time` to wait for the owner at most; 0: don't wait")
	f.Bool("json", false, "write what came of it as a JSON object (default false)")
	return c
}

// stopped is what came of a request to stop.
type stopped struct {
	Job     string            `json:"job"`
	Request uint64            `json:"request,omitzero"` // 0: there was nobody to ask
	Ended   bool              `json:"ended"`            // the owner has let go
	Gone    bool              `json:"gone"`             // or has ended without
	Epoch   epoch.Epoch       `json:"epoch"`
	Pending map[string]uint64 `json:"pending"` // positions that are to be delivered, by sink
}

func (s stopping) ask(c *cobra.Command, p *place, name string) error {
	if s.wait < 0 {
		return usagef("--wait %v: 0 or more", s.wait)
	}
	ctx := c.Context()
	job, err := p.job(ctx, name)
	if err != nil {
		return err
	}
	before, err := ownershipOf(ctx, job)
	if err != nil {
		return err
	}
	out := stopped{Job: job.Name(), Ended: before.ended(), Gone: before.gone(), Epoch: before.head.Epoch, Pending: pendingOf(before.head)}
	if before.ended() {
		return out.write(c)
	}
	kind := epoch.StopRequest
	if s.drain {
		kind = epoch.DrainRequest
	}
	request, err := job.Ask(ctx, kind, epoch.ThisProcess().String())
	if err != nil {
		return err
	}
	out.Request = request.N
	if s.wait > 0 {
		after, err := awaitEnd(ctx, p.env, job, s.wait)
		if err != nil {
			return err
		}
		out.Ended, out.Gone, out.Epoch, out.Pending = true, after.gone(), after.head.Epoch, pendingOf(after.head)
	}
	return out.write(c)
}

// lookEvery is the time between two looks at an owner.
const lookEvery = 100 * time.Millisecond

// awaitEnd waits until the job's owner has let go.
func awaitEnd(ctx context.Context, e *env.Env, job *epoch.Job, most time.Duration) (ownership, error) {
	late := e.Clock.NewTimer(most)
	defer late.Stop()
	look := e.Clock.NewTimer(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C():
			look.Reset(lookEvery)
		case <-late.C():
			o, err := ownershipOf(ctx, job)
			if err == nil && !o.ended() {
				err = fmt.Errorf("%s: asked to stop, but %s (%s) has not let go within %v; it goes on trying, `sluice status %s` tells how it is", job.Name(), o.head.Owner, o.head.Writer, most, job.Name())
			}
			return o, err
		case <-ctx.Done():
			return ownership{}, ctx.Err()
		}
		if o, err := ownershipOf(ctx, job); err != nil || o.ended() {
			return o, err
		}
	}
}

func (s stopped) write(c *cobra.Command) error {
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), s)
	}
	var text string
	switch {
	case s.Request == 0:
		text = fmt.Sprintf("%s is not running; it stands at epoch %d", s.Job, s.Epoch)
	case !s.Ended:
		text = fmt.Sprintf("%s is asked to stop (request %d)", s.Job, s.Request)
	case s.Gone:
		text = fmt.Sprintf("%s is gone, without having stopped; it stands at epoch %d", s.Job, s.Epoch)
	default:
		text = fmt.Sprintf("%s has stopped at epoch %d", s.Job, s.Epoch)
	}
	if s.Ended && len(s.Pending) > 0 {
		var sinks []string
		for name, n := range sorted(s.Pending) {
			sinks = append(sinks, fmt.Sprintf("%s %d", name, n))
		}
		text += "; deliveries pending: " + strings.Join(sinks, ", ") + ", which the next run makes first"
	}
	_, err := io.WriteString(c.OutOrStdout(), text+"\n")
	return err
}

// ownership is who owns the live branch, as far as the store tells.
type ownership struct {
	head epoch.Manifest
	beat *epoch.Heartbeat // of the head's owner; nil: none
}

func ownershipOf(ctx context.Context, job *epoch.Job) (o ownership, err error) {
	branch, err := liveBranch(ctx, job)
	if err != nil {
		return o, err
	}
	head, err := job.Head(ctx, branch, epoch.FirstTask)
	if err != nil {
		return o, err
	}
	o.head = head.Manifest
	beat, ok, err := job.Heartbeat(ctx, branch, epoch.FirstTask)
	if ok && beat.Owner == head.Manifest.Owner {
		o.beat = &beat
	}
	return o, err
}

// ended tells whether the owner is known to have ended.
func (o ownership) ended() bool { return o.released() || o.gone() }

func (o ownership) released() bool { return o.beat != nil && o.beat.Released }

// gone tells whether the owner has ended without letting go.
func (o ownership) gone() bool { return !o.released() && o.head.Writer.Gone() }

// tell says how the owner is, in words.
func (o ownership) tell(now time.Time) string {
	switch {
	case o.released():
		return "has stopped"
	case o.gone():
		return "is gone, without having stopped"
	case o.beat == nil:
		return "has given no heartbeat yet"
	}
	age := now.Sub(time.UnixMicro(o.beat.Time)).Round(time.Second)
	text := fmt.Sprintf("is %s, heartbeat %v ago by its clock", o.beat.Role, max(age, 0))
	if o.beat.RecordsPerSecond > 0 {
		text += fmt.Sprintf(", %s records/s", count(o.beat.RecordsPerSecond))
	}
	return text
}

func pendingOf(m epoch.Manifest) map[string]uint64 {
	pending := map[string]uint64{}
	for name, sink := range m.Sinks {
		if sink.Dropped == "" && sink.Confirmed < m.Position {
			pending[name] = uint64(m.Position - sink.Confirmed)
		}
	}
	return pending
}
