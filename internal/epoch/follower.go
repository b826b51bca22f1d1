package epoch

import (
	"context"
	"errors"
	"fmt"
)

// Follower reads what a task of a branch is to follow, in order. It is used by one
// goroutine.
type Follower struct {
	job          *Job
	branch, task string
	records      []LiveRecord
	chain        []Link
	at           bookmark // the followed log's epoch that was covered last
	next         bookmark // the one that the step which was told last covers
}

// bookmark is a place in a followed log.
type bookmark struct {
	branch   string
	epoch    Epoch
	hash     string
	position Position
	any      bool
}

// Followed is what a follower is to do.
type Followed struct {
	Step FollowStep
	// Covered are the epochs to be covered in one step, opens among them.
	Covered []Manifest
	// Link is the generation that is followed.
	Link Link
}

// Follow reads for a task of a branch.
func (j *Job) Follow(branch, task string) *Follower {
	return &Follower{job: j, branch: branch, task: task}
}

// maxTurns bounds the generations that are passed, and the looks that clean-up
// overtakes, in one call.
const maxTurns = 100

// errFloorRose says that clean-up was faster than a look.
var errFloorRose = errors.New("the floor rose")

// Next tells what comes after own, the follower's newest manifest: at most so many
// positions in one step (rule U5). It waits for nothing. The error is a
// [TimetableError] if what comes next was cleaned away.
func (f *Follower) Next(ctx context.Context, own Manifest, most int) (Followed, error) {
	covers, ok := own.Covers[f.task]
	if !ok {
		return Followed{}, fmt.Errorf("%s: it covers nothing of task %s, and can't follow", At{f.job.name, own.Branch, own.Task, own.Epoch}, f.task)
	}
	if f.chain == nil {
		if err := f.readChain(ctx); err != nil {
			return Followed{}, err
		}
	}
	for range maxTurns {
		link, ok := Holder(f.chain, covers)
		if !ok {
			return Followed{}, fmt.Errorf("%s: the job has never run, so that there is nothing to follow; run it", f.job.name)
		}
		view := FollowView{Branch: f.branch, Covers: covers, Chain: f.chain, Most: most}
		hashes, err := f.look(ctx, link, &view)
		if errors.Is(err, errFloorRose) {
			f.at, f.next = bookmark{}, bookmark{}
			continue
		}
		if err != nil {
			return Followed{}, err
		}
		step, n := DecideFollow(view)
		if step == AwaitSuccessor { // live is read after the seal was seen
			if err := f.readChain(ctx); err != nil {
				return Followed{}, err
			}
			if f.chain[len(f.chain)-1].Live != link.Live {
				continue
			}
		}
		if step == Cover {
			last := view.Ahead[n-1]
			f.next = bookmark{link.Branch, last.Epoch, hashes[n-1], last.Position, true}
		}
		if step == TimetableGone {
			return Followed{Step: step, Link: link}, f.gone(ctx, link, covers)
		}
		return Followed{Step: step, Covered: view.Ahead[:n], Link: link}, nil
	}
	return Followed{}, fmt.Errorf("%s: branch %s: clean-up, or new live records, were faster %d times than it could be told what comes next", f.job.name, f.branch, maxTurns)
}

// readChain reads the live records that have come since.
func (f *Follower) readChain(ctx context.Context) (err error) {
	f.records, f.chain, err = f.job.chain(ctx, f.task, f.records)
	return err
}

func (f *Follower) gone(ctx context.Context, link Link, covers Position) error {
	floor, err := f.job.Floor(ctx, link.Branch, f.task)
	if err != nil {
		return err
	}
	return &TimetableError{At: At{f.job.name, link.Branch, f.task, floor}, Follower: f.branch, Covers: covers}
}

// look reads what is ahead of the follower, with the manifests' hashes.
func (f *Follower) look(ctx context.Context, link Link, view *FollowView) ([]string, error) {
	if link.Branch == f.branch {
		return nil, nil // it is the live one
	}
	here := func(b bookmark) bool { return b.any && b.branch == link.Branch && b.position == view.Covers }
	located := false
	switch {
	case here(f.at):
	case here(f.next):
		f.at = f.next
	default:
		at, err := f.locate(ctx, link, view)
		if err != nil || !at.any {
			return nil, err
		}
		f.at, located = at, true
	}
	hashes, lost, err := f.ahead(ctx, link, view)
	if err != nil || !lost || len(hashes) > 0 {
		return hashes, err
	}
	if view.Gone = located; !located {
		err = errFloorRose // the next look finds the place anew
	}
	return nil, err
}

// Under the floor stands what clean-up has left for followers (G8), and whatever a
// process that slept has put at a name that was freed. The latter has the right
// parent, and never a child: its process looks at the floor, and stops. So under the
// floor a manifest counts if the next one names it as its parent.

// readAhead is what came of reading on from a bookmark.
type readAhead struct {
	manifests []Manifest
	hashes    []string
	stop      stopReading
	at        Epoch // that was read last, or would be next
	child     bool  // what stopped it names the last as its parent
}

// stopReading is why reading on has stopped.
type stopReading int

const (
	stopEnough stopReading = iota
	stopFinal              // the generation's last epoch was read
	stopSeal
	stopAbsent
	stopMisfit // what stands there does not follow
)

// ahead reads on from the bookmark, up to the end of a step. lost says that there is
// no going on from the last one that counts: clean-up has passed.
func (f *Follower) ahead(ctx context.Context, link Link, view *FollowView) (hashes []string, lost bool, err error) {
	r, err := f.readOn(ctx, link, view.Most)
	if err != nil {
		return nil, false, err
	}
	floor, err := f.job.Floor(ctx, link.Branch, f.task) // after what it is held against
	if err != nil {
		return nil, false, err
	}
	counts, err := f.lastCounts(ctx, link, &r, floor)
	if err != nil {
		return nil, false, err
	}
	if n := len(r.hashes) - 1; !counts {
		r.manifests, r.hashes = r.manifests[:n], r.hashes[:n]
	}
	view.Ahead = r.manifests
	passed := !counts || floor > r.at
	switch {
	case r.stop == stopEnough:
		return r.hashes, !counts, nil
	case r.stop == stopFinal && counts && (len(r.hashes) == 0 || r.hashes[len(r.hashes)-1] == link.Hash):
		view.Sealed = true
	case r.stop == stopSeal && (!passed || floor == AllEpochs):
		view.Sealed = true
	case passed:
		return r.hashes, true, nil
	case r.stop != stopAbsent || link.Ended():
		err = f.job.damaged(At{f.job.name, link.Branch, f.task, r.at}, ManifestPath(link.Branch, f.task, r.at),
			fmt.Sprintf("a manifest of generation %d that follows the one before", link.Live), r.stop.String())
	}
	return r.hashes, false, err
}

// String says what was found.
func (s stopReading) String() string {
	if s == stopAbsent {
		return "none"
	}
	return "another"
}

// readOn reads one position more than a step covers, if there are as many.
func (f *Follower) readOn(ctx context.Context, link Link, most int) (r readAhead, err error) {
	hash, data := f.at.hash, 0
	for r.at = f.at.epoch; data <= most; {
		if link.Ended() && r.at >= link.Final {
			r.stop = stopFinal
			return r, nil
		}
		r.at++
		m, own, there, err := f.read(ctx, link, r.at)
		fits := m.Parent == hash
		switch {
		case err != nil:
			return r, err
		case !there:
			r.stop = stopAbsent
			return r, nil
		case !fits, m.Kind == Data && (m.Live == nil || *m.Live != link.Live):
			r.stop = stopMisfit
			return r, nil
		case m.Kind == Seal:
			r.stop, r.child = stopSeal, true
			return r, nil
		case m.Kind == Data:
			data++
		}
		r.manifests, r.hashes, hash = append(r.manifests, m), append(r.hashes, own), own
	}
	return r, nil
}

// lastCounts tells whether the last manifest that was read belongs to the log.
func (f *Follower) lastCounts(ctx context.Context, link Link, r *readAhead, floor Epoch) (bool, error) {
	n := len(r.manifests)
	if n == 0 {
		return true, nil
	}
	last, hash := r.manifests[n-1].Epoch, r.hashes[n-1]
	if floor <= last || r.child || link.Ended() && last == link.Final && hash == link.Hash {
		return true, nil
	}
	if r.stop != stopEnough {
		return false, nil
	}
	child, _, there, err := f.read(ctx, link, last+1)
	return there && child.Parent == hash, err
}

// locate finds the epoch before the first that is not covered. It notes in the view
// that this one was cleaned away, or that the log has nothing for the follower.
func (f *Follower) locate(ctx context.Context, link Link, view *FollowView) (at bookmark, err error) {
	last := link.Final
	if !link.Ended() {
		head, gone, err := f.job.endOf(ctx, link.Branch, f.task, f.at.epoch)
		if err != nil {
			return at, err
		}
		if gone || head.Hash == "" {
			view.Sealed = gone // it had nothing of its own (H16)
			return at, nil
		}
		last = head.Manifest.Epoch
	}
	m, hash, there, err := f.read(ctx, link, last)
	if err != nil || !there {
		view.Gone = err == nil
		return at, err
	}
	if m.Position <= view.Covers {
		return bookmark{link.Branch, last, hash, view.Covers, true}, nil
	}
	first, err := f.search(ctx, link, m, view.Covers)
	if err != nil {
		return at, err
	}
	for e := first; e <= last; e++ {
		m, counts, err := f.counts(ctx, link, e, last)
		if err != nil {
			return at, err
		}
		if !counts || m.Position <= view.Covers {
			continue
		}
		if m.Kind != Data || m.Position != view.Covers+1 {
			break
		}
		return bookmark{link.Branch, e - 1, m.Parent, view.Covers, true}, nil
	}
	view.Gone = true
	return at, nil
}

// read reads a manifest that may not be there.
func (f *Follower) read(ctx context.Context, link Link, e Epoch) (m Manifest, hash string, there bool, err error) {
	m, hash, err = f.job.manifest(ctx, link.Branch, f.task, e)
	if missing := (*missingError)(nil); errors.As(err, &missing) {
		return m, "", false, nil
	}
	return m, hash, err == nil, err
}

// search finds an epoch whose manifest is there and not covered, and before which
// there is none, or only what is covered; high is not covered. All that the follower
// needs is there without a gap, up to the head.
func (f *Follower) search(ctx context.Context, link Link, high Manifest, covers Position) (Epoch, error) {
	low, found := Epoch(0), high.Epoch
	for low < found {
		middle := low + (found-low)/2
		m, _, there, err := f.read(ctx, link, middle)
		if err != nil {
			return 0, err
		}
		if there && m.Position > covers {
			found = middle
		} else {
			low = middle + 1
		}
	}
	return found, nil
}

// counts tells whether a manifest is there and belongs to the log.
func (f *Follower) counts(ctx context.Context, link Link, e, last Epoch) (Manifest, bool, error) {
	m, hash, there, err := f.read(ctx, link, e)
	if err != nil || !there || e == last {
		return m, there, err
	}
	floor, err := f.job.Floor(ctx, link.Branch, f.task)
	if err != nil || floor <= e {
		return m, true, err
	}
	child, _, there, err := f.read(ctx, link, e+1)
	return m, there && child.Parent == hash, err
}
