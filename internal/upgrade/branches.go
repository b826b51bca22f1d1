package upgrade

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Standing is how a branch stands to the live one.
type Standing string

// The standings.
const (
	Live    Standing = "live"     // its outputs are delivered
	Follows Standing = "follower" // it follows the live one, and may go live
	Sealed  Standing = "sealed"   // it is the live one and has ended, and none has come after it
	Ended   Standing = "ended"    // it was live, and another is
	GivenUp Standing = "given up" // it has ended without having been live
)

// Branch is a branch as one task has it.
type Branch struct {
	Name string
	// File is the branch's own record; a job's first branch may have none.
	File epoch.BranchFile
	Standing
	// Generations are those that it has been live as.
	Generations []epoch.Generation
	// Pinned is when somebody last pinned where it is to begin, in microseconds since 1970
	// UTC, if nothing but pins is there of it; else 0.
	Pinned int64
	// Begun says that it has a base, Gone that all of its log was cleaned away.
	Begun, Gone bool
	// Head is the end of its log. Its manifest is zero if the branch has no base, or
	// is gone.
	Head epoch.Head
	// Beat is the newest heartbeat of the head's owner; nil if there is none.
	Beat *epoch.Heartbeat
}

// Owned tells whether a process may be at work on the branch, as far as the store
// and this machine tell.
func (b Branch) Owned() bool {
	if !b.Begun || b.Head.Sealed() {
		return false
	}
	return (b.Beat == nil || !b.Beat.Released) && !b.Head.Manifest.Writer.Gone()
}

// LastSign is when something last came from whoever follows on the branch, in
// microseconds since 1970 UTC by the clock of that process.
func (b Branch) LastSign() int64 {
	last := max(b.File.Time, b.Head.Manifest.Time, b.Pinned)
	if b.Beat != nil {
		last = max(last, b.Beat.Time)
	}
	return last
}

// Covers is the position up to which a follower has covered the live branch.
func (b Branch) Covers() epoch.Position { return b.Head.Manifest.Covers[b.Head.Manifest.Task] }

// Branches are all branches of a job, as one task has them.
type Branches struct {
	Task string
	// Records are the live records, by their numbers.
	Records []epoch.LiveRecord
	// All has a branch before those that start from it.
	All []Branch
	// Position is where the live branch stands.
	Position epoch.Position
}

// Look reads how a job's branches stand. It changes nothing.
func Look(ctx context.Context, job *epoch.Job, task string) (Branches, error) {
	bs := Branches{Task: task}
	names, err := job.Branches(ctx)
	if err != nil {
		return bs, err
	}
	pinned, err := onlyPinned(ctx, job, names)
	if err != nil {
		return bs, err
	}
	for _, name := range slices.Concat(names, slices.Sorted(maps.Keys(pinned))) {
		b, err := look(ctx, job, name, task)
		if err != nil {
			return bs, err
		}
		b.Pinned = pinned[name]
		bs.All = append(bs.All, b)
	}
	// Live is read after the seals: one without a successor by then has none yet.
	if bs.Records, err = job.LiveRecords(ctx, nil); err != nil {
		return bs, err
	}
	for i, b := range bs.All {
		bs.All[i].Standing, bs.All[i].Generations = Stand(b.Name, bs.Records, b.Head.Sealed() || b.Gone)
	}
	bs.All = fromTheRoot(bs.All)
	bs.Position = bs.livePosition()
	return bs, nil
}

// onlyPinned are the branches that are not among those with a record, and of which there
// are pins: who was to begin them died, or is at it.
func onlyPinned(ctx context.Context, job *epoch.Job, names []string) (map[string]int64, error) {
	pins, err := job.Pins(ctx)
	if err != nil {
		return nil, err
	}
	times := map[string]int64{}
	for id, pin := range pins {
		if name := epoch.PinHolder(id); !pin.Reader && !slices.Contains(names, name) {
			times[name] = max(times[name], pin.Time)
		}
	}
	return times, nil
}

func look(ctx context.Context, job *epoch.Job, name, task string) (b Branch, err error) {
	b.Name = name
	if b.File, err = job.BranchFile(ctx, name); err != nil && !errors.Is(err, store.ErrNotFound) {
		return b, err
	}
	var none *epoch.NoLogError
	var void *epoch.VoidError
	b.Head, err = job.Head(ctx, name, task)
	switch {
	case errors.As(err, &none):
		return b, nil
	case errors.As(err, &void):
		b.Begun, b.Gone = true, true
		return b, nil
	case err != nil:
		return b, err
	}
	b.Begun = b.Head.Hash != ""
	beat, ok, err := job.Heartbeat(ctx, name, task)
	if ok && beat.Owner == b.Head.Manifest.Owner {
		b.Beat = &beat
	}
	return b, err
}

// Stand decides how a branch stands, by all live records, and the generations that it
// has been live as. A job that has no record yet has its first branch live.
func Stand(branch string, records []epoch.LiveRecord, sealed bool) (Standing, []epoch.Generation) {
	var was []epoch.Generation
	for _, r := range records {
		if r.Branch == branch {
			was = append(was, r.N)
		}
	}
	isLive := len(records) == 0 && branch == epoch.MainBranch || len(records) > 0 && records[len(records)-1].Branch == branch
	switch {
	case isLive && sealed:
		return Sealed, was
	case isLive:
		return Live, was
	case len(was) > 0:
		return Ended, was
	case sealed:
		return GivenUp, was
	default:
		return Follows, was
	}
}

// fromTheRoot puts each branch behind the one that it starts from: of those that start
// from one the earliest first.
func fromTheRoot(all []Branch) []Branch {
	from := map[string][]Branch{}
	known := map[string]bool{}
	for _, b := range all {
		known[b.Name] = true
	}
	for _, b := range all {
		parent := b.Parent()
		if !known[parent] || parent == b.Name {
			parent = ""
		}
		from[parent] = append(from[parent], b)
	}
	var out []Branch
	placed := map[string]bool{}
	var place func(parent string)
	place = func(parent string) {
		below := from[parent]
		slices.SortStableFunc(below, func(a, b Branch) int {
			return cmp.Or(cmp.Compare(a.File.Time, b.File.Time), cmp.Compare(a.Name, b.Name))
		})
		for _, b := range below {
			placed[b.Name] = true
			out = append(out, b)
			place(b.Name)
		}
	}
	place("")
	for _, b := range all { // a record that is wrong may make a ring
		if !placed[b.Name] {
			out = append(out, b)
		}
	}
	return out
}

// Parent is the branch that this one starts from; empty for a job's first.
func (b Branch) Parent() string {
	if b.File.Base == nil {
		return ""
	}
	return b.File.Base.Branch
}

// Named is a branch by its name.
func (bs Branches) Named(name string) (Branch, bool) {
	i := slices.IndexFunc(bs.All, func(b Branch) bool { return b.Name == name })
	if i < 0 {
		return Branch{}, false
	}
	return bs.All[i], true
}

// LiveBranch is the one whose outputs are delivered, sealed or not.
func (bs Branches) LiveBranch() (Branch, bool) {
	i := slices.IndexFunc(bs.All, func(b Branch) bool { return b.Standing == Live || b.Standing == Sealed })
	if i < 0 {
		return Branch{}, false
	}
	return bs.All[i], true
}

// livePosition is where the live branch stands: where the generation before has ended,
// if it has had nothing of its own and was cleaned away (H16).
func (bs Branches) livePosition() epoch.Position {
	if b, ok := bs.LiveBranch(); ok && b.Begun && !b.Gone {
		return b.Head.Manifest.Position
	}
	if n := len(bs.Records); n > 0 && bs.Records[n-1].Ends != nil {
		return bs.Records[n-1].Ends.Tasks[bs.Task].Position
	}
	return 0
}

// Behind is by how many positions a follower is behind the live branch; ok is false
// for any other branch, and for a follower without a base.
func (bs Branches) Behind(b Branch) (positions epoch.Position, ok bool) {
	if b.Standing != Follows || !b.Begun {
		return 0, false
	}
	covers := b.Covers()
	return bs.Position - min(covers, bs.Position), true
}
