package clean

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/internal/epoch"
)

// maxRounds bounds how often a clean-up starts over because another was faster.
const maxRounds = 10

// run is one clean-up of one log.
type run struct {
	c      *Cleaner
	job    *epoch.Job
	at     place
	ix     *index
	result Result
}

// run carries out G1 to G8. When another clean-up has passed what this one was
// reading, it starts over.
func (r *run) run(ctx context.Context) error {
	for range maxRounds {
		err := r.once(ctx)
		if !errors.Is(err, errOvertaken) {
			return err
		}
		r.ix.reset()
	}
	return overtaken(r.at)
}

func (r *run) once(ctx context.Context) error {
	if r.result.Left = (Left{}); r.c.o.DryRun {
		r.result = Result{}
	}
	if r.ix.gone {
		r.result.Floor = epoch.AllEpochs
		return nil
	}
	head, err := r.job.HeadNear(ctx, r.at.branch, r.at.task, r.ix.head)
	switch {
	case is[*epoch.NoLogError](err):
		return nil // its base is still to come
	case is[*epoch.VoidError](err):
		return r.remove(ctx, epoch.AllEpochs, nil)
	case err != nil:
		return err
	}
	r.ix.head = head.Manifest.Epoch
	floor, err := r.floor(ctx, head)
	if err != nil {
		return err
	}
	return r.remove(ctx, floor, &head)
}

// floor chooses the floor and records it, G1 and G2.
func (r *run) floor(ctx context.Context, head epoch.Head) (epoch.Epoch, error) {
	now, err := r.job.Floor(ctx, r.at.branch, r.at.task)
	if err != nil {
		return 0, err
	}
	if now == 0 {
		r.ix.cleared = true // nothing was ever removed
	}
	s, err := r.survey(ctx)
	if err != nil {
		return 0, err
	}
	view, err := r.view(ctx, head, s, now)
	if err != nil {
		return 0, err
	}
	choice := epoch.DecideFloor(view)
	r.result.Floor = choice.Floor
	r.result.Left = Left{Kept: int64(choice.Kept), Owed: int64(choice.Owed), Followed: int64(choice.Followed)}
	if choice.Floor > now && !r.c.o.DryRun {
		if err := r.job.PutFloor(ctx, r.at.branch, r.at.task, choice.Floor); err != nil {
			return 0, err
		}
	}
	return choice.Floor, nil
}

// view is what the floor's choice needs.
func (r *run) view(ctx context.Context, head epoch.Head, s survey, floor epoch.Epoch) (epoch.FloorView, error) {
	v := epoch.FloorView{Floor: floor, Retention: r.c.retention(), Covered: s.covered(r.at.task), Held: s.held(r.at, head)}
	live := s.liveBranch == r.at.branch
	newest := s.newestSinks(r.at, head)
	settled, err := r.settled(ctx, head, newest, s.live.N)
	if err != nil {
		return v, err
	}
	v.Owed, v.Filling = epoch.Deliveries{
		Live: live, Sealed: head.Sealed(), WasLive: head.Manifest.Live != nil,
		Own: head.Manifest.Sinks, Newest: newest, Branch: r.at.branch, Settled: settled,
	}.Owed()
	if head.Sealed() {
		p, err := r.pins(ctx)
		if err != nil {
			return v, err
		}
		v.End = &epoch.End{
			Micros: r.job.Now() - head.Seal.Time, Live: live,
			LastEnded: s.live.Ends != nil && s.live.Ends.Branch == r.at.branch,
			Pinned:    len(p.epochs(r.at)) > 0, Awaited: s.awaited(r.at.branch),
		}
		if head.Seal.Epoch == 0 {
			return v, nil // nothing but the seal
		}
	}
	if err := r.forward(ctx, head.Manifest, floor); err != nil {
		return v, err
	}
	v.Log = r.ix.log
	if err := r.extend(ctx, floor, v.Needs); err != nil {
		return v, err
	}
	v.Log = r.ix.log
	return v, nil
}

// remove carries out G3 to G8 with a floor that stands. A log without a head is
// gone altogether.
func (r *run) remove(ctx context.Context, floor epoch.Epoch, head *epoch.Head) error {
	r.result.Floor = floor
	s := &sweep{run: r, floor: floor, found: map[string]bool{}}
	if head == nil {
		s.ended = true
	} else {
		s.ended, s.owner = head.Sealed(), head.Manifest.Owner
	}
	if !s.due() {
		return nil
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	if len(r.ix.log) > 0 { // what isn't known to be kept would go
		if err := r.extend(ctx, floor, always); err != nil {
			return err
		}
	}
	if err := s.passed(ctx); err != nil {
		return err
	}
	if err := s.leftOvers(ctx); err != nil {
		return err
	}
	if r.c.o.DryRun {
		return nil
	}
	if err := r.job.DropOldFloors(ctx, r.at.branch, r.at.task); err != nil {
		return err
	}
	s.settle()
	return nil
}

func always(epoch.Trace) bool { return true }
