package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// forgotten is how far a request to forget has come.
type forgotten struct {
	Job     string   `json:"job"`
	Request uint64   `json:"request"`
	Time    string   `json:"time"`
	By      string   `json:"by"`
	Keys    int      `json:"keys"`
	States  []string `json:"states"`
	// Stage is "waiting" for an owner, "deleted" from the state, "gone" from the store,
	// or "not met": some of it was not deleted, and may live on.
	Stage string `json:"stage"`
	// Owner says, while the request waits, how the owner is.
	Owner string `json:"owner,omitempty"`
	// Epoch is the one whose edits they are, the last of them if the request took
	// several, if it is kept; Entries is what the edits of all of them have met.
	Epoch   *epoch.Epoch `json:"epoch,omitempty"`
	Entries *int64       `json:"entries,omitempty"`
	// Unmet are states whose keys were not what they were when it was asked, so that
	// nothing was deleted from them; GivenUp tells that it was taken back before.
	Unmet   []string `json:"unmet,omitempty"`
	GivenUp bool     `json:"given_up,omitzero"`
	// Merged is the first epoch whose segments hold none of it, if there is one yet.
	Merged *epoch.Epoch `json:"merged,omitempty"`
	// Last is the last epoch of the log that refers to what may hold the entries.
	Last *lastHolder `json:"last,omitempty"`
	// Pending counts deliveries that are owed, by sink: clean-up waits for them too.
	Pending map[string]uint64 `json:"pending,omitempty"`
	// Segments and Outboxes are the objects that may hold them.
	Segments objects `json:"segments"`
	Outboxes objects `json:"outboxes"`
	// Savepoints, Pins and Branches are what keeps such objects besides.
	Savepoints []heldPoint `json:"savepoints"`
	Pins       []heldPoint `json:"pins"`
	Branches   []string    `json:"branches"`
	// Beyond are the sinks that keep what they have got, whatever comes later: it is
	// out of reach.
	Beyond []string `json:"beyond"`
}

// lastHolder is the last epoch of the log that refers to what holds an entry, and
// when it may go: once that epoch is committed, and one of that time or later.
type lastHolder struct {
	Epoch     epoch.Epoch `json:"epoch"`
	GoneEpoch epoch.Epoch `json:"gone_from_epoch"`
	GoneTime  string      `json:"gone_from_time"`
	// Never says that the owner cleans up nothing.
	Never bool `json:"never"`

	micros int64
}

// objects are files of the store.
type objects struct {
	Number int64 `json:"number"`
	Bytes  int64 `json:"bytes"`
}

func (o *objects) add(bytes int64) {
	o.Number++
	o.Bytes += bytes
}

// heldPoint is an epoch that something keeps.
type heldPoint struct {
	Name  string      `json:"name"`
	Epoch epoch.Epoch `json:"epoch"`

	savepoint bool
}

// forgetting is a look at a store for some requests to forget.
type forgetting struct {
	job    *epoch.Job
	owner  ownership
	branch string
	floor  epoch.Epoch
	newest map[string]epoch.Epoch // by path of a data object: the newest kept epoch that refers to it
	beyond []string
	now    time.Time

	all []*tracked
}

// tracked is a request on the way through the log.
type tracked struct {
	request  epoch.Request
	named    map[epoch.Edit]bool // the request's
	states   []string
	part     bool // an epoch with a part of its edits
	found    bool // an epoch with its edits
	edits    epoch.Epoch
	entries  int64
	clean    bool // an epoch from which on nothing is referred to that was before the merge
	from     epoch.Epoch
	last     epoch.Epoch // the kept epoch before
	lastTime int64
	held     bool // there is such an epoch
	done     bool // the head calls it done
}

// lookForgotten tells how far requests to forget have come.
func lookForgotten(ctx context.Context, job *epoch.Job, requests []epoch.Request, now time.Time) ([]forgotten, error) {
	f := &forgetting{job: job, newest: map[string]epoch.Epoch{}, now: now}
	for _, r := range requests {
		t := &tracked{request: r, named: map[epoch.Edit]bool{}, states: r.States()}
		for _, e := range r.Edits {
			t.named[e] = true
		}
		f.all = append(f.all, t)
	}
	if err := f.walk(ctx); err != nil {
		return nil, err
	}
	objects, err := f.objects(ctx)
	if err != nil {
		return nil, err
	}
	points, err := f.points(ctx)
	if err != nil {
		return nil, err
	}
	var out []forgotten
	for _, t := range f.all {
		one, err := f.one(ctx, t, objects, points)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// walk goes through the kept epochs of the live branch.
func (f *forgetting) walk(ctx context.Context) (err error) {
	if f.owner, err = ownershipOf(ctx, f.job); err != nil {
		return err
	}
	head := f.owner.head
	f.branch = head.Branch
	if f.floor, err = f.job.Floor(ctx, f.branch, epoch.FirstTask); err != nil {
		return err
	}
	for m, err := range f.job.Manifests(ctx, f.branch, epoch.FirstTask, f.floor, head.Epoch) {
		if err != nil {
			return err
		}
		for path := range m.Data() {
			f.newest[path] = m.Epoch
		}
		for _, t := range f.all {
			t.pass(m)
		}
	}
	version, err := f.job.Version(ctx, head.Version)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for name, sink := range sorted(version.Sinks) {
		if sink.Schemas["key"] == "" || strings.HasPrefix(sink.Kind, filesKind) {
			f.beyond = append(f.beyond, name)
		}
	}
	return nil
}

// pass looks at the next epoch of the log.
func (t *tracked) pass(m epoch.Manifest) {
	t.done = m.Request >= t.request.N
	switch ends := t.done && !t.found && !t.clean && t.editedBy(m); {
	case m.EditsOf == t.request.N, ends:
		t.part, t.found = true, ends
		t.edits, t.entries = m.Epoch, t.entries+m.Counts["forgotten"]
	}
	if t.clean = t.clean || t.isClean(m); t.clean {
		if t.from == 0 {
			t.from = m.Epoch
		}
		return
	}
	t.held, t.last, t.lastTime = true, m.Epoch, m.Time
}

// isClean tells whether an epoch refers to nothing that holds the entries: it was
// made when the request was done, and the segments were merged.
func (t *tracked) isClean(m epoch.Manifest) bool {
	if m.Request < t.request.N || t.editedBy(m) {
		return false
	}
	return !slices.ContainsFunc(t.states, func(state string) bool { return m.State[state].Edited != 0 })
}

// editedBy tells whether an epoch's edits are some of the request's: those of states
// that it has not met are left out.
func (t *tracked) editedBy(m epoch.Manifest) bool {
	return slices.ContainsFunc(m.Edits, func(e epoch.Edit) bool { return t.named[e] })
}

// dataObject is a data object of the live branch.
type dataObject struct {
	name  epoch.Name
	path  string
	bytes int64
}

// objectsListed is how many names are asked for at once.
const objectsListed = 10_000

func (f *forgetting) objects(ctx context.Context) (all []dataObject, err error) {
	folder := f.job.Object("")
	prefix := folder + epoch.LogPath(f.branch, epoch.FirstTask) + "data/"
	for after := ""; ; {
		page, err := f.job.Store().List(ctx, prefix, after, objectsListed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.job.Name(), err)
		}
		for _, listed := range page {
			after = listed.Name
			path := listed.Name[len(folder):]
			if name, ok := epoch.ParsePath(path); ok && name.Kind == epoch.DataObject {
				all = append(all, dataObject{name, path, listed.Size})
			}
		}
		if len(page) < objectsListed {
			return all, nil
		}
	}
}

// filesKind begins the kinds of sinks that put each delivery into a file of its own.
const filesKind = "file."

// outboxPrefix begins the given names of outboxes.
const outboxPrefix = "outbox."

// holders counts the objects that may hold what the request is about.
func (t *tracked) holders(f *forgetting, all []dataObject) (segments, outboxes objects) {
	for _, o := range all {
		newest, kept := f.newest[o.path]
		switch {
		case slices.Contains(t.states, o.name.Given):
			if t.segmentHolds(o.name.Epoch, newest, kept) {
				segments.add(o.bytes)
			}
		case strings.HasPrefix(o.name.Given, outboxPrefix):
			if t.outboxHolds(o.name.Epoch, newest, kept, f.floor) {
				outboxes.add(o.bytes)
			}
		}
	}
	return segments, outboxes
}

// segmentHolds tells whether a segment may hold it: one from before the merge. Written
// is the epoch in its name, newest the newest that refers to it, if one that is kept
// does: else a pin keeps it, or a process has left it.
func (t *tracked) segmentHolds(written, newest epoch.Epoch, kept bool) bool {
	switch {
	case !t.clean:
		return true
	case kept:
		return newest < t.from
	}
	return written <= t.from
}

// outboxHolds tells the same of an outbox: those of the edits' epoch and before. An
// epoch that isn't kept was before the floor.
func (t *tracked) outboxHolds(written, newest epoch.Epoch, kept bool, floor epoch.Epoch) bool {
	switch {
	case !t.done:
		return true
	case kept:
		return t.found && newest <= t.edits
	case t.found:
		return written <= t.edits
	}
	return written < floor
}

// point is an epoch that a savepoint or a pin keeps.
type point struct {
	heldPoint
	branch string
	m      *epoch.Manifest // nil: it has gone
}

// points are the savepoints and pins.
func (f *forgetting) points(ctx context.Context) (all []point, err error) {
	savepoints, err := f.job.Savepoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range savepoints {
		all = append(all, point{heldPoint{s.Name, s.Tasks[epoch.FirstTask], true}, s.Branch, nil})
	}
	pins, err := f.job.Pins(ctx)
	if err != nil {
		return nil, err
	}
	for id, pin := range sorted(pins) {
		all = append(all, point{heldPoint{id, pin.Tasks[epoch.FirstTask], false}, pin.Branch, nil})
	}
	for i, p := range all {
		m, err := f.job.ManifestBelow(ctx, p.branch, epoch.FirstTask, p.Epoch)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[i].m = &m
	}
	return all, nil
}

// one puts together what was found for a request.
func (f *forgetting) one(ctx context.Context, t *tracked, all []dataObject, points []point) (forgotten, error) {
	keys := map[string]bool{}
	for _, e := range t.request.Edits {
		keys[e.Hash] = true
	}
	out := forgotten{
		Job: f.job.Name(), Request: t.request.N, Time: stamp(t.request.Time), By: t.request.By, Keys: len(keys), States: t.states,
		Stage: "waiting", Savepoints: []heldPoint{}, Pins: []heldPoint{}, Branches: []string{}, Beyond: append([]string{}, f.beyond...),
	}
	out.Segments, out.Outboxes = t.holders(f, all)
	unmet := f.owner.head.Unmet
	if i := slices.IndexFunc(unmet, func(u epoch.Unmet) bool { return u.Request == t.request.N }); i >= 0 {
		out.Unmet, out.GivenUp = unmet[i].States, unmet[i].GivenUp
	} else if len(unmet) == epoch.MaxUnmet && t.request.N < unmet[0].Request {
		out.Unmet = t.states // it isn't known any more
	}
	if t.found || t.part && t.done {
		out.Epoch, out.Entries = &t.edits, &t.entries
	}
	if t.clean && t.from > f.floor {
		out.Merged = &t.from
	}
	if t.held {
		out.Last, out.Pending = f.lastHolder(t), pendingOf(f.owner.head)
	}
	for _, p := range points {
		if p.m == nil || t.isClean(*p.m) || p.branch == f.branch && t.clean && p.Epoch >= t.from {
			continue
		}
		if p.savepoint {
			out.Savepoints = append(out.Savepoints, p.heldPoint)
		} else {
			out.Pins = append(out.Pins, p.heldPoint)
		}
	}
	var err error
	if out.Branches, err = f.others(ctx, t); err != nil {
		return out, err
	}
	switch {
	case !t.done:
		out.Owner = f.owner.tell(f.now)
	case len(out.Unmet) > 0:
		out.Stage = "not met"
	case t.held || out.Segments.Number+out.Outboxes.Number > 0 || len(out.Savepoints)+len(out.Pins)+len(out.Branches) > 0:
		out.Stage = "deleted"
	default:
		out.Stage = "gone"
	}
	return out, nil
}

// lastHolder tells when the last epoch that holds it may go, by what the owner keeps;
// by the defaults if that isn't known.
func (f *forgetting) lastHolder(t *tracked) *lastHolder {
	keep, epochs := int64(clean.DefaultKeep.Microseconds()), clean.DefaultKeepEpochs
	if b := f.owner.beat; b != nil && b.KeepEpochs != 0 {
		keep, epochs = b.Keep, b.KeepEpochs
	}
	l := &lastHolder{Epoch: t.last, GoneEpoch: t.last, Never: epochs < 0, micros: t.lastTime + max(keep, 0)}
	if !l.Never {
		l.GoneEpoch += epoch.Epoch(epochs)
	}
	l.GoneTime = stamp(l.micros)
	return l
}

// others are the other branches whose epochs may hold it.
func (f *forgetting) others(ctx context.Context, t *tracked) ([]string, error) {
	names, err := f.job.Branches(ctx)
	if err != nil {
		return nil, err
	}
	holding := []string{}
	for _, name := range names {
		if name == f.branch {
			continue
		}
		floor, err := f.job.Floor(ctx, name, epoch.FirstTask)
		if err != nil {
			return nil, err
		}
		if floor == epoch.AllEpochs {
			continue
		}
		oldest, err := f.job.ManifestBelow(ctx, name, epoch.FirstTask, floor)
		if errors.Is(err, store.ErrNotFound) {
			continue // its base is still to come
		}
		if err != nil {
			return nil, err
		}
		if !t.isClean(oldest) {
			holding = append(holding, name)
		}
	}
	return holding, nil
}
