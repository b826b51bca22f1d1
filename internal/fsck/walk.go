package fsck

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// log is a log that is being walked.
type log struct {
	Log

	before epoch.Manifest // the manifest before; valid if hash is set
	hash   string         // of its bytes
	known  map[string]bool
	last   epoch.Epoch            // the last entry, a seal too
	some   bool                   // there are entries
	head   epoch.Manifest         // the newest that is no seal
	ends   map[epoch.Epoch]string // hashes that live records tell, by epoch
}

func (l *log) String() string { return fmt.Sprintf("branch %s, task %s", l.Branch, l.Task) }

func (l *log) path(e epoch.Epoch) string { return epoch.ManifestPath(l.Branch, l.Task, e) }

// walk reads a log's manifests from the floor on, holds each against the one
// before, and has the files read that it is the first to refer to.
func (c *checker) walk(ctx context.Context, l *log) (err error) {
	if l.Floor, err = c.floor(ctx, l); err != nil {
		return err
	}
	l.ends = c.records.endsOf(l.Branch, l.Task)
	for e := l.Floor; e < epoch.AllEpochs; e++ {
		m, o, err := c.manifest(ctx, l, e)
		switch {
		case err != nil:
			return err
		case o == good:
			if err := c.visit(ctx, l, m); err != nil {
				return err
			}
		case o == damaged:
			l.hash = ""
			l.last, l.some = e, true
		case o == absent:
			next, more, err := c.behind(ctx, l, e)
			if err != nil || !more {
				l.Gone = l.Floor == epoch.AllEpochs
				return err
			}
			if next > e {
				l.hash = ""
			}
			e = next - 1
		}
	}
	l.Gone = true
	return nil
}

// manifest reads the next entry of a walk, and holds it against the one before.
func (c *checker) manifest(ctx context.Context, l *log, e epoch.Epoch) (m epoch.Manifest, o outcome, err error) {
	m, hash, o, wrong, err := c.entry(ctx, l, e)
	if err != nil || o == absent {
		return m, o, err
	}
	c.counted(1, 0)
	if o == damaged {
		// Clean-up may have been at it.
		if floor, err := c.floor(ctx, l); err != nil || floor > e {
			return m, absent, err
		}
		c.found(l.path(e), wrong.expected, wrong.found, l.unreadable(e)...)
		return m, damaged, nil
	}
	c.checkNeighbours(l, m, hash)
	l.before, l.hash = m, hash
	return m, good, nil
}

// entry reads an entry and says what is wrong with it, if it is damaged.
func (c *checker) entry(ctx context.Context, l *log, e epoch.Epoch) (m epoch.Manifest, hash string, o outcome, wrong fault, err error) {
	data, o, wrong, err := c.fetch(ctx, l.path(e))
	if o != good || err != nil {
		return m, "", o, wrong, err
	}
	m, err = epoch.Decode[epoch.Manifest](data)
	if later, ok := errors.AsType[*epoch.FormatError](err); ok {
		later.Object = c.object(l.path(e))
		return m, "", damaged, wrong, later
	}
	if err != nil {
		return m, "", damaged, fault{"an object as it was written", "that " + err.Error()}, nil
	}
	if !c.ours(m.JobID) || m.Branch != l.Branch || m.Task != l.Task || m.Epoch != e {
		return m, "", damaged, fault{fmt.Sprintf("the manifest of job %s", c.records.jobID),
			fmt.Sprintf("that of job %s, branch %s, task %s, epoch %d", m.JobID, m.Branch, m.Task, m.Epoch)}, nil
	}
	return m, epoch.Hash(data), good, wrong, nil
}

func (l *log) unreadable(e epoch.Epoch) []string {
	return []string{fmt.Sprintf("%s: epoch %d can't be restored, and no replay can pass it", l, e)}
}

// behind decides about an entry that isn't there: the log ends before it, or it
// was cleaned away meanwhile, or it is lost. next is where the walk goes on.
func (c *checker) behind(ctx context.Context, l *log, e epoch.Epoch) (next epoch.Epoch, more bool, err error) {
	floor, err := c.floor(ctx, l)
	if err != nil {
		return 0, false, err
	}
	if floor > e {
		l.Floor, l.hash = floor, ""
		return floor, floor != epoch.AllEpochs, nil
	}
	later, more, err := c.nextManifest(ctx, l, e)
	if err != nil || !more {
		return 0, false, err
	}
	exists, err := c.store.Exists(ctx, c.object(l.path(e)))
	if err != nil || exists {
		return e, true, err // both have come since the look at e
	}
	if floor, err = c.floor(ctx, l); err != nil || floor > e {
		return e, true, err // and the next look meets the floor
	}
	c.found(l.path(e), fmt.Sprintf("a manifest, since that of epoch %d is there", later), none(e, later), l.unreadable(e)...)
	return later, true, nil
}

// none words what is missing before an epoch.
func none(from, to epoch.Epoch) string {
	const unsaid = ", and no floor says that it was cleaned away"
	if to-from == 1 {
		return "none" + unsaid
	}
	return fmt.Sprintf("none, nor those up to epoch %d%s", to-1, unsaid)
}

// nextManifest is the first behind an epoch.
func (c *checker) nextManifest(ctx context.Context, l *log, e epoch.Epoch) (epoch.Epoch, bool, error) {
	listed, err := c.store.List(ctx, c.object(epoch.LogPath(l.Branch, l.Task)), c.object(l.path(e)), 1)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", c.job, err)
	}
	for _, found := range listed {
		if name, ok := epoch.ParsePath(strings.TrimPrefix(found.Name, c.job+"/")); ok && name.Kind == epoch.ManifestObject {
			return name.Epoch, true, nil
		}
	}
	return 0, false, nil
}

// floor reads a log's newest floor.
func (c *checker) floor(ctx context.Context, l *log) (floor epoch.Epoch, err error) {
	folder := c.object(epoch.LogPath(l.Branch, l.Task) + "floor/")
	for after := ""; ; {
		listed, err := c.store.List(ctx, folder, after, page)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.job, err)
		}
		for _, f := range listed {
			after = f.Name
			if name, ok := epoch.ParsePath(strings.TrimPrefix(f.Name, c.job+"/")); ok && name.Kind == epoch.FloorObject {
				floor = max(floor, name.Epoch)
			}
		}
		if len(listed) < page {
			return floor, nil
		}
	}
}

// checkNeighbours holds an entry against the one before (S5, positions, seals),
// and against what live records say of it.
func (c *checker) checkNeighbours(l *log, m epoch.Manifest, hash string) {
	if told, ok := l.ends[m.Epoch]; ok && told != hash {
		c.found(l.path(m.Epoch), "sha256 "+told+" by the live record after it", hash, l.unreadable(m.Epoch)...)
	}
	if l.hash == "" {
		return
	}
	p := l.before
	switch position := epoch.NextPosition(m.Kind, m.Live != nil, p.Position, m.Position); {
	case p.Kind == epoch.Seal:
		c.found(l.path(m.Epoch), fmt.Sprintf("nothing behind the seal, epoch %d", p.Epoch), "a manifest of the kind "+string(m.Kind))
	case m.Parent != l.hash:
		c.found(l.path(p.Epoch), fmt.Sprintf("sha256 %s by epoch %d", m.Parent, m.Epoch), l.hash, l.unreadable(p.Epoch)...)
	case m.Position != position:
		c.found(l.path(m.Epoch), fmt.Sprintf("position %d behind position %d", position, p.Position), fmt.Sprint(m.Position))
	case m.Kind == epoch.Base:
		c.found(l.path(m.Epoch), "no base but the first epoch", "a base")
	}
}

// visit notes what a manifest names, and has its files read.
func (c *checker) visit(ctx context.Context, l *log, m epoch.Manifest) error {
	l.last, l.some = m.Epoch, true
	l.Epochs++
	if l.Sealed = m.Kind == epoch.Seal; l.Sealed {
		return nil
	}
	l.Head, l.head = m.Epoch, m
	c.records.note(l, m)
	if len(m.Edits) > 0 && m.Kind != epoch.Data {
		c.found(l.path(m.Epoch), "edits in a data epoch alone", fmt.Sprintf("%d in an %s", len(m.Edits), m.Kind))
	}
	known := map[string]bool{} // a file that a manifest doesn't name any more is not named again
	for _, f := range c.filesOf(m) {
		known[f.path] = true
		if l.known[f.path] {
			continue
		}
		if err := c.enqueue(ctx, f); err != nil {
			return err
		}
	}
	l.known = known
	return nil
}

// enqueue has a file read, and remembers that it is referred to.
func (c *checker) enqueue(ctx context.Context, f file) error {
	c.mu.Lock()
	_, seen := c.referred[short(f.path)]
	c.referred[short(f.path)] = struct{}{}
	c.mu.Unlock()
	if seen {
		return nil
	}
	select {
	case c.files <- f:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// short is a hash of a path.
func short(path string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(path))
	return h.Sum64()
}

// note remembers which records a manifest shows to have been there.
func (r *records) note(l *log, m epoch.Manifest) {
	at := fmt.Sprintf("epoch %d of %s", m.Epoch, l)
	if m.Version != "" {
		r.named[m.Version] = at
	}
	if m.Live != nil && (*m.Live >= r.newest || r.livesIn == "") {
		r.newest, r.livesIn = *m.Live, at
	}
	r.asked = max(r.asked, m.Request)
}

// endsOf are the finals of a log that live records tell.
func (r *records) endsOf(branch, task string) map[epoch.Epoch]string {
	ends := map[epoch.Epoch]string{}
	for _, live := range r.lives {
		if live == nil || live.Ends == nil || live.Ends.Branch != branch {
			continue
		}
		if final, ok := live.Ends.Tasks[task]; ok {
			ends[final.Epoch] = final.SHA256
		}
	}
	return ends
}
