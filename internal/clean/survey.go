package clean

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// survey is what the rest of the job says about a log.
type survey struct {
	live       epoch.LiveRecord // the newest; zero if there is none
	liveBranch string
	others     []other
}

// other is another log of the job.
type other struct {
	at    place
	head  epoch.Head
	begun bool // it has a base
	gone  bool // its floor is above everything
	base  *epoch.Point
}

// unsealed tells whether the log may go on; one that has no base yet may come.
func (o other) unsealed() bool { return !o.gone && !(o.begun && o.head.Sealed()) }

// branchFile is what is remembered of a branch's own record, which never
// changes.
type branchFile struct {
	base  *epoch.Point
	tasks []string
}

// branch reads a branch's own record.
func (c *Cleaner) branch(ctx context.Context, name string) (branchFile, error) {
	if f, ok := c.branches[name]; ok {
		return f, nil
	}
	file, err := c.job.BranchFile(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return branchFile{tasks: []string{epoch.FirstTask}}, nil // it is being made
	}
	if err != nil {
		return branchFile{}, err
	}
	tasks, err := c.tasks(ctx, file.Layout)
	if err != nil {
		return branchFile{}, err
	}
	f := branchFile{file.Base, tasks}
	c.branches[name] = f
	return f, nil
}

// tasks are those of a layout.
func (c *Cleaner) tasks(ctx context.Context, layout int) ([]string, error) {
	if tasks, ok := c.layouts[layout]; ok {
		return tasks, nil
	}
	l, err := c.job.Layout(ctx, layout)
	if err != nil {
		return nil, err
	}
	var tasks []string
	for _, t := range l.Tasks {
		tasks = append(tasks, t.Name)
	}
	c.layouts[layout] = tasks
	return tasks, nil
}

// places are all logs of the job.
func (c *Cleaner) places(ctx context.Context) ([]place, error) {
	branches, err := c.job.Branches(ctx)
	if err != nil {
		return nil, err
	}
	var all []place
	for _, name := range branches {
		file, err := c.branch(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, task := range file.tasks {
			all = append(all, place{name, task})
		}
	}
	return all, nil
}

// survey looks at the rest of the job.
func (r *run) survey(ctx context.Context) (survey, error) {
	s := survey{liveBranch: epoch.MainBranch}
	live, haveLive, err := r.job.Live(ctx)
	if err != nil {
		return s, err
	}
	if haveLive {
		s.live, s.liveBranch = live, live.Branch
	}
	s.others, err = r.others(ctx)
	return s, err
}

// others looks at the other logs.
func (r *run) others(ctx context.Context) ([]other, error) {
	places, err := r.c.places(ctx)
	if err != nil {
		return nil, err
	}
	var all []other
	for _, at := range places {
		if at == r.at {
			continue
		}
		o, err := r.other(ctx, at)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

func (r *run) other(ctx context.Context, at place) (other, error) {
	file, err := r.c.branch(ctx, at.branch)
	if err != nil {
		return other{}, err
	}
	o := other{at: at, base: file.base}
	ix := r.c.index(at)
	if ix.gone {
		o.gone = true
		return o, nil
	}
	head, err := r.job.HeadNear(ctx, at.branch, at.task, ix.head)
	switch {
	case is[*epoch.NoLogError](err):
	case is[*epoch.VoidError](err):
		o.gone = true
	case err != nil:
		return o, err
	default:
		o.head, o.begun = head, true
		ix.head = head.Manifest.Epoch
	}
	return o, nil
}

func is[E error](err error) bool {
	var typed E
	return errors.As(err, &typed)
}

// newestSinks are the sinks of the live branch's newest manifest, of the same
// task: what it has confirmed. A layout without the task has confirmed nothing.
func (s survey) newestSinks(at place, own epoch.Head) map[string]epoch.SinkState {
	if s.liveBranch == at.branch {
		return own.Manifest.Sinks
	}
	for _, o := range s.others {
		if o.at == (place{s.liveBranch, at.task}) {
			return o.head.Manifest.Sinks
		}
	}
	return nil
}

// settled finds the sinks that the live branch lacks and nobody waits for, by
// the live records from the log's own on.
func (r *run) settled(ctx context.Context, own epoch.Head, newest map[string]epoch.SinkState, last epoch.Generation) (map[string]bool, error) {
	var lacking []string
	for name := range own.Manifest.Sinks {
		if known, has := newest[name]; !has || known.Dropped != "" {
			lacking = append(lacking, name)
		}
	}
	settled := map[string]bool{}
	if len(lacking) == 0 || own.Manifest.Live == nil {
		return settled, nil
	}
	for n := *own.Manifest.Live; n <= last; n++ {
		record, err := r.liveRecord(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, sink := range lacking {
			drained, err := r.job.Drained(ctx, n, r.at.task, sink)
			if err != nil {
				return nil, err
			}
			if drained || record.Sinks[sink].Dropped == "consented" {
				settled[sink] = true
			}
		}
	}
	return settled, nil
}

func (r *run) liveRecord(ctx context.Context, n epoch.Generation) (epoch.LiveRecord, error) {
	if record, ok := r.c.live[n]; ok {
		return record, nil
	}
	record, err := r.job.LiveRecord(ctx, n)
	if err == nil {
		r.c.live[n] = record
	}
	return record, err
}

// covered are the positions that unsealed followers have covered.
func (s survey) covered(task string) (all []epoch.Position) {
	for _, o := range s.others {
		if o.begun && o.unsealed() && o.at.branch != s.liveBranch && o.at.task == task {
			all = append(all, o.head.Manifest.Covers[task])
		}
	}
	return all
}

// held is the oldest epoch of the log that sinks which are being written anew still
// compare with: by the live branch, whether it has ended or not, or by one that may go
// on.
func (s survey) held(at place, own epoch.Head) (oldest *epoch.Epoch) {
	var heads []epoch.Head
	if !own.Sealed() || at.branch == s.liveBranch {
		heads = append(heads, own)
	}
	for _, o := range s.others {
		if o.begun && (o.unsealed() || o.at.branch == s.liveBranch) {
			heads = append(heads, o.head)
		}
	}
	for _, h := range heads {
		for _, sink := range h.Manifest.Sinks {
			for _, e := range sink.Rewrite.Ends() {
				if e.Branch == at.branch && e.Task == at.task && (oldest == nil || e.Epoch < *oldest) {
					oldest = &e.Epoch
				}
			}
		}
	}
	return oldest
}

// awaited tells whether a branch that has no base yet is to start from this one.
func (s survey) awaited(branch string) bool {
	return slices.ContainsFunc(s.others, func(o other) bool {
		return !o.begun && !o.gone && o.base != nil && o.base.Branch == branch
	})
}

// pins are the epochs that pins and savepoints name.
type pins struct {
	points []epoch.Point
	// held are those of pins/ that are no readers', by the branch that each belongs to.
	held map[string][]epoch.Point
}

// pins reads the pins that count. Those of readers that have died are taken away
// before: nobody else does as long as no other reader comes.
func (r *run) pins(ctx context.Context) (pins, error) {
	p := pins{held: map[string][]epoch.Point{}}
	if !r.c.o.DryRun {
		if err := r.job.DropReadersPins(ctx); err != nil {
			return p, err
		}
	}
	// Savepoints first: a branch that starts from one makes its pin and then looks
	// whether the savepoint is there still, so that one of the two is seen here.
	savepoints, err := r.job.Savepoints(ctx)
	if err != nil {
		return p, err
	}
	for _, s := range savepoints {
		p.points = append(p.points, s.Point)
	}
	found, err := r.job.Pins(ctx)
	for id, pin := range found {
		p.points = append(p.points, pin.Point)
		if pin.Reader {
			continue // it goes nowhere from there
		}
		holder := epoch.PinHolder(id)
		p.held[holder] = append(p.held[holder], pin.Point)
	}
	return p, err
}

// epochs are the pinned epochs of a log.
func (p pins) epochs(at place) map[epoch.Epoch]bool {
	all := map[epoch.Epoch]bool{}
	for _, point := range p.points {
		if e, ok := point.Tasks[at.task]; ok && point.Branch == at.branch {
			all[e] = true
		}
	}
	return all
}

// from is the oldest epoch of a log that an unsealed branch has pinned: it is
// going to follow from there.
func (p pins) from(at place, others []other) epoch.Epoch {
	ended := endedOf(others)
	oldest := epoch.AllEpochs
	for holder, points := range p.held {
		for _, point := range points {
			if e, ok := point.Tasks[at.task]; ok && point.Branch == at.branch && !ended[holder] {
				oldest = min(oldest, e)
			}
		}
	}
	return oldest
}

// begins are the positions of what unsealed branches have pinned in other logs: one that
// begins where an ended branch does, as a rollback, is going to follow this one from
// there.
func (r *run) begins(ctx context.Context, p pins, others []other) (all []epoch.Position, err error) {
	ended := endedOf(others)
	for holder, points := range p.held {
		if ended[holder] {
			continue
		}
		for _, point := range points {
			e, ok := point.Tasks[r.at.task]
			if !ok || point.Branch == r.at.branch {
				continue // that is from's
			}
			m, err := r.job.ManifestBelow(ctx, point.Branch, r.at.task, e)
			if errors.Is(err, store.ErrNotFound) {
				continue // it had gone before it was pinned
			}
			if err != nil {
				return nil, err
			}
			all = append(all, m.Position)
		}
	}
	return all, nil
}

// endedOf are the branches of logs that are sealed, or gone.
func endedOf(others []other) map[string]bool {
	ended := map[string]bool{}
	for _, o := range others {
		if !o.unsealed() {
			ended[o.at.branch] = true
		}
	}
	return ended
}

// references are the objects of this log that other branches refer to (G4), by
// name. What a branch refers to of another's only shrinks, so that its oldest
// epoch has it all; what its pins keep may be older still.
func (r *run) references(ctx context.Context, p pins, others []other) (map[string]bool, error) {
	all := map[string]bool{}
	add := func(m epoch.Manifest) {
		for name := range objectsIn(r.at, m) {
			all[name] = true
		}
	}
	for _, o := range others {
		for e := range maps.Keys(p.epochs(o.at)) {
			m, err := r.job.ManifestBelow(ctx, o.at.branch, o.at.task, e)
			if err == nil {
				add(m)
			} else if !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
		}
		if o.gone {
			continue
		}
		if o.begun {
			add(o.head.Manifest)
		}
		oldest, err := r.oldest(ctx, o.at)
		if err != nil {
			return nil, err
		}
		add(oldest)
	}
	return all, nil
}

// oldest reads the oldest epoch that another log keeps; a zero manifest if the
// log is gone, or to come.
func (r *run) oldest(ctx context.Context, at place) (epoch.Manifest, error) {
	for range maxRounds {
		floor, err := r.job.Floor(ctx, at.branch, at.task)
		if err != nil || floor == epoch.AllEpochs {
			return epoch.Manifest{}, err
		}
		m, err := r.job.ManifestBelow(ctx, at.branch, at.task, floor)
		if !errors.Is(err, store.ErrNotFound) || floor == 0 {
			return m, ignoreNotFound(err)
		}
	}
	return epoch.Manifest{}, overtaken(at)
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
