package clean

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

const (
	// batchSize is how many manifests under the floor are taken at once: what
	// they refer to is held in memory.
	batchSize = 2000
	// pageSize is how many names are listed at once. A folder is read as a whole
	// for each page, so that small ones would cost the square of its size.
	pageSize = 50_000
	// leftAtMost bounds the epochs under the floor that are remembered; if more
	// are left the log is listed again by each clean-up.
	leftAtMost = 100_000
	// progressEvery is the number of removals between two words of progress.
	progressEvery = 500
)

// sweep is G3 to G8 of one clean-up.
type sweep struct {
	*run
	floor epoch.Epoch
	ended bool   // nothing can follow the log's newest epoch
	owner string // the head's, as it was before the data was listed

	pinned    map[epoch.Epoch]bool
	from      epoch.Epoch
	covered   []epoch.Position
	elsewhere map[string]bool // objects that pinned epochs and other branches refer to
	shared    int             // how many of them
	left      []epoch.Epoch
	found     map[string]bool // what a dry run has counted
	told      int64
}

// due tells whether there may be something to remove, since the last clean-up
// removed all there was.
func (s *sweep) due() bool {
	ix := s.ix
	return !ix.cleared || ix.done != s.floor || len(ix.left) > 0 || ix.shared > 0 || ix.swept != s.upTo()
}

// look reads the pins and then the other branches, G3 and G4: a brancher does
// it the other way round (pin, floor, base, unpin), so that one sees the other.
func (s *sweep) look(ctx context.Context) error {
	p, err := s.pins(ctx)
	if err != nil {
		return err
	}
	around, err := s.survey(ctx)
	if err != nil {
		return err
	}
	s.pinned, s.from, s.covered = p.epochs(s.at), p.from(s.at, around.others), around.covered(s.at.task)
	begins, err := s.begins(ctx, p, around.others)
	if err != nil {
		return err
	}
	s.covered = append(s.covered, begins...)
	if s.elsewhere, err = s.references(ctx, p, around.others); err != nil {
		return err
	}
	s.shared = len(s.elsewhere)
	for e := range s.pinned {
		if e >= s.floor {
			continue
		}
		names, err := s.pinnedObjects(ctx, e)
		if err != nil {
			return err
		}
		for _, name := range names {
			s.elsewhere[name] = true
		}
	}
	return nil
}

// pinnedObjects are what a pinned epoch under the floor refers to; nothing, if
// it had gone before it was pinned.
func (s *sweep) pinnedObjects(ctx context.Context, e epoch.Epoch) ([]string, error) {
	if names, ok := s.ix.pinned[e]; ok {
		return names, nil
	}
	m, err := s.job.ManifestBelow(ctx, s.at.branch, s.at.task, e)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := slices.Collect(maps.Keys(objectsIn(s.at, m)))
	s.ix.pinned[e] = names
	return names, nil
}

// kept tells whether something that is kept refers to an object.
func (s *sweep) kept(name string) bool {
	newest, known := s.ix.objects[name]
	return known && newest >= s.floor || s.elsewhere[name]
}

// passed removes the manifests under the floor, each after what it alone refers
// to: G7a and G8, batch by batch.
func (s *sweep) passed(ctx context.Context) error {
	if s.ix.cleared && s.floor != epoch.AllEpochs {
		if err := s.batches(ctx, s.ix.left); err != nil {
			return err
		}
		for from := s.ix.done; from < s.floor; from += batchSize {
			var batch []epoch.Epoch
			for e := from; e < min(from+batchSize, s.floor); e++ {
				batch = append(batch, e)
			}
			if err := s.batch(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	}
	for _, first := range []string{"0", "1"} { // the digits that 20 can begin with
		if err := s.passedFrom(ctx, first); err != nil {
			return err
		}
	}
	return nil
}

// passedFrom takes those whose names begin with a digit, as the store lists them.
func (s *sweep) passedFrom(ctx context.Context, first string) error {
	folder := s.job.Object("")
	prefix := folder + epoch.LogPath(s.at.branch, s.at.task) + first
	for after := ""; ; {
		page, err := s.job.Store().List(ctx, prefix, after, pageSize)
		if err != nil {
			return err
		}
		var epochs []epoch.Epoch
		more := len(page) == pageSize
		for _, listed := range page {
			after = listed.Name
			name, ok := epoch.ParsePath(listed.Name[len(folder):])
			if !ok || name.Kind != epoch.ManifestObject {
				continue
			}
			if name.Epoch >= s.floor {
				more = false
				break
			}
			epochs = append(epochs, name.Epoch)
		}
		if err := s.batches(ctx, epochs); err != nil || !more {
			return err
		}
	}
}

func (s *sweep) batches(ctx context.Context, epochs []epoch.Epoch) error {
	for batch := range slices.Chunk(epochs, batchSize) {
		if err := s.batch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// batch takes some manifests under the floor: first what they refer to, then
// themselves, so that nothing they refer to is ever forgotten.
func (s *sweep) batch(ctx context.Context, epochs []epoch.Epoch) error {
	var going []epoch.Epoch
	objects := map[string]int64{}
	for _, e := range epochs {
		m, err := s.job.ManifestBelow(ctx, s.at.branch, s.at.task, e)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		maps.Copy(objects, objectsIn(s.at, m))
		view := epoch.ManifestView{Trace: epoch.TraceOf(m), Floor: s.floor, Pinned: s.pinned[e], From: s.from, Covered: s.covered}
		if epoch.DecideManifest(view) {
			going = append(going, e)
			continue
		}
		s.left = append(s.left, e)
		s.result.Left.Pinned++
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		view := epoch.ObjectView{Kept: s.kept(name), Referred: true}
		if !epoch.DecideObject(view) {
			continue
		}
		if err := s.removeObject(ctx, name, objects[name]); err != nil {
			return err
		}
	}
	for _, e := range going {
		if err := s.delete(ctx, epoch.ManifestPath(s.at.branch, s.at.task, e)); err != nil {
			return err
		}
		s.result.Manifests++
	}
	return nil
}

// removeObject removes a data object that may have gone already.
func (s *sweep) removeObject(ctx context.Context, name string, bytes int64) error {
	there, err := s.job.Store().Exists(ctx, s.job.Object(dataPath(s.at)+name))
	if err != nil || !there || s.found[name] {
		return err
	}
	if s.c.o.DryRun {
		s.found[name] = true
	}
	return s.count(ctx, name, bytes)
}

func (s *sweep) count(ctx context.Context, name string, bytes int64) error {
	if err := s.delete(ctx, dataPath(s.at)+name); err != nil {
		return err
	}
	s.result.Objects++
	s.result.Bytes += bytes
	return nil
}

func (s *sweep) delete(ctx context.Context, path string) error {
	if s.told++; s.told%progressEvery == 0 && s.c.o.Progress != nil {
		s.c.o.Progress(s.at.branch, s.at.task, s.result)
	}
	if s.c.o.DryRun {
		return ctx.Err()
	}
	if s.told%PauseEvery == 0 && s.c.o.Pause != nil {
		if err := s.c.o.Pause(ctx); err != nil {
			return err
		}
	}
	return s.job.Store().Delete(ctx, s.job.Object(path))
}

// leftOvers removes the data objects that nothing refers to, G7b: what owners
// have left that have lost the log, and in a log that has ended everything. It
// is done once for each owner, since only a new one makes left-overs of the
// last one's objects, and when other branches have let something go.
func (s *sweep) leftOvers(ctx context.Context) error {
	if s.ix.swept == s.upTo() && s.ix.shared == s.shared {
		return nil
	}
	prefix := s.job.Object(dataPath(s.at))
	for after := ""; ; {
		page, err := s.job.Store().List(ctx, prefix, after, pageSize)
		if err != nil {
			return err
		}
		head, err := s.refresh(ctx) // G5 comes before G6
		if err != nil {
			return err
		}
		for _, listed := range page {
			after = listed.Name
			if err := s.leftOver(ctx, listed, strings.TrimPrefix(listed.Name, prefix), head); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// upTo says up to whom left-overs are looked for.
func (s *sweep) upTo() string {
	if s.ended {
		return "everybody"
	}
	return s.owner
}

// refresh reads what the log has come to, G6, so that the index has every epoch
// from the floor to the head.
func (s *sweep) refresh(ctx context.Context) (epoch.Manifest, error) {
	if s.floor == epoch.AllEpochs || s.ended && len(s.ix.log) == 0 {
		return epoch.Manifest{}, nil
	}
	head, err := s.job.HeadNear(ctx, s.at.branch, s.at.task, s.ix.head)
	if is[*epoch.VoidError](err) {
		return epoch.Manifest{}, errOvertaken
	}
	if err != nil {
		return epoch.Manifest{}, err
	}
	if err := s.forward(ctx, head.Manifest, s.floor); err != nil {
		return epoch.Manifest{}, err
	}
	return head.Manifest, s.extend(ctx, s.floor, always)
}

func (s *sweep) leftOver(ctx context.Context, listed store.Listed, name string, head epoch.Manifest) error {
	parsed, ok := epoch.ParsePath(listed.Name[len(s.job.Object("")):])
	if !ok || s.found[name] {
		return nil // foreign, or counted
	}
	view := epoch.ObjectView{
		Number: parsed.Epoch, Owner: parsed.Owner, Kept: s.kept(name),
		Head: head.Epoch, HeadOwner: head.Owner, Ended: s.ended,
	}
	if !epoch.DecideObject(view) {
		return nil
	}
	return s.count(ctx, name, listed.Size)
}

// settle remembers what this clean-up has settled.
func (s *sweep) settle() {
	ix := s.ix
	ix.cleared, ix.done, ix.left = true, s.floor, s.left
	if len(s.left) > leftAtMost {
		ix.cleared, ix.left = false, nil
	}
	ix.swept, ix.shared = s.upTo(), s.shared
	ix.prune(s.floor)
	maps.DeleteFunc(ix.pinned, func(e epoch.Epoch, _ []string) bool { return !s.pinned[e] })
	if s.floor == epoch.AllEpochs && len(s.left) == 0 && s.shared == 0 {
		*ix = index{gone: true}
	}
}
