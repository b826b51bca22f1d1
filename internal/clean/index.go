package clean

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// index is what is remembered of a log: the epochs that are kept, and which of
// the log's own data objects they refer to.
type index struct {
	log     []epoch.Trace          // consecutive; the seal of a log isn't among them
	objects map[string]epoch.Epoch // by name below data/: the newest epoch that refers to it
	pinned  map[epoch.Epoch][]string

	head epoch.Epoch // where the last search ended

	// What earlier clean-ups have settled. cleared says that of the epochs under
	// done only those in left are there.
	cleared bool
	done    epoch.Epoch
	left    []epoch.Epoch
	swept   string // the owner up to whom left-overs are gone
	shared  int    // what pins and other branches referred to then
	gone    bool   // the log is gone altogether
}

func (c *Cleaner) index(at place) *index {
	ix := c.logs[at]
	if ix == nil {
		ix = &index{objects: map[string]epoch.Epoch{}, pinned: map[epoch.Epoch][]string{}}
		c.logs[at] = ix
	}
	return ix
}

// reset forgets the epochs.
func (ix *index) reset() {
	ix.log = nil
	clear(ix.objects)
}

// prune forgets the epochs under a floor.
func (ix *index) prune(floor epoch.Epoch) {
	i := slices.IndexFunc(ix.log, func(t epoch.Trace) bool { return t.Epoch >= floor })
	if i < 0 {
		ix.reset()
		return
	}
	ix.log = slices.Clone(ix.log[i:])
	maps.DeleteFunc(ix.objects, func(_ string, newest epoch.Epoch) bool { return newest < floor })
}

// forward reads what has come up to the head. If the log went on without what
// is remembered, it begins anew at the head.
func (r *run) forward(ctx context.Context, head epoch.Manifest, floor epoch.Epoch) error {
	ix := r.ix
	if n := len(ix.log); n > 0 && (ix.log[n-1].Epoch < floor || ix.log[n-1].Epoch > head.Epoch) {
		ix.reset()
	}
	next := head.Epoch
	if n := len(ix.log); n > 0 {
		next = ix.log[n-1].Epoch + 1
	}
	for e := next; e <= head.Epoch; e++ {
		m, err := head, error(nil)
		if e < head.Epoch {
			m, err = r.read(ctx, e)
		}
		if err != nil {
			return err
		}
		ix.log = append(ix.log, epoch.TraceOf(m))
		for name := range objectsIn(r.at, m) {
			ix.objects[name] = e
		}
	}
	return nil
}

// extend reads the epochs before those that are remembered, down to the floor,
// as long as the oldest asks for more.
func (r *run) extend(ctx context.Context, floor epoch.Epoch, more func(oldest epoch.Trace) bool) error {
	ix := r.ix
	var before []epoch.Trace
	var err error
	for oldest := ix.log[0]; oldest.Epoch > floor && more(oldest); {
		var m epoch.Manifest
		if m, err = r.read(ctx, oldest.Epoch-1); err != nil {
			break
		}
		oldest = epoch.TraceOf(m)
		before = append(before, oldest)
		for name := range objectsIn(r.at, m) {
			if _, known := ix.objects[name]; !known {
				ix.objects[name] = m.Epoch
			}
		}
	}
	slices.Reverse(before)
	ix.log = append(before, ix.log...)
	return err
}

// read reads an epoch that must be there, unless the floor has passed it.
func (r *run) read(ctx context.Context, e epoch.Epoch) (epoch.Manifest, error) {
	m, err := r.job.ManifestBelow(ctx, r.at.branch, r.at.task, e)
	if !errors.Is(err, store.ErrNotFound) {
		return m, err
	}
	floor, ferr := r.job.Floor(ctx, r.at.branch, r.at.task)
	switch {
	case ferr != nil:
		return m, ferr
	case floor > e:
		return m, errOvertaken
	}
	return m, &epoch.DamagedError{
		At:     epoch.At{Job: r.job.Name(), Branch: r.at.branch, Task: r.at.task, Epoch: e},
		Object: r.job.Object(epoch.ManifestPath(r.at.branch, r.at.task, e)), Expected: "a manifest, not under the floor", Found: "none",
	}
}

// errOvertaken says that another clean-up has raised the floor past what this
// one was reading.
var errOvertaken = errors.New("another clean-up was faster")

// objectsIn are the data objects in a log's folder that a manifest, of whichever
// log, refers to. A path that leads anywhere else is none of them.
func objectsIn(at place, m epoch.Manifest) map[string]int64 {
	own := map[string]int64{}
	for path, bytes := range m.Data() {
		n, ok := epoch.ParsePath(path)
		if ok && n.Kind == epoch.DataObject && n.Branch == at.branch && n.Task == at.task {
			own[strings.TrimPrefix(path, dataPath(at))] = bytes
		}
	}
	return own
}

// dataPath is the folder of a log's data objects.
func dataPath(at place) string { return epoch.LogPath(at.branch, at.task) + "data/" }

// overtaken is the error of a clean-up that another was faster than, too often.
func overtaken(at place) error {
	return fmt.Errorf("%w, %d times: something cleans up branch %s, task %s in a loop", errOvertaken, maxRounds, at.branch, at.task)
}
