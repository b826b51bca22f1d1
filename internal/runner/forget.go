package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
)

// forgetsAtOnce bounds the requests to forget that are held at once, editsAtOnce the
// entries that they name together, some 15 MB. The others stay in the store meanwhile.
const (
	forgetsAtOnce = 100
	editsAtOnce   = 5 * epoch.MaxAsked
)

// forgetting holds the requests to forget that no manifest calls done. Nothing but
// a manifest that has their edits takes them out: what an epoch that came to nothing
// had deleted is deleted again by the next.
type forgetting struct {
	more chan struct{} // has room for one

	mu     sync.Mutex
	open   []epoch.Request // in their order
	edits  int             // how many entries they name
	seen   uint64          // the newest request up to which all that are to be forgotten are or were in open
	missed bool            // there are others behind
}

// add takes a request that is found, in their order.
func (f *forgetting) add(r epoch.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.N <= f.seen || f.missed {
		return
	}
	if len(f.open) == forgetsAtOnce || f.edits+len(r.Edits) > editsAtOnce {
		f.missed = true
		return
	}
	f.open, f.seen, f.edits = append(f.open, r), r.N, f.edits+len(r.Edits)
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// after returns what is open behind a request.
func (f *forgetting) after(n uint64) (open []epoch.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.open {
		if r.N > n {
			open = append(open, r)
		}
	}
	return open
}

// noted is the newest request that the next manifest may call done: head is what
// the one before says, edits the newest whose edits it has itself, asked the newest
// of any other kind. One that is still open is above it.
func (f *forgetting) noted(head, edits, asked uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := max(edits, asked)
	if f.missed {
		newest = min(newest, f.seen)
	}
	for _, r := range f.open {
		if r.N > edits {
			newest = min(newest, r.N-1)
			break
		}
	}
	return max(head, newest)
}

// done takes out what a manifest calls done.
func (f *forgetting) done(upTo uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.open) > 0 && f.open[0].N <= upTo {
		f.edits -= len(f.open[0].Edits)
		f.open = f.open[1:]
	}
}

// hasRoom tells whether requests that were left behind may be read now.
func (f *forgetting) hasRoom() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.missed || len(f.open) > 0 {
		return false
	}
	f.missed = false
	return true
}

// findForgets reads the requests to forget that are not done, whoever was there
// when they were asked.
func (r *runner) findForgets(ctx context.Context) error {
	head, _ := r.owner.Head()
	f := &r.pulse.forgets
	f.mu.Lock()
	f.seen = max(f.seen, head.Request)
	after := f.seen
	f.mu.Unlock()
	for {
		found, err := r.job.RequestsAfter(ctx, after)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, request := range found {
			if after = request.N; request.Kind == epoch.ForgetRequest {
				f.add(request)
			}
		}
	}
}

// forget hands what is to be forgotten to the run, which does it before it reads
// the next record. What a request can't meet is noted with the epoch that calls it done.
func (c *committer) forget(ctx context.Context, run *engine.Run) error {
	for _, request := range c.r.pulse.forgets.after(c.handed) {
		unmet, err := c.r.unmet(ctx, request)
		if err != nil {
			return err
		}
		c.handed = request.N
		edits := request.Edits
		if len(unmet.States) > 0 {
			edits = slices.DeleteFunc(slices.Clone(edits), func(e epoch.Edit) bool { return slices.Contains(unmet.States, e.State) })
			c.unmet = append(c.unmet, unmet)
		}
		run.Forget(engine.Forget{Request: request.N, Edits: edits})
	}
	return nil
}

// edits notes, in an epoch's manifest, what it has deleted by request, and that the
// states' segments still hold it; c.mu is held, and the epoch's segments are among
// the states'.
func (c *committer) edits(m *epoch.Manifest, e *engine.Epoch) {
	if m.Edits = e.Edits; len(e.Covered) == 0 {
		m.EditsOf = e.EditsOf
	}
	c.noteUnmet(m, e.Request)
	if len(e.Edits) == 0 {
		return
	}
	m.Counts["forgotten"] = e.Forgotten.Load()
	for _, edit := range e.Edits {
		if _, known := m.State[edit.State]; known {
			c.edited[edit.State] = c.r.owner.NextEpoch()
		}
	}
}

// purged notes in a manifest which states' segments hold nothing any more of what
// was deleted by request; c.mu is held. It tells whether the one before said
// otherwise.
func (c *committer) purged(m *epoch.Manifest) (news bool) {
	for name, entry := range m.State {
		if entry.Edited != 0 && c.edited[name] == 0 {
			entry.Edited, entry.Segments = 0, c.segments[name]
			m.State[name] = entry
			news = true
		}
	}
	return news
}

// purging tells whether merges are owed that take away what was deleted by request.
func (c *committer) purging() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.edited) > 0
}
