package epoch

import (
	"slices"
	"strconv"
)

// What is promised, held against each state that a step leads to.

// checkInputs holds that no record is lost and none counted twice along the chain of
// live epochs, and that each position is one epoch's.
func (w *moment) checkInputs() {
	at, read := Position(0), int64(0)
	for before, e := range w.liveEntries() {
		if e.Position != at+1 {
			w.breaks("%s has position %d, the live epoch before it %d", e.name(), e.Position, at)
		}
		if nextOf(before.Manifest) != read {
			w.breaks("%s goes on from record %d, the live epoch before it ended at %d: records are lost or counted twice", e.name(), nextOf(before.Manifest), read)
		}
		at, read = e.Position, nextOf(e.Manifest)
	}
}

// checkOwner holds that no build which was replaced takes the live branch back.
func (w *moment) checkOwner(e *logEntry) {
	if e.Kind != Open || e.Branch != w.newest().Branch {
		return
	}
	i, _ := w.ownedBy(e.Owner)
	if me := w.s.roles[i].build; w.isReplaced(me) && w.s.roles[i].kind != Rollback {
		w.breaks("build %s was replaced, and %s takes the live branch", me.Executable, w.nameOf(i))
	}
	w.replace(w.logs[w.logOf(e.Branch)].truth[e.Epoch-1].Build, e.Build)
}

// checkState holds that an epoch's state is what comes of all records up to its
// offset, with each epoch's own clock.
func (w *moment) checkState(e *logEntry) {
	if e.Kind == Seal || e.Kind == Open {
		return
	}
	if have, want := valueOf(e.Manifest), w.valueAt(nextOf(e.Manifest)); have[2:] != want {
		w.breaks("the state of %s is %q, of the records that it has read comes %q", e.name(), have[2:], want)
	}
	w.checkReplay(e)
}

// checkReplay holds that an epoch with edits has them at its begin.
func (w *moment) checkReplay(e *logEntry) {
	if e.Kind != Data || w.s.forget == 0 || e.Epoch == 0 {
		return
	}
	before := w.logs[w.logOf(e.Branch)].truth[e.Epoch-1]
	value := valueOf(before.Manifest)
	if len(e.Edits) > 0 {
		value = deleted(value)
	}
	for r := nextOf(before.Manifest) + 1; r <= nextOf(e.Manifest); r++ {
		value += w.mark(r)
	}
	if value != valueOf(e.Manifest) {
		w.breaks("a replay of %s gives %q instead of %q: it has what was to be forgotten", e.name(), value, valueOf(e.Manifest))
	}
}

// checkNeeded holds that all is there that is needed: the states of heads that may go
// on, and what the sink is owed.
func (w *moment) checkNeeded() {
	if !w.s.objects {
		return
	}
	for log := range w.logs {
		l := &w.logs[log]
		if len(l.truth) == 0 {
			continue
		}
		head, ended := l.truth[len(l.truth)-1], false
		if ended = head.Kind == Seal; ended {
			if len(l.truth) == 1 {
				continue
			}
			head = l.truth[len(l.truth)-2]
		}
		if ended && w.newest().Branch != w.s.branches[log] {
			continue
		}
		if ends := w.newest().Ends; l.floor == AllEpochs && ends != nil { // nothing of its own (H16)
			head = w.logs[w.logOf(ends.Branch)].truth[ends.Tasks[FirstTask].Epoch]
		}
		if path := head.State["sums"].Segments[0].Path; !w.there(path) {
			w.breaks("%s refers to %s, which was removed", head, path)
		}
	}
	if w.s.sink == noSink {
		return
	}
	w.checkFills()
	for e := range w.owedToSink() {
		if e.Position <= w.sink.has() {
			continue
		}
		if !w.there(boxOf(e.Manifest)) || w.logs[w.logOf(e.Branch)].at(e.Epoch) != e {
			w.breaks("the sink is owed position %d, and %s or its outbox was removed", e.Position, e.name())
		}
	}
}

// checkFills holds that all is there that is to fill the sink still.
func (w *moment) checkFills() {
	if !w.sink.record.there || w.over(w.sink.record.by) && !w.wasLive(w.sink.record.by) {
		return
	}
	for n, e := range w.fillers(w.sink.record.by) {
		if n >= len(w.sink.rows) && (!w.there(boxOf(e.Manifest)) || w.logs[w.logOf(e.Branch)].at(e.Epoch) != e) {
			w.breaks("the sink is to be filled with %s, and that or its outbox was removed", e.name())
		}
	}
}

// rules notes which builds were replaced, when a generation begins.
func (w *moment) rules(g, before *generation) {
	head, last, _ := w.headOf(w.logOf(g.Branch))
	if last == nil {
		return // nothing of its own
	}
	own := head.Manifest.Build
	if w.isReplaced(own) && g.Kind != Rollback {
		w.breaks("build %s was replaced, and goes live with %s", own.Executable, g.Branch)
	}
	final, _, _ := w.headOf(w.logOf(before.Branch))
	w.replace(final.Manifest.Build, own)
	if i, _ := w.ownedBy(final.Manifest.Owner); i >= 0 {
		w.replace(w.s.roles[i].build, own) // also one that ended between its two openings
	}
}

func (w *moment) isReplaced(b Build) bool { return w.replaced&(1<<slices.Index(numbered, b)) != 0 }

func (w *moment) replace(old, by Build) {
	if old != by && old != (Build{}) {
		w.replaced |= 1 << slices.Index(numbered, old)
	}
	w.replaced &^= 1 << slices.Index(numbered, by)
}

// finished tells whether all records are read and delivered.
func (w *moment) finished() bool {
	read, owed := int64(0), 0
	for _, e := range w.liveEntries() {
		read = nextOf(e.Manifest)
	}
	for range w.owedToSink() {
		owed++
	}
	if w.s.fresh && w.sink.record.there {
		owed += len(w.fillers(w.sink.record.by))
	}
	return int(read) == w.s.records && (w.s.sink == noSink || len(w.sink.rows) == owed*w.s.parts)
}

// count notes what a state has come to.
func (w *moment) count(reached map[string]int) {
	if w.finished() {
		reached["all done"]++
	}
	if n := len(w.live); n > 1 {
		reached["generation "+strconv.Itoa(n-1)]++
		if len(w.sink.rows) > 0 && w.sink.rows[len(w.sink.rows)-1].to > w.generationFrom(n-1) {
			reached["delivered over a cut"]++
		}
	}
	if w.s.fresh && len(w.live) == 1 && len(w.sink.rows) > 0 {
		reached["filled before the cut"]++
	}
	if w.s.fresh && w.sink.record.there && w.sink.record.by == 2 {
		reached["emptied"]++
	}
	for i := range w.logs {
		if w.logs[i].floor > 0 {
			reached["a floor in "+w.s.branches[i]]++
		}
	}
	if w.stopped {
		reached["stopped"]++
	}
}

func (w *moment) generationFrom(n int) Position { return w.live[n].Ends.Tasks[FirstTask].Position }
