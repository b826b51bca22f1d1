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
	"github.com/sluicestream/sluice/internal/vitals"
)

// stopping are the flags of stop.
type stopping struct {
	drain bool
	close bool
	to    string
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

--drain --to NOW stops exactly there: what comes behind is not read. So does --drain --to
with offsets, as import has them: TOPIC:PARTITION=OFFSET with commas between, or a file of
these; each partition needs one, and none may have been read beyond it. The job reads on
up to the last of them. It is finished with exactly that input then, with all outputs
delivered, and the offsets are printed in the form that upgrade --offsets and import
--offsets take as a file: another job, or another build, begins just there (as does run
--fresh --from latest). Deliveries that take longer than --grace are pending: exit code 10.

With --close-windows no window of event time stays open behind the last record: watermarks
move to where the last ones end, as if a later record had come, and timers fire up to there.
What they come to is delivered before the job stops. Should it go on all the same, records
from before those ends are late.

The command waits until the owner has let go, for at most --wait.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			return s.ask(c, p, name)
		},
	}
	f := c.Flags()
	f.BoolVar(&s.drain, "drain", false, "read all input of the moment before (default false)")
	f.StringVar(&s.to, "to", "", "with --drain, read up to `offsets` and nothing behind them: NOW, TOPIC:PARTITION=OFFSET,… or a file (default all input of the moment, and what comes meanwhile)")
	f.BoolVar(&s.close, "close-windows", false, "with --drain, close all windows by event time behind the last record, which is --to NOW if nothing else is said (default false)")
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
	Sealed  bool              `json:"sealed,omitzero"`  // a cut is under way: nobody owns the job
	Epoch   epoch.Epoch       `json:"epoch"`
	Pending map[string]uint64 `json:"pending"` // positions that are to be delivered, by sink
	// Offsets are where a job that was to stop at some has stopped, by source and partition.
	Offsets map[string]map[string]int64 `json:"offsets,omitempty"`
}

func (s stopping) ask(c *cobra.Command, p *place, name string) error {
	if s.wait < 0 {
		return usagef("--wait %v: 0 or more", s.wait)
	}
	if s.close && s.drain && s.to == "" {
		s.to = "NOW"
	}
	to, err := s.until()
	if err != nil {
		return err
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
	out := stopped{Job: job.Name(), Ended: before.ended() && !before.sealed, Gone: before.gone(), Sealed: before.sealed, Epoch: before.head.Epoch, Pending: pendingOf(before.head)}
	if before.ended() && !before.sealed {
		if s.to != "" {
			return fmt.Errorf("%s is not running, so that nobody reads up to there: it stands at epoch %d; run it, and ask again", job.Name(), out.Epoch)
		}
		return out.write(c)
	}
	if before.sealed && s.to != "" {
		return fmt.Errorf("%s is in the middle of a cut, so that nobody reads up to there: its branch was sealed at epoch %d; ask again once the next one is live, which `sluice status %s` tells", job.Name(), out.Epoch, job.Name())
	}
	request, err := s.request(ctx, job, to)
	if err != nil {
		return err
	}
	out.Request = request.N
	if s.wait == 0 || before.sealed && before.ended() {
		return out.write(c)
	}
	after, err := awaitEnd(ctx, p.env, job, request, s.wait)
	if err != nil {
		return err
	}
	out.Sealed, out.Ended, out.Gone, out.Epoch, out.Pending = after.sealed, !after.sealed, after.gone(), after.head.Epoch, pendingOf(after.head)
	if s.to == "" {
		return out.write(c)
	}
	if after.sealed {
		return fmt.Errorf("%s has ended in the middle of a cut: its branch was sealed at epoch %d, and nobody read up to there; run it, and ask again", job.Name(), out.Epoch)
	}
	if after.head.Request < request.N {
		return fmt.Errorf("%s has ended before it had read up to there; it stands at epoch %d. Its log says why; run it, and ask again", job.Name(), out.Epoch)
	}
	out.Offsets = offsetsOf(after.head)
	if err := out.write(c); err != nil || len(out.Pending) == 0 {
		return err
	}
	return outcome(exitPending)
}

// until reads where the job is to stop; nil stands for where the sources end.
func (s stopping) until() (map[string]int64, error) {
	switch {
	case s.to != "" && !s.drain:
		return nil, usagef("--to %.80s: only with --drain", s.to)
	case s.close && !s.drain:
		return nil, usagef("--close-windows: only with --drain")
	case s.to == "" || s.to == "NOW":
		return nil, nil
	}
	given, err := parseOffsets("to", []string{s.to})
	if err == nil && (len(given.groups) > 0 || len(given.offsets) == 0) {
		err = usagef("--to %.80s: NOW, or offsets as TOPIC:PARTITION=OFFSET", s.to)
	}
	return given.offsets, err
}

// request makes the request.
func (s stopping) request(ctx context.Context, job *epoch.Job, to map[string]int64) (epoch.Request, error) {
	by := epoch.ThisProcess().String()
	switch {
	case s.to != "":
		return job.AskDrainTo(ctx, to, s.close, by)
	case s.drain:
		return job.Ask(ctx, epoch.DrainRequest, by)
	}
	return job.Ask(ctx, epoch.StopRequest, by)
}

// offsetsOf are where an epoch stands in its sources.
func offsetsOf(m epoch.Manifest) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for name, source := range m.Sources {
		all[name] = map[string]int64{}
		for partition, at := range source.Partitions {
			all[name][partition] = at.Next
		}
	}
	return all
}

// sealedFor is for how long a sealed branch whose owner has ended is looked at until
// nobody is taken to go on.
const sealedFor = 5 * time.Second

// awaitEnd waits until the job's owner has let go. A request that it calls not met is an
// error.
func awaitEnd(ctx context.Context, e *env.Env, job *epoch.Job, request epoch.Request, most time.Duration) (o ownership, err error) {
	var sealed time.Time // since when nobody owns a branch that was sealed
	ended, err := await(ctx, e.Clock, most, func() (bool, error) {
		if o, err = ownershipOf(ctx, job); err == nil && o.ended() {
			o, err = ownershipOf(ctx, job) // its last epoch may have come between head and heartbeat
		}
		if err != nil {
			return false, err
		}
		for _, u := range o.head.Unmet {
			if u.Request == request.N {
				return false, fmt.Errorf("%s: request %d is not met: %s", job.Name(), u.Request, u.Why)
			}
		}
		if !o.sealed || !o.ended() {
			sealed = time.Time{}
			return o.ended(), nil
		}
		// Another branch is about to be live, unless whoever was to go on has stopped as well.
		if sealed.IsZero() {
			sealed = e.Clock.Now()
		}
		return e.Clock.Now().Sub(sealed) >= sealedFor, nil
	})
	if err == nil && !ended {
		err = fmt.Errorf("%s: asked to stop, but %s (%s) has not let go within %v; it goes on trying, `sluice status %s` tells how it is", job.Name(), o.head.Owner, o.head.Writer, most, job.Name())
	}
	return o, err
}

func (s stopped) write(c *cobra.Command) error {
	if asJSON(c) {
		return writeJSON(c.OutOrStdout(), s)
	}
	var text string
	switch {
	case s.Sealed && !s.Ended:
		text = fmt.Sprintf("%s is in the middle of a cut: its branch was sealed at epoch %d, and nobody owns another yet; whoever waits to go on is asked to stop (request %d)", s.Job, s.Epoch, s.Request)
	case s.Request == 0:
		text = fmt.Sprintf("%s is not running; it stands at epoch %d", s.Job, s.Epoch)
	case !s.Ended:
		text = fmt.Sprintf("%s is asked to stop (request %d)", s.Job, s.Request)
	case s.Gone:
		text = fmt.Sprintf("%s is gone, without having stopped; it stands at epoch %d", s.Job, s.Epoch)
	default:
		text = fmt.Sprintf("%s has stopped at epoch %d", s.Job, s.Epoch)
	}
	if s.Offsets != nil {
		text = "# " + text + ", with all input before these offsets"
	}
	if s.Ended && len(s.Pending) > 0 {
		var sinks []string
		for name, n := range sorted(s.Pending) {
			sinks = append(sinks, fmt.Sprintf("%s %d", name, n))
		}
		text += "; deliveries pending: " + strings.Join(sinks, ", ") + ", which the next run makes first"
	}
	for source, parts := range sorted(s.Offsets) {
		for partition, at := range sorted(parts) {
			text += fmt.Sprintf("\n%s:%s=%d", source, partition, at)
		}
	}
	_, err := io.WriteString(c.OutOrStdout(), text+"\n")
	return err
}

// ownership is who owns a branch, the live one if nothing else is said, as far as the
// store tells.
type ownership struct {
	head   epoch.Manifest
	sealed bool             // the branch has ended, and none behind it is live yet
	beat   *epoch.Heartbeat // of the head's owner; nil: none
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
	o.head, o.sealed = head.Manifest, head.Sealed()
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

// objections are what keeps a follower that is to go live from that, as its owner says.
func (o ownership) objections() []string {
	if o.beat == nil || o.ended() {
		return nil
	}
	return o.beat.Objections
}

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
	does := "is " + o.beat.Role
	if o.beat.Role == string(vitals.Follower) {
		does = "follows"
	}
	text := fmt.Sprintf("%s, heartbeat %v ago by its clock", does, max(age, 0))
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
