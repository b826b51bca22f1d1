package epoch

import (
	"maps"
	"slices"
	"strings"
)

// sweepOf is what clean-up has read of a log.
type sweepOf struct {
	floor  Epoch
	rounds int
	pinned []Epoch
	from   Epoch
	covers []Position
	kept   []string // what pinned epochs and other branches refer to
	going  []string // objects, and
	lost   []Epoch  // manifests, that are to go
}

func (o *sweepOf) key(s *setting, b []byte) []byte {
	b = appendInt(b, int(o.floor), o.rounds, int(o.from), len(o.pinned), len(o.covers), len(o.kept), len(o.going), len(o.lost))
	for _, e := range append(slices.Clone(o.pinned), o.lost...) {
		b = appendInt(b, int(e))
	}
	for _, p := range o.covers {
		b = appendInt(b, int(p))
	}
	for _, name := range append(slices.Clone(o.kept), o.going...) {
		b = appendInt(b, int(s.id(name)))
	}
	return b
}

// cleanUp is one step of G1 to G8 for one log.
func (w *moment) cleanUp(i int, p *proc) bool {
	s := sweepOf{from: AllEpochs}
	if p.sweep != nil {
		s = *p.sweep
	}
	p.sweep = &s
	l := &w.logs[p.branch]
	switch p.at {
	case choosing:
		return w.chooseFloor(i, p, &s)
	case flooring:
		l.floor = max(l.floor, s.floor)
		w.say("clean-up of %s records floor %d", w.s.branches[p.branch], int64(s.floor))
		p.at = pinReads
		if w.s.off("H11: the pins before the floor") {
			p.at = surveying
		}
	case pinReads:
		w.readPins(p, &s)
		p.at = surveying
		if w.s.off("H11: the pins before the floor") {
			p.at = flooring
		}
	case surveying:
		w.readOthers(p, &s)
		p.at = listing
	case listing:
		w.choose(i, p, &s)
		p.at = removing
	case removing:
		w.sweep(i, p, &s)
		p.at, p.sweep = choosing, &sweepOf{from: AllEpochs, rounds: s.rounds + 1}
	}
	return true
}

// chooseFloor is G1.
func (w *moment) chooseFloor(i int, p *proc, s *sweepOf) bool {
	if s.rounds >= max(w.s.roles[i].rounds, 1) {
		return false
	}
	head, last, isGone := w.headOf(p.branch)
	if isGone || last == nil && !head.Sealed() {
		return false
	}
	on := allRules
	for name, rule := range map[string]rules{
		"H12: outboxes go before they are delivered": ruleOwed, "H12: the live build's sinks are asked": ruleOwnSink, "H16: an ended log goes while it is needed": ruleFinal,
	} {
		if w.s.off(name) {
			on &^= rule
		}
	}
	if w.unfollowed() {
		on &^= ruleFollowed
	}
	c := w.floorView(p, head, last, w.s.roles[i].keep, on).decide(on)
	if c.Floor <= w.logs[p.branch].floor {
		return false
	}
	s.floor, p.at = c.Floor, flooring
	if w.s.off("H11: the pins before the floor") {
		p.at = pinReads
	}
	w.say("clean-up of %s chooses floor %d", w.s.branches[p.branch], int64(c.Floor))
	return true
}

// floorView is what the floor's choice needs.
func (w *moment) floorView(p *proc, head Head, last *logEntry, keep Epoch, on rules) FloorView {
	l, name := &w.logs[p.branch], w.s.branches[p.branch]
	v := FloorView{Floor: l.floor, Retention: Retention{Micros: -1, Epochs: keep}, Covered: w.followed(p.branch)}
	newest := w.newest()
	live := newest.Branch == name
	sinks := head.Manifest.Sinks
	if !live {
		other, _, _ := w.headOf(w.logOf(newest.Branch))
		sinks = other.Manifest.Sinks
		if w.s.off("H12: the live build's sinks are asked") {
			sinks = maps.Clone(sinks)
			maps.DeleteFunc(sinks, func(_ string, s SinkState) bool { return s.Dropped != "" })
		}
	}
	v.Owed, v.Filling = Deliveries{
		Live: live, Sealed: head.Sealed(), WasLive: head.Manifest.Live != nil, Own: head.Manifest.Sinks, Newest: sinks, Branch: name,
	}.owed(on)
	if w.s.off("D10: what fills a sink is not kept") {
		v.Filling = AllEpochs
	}
	if head.Sealed() {
		v.End = &End{
			Micros: 1, Live: live, LastEnded: newest.Ends != nil && newest.Ends.Branch == name,
			Pinned: slices.ContainsFunc(w.pins, func(o pinOf) bool { return o.log == p.branch }), Awaited: w.awaited(p.branch),
		}
	}
	for _, e := range l.held {
		if e != nil && e.Epoch >= l.floor && last != nil && e.Epoch <= last.Epoch {
			v.Log = append(v.Log, TraceOf(e.Manifest))
		}
	}
	return v
}

// followed are the positions that unsealed followers have covered.
func (w *moment) followed(log int8) (all []Position) {
	for o := range w.logs {
		head, last, isGone := w.headOf(int8(o))
		if int8(o) != log && last != nil && !isGone && !head.Sealed() && w.newest().Branch != w.s.branches[o] {
			all = append(all, head.Manifest.Covers[FirstTask])
		}
	}
	return all
}

// awaited tells whether a branch that has no base yet starts from a log.
func (w *moment) awaited(log int8) bool {
	for o := range w.logs {
		if l := &w.logs[o]; l.begun && len(l.held) == 0 && l.from != nil && w.logOf(l.from.Branch) == log {
			return true
		}
	}
	return false
}

// unfollowed says that clean-up has no regard for followers: so it was when two of
// the histories were found.
func (w *moment) unfollowed() bool {
	return w.s.off("H20: what is followed is not kept") || w.s.off("H20: what is gone is passed over") || w.s.off("H11a: seals don't look at the floor")
}

// readPins is G3.
func (w *moment) readPins(p *proc, s *sweepOf) {
	for _, pin := range w.pins {
		head, _, _ := w.headOf(pin.holder)
		if pin.log != p.branch {
			continue
		}
		s.pinned = append(s.pinned, pin.epoch)
		if !head.Sealed() {
			s.from = min(s.from, pin.epoch)
		}
	}
	slices.Sort(s.pinned)
	w.say("clean-up of %s reads the pins: %d", w.s.branches[p.branch], s.pinned)
}

// readOthers is G4.
func (w *moment) readOthers(p *proc, s *sweepOf) {
	if s.covers = w.followed(p.branch); w.unfollowed() {
		s.covers = nil
	}
	for _, e := range s.pinned {
		if m := w.logs[p.branch].at(e); m != nil {
			s.kept = append(s.kept, objectsOf(m)...)
		}
	}
	for o := range w.logs {
		if int8(o) == p.branch {
			continue
		}
		for _, e := range w.logs[o].held {
			if e != nil && e.Kind != Seal {
				s.kept = append(s.kept, objectsOf(e)...)
			}
		}
	}
	slices.Sort(s.kept)
	s.kept = slices.Compact(s.kept)
	w.say("clean-up of %s reads what other branches refer to", w.s.branches[p.branch])
}

func objectsOf(e *logEntry) (all []string) {
	for path := range e.Data() {
		if path != "" {
			all = append(all, path)
		}
	}
	return all
}

// choose is G5 to G7: it lists the objects, then reads the log.
func (w *moment) choose(i int, p *proc, s *sweepOf) {
	l := &w.logs[p.branch]
	head, _, isGone := w.headOf(p.branch)
	kept, referred := map[string]bool{}, map[string]bool{}
	for _, name := range s.kept {
		kept[name] = true
	}
	for _, e := range l.held {
		if e == nil || e.Kind == Seal {
			continue
		}
		for _, name := range objectsOf(e) {
			kept[name] = kept[name] || e.Epoch >= s.floor
			referred[name] = referred[name] || e.Epoch < s.floor
		}
		view := ManifestView{Trace: TraceOf(e.Manifest), Floor: s.floor, Pinned: slices.Contains(s.pinned, e.Epoch), From: s.from, Covered: s.covers}
		if DecideManifest(view) {
			s.lost = append(s.lost, e.Epoch)
		}
	}
	on := allRules
	if w.s.off("H10: left-overs go at once") {
		on &^= ruleNameTaken | ruleHeadOwner
	}
	if w.s.off("H10: the owner's left-overs go") {
		on &^= ruleHeadOwner
	}
	prefix := w.s.branches[p.branch] + "/data/"
	for name := range w.s.ids {
		if !strings.HasPrefix(name, prefix) || !w.there(name) {
			continue
		}
		v := objectView(strings.TrimPrefix(name, prefix))
		v.Kept, v.Referred, v.Head, v.HeadOwner, v.Ended = kept[name], referred[name], head.Manifest.Epoch, head.Manifest.Owner, isGone || head.Sealed()
		if v.decide(on) {
			s.going = append(s.going, name)
		}
	}
	slices.Sort(s.going)
	w.say("clean-up of %s reads the log, and finds that %d and the manifests of %d may go", w.s.branches[p.branch], len(s.going), s.lost)
}

// objectView reads an object's name: its number, and its owner.
func objectView(name string) (v ObjectView) {
	number, owner, _ := strings.Cut(name, "-")
	v.Owner = strings.TrimSuffix(owner, "-out")
	for _, digit := range number {
		v.Number = v.Number*10 + Epoch(digit-'0')
	}
	return v
}

// sweep removes objects, then manifests.
func (w *moment) sweep(i int, p *proc, s *sweepOf) {
	for _, name := range s.going {
		w.remove(name)
	}
	l := &w.logs[p.branch]
	l.held = slices.Clone(l.held)
	for _, e := range s.lost {
		l.held[e] = nil
	}
	w.say("clean-up of %s removes %s and the manifests of %d", w.s.branches[p.branch], strings.Join(s.going, ", "), s.lost)
	w.checkNeeded()
}
