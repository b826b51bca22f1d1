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
	switch {
	case here(f.at):
	case here(f.next):
		f.at = f.next
	default:
		at, err := f.locate(ctx, link, view)
		if err != nil || !at.any {
			return nil, err
		}
		f.at = at
	}
	return f.ahead(ctx, link, view)
}

// ahead reads on from the bookmark, up to the end of a step.
func (f *Follower) ahead(ctx context.Context, link Link, view *FollowView) (hashes []string, err error) {
	e, hash, data := f.at.epoch, f.at.hash, 0
	for data <= view.Most {
		if e++; link.Ended() && e > link.Final {
			view.Sealed = true
			break
		}
		m, own, err := f.job.manifest(ctx, link.Branch, f.task, e)
		if missing := (*missingError)(nil); errors.As(err, &missing) {
			return hashes, f.end(ctx, link, e)
		}
		if err != nil {
			return nil, err
		}
		if m.Parent != hash {
			return nil, f.broken(ctx, link, e, "a manifest whose parent is "+hash, "one whose parent is "+m.Parent)
		}
		if m.Kind == Seal {
			view.Sealed = true
			break
		}
		if m.Kind == Data {
			if m.Live == nil || *m.Live != link.Live {
				return nil, f.broken(ctx, link, e, fmt.Sprintf("a manifest of generation %d", link.Live), "one of another")
			}
			data++
		}
		view.Ahead, hashes, hash = append(view.Ahead, m), append(hashes, own), own
	}
	return hashes, nil
}

// end is what it means that a manifest isn't there: nil if it is to come.
func (f *Follower) end(ctx context.Context, link Link, e Epoch) error {
	floor, err := f.job.Floor(ctx, link.Branch, f.task)
	if err != nil {
		return err
	}
	if floor > e {
		return errFloorRose
	}
	return nil
}

// broken is what it means that a manifest doesn't follow the one before: damage,
// unless it stands at a name that clean-up has freed.
func (f *Follower) broken(ctx context.Context, link Link, e Epoch, expected, found string) error {
	if err := f.end(ctx, link, e); err != nil {
		return err
	}
	return f.job.damaged(At{f.job.name, link.Branch, f.task, e}, ManifestPath(link.Branch, f.task, e), expected, found)
}

// locate finds the epoch before the first that is not covered. It notes in the view
// that this one was cleaned away, or that the log has nothing for the follower.
func (f *Follower) locate(ctx context.Context, link Link, view *FollowView) (at bookmark, err error) {
	last, hash := link.Final, link.Hash
	if !link.Ended() {
		head, gone, err := f.job.endOf(ctx, link.Branch, f.task, f.at.epoch)
		if err != nil {
			return at, err
		}
		if gone || head.Hash == "" {
			view.Sealed = gone // it had nothing of its own (H16)
			return at, nil
		}
		last, hash = head.Manifest.Epoch, head.Hash
	}
	floor, err := f.job.Floor(ctx, link.Branch, f.task)
	if err != nil {
		return at, err
	}
	m, own, err := f.job.manifest(ctx, link.Branch, f.task, last)
	if err != nil {
		return at, f.lost(err, view)
	}
	if own != hash {
		return at, f.broken(ctx, link, last, "sha256 "+hash, own)
	}
	if m.Position <= view.Covers {
		return bookmark{link.Branch, last, own, view.Covers, true}, nil
	}
	if floor < last {
		if m, err = f.search(ctx, link, floor, m, view.Covers); err != nil {
			return at, err
		}
	}
	return f.before(ctx, link, m, view)
}

// lost notes that a manifest isn't there any more.
func (f *Follower) lost(err error, view *FollowView) error {
	missing := (*missingError)(nil)
	if errors.As(err, &missing) {
		view.Gone, err = true, nil
	}
	return err
}

// search finds the first manifest from the floor on that is not covered; high is one
// that isn't.
func (f *Follower) search(ctx context.Context, link Link, low Epoch, high Manifest, covers Position) (Manifest, error) {
	for low < high.Epoch {
		middle := low + (high.Epoch-low)/2
		m, _, err := f.job.manifest(ctx, link.Branch, f.task, middle)
		if missing := (*missingError)(nil); errors.As(err, &missing) {
			if rose := f.end(ctx, link, middle); rose != nil {
				return high, rose
			}
			return high, f.broken(ctx, link, middle, "a manifest, not under the floor", "none")
		}
		if err != nil {
			return high, err
		}
		if m.Position > covers {
			high = m
		} else {
			low = middle + 1
		}
	}
	return high, nil
}

// before goes back from a manifest that is not covered to the one before the first
// such: in spite of the floor, since clean-up keeps what an unsealed follower has not
// covered (G8). What doesn't fit by its hash stands at a name that was freed.
func (f *Follower) before(ctx context.Context, link Link, m Manifest, view *FollowView) (bookmark, error) {
	for m.Epoch > 0 {
		if m.Kind == Data && m.Position == view.Covers+1 {
			return bookmark{link.Branch, m.Epoch - 1, m.Parent, view.Covers, true}, nil
		}
		p, hash, err := f.job.manifest(ctx, link.Branch, f.task, m.Epoch-1)
		if err != nil {
			return bookmark{}, f.lost(err, view)
		}
		if hash != m.Parent {
			break
		}
		if p.Position <= view.Covers {
			return bookmark{link.Branch, p.Epoch, hash, view.Covers, true}, nil
		}
		m = p
	}
	view.Gone = true
	return bookmark{}, nil
}
