package runner

import (
	"context"
	"sync"

	"github.com/sluicestream/sluice/internal/epoch"
)

// leftovers are data objects of this owner that no manifest refers to. Clean-up
// leaves those of a living owner alone, so that the owner removes them itself:
// what an attempt had written when it was given up.
type leftovers struct {
	mu      sync.Mutex
	open    map[string]bool // written or tried, and not referred to yet
	rubbish []string        // never to be referred to
}

// tried notes a path before it is written to.
func (l *leftovers) tried(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string]bool{}
	}
	l.open[path] = true
}

// referred notes that a manifest refers to what it refers to.
func (l *leftovers) referred(m epoch.Manifest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path := range m.Data() {
		delete(l.open, path)
	}
}

// replaced notes that segments will not be referred to any more; those that a
// manifest has referred to are clean-up's.
func (l *leftovers) replaced(segments []epoch.Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range segments {
		if l.open[s.Path] {
			delete(l.open, s.Path)
			l.rubbish = append(l.rubbish, s.Path)
		}
	}
}

// giveUp notes that nothing refers to what is open any more.
func (l *leftovers) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path := range l.open {
		l.rubbish = append(l.rubbish, path)
	}
	clear(l.open)
}

// take returns the rubbish, once.
func (l *leftovers) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	rubbish := l.rubbish
	l.rubbish = nil
	return rubbish
}

// commit makes the branch's next manifest: every one of a run is made here, so
// that what a manifest refers to is no left-over. Behind it, once the floor was
// looked at (C3), what attempts before have left may go.
func (r *runner) commit(ctx context.Context, m epoch.Manifest) (epoch.Manifest, error) {
	m, err := r.owner.Commit(ctx, m)
	if err != nil {
		return m, err
	}
	r.pulse.forgets.done(m.Request)
	r.left.referred(m)
	r.removeLeftovers(ctx)
	return m, nil
}

func (r *runner) removeLeftovers(ctx context.Context) {
	for _, path := range r.left.take() {
		if err := r.o.Store.Delete(ctx, r.job.Object(path)); err != nil {
			r.o.Log.Debug("a left-over stays for the clean-up", "object", path, "error", err)
		}
	}
}
