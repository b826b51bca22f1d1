package plan

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

const (
	// specialPart is the part of a sample, one in so many, that are the largest
	// values, and again that are the entries of the oldest segments.
	specialPart = 10
	// largeBlocks is how many blocks the largest values are looked for in.
	largeBlocks = 16
	// oldSegments is how many segments are looked into for the oldest entries.
	oldSegments = 3
	// perPlace is how many entries are taken at each place of a sample: what is read
	// there has many more.
	perPlace = 4
	// mostSkipped bounds how many newer entries are passed over at one place.
	mostSkipped = 1000
	// wholeTasks is how many ranges of slots all entries are tried in.
	wholeTasks = 64
)

// sourceTrial tries entries of one stored state.
type sourceTrial struct {
	o        *TrialOptions
	seeker   *state.Seeker
	segments int
	rows     int64 // of the segments, deletes and what has been written over included
	tasters  []*taster
	whole    bool // all entries were tried

	sum   tally
	takes time.Duration
	seen  map[string]bool // rows that were tried before the sample's even part
}

// each has tasks of the numbers below n done by all tasters, and adds up what they
// find in the order of the tasks.
func (t *sourceTrial) each(ctx context.Context, n int, do func(ctx context.Context, task int, w *taster) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tallies := make([]tally, n)
	var next atomic.Int64
	var running sync.WaitGroup
	for _, w := range t.tasters {
		running.Go(func() {
			for task := int(next.Add(1) - 1); task < n && ctx.Err() == nil; task = int(next.Add(1) - 1) {
				w.tally = &tallies[task]
				if err := do(ctx, task, w); err != nil {
					cancel(err)
				}
			}
		})
	}
	running.Wait()
	for i := range tallies {
		t.sum.add(&tallies[i])
	}
	return context.Cause(ctx)
}

// all tries all entries.
func (t *sourceTrial) all(ctx context.Context) error {
	t.whole = true
	return t.each(ctx, wholeTasks, func(ctx context.Context, task int, w *taster) error {
		for e, err := range w.reader.Read(ctx, part(task, wholeTasks)) {
			if err != nil {
				return err
			}
			if err := w.try(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// part is the i-th of n parts of all slots.
func part(i, n int) epoch.Slots {
	const slots = int(1) << 16
	return epoch.Slots{First: epoch.Slot(i * slots / n), Last: epoch.Slot((i+1)*slots/n - 1)}
}

// sample tries n entries: special ones, then others that lie evenly.
func (t *sourceTrial) sample(ctx context.Context, n int) error {
	t.seen = map[string]bool{}
	err := t.each(ctx, 1, func(ctx context.Context, _ int, w *taster) error {
		if err := t.largest(ctx, w, n/specialPart); err != nil {
			return err
		}
		return t.oldest(ctx, w, n/specialPart)
	})
	if err != nil {
		return err
	}
	return t.even(ctx, n-len(t.seen))
}

// trySeen tries an entry that was not tried yet, and tells whether it did.
func (t *sourceTrial) trySeen(w *taster, e *state.Entry) (bool, error) {
	if row := rowOf(e); !t.seen[row] {
		t.seen[row] = true
		return true, w.try(e)
	}
	return false, nil
}

// rowOf is what identifies an entry.
func rowOf(e *state.Entry) string { return string(e.Key) + string(e.Element) }

// largest tries n of the largest values. They are looked for in the blocks with
// the fewest records for their bytes: first how large they are, then which.
func (t *sourceTrial) largest(ctx context.Context, w *taster, n int) error {
	if n == 0 {
		return nil
	}
	ranges, err := t.seeker.Largest(ctx, largeBlocks)
	if err != nil {
		return err
	}
	var sizes []int // the n largest, the largest first
	for e, err := range w.readAll(ctx, ranges) {
		if err != nil {
			return err
		}
		if len(sizes) == n && len(e.Value) <= sizes[n-1] {
			continue
		}
		at, _ := slices.BinarySearchFunc(sizes, len(e.Value), func(a, b int) int { return cmp.Compare(b, a) })
		sizes = slices.Insert(sizes, at, len(e.Value))
		sizes = sizes[:min(n, len(sizes))]
	}
	if len(sizes) == 0 {
		return nil
	}
	least := sizes[len(sizes)-1]
	first, _ := slices.BinarySearchFunc(sizes, least, func(a, b int) int { return cmp.Compare(b, a) })
	ties := len(sizes) - first // how many of the least size are to be tried
	for e, err := range w.readAll(ctx, ranges) {
		if err != nil {
			return err
		}
		switch {
		case len(e.Value) < least:
			continue
		case len(e.Value) == least && ties == 0:
			continue
		case len(e.Value) == least:
			ties--
		}
		if _, err := t.trySeen(w, e); err != nil {
			return err
		}
	}
	return nil
}

// oldest tries n entries that stand in the oldest segments, if there are others.
func (t *sourceTrial) oldest(ctx context.Context, w *taster, n int) error {
	for age := 0; age < min(oldSegments, t.segments-1) && n > 0; age++ {
		ranges, err := t.seeker.Spread(ctx, age, n)
		if err != nil {
			return err
		}
		for i, slots := range ranges {
			tried, err := t.standing(ctx, w, slots, age, (n+len(ranges)-i-1)/(len(ranges)-i))
			if err != nil {
				return err
			}
			n -= tried
		}
	}
	return nil
}

// standing tries up to n entries of a range of slots that stand in the segment of
// a number.
func (t *sourceTrial) standing(ctx context.Context, w *taster, slots epoch.Slots, segment, n int) (tried int, err error) {
	skipped := 0
	for e, err := range w.reader.Read(ctx, slots) {
		if err != nil {
			return tried, err
		}
		if w.reader.Segment() != segment {
			if skipped++; skipped == mostSkipped {
				break
			}
			continue
		}
		now, err := t.trySeen(w, e)
		if err != nil {
			return tried, err
		}
		if now {
			tried++
		}
		if tried == n {
			break
		}
	}
	return tried, nil
}

// even tries n entries at places that lie evenly over the slots. What a place
// lacks, the next ones have to give, and at last whichever has more.
func (t *sourceTrial) even(ctx context.Context, n int) error {
	places := (n + perPlace - 1) / perPlace
	took := make([]int, places)
	tasks := min(places, perPlace*len(t.tasters))
	err := t.each(ctx, tasks, func(ctx context.Context, task int, w *taster) (err error) {
		lacking := 0
		for p := task * places / tasks; p < (task+1)*places/tasks; p++ {
			wanted := lacking + (p+1)*n/places - p*n/places
			if took[p], err = t.unseen(ctx, w, part(p, places), 0, wanted); err != nil {
				return err
			}
			lacking = wanted - took[p]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range took {
		n -= k
	}
	return t.each(ctx, 1, func(ctx context.Context, _ int, w *taster) error {
		for p := 0; p < places && n > 0; p++ {
			more, err := t.unseen(ctx, w, part(p, places), took[p], n)
			if err != nil {
				return err
			}
			n -= more
		}
		return nil
	})
}

// unseen tries up to n entries of a range of slots behind the first ones, leaving
// out those that were tried as special.
func (t *sourceTrial) unseen(ctx context.Context, w *taster, slots epoch.Slots, first, n int) (tried int, err error) {
	if n == 0 {
		return 0, nil
	}
	for e, err := range w.reader.Read(ctx, slots) {
		if err != nil {
			return tried, err
		}
		if t.seen[rowOf(e)] {
			continue
		}
		if first > 0 {
			first--
			continue
		}
		if err := w.try(e); err != nil {
			return tried, err
		}
		if tried++; tried == n {
			break
		}
	}
	return tried, nil
}
