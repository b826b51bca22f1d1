package clean_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// clock moves a second at each look, and its timers fire at once.
type clock struct{ now atomic.Int64 }

func (c *clock) Now() time.Time { return time.Unix(1_764_435_600+c.now.Add(1), 0) }

func (c *clock) NewTimer(time.Duration) env.Timer {
	t := fired{make(chan time.Time, 1)}
	t.c <- c.Now()
	return t
}

type fired struct{ c chan time.Time }

func (t fired) C() <-chan time.Time { return t.c }
func (t fired) Reset(time.Duration) {}
func (t fired) Stop()               {}

// fataler is what a test and a rapid test have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// world is a store with one job: branches, each with the owners that took it.
type world struct {
	t     fataler
	store store.Store
	clock *clock
	seed  uint64
	logs  map[string]*log
	live  string
	n     epoch.Generation
	ends  string // the branch that the newest live record ended
	pins  map[string]epoch.Point
}

// log is a branch, as its writers see it.
type log struct {
	owners []*epoch.Owner // the last one owns it
	sealed bool
	early  []epoch.Segment // merges that were written and are not referred to yet
	head   epoch.Manifest  // the last that was committed
}

var ctx = context.Background()

const job = "spend"

func newWorld(t fataler, s store.Store) *world {
	w := &world{t: t, store: s, clock: &clock{}, logs: map[string]*log{}, live: epoch.MainBranch, pins: map[string]epoch.Point{}}
	w.take(epoch.MainBranch)
	return w
}

func (w *world) must(what string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// open opens the job as a process of its own would, over a store.
func (w *world) open(s store.Store) *epoch.Job {
	w.t.Helper()
	w.seed++
	var key [32]byte
	key[0], key[1] = byte(w.seed), byte(w.seed>>8)
	j, err := epoch.OpenJob(ctx, &env.Env{Clock: w.clock, Random: rand.NewChaCha8(key)}, s, job, "")
	w.must("open the job", err)
	return j
}

func (w *world) take(branch string) {
	w.t.Helper()
	me := epoch.Identity{
		Build: epoch.Build{Executable: "exe"}, Version: epoch.Version{}, Writer: epoch.Writer{PID: int(w.seed)},
	}
	o, err := w.open(w.store).Take(ctx, branch, epoch.FirstTask, me)
	w.must("take "+branch, err)
	l := w.logs[branch]
	if l == nil {
		l = &log{}
		w.logs[branch] = l
	}
	l.owners = append(l.owners, o)
	l.early = nil
	l.head, _ = o.Head()
}

func (l *log) owner() *epoch.Owner { return l.owners[len(l.owners)-1] }

// write makes a data object for the next epoch.
func (w *world) write(o *epoch.Owner, name string) string {
	w.t.Helper()
	path, err := o.DataName(o.NextEpoch(), name)
	w.must("name", err)
	w.must("write "+path, w.store.Create(ctx, job+"/"+path, []byte("data of "+path)))
	return path
}

// next is the payload of a data epoch after a head, by an owner of its log.
func (w *world) next(l *log, o *epoch.Owner, confirm bool) epoch.Manifest {
	head, _ := o.Head()
	m := epoch.Manifest{
		Kind: epoch.Data, Now: head.Now + 1, Covers: maps.Clone(head.Covers), Position: head.Position,
		State: maps.Clone(head.State), Sinks: maps.Clone(head.Sinks),
	}
	if m.State == nil {
		m.State = map[string]epoch.StateEntry{}
	}
	if m.Sinks == nil {
		m.Sinks = map[string]epoch.SinkState{"a": {Record: "r"}, "b": {Record: "r"}}
	}
	segments := m.State["spend"].Segments
	if len(l.early) > 0 && len(segments) >= 2 {
		segments, l.early = []epoch.Segment{l.early[0]}, l.early[1:]
	}
	segments = append(slices.Clone(segments), epoch.Segment{Path: w.write(o, "spend"), Bytes: 10})
	m.State["spend"] = epoch.StateEntry{Segments: segments}
	for name, sink := range m.Sinks {
		sink.Outbox = []epoch.Object{{Path: w.write(o, name), Bytes: 5}}
		if confirm && m.Position > 0 {
			sink.Confirmed = max(sink.Confirmed, m.Position-1)
		}
		m.Sinks[name] = sink
	}
	return m
}

// commit adds an epoch; with confirm all deliveries up to the one before are
// noted.
func (w *world) commit(branch string, confirm bool) {
	w.t.Helper()
	l := w.logs[branch]
	m := w.next(l, l.owner(), confirm)
	if branch != w.live { // it follows
		live := w.logs[w.live].head
		m.Position, m.Covers = live.Position, map[string]epoch.Position{epoch.FirstTask: live.Position}
		for name, sink := range m.Sinks {
			sink.Record, sink.Confirmed = live.Sinks[name].Record, live.Sinks[name].Confirmed
			m.Sinks[name] = sink
		}
	}
	m, err := l.owner().Commit(ctx, m)
	w.must("commit to "+branch, err)
	l.head = m
}

// merge writes a merge that a later epoch will refer to.
func (w *world) merge(branch string) {
	w.t.Helper()
	l := w.logs[branch]
	l.early = append(l.early, epoch.Segment{Path: w.write(l.owner(), "merged"), Bytes: 20})
}

// wake lets an owner that has lost the log commit: nothing may come of it.
func (w *world) wake(branch string, i int) {
	w.t.Helper()
	l := w.logs[branch]
	o := l.owners[i]
	_, err := o.Commit(ctx, w.next(&log{}, o, false))
	var fenced *epoch.FencedError
	var void *epoch.VoidError
	var sealed *epoch.SealedError
	if !errors.As(err, &fenced) && !errors.As(err, &void) && !errors.As(err, &sealed) {
		w.t.Fatalf("an owner that slept committed to %s: %v", branch, err)
	}
}

// encoded is an object as the store has it: one line of JSON with its sum.
func (w *world) put(path string, v any) {
	w.t.Helper()
	body, err := json.Marshal(v, json.Deterministic(true))
	w.must("encode", err)
	body = body[:len(body)-1]
	data := append(body, fmt.Sprintf(",\"sum\":\"%s\"}\n", epoch.Hash(body))...)
	w.must("put "+path, w.store.Create(ctx, job+"/"+path, data))
}

// branch makes a branch from the live head: pinned, then the floor read, then
// the base, then unpinned.
func (w *world) branch(name string) {
	w.t.Helper()
	j := w.open(w.store)
	from := w.logs[w.live].head
	at := epoch.Point{Branch: w.live, Tasks: map[string]epoch.Epoch{epoch.FirstTask: from.Epoch}}
	w.put(epoch.BranchPath(name), epoch.BranchFile{Format: 1, JobID: j.ID(), Branch: name, Kind: epoch.Upgrade, Base: &at})
	w.must("pin", j.PutPin(ctx, name+"-1", at, "an upgrade"))
	base := epoch.Manifest{
		Format: 1, JobID: j.ID(), Branch: name, Task: epoch.FirstTask, Kind: epoch.Base, Owner: "upgrade", Position: from.Position,
		Version: from.Version, Now: from.Now, State: from.State, Covers: map[string]epoch.Position{epoch.FirstTask: from.Position},
		Time: w.clock.Now().UnixMicro(), Sinks: maps.Clone(from.Sinks),
	}
	for sink, s := range base.Sinks {
		s.Outbox = nil
		base.Sinks[sink] = s
	}
	w.put(epoch.ManifestPath(name, epoch.FirstTask, 0), base)
	w.must("unpin", j.DeletePin(ctx, name+"-1"))
	w.take(name)
}

// seal ends a branch.
func (w *world) seal(branch string) {
	w.t.Helper()
	j := w.open(w.store)
	head, err := j.Head(ctx, branch, epoch.FirstTask)
	w.must("head", err)
	w.put(epoch.ManifestPath(branch, epoch.FirstTask, head.Manifest.Epoch+1), epoch.Manifest{
		Format: 1, JobID: j.ID(), Branch: branch, Task: epoch.FirstTask, Epoch: head.Manifest.Epoch + 1, Kind: epoch.Seal,
		Parent: head.Hash, Position: head.Manifest.Position, Time: w.clock.Now().UnixMicro(), By: "a test",
	})
	w.logs[branch].sealed = true
}

// cut makes a follower live in the place of the live branch.
func (w *world) cut(branch string) {
	w.t.Helper()
	w.seal(w.live)
	if w.logs[branch].head.Position < w.logs[w.live].head.Position {
		w.commit(branch, false) // covers the end
	}
	// What the final manifest notes stands in the follower's newest.
	l, final := w.logs[branch], w.logs[w.live].head
	m := epoch.Manifest{Kind: epoch.Open, Now: l.head.Now, State: l.head.State, Covers: l.head.Covers, Sinks: maps.Clone(final.Sinks)}
	for name, s := range m.Sinks {
		s.Outbox = nil
		m.Sinks[name] = s
	}
	_, err := l.owner().Commit(ctx, m)
	w.must("copy the final's notes", err)
	w.n++
	w.put(epoch.LivePath(w.n), epoch.LiveRecord{
		Format: 1, JobID: l.owner().Job().ID(), N: w.n, Kind: epoch.Upgrade, Branch: branch,
		Ends: &epoch.Ends{Live: w.n - 1, Branch: w.live, Tasks: map[string]epoch.Final{epoch.FirstTask: {Epoch: final.Epoch, Position: final.Position}}},
	})
	w.ends, w.live = w.live, branch
	w.take(branch) // as owner of the live branch
}

// pin pins an epoch of a branch that is kept.
func (w *world) pin(id, branch string, e epoch.Epoch) {
	w.t.Helper()
	at := epoch.Point{Branch: branch, Tasks: map[string]epoch.Epoch{epoch.FirstTask: e}}
	j := w.open(w.store)
	_, err := j.PutSavepoint(ctx, id, at, "a test")
	w.must("savepoint", err)
	w.pins[id] = at
}

// unpin takes a savepoint away.
func (w *world) unpin(id string) {
	w.t.Helper()
	delete(w.pins, id)
	for _, name := range w.names("savepoints/" + id + "-") {
		w.must("unpin", w.store.Delete(ctx, job+"/"+name))
	}
}

// names are the objects below a prefix, without the job's folder.
func (w *world) names(prefix string) (all []string) {
	w.t.Helper()
	listed, err := w.store.List(ctx, job+"/"+prefix, "", 1<<20)
	w.must("list", err)
	for _, l := range listed {
		all = append(all, strings.TrimPrefix(l.Name, job+"/"))
	}
	return all
}

// options are small enough for the histories of tests to have something to clean.
func options() clean.Options { return clean.Options{Keep: -1, KeepEpochs: 3} }

func (w *world) cleanAll() clean.Result {
	w.t.Helper()
	r, err := clean.New(w.open(w.store), options()).All(ctx)
	w.must("clean up", err)
	return r
}

// checkWhole wants all that is kept to be there.
func (w *world) checkWhole() {
	w.t.Helper()
	j := w.open(w.store)
	there := map[string]bool{}
	for _, name := range w.names("") {
		there[name] = true
	}
	whole := func(why string, m epoch.Manifest) {
		for path := range references(m) {
			if !there[path] {
				w.t.Fatalf("%s: branch %s, epoch %d refers to %s, which is gone", why, m.Branch, m.Epoch, path)
			}
		}
	}
	for branch, l := range w.logs {
		floor, err := j.Floor(ctx, branch, epoch.FirstTask)
		w.must("floor", err)
		if floor == epoch.AllEpochs {
			if branch == w.live || !l.sealed || branch == w.ends {
				w.t.Fatalf("branch %s is gone", branch)
			}
			continue
		}
		for e := floor; e <= l.head.Epoch; e++ {
			m, err := j.Manifest(ctx, branch, epoch.FirstTask, e)
			w.must("read", err)
			whole("kept", m)
		}
		if l.head.Epoch < floor {
			w.t.Fatalf("branch %s: floor %d, head %d", branch, floor, l.head.Epoch)
		}
		w.checkOwed(j, branch, floor)
	}
	for id, at := range w.pins {
		m, err := j.ManifestBelow(ctx, at.Branch, epoch.FirstTask, at.Tasks[epoch.FirstTask])
		w.must("read pinned "+id, err)
		whole("pinned", m)
	}
}

// checkOwed wants what the live branch has not confirmed, and what a follower
// has not covered, to be above the floor.
func (w *world) checkOwed(j *epoch.Job, branch string, floor epoch.Epoch) {
	w.t.Helper()
	if floor == 0 {
		return
	}
	first, err := j.Manifest(ctx, branch, epoch.FirstTask, floor)
	w.must("read", err)
	if first.Live == nil {
		return
	}
	for name, sink := range w.logs[w.live].head.Sinks {
		if first.Kind == epoch.Data && first.Position > sink.Confirmed+1 {
			w.t.Fatalf("branch %s: floor %d has position %d, sink %s has confirmed %d", branch, floor, first.Position, name, sink.Confirmed)
		}
	}
	for follower, l := range w.logs {
		if !l.sealed && follower != w.live && first.Kind == epoch.Data && first.Position > l.head.Covers[epoch.FirstTask]+1 {
			w.t.Fatalf("branch %s: floor %d has position %d, %s has covered %d", branch, floor, first.Position, follower, l.head.Covers[epoch.FirstTask])
		}
	}
}

// checkGone wants nothing to be there that the rules let go.
func (w *world) checkGone() {
	w.t.Helper()
	j := w.open(w.store)
	pinned := map[string]bool{}
	for _, at := range w.pins {
		pinned[epoch.ManifestPath(at.Branch, epoch.FirstTask, at.Tasks[epoch.FirstTask])] = true
	}
	kept := map[string]bool{}
	for _, path := range w.names("branches/") {
		n, ok := epoch.ParsePath(path)
		if !ok || n.Kind != epoch.ManifestObject {
			continue
		}
		floor, err := j.Floor(ctx, n.Branch, n.Task)
		w.must("floor", err)
		m, err := j.ManifestBelow(ctx, n.Branch, n.Task, n.Epoch)
		w.must("read", err)
		if n.Epoch < floor && !pinned[path] && !w.followed(m) {
			w.t.Fatalf("%s is under the floor %d and is still there", path, floor)
		}
		for o := range references(m) {
			kept[o] = true
		}
	}
	for _, path := range w.names("branches/") {
		n, ok := epoch.ParsePath(path)
		if !ok || n.Kind != epoch.DataObject || kept[path] {
			continue
		}
		l := w.logs[n.Branch]
		if l.sealed || n.Epoch <= l.head.Epoch && n.Owner != l.owner().ID() {
			w.t.Fatalf("%s is a left-over and is still there", path)
		}
	}
	for branch := range w.logs {
		if floors := w.names(epoch.LogPath(branch, epoch.FirstTask) + "floor/"); len(floors) > 1 {
			w.t.Fatalf("old floors are still there: %v", floors)
		}
	}
}

// followed tells whether a follower has not covered a position: then a manifest
// of it that a sleeper put at a freed name stays as well, until it has.
func (w *world) followed(m epoch.Manifest) bool {
	for name, l := range w.logs {
		if name != w.live && !l.sealed && m.Live != nil && m.Position > l.head.Covers[epoch.FirstTask] {
			return true
		}
	}
	return false
}

// references are the paths of the objects that a manifest refers to.
func references(m epoch.Manifest) map[string]bool {
	all := map[string]bool{}
	for _, s := range m.State {
		for _, segment := range s.Segments {
			all[segment.Path] = true
		}
	}
	for _, s := range m.Sinks {
		for _, o := range s.Outbox {
			all[o.Path] = true
		}
	}
	return all
}

// copyStore is another store with the same objects.
func copyStore(t fataler, from store.Store) store.Store {
	t.Helper()
	to := store.NewMemory()
	listed, err := from.List(ctx, "", "", 1<<20)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	for _, l := range listed {
		data, err := from.Read(ctx, l.Name, 1<<20)
		if err == nil {
			err = to.Create(ctx, l.Name, data)
		}
		if err != nil {
			t.Fatalf("copy: %v", err)
		}
	}
	return to
}

// cleanOver cleans up over a store that a plan makes fail.
func (w *world) cleanOver(plan func(faultstore.Call) faultstore.Fault) (calls int, err error) {
	w.t.Helper()
	faulty := faultstore.New(w.store, nil)
	j := w.open(faulty)
	before := len(faulty.Calls())
	faulty.SetPlan(func(c faultstore.Call) faultstore.Fault {
		c.N -= before
		return plan(c)
	})
	_, err = clean.New(j, options()).All(ctx)
	return len(faulty.Calls()) - before, err
}
