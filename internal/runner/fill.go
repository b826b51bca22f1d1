package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/epoch"
)

// fillingAtMost is the number of deliveries that a sink may still be owed at the cut
// which is filled before it: what is left comes behind.
const fillingAtMost = 2

// FillError says that a sink can't be filled before the cut.
type FillError struct {
	Job, Sink string
	Reason    string
}

// Error implements error.
func (e *FillError) Error() string {
	return fmt.Sprintf("%s: sink %s can't be filled: %s.", e.Job, e.Sink, e.Reason)
}

// ExitCode is the exit code of the command line.
func (e *FillError) ExitCode() int { return 13 }

// findStarts settles where sinks start that no live branch has had, before the branch
// is begun. One that is to be filled has to be empty.
func (r *runner) findStarts(ctx context.Context, live epoch.Manifest) error {
	f := r.o.Follow
	f.starts = map[string]string{}
	for _, spec := range r.o.Graph.Sinks() {
		if _, named := live.Sinks[spec.Name]; named {
			continue
		}
		f.starts[spec.Name] = epoch.StartCut
		if f.Backfill {
			f.starts[spec.Name] = epoch.StartBase
			s, err := r.openSink(ctx, spec, false)
			if err != nil {
				return err
			}
			err = r.checkEmpty(ctx, s)
			if closing := s.target.Close(); err == nil {
				err = closing
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEmpty refuses to fill a sink that holds rows of nobody knows whom. Where a
// record stands it was empty once.
func (r *runner) checkEmpty(ctx context.Context, s *sink) error {
	target, ok := s.target.(connector.EmptyTarget)
	if !ok {
		return nil
	}
	if stands, err := target.Record(ctx); err != nil || stands != nil {
		return err
	}
	empty, err := target.Empty(ctx)
	if err == nil && !empty {
		err = &FillError{r.o.Job, s.spec.Name, fmt.Sprintf("expected %s to be empty, found rows that this job hasn't written; empty it, give the sink another target, or let it begin at the cut, without --backfill", s.spec.Sink.Describe().Target)}
	}
	return err
}

// fillFrom notes in a base what is to be written of tables' sinks that are filled: all
// rows that there are.
func (r *runner) fillFrom(base *epoch.Manifest, file epoch.BranchFile) {
	for _, spec := range r.o.Graph.Sinks() {
		s := base.Sinks[spec.Name]
		if file.Starts[spec.Name] != epoch.StartBase || s.Fill == nil || spec.Key == nil {
			continue
		}
		if r.begins() && len(r.o.Follow.Begin.Import.Files) == 0 {
			continue // of a table that begins empty each row is put out
		}
		s.Rewrite = &epoch.Rewrite{Mode: epoch.RewriteAll}
		base.Sinks[spec.Name] = s
	}
}

// startFilling begins to deliver to sinks that the branch fills.
func (r *runner) startFilling(ctx context.Context) error {
	own, _ := r.owner.Head()
	live, _, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	var sinks []*sink
	r.filling = map[string]bool{}
	for _, s := range r.sinks {
		if !own.Sinks[s.spec.Name].Fills(own.Branch, live.Sinks[s.spec.Name]) {
			continue
		}
		r.filling[s.spec.Name] = true
		if s.deliver == nil {
			sinks = append(sinks, s)
		}
	}
	if len(sinks) == 0 {
		return nil
	}
	return r.startDelivering(ctx, sinks, r.job.OwedToFill)
}

// fillsNow tells whether the branch fills a sink, and is not live.
func (r *runner) fillsNow(sink string) bool {
	_, live := r.owner.Live()
	return !live && r.filling[sink]
}

// fillsStill says which sinks lack more than the cut's first delivery can bring.
func (r *runner) fillsStill() (all []string) {
	head, _ := r.owner.Head()
	for _, s := range r.sinks {
		at := head.Sinks[s.spec.Name]
		if !r.filling[s.spec.Name] || s.deliver == nil {
			continue
		}
		switch pending := s.deliver.Pending(); {
		case s.deliver.Failing() != "":
			all = append(all, fmt.Sprintf("sink %s is being filled, and the delivery fails: %s", s.spec.Name, s.deliver.Failing()))
		case at.Rewrite != nil:
			all = append(all, fmt.Sprintf("sink %s is being filled: %d %% of its table's keys", s.spec.Name, int64(at.Rewrite.Cursor)*100>>16))
		case pending > fillingAtMost:
			all = append(all, fmt.Sprintf("sink %s is being filled: it lacks %d epochs", s.spec.Name, pending))
		}
	}
	return all
}

// fillsRight tells, as an error, that a sink which the branch fills has become the live
// branch's meanwhile.
func (r *runner) fillsRight(ctx context.Context) error {
	for _, s := range r.sinks {
		if err := r.stillFills(ctx, s.spec.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) stillFills(ctx context.Context, sink string) error {
	if !r.fillsNow(sink) {
		return nil
	}
	live, _, err := r.liveHead(ctx)
	if err != nil {
		return err
	}
	own, _ := r.owner.Head()
	if live.Branch != own.Branch && own.Sinks[sink].Fill != nil && !own.Sinks[sink].Fills(own.Branch, live.Sinks[sink]) {
		return &FillError{r.o.Job, sink, fmt.Sprintf("expected a name under which no live branch has delivered, found that branch %s has; start the same again to go on without filling it, or give this branch up with `sluice branch drop %s %s`", live.Branch, r.o.Job, own.Branch)}
	}
	return nil
}

// filledToTheCut tells, as an error, that the cut has taken a sink that this process was
// filling for one of the branch before: what is owed to it is known to the next start.
func (r *runner) filledToTheCut() error {
	head, _ := r.owner.Head()
	for _, s := range r.sinks {
		if f := head.Sinks[s.spec.Name].Fill; r.filling[s.spec.Name] && (f == nil || f.Branch != head.Branch) {
			// No refusal: a supervisor that starts it again does right.
			return fmt.Errorf("%s: sink %s was filled by this branch, and the one before has delivered there as well, which came to light in the cut; this build is live, and nothing is lost: start the same again to go on", r.o.Job, s.spec.Name)
		}
	}
	return nil
}

// standing decides what is to be done with a record that another process has made.
func (r *runner) standing(ctx context.Context, stands connector.SinkRecord, start epoch.Position) (step epoch.StandingStep, err error) {
	v := epoch.StandingView{
		Own: r.owner.Branch(), Start: start,
		Branch: stands.Branch, At: epoch.Place{Position: epoch.Position(stands.Position), Part: stands.Part}, Untouched: stands.Manifest == "",
	}
	_, v.Live = r.owner.Live()
	if v.WasLive, err = r.wasLive(ctx, stands.Branch); err != nil || v.WasLive || v.Branch == v.Own {
		return epoch.DecideStanding(v), err
	}
	if v.Ended, err = r.job.Ended(ctx, stands.Branch); err != nil {
		return 0, err
	}
	v.WasLive, err = r.wasLive(ctx, stands.Branch) // behind its end
	return epoch.DecideStanding(v), err
}

func (r *runner) cantEmpty(s *sink, by string) error {
	return &FillError{r.o.Job, s.spec.Name, fmt.Sprintf("%s, which was never live, has filled it in part, and a sink of this kind can't be emptied; give the sink another name and target", by)}
}

// wasLive tells whether a branch is live, or has been.
func (r *runner) wasLive(ctx context.Context, branch string) (bool, error) {
	records, err := r.job.LiveRecords(ctx, nil)
	return slices.ContainsFunc(records, func(l epoch.LiveRecord) bool { return l.Branch == branch }), err
}

// replaceRecords replaces the records that branches have left which were never live, as
// the newest manifest says.
func (r *runner) replaceRecords(ctx context.Context, sinks []*sink) error {
	head, _ := r.owner.Head()
	for _, s := range sinks {
		at := head.Sinks[s.spec.Name]
		if at.Takes == "" {
			continue
		}
		target, ok := s.target.(connector.EmptyTarget)
		if !ok {
			return r.cantEmpty(s, "another branch")
		}
		first, err := r.firstRecord(s, at.RecordAt())
		if err != nil {
			return err
		}
		first.ID = at.Record
		stands, err := target.Replace(ctx, at.Takes, first)
		if errors.Is(err, connector.ErrKept) {
			return &FillError{r.o.Job, s.spec.Name, fmt.Sprintf("another branch, which was never live, has filled it in part, and %v; then start the same again", err)}
		}
		if err != nil {
			return fmt.Errorf("%s: sink %s: %w", r.o.Job, s.spec.Name, err)
		}
		if stands.ID != first.ID {
			if lost := r.lost(ctx); fencedBy(lost) {
				return lost
			}
			return &deliver.DisagreeError{At: epoch.At{Job: r.o.Job}, Sink: s.spec.Name, Record: &stands, Position: at.RecordAt(), Reason: fmt.Sprintf("its record is %s, expected %s or %s", stands.ID, at.Takes, first.ID)}
		}
		r.o.Log.Info("the sink is this branch's, and what another one had filled it with is gone", "sink", s.spec.Name)
	}
	return nil
}
