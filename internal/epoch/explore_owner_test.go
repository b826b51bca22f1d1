package epoch

import "fmt"

// place is where in its work a process is.
type place uint8

const (
	starting  place = iota // T1: reads which branch is live
	awaiting               // T2, T5: reads the head, and waits for its owner
	putting                // S1: creates an entry
	checking               // S6: reads the floor
	migrating              // T6: writes its own state
	working                // commits, delivers and notes
	behind                 // Q: its branch was sealed

	beginning  // U1: reads where to start
	pinning    // U2: pins that
	pinned     // U2, U3: reads the floor, makes the branch's record
	basing     // U4: makes the base
	unpinning  // U4
	retaking   // takes over its own branch
	following  // U5
	sealing    // U6: reads the head of what is to end
	cutting    // U7: reads live and the ends
	goingLive  // U7: creates the live record
	givingUp   // seals a branch that follows
	dropping   // takes its pins away
	delivering // D3: inside of the sink's fence
	applying   // writes the rows
	disagreed  // D4: reads the log again

	choosing  // G1: chooses a floor
	flooring  // G2: records it
	pinReads  // G3
	surveying // G4
	listing   // G5, G6
	removing  // G7, G8
)

// ending is whether a process goes on.
type ending uint8

const (
	up   ending = iota
	down        // it has ended, and may be started again
	gone        // it has ended for good
	hung        // it hangs
)

// purpose is what an entry is put for.
type purpose uint8

const (
	asOpen purpose = iota
	asData
	asNote
	asSecondOpen
	asBase
	asCover
	asCutNote
	asSeal
)

// proc is a process: what it has in memory.
type proc struct {
	end    ending
	life   uint8 // how often it was started
	at     place
	branch int8      // that it owns, or wants to
	head   *logEntry // its newest, of that branch
	live   int8      // the generation that it writes under
	gen    int8      // the newest that it has read
	rest   bool      // its branch was sealed, and it may deliver the rest

	seen *logEntry // what it has read and acts on
	try  *logEntry // what it puts, and why
	then purpose
	log  int8 // that it seals
	rec  *generation

	outcome Outcome
	wrote   string // an object that no manifest refers to yet

	made      string // id of a record that is not noted yet
	takes     string // that of another which it is to replace
	took      bool   // and has
	confirmed Position
	filled    Fill // how far the sink is filled
	sent      delivery

	sweep *sweepOf
}

func (p *proc) key(s *setting, b []byte) []byte {
	b = append(b, byte(p.end), p.life, byte(p.at), byte(p.branch), byte(p.live), byte(p.gen), byte(bit(p.rest)), byte(p.then), byte(p.log), byte(p.outcome))
	b = appendInt(b, p.head.number(), p.seen.number(), p.try.number(), int(s.id(p.wrote)), int(s.id(p.made)), int(s.id(p.takes)), bit(p.took), int(p.confirmed), p.filled.Delivered, int(p.filled.Through))
	if p.rec != nil {
		b = appendInt(b, int(p.rec.id))
	}
	b = p.sent.key(b)
	if p.sweep != nil {
		b = p.sweep.key(s, b)
	}
	return b
}

// step lets a process do what comes next; false if it has to wait.
func (w *moment) step(i int) bool {
	p := &w.procs[i]
	switch p.at {
	case starting:
		return w.readLive(i, p)
	case awaiting:
		return w.take(i, p)
	case putting:
		return w.put(i, p)
	case checking:
		return w.readFloor(i, p)
	case migrating:
		return w.migrate(i, p)
	case working:
		return w.work(i, p)
	case behind:
		return w.behindSeal(i, p)
	case delivering, applying, disagreed:
		return w.sink.step(w, i, p)
	case choosing, flooring, pinReads, surveying, listing, removing:
		return w.cleanUp(i, p)
	}
	return w.upgrade(i, p)
}

func (w *moment) ownerOf(i int) string { return fmt.Sprintf("%s.%d", w.nameOf(i), w.procs[i].life) }

// readLive is T1.
func (w *moment) readLive(i int, p *proc) bool {
	p.gen = int8(len(w.live) - 1)
	p.branch = w.logOf(w.newest().Branch)
	p.at = awaiting
	w.say("%s reads live/%d: %s", w.nameOf(i), p.gen, w.newest().Branch)
	return true
}

// take is T2, T5, and what T3 puts.
func (w *moment) take(i int, p *proc) bool {
	head, last, isGone := w.headOf(p.branch)
	if isGone || last == nil {
		w.say("%s finds nothing of %s left, and ends", w.nameOf(i), w.s.branches[p.branch])
		w.end(i, gone)
		return true
	}
	if !w.stoodBy(i, head) {
		return false
	}
	me := w.s.roles[i].build
	view := TakeView{Head: head, Me: me, NewerLive: len(w.live)-1 > int(p.gen)}
	if w.s.off("T6: replaced builds are not noted") {
		view.Head.Manifest.Superseded = nil
	}
	switch DecideTake(view) {
	case StartOver:
		p.at = starting
	case RefuseSealed:
		p.head, p.at, p.rest = last, behind, head.Manifest.Owner == w.ownerOf(i)
		w.say("%s finds %s sealed", w.nameOf(i), w.s.branches[p.branch])
		return true
	case RefuseSuperseded:
		w.say("%s is of a build that was replaced, and ends", w.nameOf(i))
		w.end(i, gone)
		return true
	case PutOpen:
		w.putOpening(i, p, head, last)
	}
	w.say("%s reads %s as the head", w.nameOf(i), last)
	return true
}

// stoodBy is T5: whether the head's owner need not be waited for.
func (w *moment) stoodBy(i int, head Head) bool {
	who, alive := w.ownedBy(head.Manifest.Owner)
	view := StandbyView{Head: head, Lease: 10, Gone: !alive && (who < 0 || w.procs[who].end != hung)}
	switch {
	case who >= 0 && w.procs[who].end == hung, w.s.off("H18: nobody stands by"):
		view.Still = view.Lease
	case alive && who != i && w.left.hasty > 0 && w.c.pick(2) == 1:
		w.left.hasty--
		view.Still = view.Lease
		w.say("the lease of %s ends", w.nameOf(who))
	}
	return DecideStandby(view)
}

func (w *moment) putOpening(i int, p *proc, head Head, last *logEntry) {
	me := w.s.roles[i].build
	m := Opening(head.Manifest, me, w.liveOf(p.branch))
	if w.s.off("T6: the first opening is of the new version") {
		m.Version, m.Build, m.WriterBuild = me.Version, me, Build{}
	}
	if w.s.off("T6: the opening does not say who writes") {
		m.WriterBuild = Build{}
	}
	m.Owner = w.ownerOf(i)
	w.identify(&m, p.branch, head.Manifest.Epoch+1, head.Hash)
	p.seen, p.head = last, nil
	p.try, p.then, p.at = w.s.entry(m), asOpen, putting
}

// liveOf is C5: the generation of a branch, by the newest live record.
func (w *moment) liveOf(log int8) *Generation {
	if g := w.newest(); g.Branch == w.s.branches[log] {
		return &g.N
	}
	return nil
}

// create is a call to the store that may fail in each of its ways.
func (w *moment) create(land func() Answer, late lateCreate) Answer {
	ways := 1
	if w.left.create > 0 {
		ways = 4
	}
	way := w.c.pick(ways)
	if way > 0 {
		w.left.create--
	}
	switch way {
	case 0:
		return land()
	case 1:
		w.say("time-out: the call is lost")
	case 2:
		land()
		w.say("time-out: the answer is lost")
	case 3:
		w.late = append(w.late[:len(w.late):len(w.late)], late)
		w.say("time-out: the call is late")
	}
	return Doubtful
}

// put is S1.
func (w *moment) put(i int, p *proc) bool {
	w.say("%s puts %s", w.nameOf(i), p.try)
	answer := w.create(func() Answer { return w.land(p.try) }, lateCreate{entry: p.try})
	outcome := DecideCreate(answer, p.try.data, nil)
	if outcome == Look {
		held := w.logs[w.logOf(p.try.Branch)].at(p.try.Epoch)
		outcome = DecideCreate(Taken, p.try.data, held.data)
		if w.s.off("H7: mine by attempt, whatever the bytes") && held.Owner == p.try.Owner && held.Kind == p.try.Kind {
			outcome = Mine
		}
		w.say("it exists: %s", map[Outcome]string{Mine: "its own", Theirs: "another's, " + held.String()}[outcome])
	}
	if outcome == Again {
		switch {
		case w.s.off("H7: mine by attempt, whatever the bytes") && p.then == asData:
			p.try, p.at = nil, working
		case w.s.off("H8: the next one in doubt") && p.then == asData:
			p.head, p.try, p.at = p.try, nil, working
		default:
			p.at = putting
		}
		return true
	}
	p.outcome, p.at = outcome, checking
	if !w.s.objects {
		return w.readFloor(i, p) // there is no clean-up that could come between
	}
	return true
}

// readFloor is C3 and S6.
func (w *moment) readFloor(i int, p *proc) bool {
	l := &w.logs[w.logOf(p.try.Branch)]
	floor := l.floor
	if w.s.off("H9: the floor is not looked at") || p.then == asSeal && w.s.off("H11a: seals don't look at the floor") {
		floor = 0
	}
	var holder *logEntry
	var held *Manifest
	if p.outcome == Theirs {
		if holder = l.at(p.try.Epoch); holder != nil {
			held = &holder.Manifest
		}
	}
	verdict := DecideCommit(p.try.Epoch, p.outcome, held, floor)
	if w.s.objects {
		w.say("%s reads the floor, %d", w.nameOf(i), floor)
	}
	if verdict == Vanished && floor == l.floor {
		return w.breaks("%s takes %s for damaged: its name was taken, and holds nothing", w.nameOf(i), p.try.name())
	}
	if p.then == asSeal {
		return w.sealedAs(i, p, verdict, holder)
	}
	if verdict != Committed { // a name that holds nothing is as good as another's, where the floor isn't looked at
		return w.refused(i, p, verdict, held)
	}
	return w.committed(i, p)
}

// committed goes on from an entry of the process's own.
func (w *moment) committed(i int, p *proc) bool {
	e := p.try
	p.head, p.try = e, nil
	if !w.counts(e) {
		return w.breaks("%s believes that it has committed %s, and that doesn't count", w.nameOf(i), e)
	}
	switch p.then {
	case asOpen:
		p.seen = nil
		p.knows(e)
		w.opened(i, p)
	case asSecondOpen:
		p.at = working
	case asData, asNote:
		if p.then == asData {
			p.wrote = ""
		}
		p.told()
		if p.at = working; p.live == none {
			p.at = following
		}
	case asBase:
		p.knows(e)
		p.at = unpinning
	case asCover:
		p.told()
		p.at = following
	case asCutNote:
		p.knows(e)
		p.at = cutting
	}
	return true
}

// knows begins with what an entry says of the sink.
func (p *proc) knows(e *logEntry) {
	p.confirmed, p.filled = e.Sinks["out"].Confirmed, Fill{}
	if f := e.Sinks["out"].Fill; f != nil {
		p.filled = *f
	}
	p.told()
}

// told: what it knew of the sink is noted.
func (p *proc) told() { p.made, p.takes = "", "" }

// opened goes on from an opening, as owner of a live branch or of one that follows.
func (w *moment) opened(i int, p *proc) {
	e, me := p.head, w.s.roles[i].build
	live := w.liveOf(p.branch)
	p.live, p.at = none, following
	if live != nil {
		p.live, p.at = int8(*live), working
	}
	if me.Version != e.Version {
		p.at = migrating
		return
	}
	if valueOf(e.Manifest)[:1] != e.Version {
		w.breaks("%s reads a state of version %s as one of version %s", w.nameOf(i), valueOf(e.Manifest)[:1], e.Version)
	}
}

// migrate is the second half of T6.
func (w *moment) migrate(i int, p *proc) bool {
	h, me := p.head.Manifest, w.s.roles[i].build
	m := carriedOn(h)
	m.Version, m.Build, m.Superseded = me.Version, me, Supersede(h.Superseded, h.Build, me)
	m.State = stateOf(me.Version+valueOf(h)[1:], "", me)
	w.putNext(i, p, m, asSecondOpen)
	w.say("%s migrates the state", w.nameOf(i))
	return true
}

// carriedOn is an opening by the owner, which changes nothing.
func carriedOn(h Manifest) Manifest {
	m := h
	m.Kind, m.Runs, m.Edits, m.WriterBuild, m.Sinks = Open, nil, nil, Build{}, withoutOutboxes(h.Sinks)
	return m
}

// putNext makes an entry behind the process's own head.
func (w *moment) putNext(i int, p *proc, m Manifest, then purpose) {
	m.Owner = w.ownerOf(i)
	w.identify(&m, p.branch, p.head.Epoch+1, p.head.hash)
	if m.Live = nil; p.live != none {
		n := Generation(p.live)
		m.Live = &n
	}
	m.Position = NextPosition(m.Kind, p.live != none, p.head.Position, m.Position)
	p.try, p.then, p.at = w.s.entry(m), then, putting
}

// refused is what a process does that has lost a name.
func (w *moment) refused(i int, p *proc, verdict Verdict, holder *Manifest) bool {
	switch {
	case p.then == asOpen && DecideLostOpen(p.seen.Manifest, holder, verdict) == StartOver:
		p.try, p.at = nil, w.s.roles[i].begins
		w.say("%s starts over", w.nameOf(i))
	case p.then == asBase && verdict == Fenced:
		p.try, p.at = nil, retaking
	case verdict == Sealed && p.live != none:
		p.try, p.wrote, p.at, p.rest = nil, "", behind, true
		w.say("%s finds %s sealed", w.nameOf(i), w.s.branches[p.branch])
	case verdict == Sealed:
		w.say("%s finds its branch given up, and ends", w.nameOf(i))
		w.end(i, gone)
	default:
		w.say("%s is fenced, and ends", w.nameOf(i))
		w.end(i, down)
	}
	return true
}

// work is one step of an owner of a live branch.
func (w *moment) work(i int, p *proc) bool {
	can := w.sinkSteps(i, p)
	next := int(nextOf(p.head.Manifest))
	if next < w.s.records {
		can = append(can, w.data)
	}
	if len(can) == 0 {
		return false
	}
	return can[w.c.pick(len(can))](i, p)
}

type choice func(int, *proc) bool

// sinkSteps are what an owner may do about the sink now.
func (w *moment) sinkSteps(i int, p *proc) (can []choice) {
	hasSink := w.s.sink != noSink && !w.s.roles[i].lacks
	noted := p.head.Sinks["out"]
	switch {
	case !hasSink:
	case noted.Record == "" && p.made == "":
		can = append(can, w.sink.makeRecord(w))
	case noted.Takes != "" && !p.took:
		can = append(can, w.sink.replaceRecord(w))
	case noted.Record != "":
		if d, ok := w.owed(i, p); ok {
			can = append(can, func(i int, p *proc) bool { return w.sink.start(w, i, p, d) })
		}
	}
	news := p.made != "" || p.confirmed > noted.Confirmed || noted.Fill != nil && p.filled.Delivered > noted.Fill.Delivered
	all := int(nextOf(p.head.Manifest)) == w.s.records
	if news && (all || w.s.notes || p.live == none) && !w.s.off("C6: nothing is noted without data") {
		can = append(can, w.note)
	}
	return can
}

// fillsNow tells whether a process fills the sink for a branch that follows.
func (w *moment) fillsNow(p *proc) bool {
	return p.head != nil && p.live == none && p.head.Sinks["out"].Fills(w.s.branches[p.branch], w.liveSink())
}

// liveSink is what the live branch says of the sink.
func (w *moment) liveSink() SinkState {
	head, _, _ := w.headOf(w.logOf(w.newest().Branch))
	return head.Manifest.Sinks["out"]
}

// note is C6.
func (w *moment) note(i int, p *proc) bool {
	m := carriedOn(p.head.Manifest)
	m.Sinks = withOut(m.Sinks, p.tell)
	w.putNext(i, p, m, asNote)
	return w.put(i, p)
}

// tell says what the process knows of the sink.
func (p *proc) tell(s *SinkState) {
	if s.Fill != nil && p.confirmed > s.Confirmed {
		s.Fill, s.Takes = nil, ""
	} else if s.Fill != nil {
		s.Fill = &Fill{s.Fill.Branch, s.Fill.Parts, p.filled.Delivered, p.filled.Through}
	}
	s.Confirmed = max(s.Confirmed, p.confirmed)
	if p.made != "" {
		s.Record, s.Takes = p.made, p.takes
	}
}

// data commits an epoch: where objects are kept account of it writes those first.
func (w *moment) data(i int, p *proc) bool {
	h := p.head.Manifest
	if valueOf(h)[:1] != w.s.roles[i].build.Version {
		return w.breaks("%s goes on with a state of another version", w.nameOf(i))
	}
	if w.s.objects && p.wrote == "" {
		p.wrote = w.ownObject(i, p, h.Epoch+1)
		w.write(p.wrote + "-out")
		w.say("%s writes %s", w.nameOf(i), p.wrote)
		return true
	}
	from := nextOf(h)
	next := from + 1 + int64(w.c.pick(min(w.s.batch, w.s.records-int(from))))
	m := carriedOn(h)
	m.Kind, m.Now, m.Sources = Data, next, w.sourcesAt(next, w.s.roles[i].build)
	value := valueOf(h)
	for r := from + 1; r <= next; r++ {
		if int(r) == w.s.forget {
			m.Edits, value = []Edit{{State: "sums"}}, deleted(value)
		}
		value += w.mark(r)
	}
	m.State = stateOf(value, p.wrote, w.s.roles[i].build)
	m.Sinks = withOut(m.Sinks, func(s *SinkState) {
		p.tell(s)
		if p.wrote != "" && s.Dropped == "" {
			s.Outbox = []Object{{Path: p.wrote + "-out"}}
		}
	})
	w.putNext(i, p, m, asData)
	return w.put(i, p)
}

// behindSeal is rule Q, and D6.
func (w *moment) behindSeal(i int, p *proc) bool {
	final, last, _ := w.headOf(p.branch)
	if last == nil {
		return false
	}
	now, _, _ := w.headOf(w.logOf(w.newest().Branch))
	v := EndedView{
		Final: final.Manifest, Live: w.newest().LiveRecord, Now: now.Manifest.Build, Me: w.s.roles[i].build,
		Owner: p.rest && last == p.head, WasLive: true, After: 60,
	}
	v.Final.Branch = w.s.branches[p.branch]
	spare := w.spare(v.Me)
	if spare > 0 && w.c.pick(2) == 1 {
		v.Still = v.After
	}
	switch DecideEnded(v) {
	case DeliverRest:
		if w.s.sink == noSink || p.head.Sinks["out"].Record == "" || w.s.roles[i].lacks {
			return false
		}
		d, ok := w.owed(i, p)
		return ok && w.sink.start(w, i, p, d)
	case ResumeNow:
		w.say("%s has waited long enough", w.nameOf(i))
		w.sink.forget(i)
		w.procs[i] = proc{life: p.life, at: beginning, branch: spare, live: none}
		return true
	case StandByAgain:
		w.say("%s finds its build live elsewhere, and stands by", w.nameOf(i))
		w.end(i, down)
		return true
	case EndSuperseded, EndGivenUp:
		w.say("%s finds that live/%d is %s, and ends", w.nameOf(i), w.newest().N, w.newest().Branch)
		w.end(i, gone)
		return true
	}
	return false
}
