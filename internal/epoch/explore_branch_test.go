package epoch

import (
	"fmt"
	"slices"
)

// upgrade is one step of a process that begins a branch, follows and goes live, or that
// gives one up.
func (w *moment) upgrade(i int, p *proc) bool {
	switch p.at {
	case beginning:
		return w.beginBranch(i, p)
	case pinning:
		return w.pin(i, p)
	case pinned:
		return w.inTime(i, p)
	case basing:
		return w.base(i, p)
	case unpinning, dropping:
		return w.unpin(i, p)
	case retaking:
		return w.retake(i, p)
	case following:
		return w.follow(i, p)
	case sealing:
		return w.seal(i, p)
	case cutting:
		return w.cut(i, p)
	case goingLive:
		return w.goLive(i, p)
	default:
		return w.giveUp(i, p)
	}
}

// beginBranch is U1: it reads where to start, or finds the branch begun.
func (w *moment) beginBranch(i int, p *proc) bool {
	r, l := w.s.roles[i], &w.logs[p.branch]
	if l.begun {
		return w.goOn(i, p, l)
	}
	from, last, isGone := w.headOf(w.logOf(w.newest().Branch))
	if before, ok := w.newest().Before(); ok && (r.kind == Rollback || isGone) {
		last = w.logs[w.logOf(before.Branch)].at(before.Tasks[FirstTask])
		if last == nil {
			w.say("%s finds that its start was cleaned away", w.nameOf(i))
			w.end(i, gone)
			return true
		}
	}
	if last == nil {
		return false
	}
	if hasBuild(from.Manifest.Superseded, r.build) && r.kind != Rollback {
		w.say("%s is of a build that was replaced, and ends", w.nameOf(i))
		w.end(i, gone)
		return true
	}
	p.seen, p.at = last, pinning
	if w.s.off("H11: the floor before the pin") {
		p.at = pinned
	}
	w.say("%s reads %s, to start from", w.nameOf(i), last)
	return true
}

// goOn is U1 for a branch that an earlier try has begun.
func (w *moment) goOn(i int, p *proc, l *logOf) bool {
	head, last, isGone := w.headOf(p.branch)
	wasLive := slices.ContainsFunc(w.live, func(g *generation) bool { return g.Branch == w.s.branches[p.branch] })
	switch {
	case wasLive:
		p.at = starting
		w.say("%s finds its branch live", w.nameOf(i))
	case isGone || head.Sealed() || last == nil && l.from == nil:
		w.say("%s finds its branch given up, and ends", w.nameOf(i))
		w.end(i, gone)
	case last == nil:
		p.seen, p.at = l.from, basing
		w.say("%s finds its branch begun", w.nameOf(i))
	default:
		p.at = retaking
		return w.retake(i, p)
	}
	return true
}

// pin is U2.
func (w *moment) pin(i int, p *proc) bool {
	w.pins = append(w.pins[:len(w.pins):len(w.pins)], pinOf{p.branch, w.logOf(p.seen.Branch), p.seen.Epoch})
	w.say("%s pins %s", w.nameOf(i), p.seen.name())
	p.at = pinned
	if w.s.off("H11: the floor before the pin") {
		p.at = basing
		w.beginRecord(p)
	}
	return true
}

// inTime is the second half of U2, and U3.
func (w *moment) inTime(i int, p *proc) bool {
	if w.logs[p.branch].begun {
		p.at = beginning
		return w.beginBranch(i, p)
	}
	floor := w.logs[w.logOf(p.seen.Branch)].floor
	w.say("%s reads the floor, %d", w.nameOf(i), floor)
	switch {
	case floor > p.seen.Epoch:
		w.pins = slices.DeleteFunc(slices.Clone(w.pins), func(o pinOf) bool { return o.holder == p.branch })
		p.seen, p.at = nil, beginning
	case w.s.off("H11: the floor before the pin"):
		p.at = pinning
	default:
		p.at = basing
		w.beginRecord(p)
	}
	return true
}

func (w *moment) beginRecord(p *proc) {
	w.logs[p.branch].begun, w.logs[p.branch].from = true, p.seen
	w.say("makes the record of branch %s", w.s.branches[p.branch])
}

// base is U4.
func (w *moment) base(i int, p *proc) bool {
	me := w.s.roles[i].build
	starts := map[string]string{}
	if w.s.roles[i].fills {
		starts["out"] = StartBase
	}
	m := BaseOf(Head{Manifest: p.seen.Manifest, Hash: p.seen.hash}, me, w.s.branches[p.branch], starts)
	m.Owner = w.ownerOf(i)
	m.Sources = w.sourcesAt(nextOf(p.seen.Manifest), me)
	if me.Version != p.seen.Version {
		m.State = stateOf(me.Version+valueOf(p.seen.Manifest)[1:], w.ownObject(i, p, 0), me)
	}
	w.identify(&m, p.branch, 0, p.seen.hash)
	p.try, p.then, p.live = w.s.entry(m), asBase, none
	return w.put(i, p)
}

// unpin takes the pins of a branch away.
func (w *moment) unpin(i int, p *proc) bool {
	log := p.branch
	if p.at == dropping {
		log = p.log
	}
	w.pins = slices.DeleteFunc(slices.Clone(w.pins), func(o pinOf) bool { return o.holder == log })
	w.say("%s takes the pins of %s away", w.nameOf(i), w.s.branches[log])
	if p.at == dropping {
		w.end(i, gone)
		return true
	}
	p.seen, p.at = nil, following
	return true
}

// retake takes over the process's own branch: T6's last sentence.
func (w *moment) retake(i int, p *proc) bool {
	head, last, isGone := w.headOf(p.branch)
	if isGone || last == nil || head.Sealed() {
		p.at = beginning
		return w.goOn(i, p, &w.logs[p.branch])
	}
	if !w.stoodBy(i, head) {
		return false
	}
	if DecideTake(TakeView{Head: head, Me: w.s.roles[i].build, Replace: w.s.roles[i].kind == Rollback}) != PutOpen {
		w.end(i, gone)
		return true
	}
	w.putOpening(i, p, head, last)
	w.say("%s reads %s as the head of its branch", w.nameOf(i), last)
	return true
}

// follow is U5.
func (w *moment) follow(i int, p *proc) bool {
	if w.fillsNow(p) {
		if can := w.sinkSteps(i, p); len(can) > 0 {
			if n := w.c.pick(len(can) + 1); n > 0 {
				return can[n-1](i, p)
			}
		}
	}
	chain, err := w.chain()
	if err != nil {
		return w.breaks("%s: %v", w.nameOf(i), err)
	}
	v := FollowView{Branch: w.s.branches[p.branch], Covers: p.head.Covers[FirstTask], Chain: chain, Most: w.s.most}
	ahead := w.ahead(&v)
	on := allFollowRules
	if w.s.off("H20: what is gone is passed over") {
		on &^= ruleTimetable
	}
	if w.s.off("H20, forget: edits in the middle of a step") {
		on &^= ruleEdits
	}
	step, n := v.decide(on)
	lost := w.s.off("H17: it catches up before it seals again") && p.seen != nil && v.Covers < p.seen.Position
	may := step == AwaitEpoch || step == Cover && w.s.early && !lost && w.c.pick(2) == 0 // seal
	switch link, _ := Holder(chain, v.Covers); {
	case may, step == AwaitSuccessor:
		p.at = cutting
		return w.cut(i, p)
	case step == Cover:
		return w.cover(i, p, ahead[:n])
	case step == BeLive:
		p.live, p.at = int8(link.Live), working
		w.say("%s reads that live/%d is its branch", w.nameOf(i), link.Live)
	case step == TimetableGone && (w.over(p.branch) || w.s.off("H11a: seals don't look at the floor")):
		w.say("%s finds that what it has not covered was cleaned away, and ends", w.nameOf(i))
		w.end(i, gone)
	case step == TimetableGone:
		return w.breaks("%s can't go on: what %s has not covered was cleaned away", w.nameOf(i), v.Branch)
	}
	return true
}

// spare is the branch with which a process of a build resumes: its unfinished one, or
// the first of its own that it has not begun; 0 if there is none.
func (w *moment) spare(by Build) int8 {
	if w.s.spare == 0 {
		return 0
	}
	for log := w.s.spare; int(log) < len(w.logs); log++ {
		l := &w.logs[log]
		live := slices.ContainsFunc(w.live, func(g *generation) bool { return g.Branch == w.s.branches[log] })
		if theirs := numbered[(log-w.s.spare)%2]; theirs == by && (!l.begun || !live && !w.over(log)) {
			return log
		}
	}
	return 0
}

// atBound tells whether a process would go on with more branches than the setting has.
func (w *moment) atBound() bool { return w.s.spare > 0 && w.spare(explored1) == 0 }

// over tells whether a branch has ended.
func (w *moment) over(log int8) bool {
	head, _, isGone := w.headOf(log)
	return isGone || head.Sealed()
}

// ahead reads what the follower has not covered of the generation that holds it.
func (w *moment) ahead(v *FollowView) []*logEntry {
	link, _ := Holder(v.Chain, v.Covers)
	l := &w.logs[w.logOf(link.Branch)]
	if link.Ended() && link.Hash == "" || l.floor == AllEpochs && !link.Ended() {
		v.Sealed = true
		return nil
	}
	var all []*logEntry
	for at, e := range l.held {
		switch {
		case e == nil || e.Position < v.Covers || Epoch(at) < l.floor && l.at(e.Epoch+1) == nil:
			continue
		case link.Ended() && e.Epoch > link.Final:
			continue
		case e.Kind == Seal:
			v.Sealed = true
			continue
		case e.Position == v.Covers && e.Kind == Data: // what stands behind the one that is covered
			all = all[:0]
			continue
		}
		if e.Kind == Data && len(all) == 0 || e.Kind == Data && !slices.ContainsFunc(all, isData) {
			v.Gone = e.Position != v.Covers+1
		}
		all = append(all, e)
	}
	v.Sealed = v.Sealed || link.Ended()
	for _, e := range all {
		v.Ahead = append(v.Ahead, e.Manifest)
	}
	return all
}

func isData(e *logEntry) bool { return e.Kind == Data }

// cover commits a follower's epoch.
func (w *moment) cover(i int, p *proc, covered []*logEntry) bool {
	var all []Manifest
	value, last := valueOf(p.head.Manifest), int64(0)
	for _, e := range covered {
		last = max(last, e.Now)
	}
	for _, e := range covered {
		all = append(all, e.Manifest)
		if e.Kind != Data {
			continue
		}
		if len(e.Edits) > 0 {
			value = deleted(value)
		}
		before := w.logs[w.logOf(e.Branch)].truth[e.Epoch-1]
		for r := nextOf(before.Manifest) + 1; r <= nextOf(e.Manifest); r++ {
			now := e.Now
			if w.s.off("H20: a coarse step has one clock") {
				now = last
			}
			value += w.markAt(r, now)
		}
	}
	m := Following(p.head.Manifest, all)
	if w.s.off("H22a: a follower keeps what it knew of the sink") {
		m.Sinks = p.head.Sinks
	}
	m.Sources = w.sourcesAt(nextOf(covered[len(covered)-1].Manifest), w.s.roles[i].build)
	m.State = stateOf(value, w.ownObject(i, p, p.head.Epoch+1), w.s.roles[i].build)
	if w.fillsNow(p) {
		m.Sinks = withOut(m.Sinks, func(s *SinkState) {
			p.tell(s)
			s.Outbox = []Object{{Path: w.ownOutbox(i, p, p.head.Epoch+1)}}
			s.Fill = &Fill{s.Fill.Branch, s.Fill.Parts + 1, s.Fill.Delivered, s.Fill.Through}
		})
	}
	w.putNext(i, p, m, asCover)
	if w.s.off("H19: names are skipped") {
		m = p.try.Manifest
		m.Epoch += Epoch(len(covered) - 1)
		p.try = w.s.entry(m)
	}
	w.say("%s covers up to position %d", w.nameOf(i), m.Position)
	return true
}

// ownObject writes a data object, where account is kept of them.
func (w *moment) ownObject(i int, p *proc, e Epoch) string {
	if !w.s.objects {
		return ""
	}
	path := fmt.Sprintf("%s/data/%d-%s", w.s.branches[p.branch], e, w.ownerOf(i))
	w.write(path)
	return path
}

// ownOutbox writes an object with outputs.
func (w *moment) ownOutbox(i int, p *proc, e Epoch) string {
	path := w.ownObject(i, p, e) + "-out"
	if w.s.objects {
		w.write(path)
	}
	return path
}

// seal is U6: it reads the head, and decides what to put.
func (w *moment) seal(i int, p *proc) bool {
	head, last, isGone := w.headOf(p.log)
	step, name := DecideSeal(head, isGone)
	if step == PutSeal {
		p.seen, p.at = last, putting
		w.putSeal(i, p, name, last)
		w.say("%s reads %s as the head to be sealed", w.nameOf(i), nameOf(last))
		return true
	}
	return w.sealDone(i, p)
}

func nameOf(e *logEntry) string {
	if e == nil {
		return "nothing"
	}
	return e.name()
}

func (w *moment) putSeal(i int, p *proc, name Epoch, last *logEntry) {
	m := Manifest{Kind: Seal, Owner: w.ownerOf(i), By: w.nameOf(i)}
	parent := ""
	if last != nil {
		m.Position, m.Version, m.Build, parent = last.Position, last.Version, last.Build, last.hash
	}
	w.identify(&m, p.log, name, parent)
	p.try, p.then, p.at = w.s.entry(m), asSeal, putting
}

// sealedAs goes on from the create of a seal.
func (w *moment) sealedAs(i int, p *proc, verdict Verdict, holder *logEntry) bool {
	name := p.try.Epoch
	p.try = nil
	switch DecideLostSeal(verdict) {
	case SealDone:
		if w.s.off("H11a: seals don't look at the floor") {
			return w.sealDone(i, p) // what it has read before is the end
		}
		p.at = sealing
	case PutSeal:
		if w.s.off("H17: it catches up before it seals again") {
			p.seen, p.at = holder, following
			return true
		}
		p.seen = holder
		w.putSeal(i, p, name+1, holder)
	case LookAgain:
		p.at = sealing
	}
	return true
}

// sealDone goes on behind a seal.
func (w *moment) sealDone(i int, p *proc) bool {
	w.say("%s finds %s sealed", w.nameOf(i), w.s.branches[p.log])
	if w.s.roles[i].begins == givingUp {
		w.logs[p.log].given = true
		p.at = dropping
		return true
	}
	if !w.s.off("H11a: seals don't look at the floor") {
		p.seen = nil
	}
	p.at = cutting
	return true
}

// cut is U7: it reads live and the ends, and decides.
func (w *moment) cut(i int, p *proc) bool {
	v := w.cutView(i, p)
	on := allCutRules
	for name, rule := range map[string]cutRules{
		"H15: live before the seal": ruleSealFirst, "H13: any live record may follow": ruleSealFirst, "H15: live before the end is covered": ruleExactCover,
		"C6, U7: nothing is noted at a cut": ruleNotes, "H22a: a follower keeps what it knew of the sink": ruleNotes,
		"H16: a branch that was given up goes live": ruleOwnEnd, "Builds: a replaced build goes live": ruleReplaced,
	} {
		if w.s.off(name) {
			on &^= rule
		}
	}
	step, err := v.decide(on)
	if err != nil {
		return w.breaks("%s: %v", w.nameOf(i), err)
	}
	if step == PutLive && !w.mayBeHeir(i, v) {
		return false
	}
	return w.cutStep(i, p, v, step)
}

// mayBeHeir are the rules of histories that never became rules: seals with an heir, and
// sources that both must have.
func (w *moment) mayBeHeir(i int, v CutView) bool {
	final := v.Finals[FirstTask]
	if w.s.off("H14: the seal names its heir") && final.Seal.By != w.nameOf(i) {
		return false
	}
	return !w.s.off("H20a: all sources must be at the end") || len(v.Own[FirstTask].Manifest.Sources) == len(final.Manifest.Sources) && final.Manifest.Sources["only of one"].Partitions["0"] == v.Own[FirstTask].Manifest.Sources["only of one"].Partitions["0"]
}

// cutView is what the process reads before it goes live.
func (w *moment) cutView(i int, p *proc) CutView {
	r := w.s.roles[i]
	own := Head{Manifest: p.head.Manifest, Hash: p.head.hash}
	if next := w.logs[p.branch].at(p.head.Epoch + 1); next != nil && next.Kind == Seal {
		own.Seal = &next.Manifest
	}
	v := CutView{
		Branch: w.s.branches[p.branch], Live: w.newest().LiveRecord, Own: map[string]Head{FirstTask: own}, Finals: map[string]Head{},
		Settled: map[string]SinkConsent{}, Replace: r.kind == Rollback,
	}
	if w.s.sink != noSink && !r.lacks {
		v.Sinks = []string{"out"}
	}
	if r.fills {
		v.Settled["out"] = SinkConsent{Start: StartBase}
	}
	if r.gap {
		v.Settled["out"] = SinkConsent{Gap: Consented}
	}
	if v.Live.Branch != v.Branch {
		v.Finals[FirstTask] = w.final(p)
	}
	return v
}

// final is the end of the live branch; where that has had nothing of its own and was
// cleaned away, of the one before it (H16).
func (w *moment) final(p *proc) Head {
	log := w.logOf(w.newest().Branch)
	head, _, isGone := w.headOf(log)
	if p.seen != nil && w.s.off("H11a: seals don't look at the floor") {
		return Head{Manifest: p.seen.Manifest, Hash: p.seen.hash, Seal: &Manifest{Kind: Seal}}
	}
	if !isGone || w.newest().Ends == nil || w.s.off("H16: a branch without epochs is taken at its word") {
		return head
	}
	end := w.newest().Ends
	e := w.logs[w.logOf(end.Branch)].at(end.Tasks[FirstTask].Epoch)
	if e == nil {
		w.breaks("the end of %s, where generation %d began, was cleaned away", end.Branch, w.newest().N)
		return head
	}
	return Head{Manifest: e.Manifest, Hash: e.hash, Seal: head.Seal}
}

func (w *moment) cutStep(i int, p *proc, v CutView, step CutStep) bool {
	switch step {
	case PutLive:
		if w.logs[p.branch].given && v.Own[FirstTask].Sealed() {
			return w.breaks("%s was given up, and goes live", v.Branch)
		}
		r := v.Record(w.s.roles[i].kind, 0)
		if r.Kind == "" {
			r.Kind = Resume
		}
		p.rec, p.at = w.s.generation(r), goingLive
		w.say("%s reads live/%d and the end of %s, all of which it covers", w.nameOf(i), v.Live.N, v.Live.Branch)
	case NoteFinals:
		m, err := v.Note(v.Own[FirstTask].Manifest, v.Finals[FirstTask])
		if err != nil {
			return w.breaks("%s: %v", w.nameOf(i), err)
		}
		w.putNext(i, p, m, asCutNote)
		w.say("%s reads what the end of %s notes", w.nameOf(i), v.Live.Branch)
	case CoverFinal:
		p.at = following
		w.say("%s reads that there is more of %s to cover", w.nameOf(i), v.Live.Branch)
	case SealFirst:
		p.log = w.logOf(v.Live.Branch)
		return w.seal(i, p)
	case IsLive:
		p.live, p.at = int8(v.Live.N), working
		p.knows(p.head)
		w.say("%s reads that live/%d is its branch", w.nameOf(i), v.Live.N)
	default:
		w.say("%s may not go live (%d), and ends", w.nameOf(i), step)
		w.end(i, gone)
	}
	return true
}

// goLive creates the live record. Whose stands there is for the next look.
func (w *moment) goLive(i int, p *proc) bool {
	w.say("%s puts live/%d", w.nameOf(i), p.rec.N)
	answer := w.create(func() Answer { return w.landLive(p.rec) }, lateCreate{live: p.rec})
	if outcome := DecideCreate(answer, p.rec.data, nil); outcome == Again {
		return true
	}
	if w.s.off("C5: live from memory") {
		p.live, p.rec, p.at = int8(p.rec.N), nil, working
		return true
	}
	p.rec, p.at = nil, cutting
	return true
}

// giveUp ends a branch that follows.
func (w *moment) giveUp(i int, p *proc) bool {
	name := w.s.branches[p.branch]
	if slices.ContainsFunc(w.live, func(g *generation) bool { return g.Branch == name }) {
		w.say("%s finds %s live, and leaves it", w.nameOf(i), name)
		w.end(i, gone)
		return true
	}
	p.log, p.at = p.branch, sealing
	w.logs[p.log].begun = true
	w.say("%s wants to give %s up", w.nameOf(i), name)
	if w.s.off("H11b: a pin is taken away by age") {
		p.at = dropping
	}
	return true
}
