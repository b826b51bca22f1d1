package epoch

import (
	"fmt"
	"slices"
)

// sinkKind is which system a sink stands for.
type sinkKind uint8

const (
	noSink    sinkKind = iota
	aDatabase          // a row that is locked, and rows, in one transaction
	aBroker            // a transaction in two or more parts, which a newer producer ends
	aFolder            // files under the names of positions, and a consumer
)

// row is a part of a delivery that everybody sees.
type row struct {
	to    Position
	part  int
	entry int32
}

// remembered is the sink's record.
type remembered struct {
	there bool
	at    Place
	id    string
	entry *logEntry
	by    int8 // the branch whose process wrote it
}

// open is what waits in a transaction, end is an end of one that is late.
type openRows struct {
	id       int8
	producer uint8
	rows     []row
}

type lateEnd struct {
	id       int8
	producer uint8
	to       delivery
}

// sinkState is the sink.
type sinkState struct {
	kind      sinkKind
	rows      []row
	record    remembered
	holder    int8     // the process that holds the row
	producers [5]uint8 // the newest of each transactional id
	open      []openRows
	ends      []lateEnd
	files     []Position // that are in the folder
	taken     Position   // the highest that the consumer took
}

// delivery is a part of what is owed, on its way.
type delivery struct {
	from, to Place
	gap      Position
	entry    *logEntry
	last     *logEntry // of all that is owed
	part     int
	half     int
	producer uint8
}

func (d *delivery) key(b []byte) []byte {
	return appendInt(b, int(d.from.Position), d.from.Part, int(d.to.Position), d.to.Part, int(d.gap), d.entry.number(), d.last.number(), d.part, d.half, int(d.producer))
}

func (k *sinkState) key(s *setting, b []byte) []byte {
	b = appendInt(b, len(k.rows), len(k.open), len(k.ends), len(k.files), bit(k.record.there), int(k.record.at.Position), k.record.at.Part, int(s.id(k.record.id)), k.record.entry.number(), int(k.record.by), int(k.holder), int(k.taken))
	for _, r := range k.rows {
		b = appendInt(b, int(r.to), r.part, int(r.entry))
	}
	b = append(b, k.producers[:]...)
	for _, o := range k.open {
		b = appendInt(b, int(o.id), int(o.producer), len(o.rows))
		for _, r := range o.rows {
			b = appendInt(b, int(r.to), r.part)
		}
	}
	for _, e := range k.ends {
		b = appendInt(b, int(e.id), int(e.producer), int(e.to.to.Position))
	}
	for _, f := range k.files {
		b = appendInt(b, int(f))
	}
	return b
}

func (k *sinkState) begin(s *setting) {
	k.kind, k.holder = s.sink, none
	if k.kind == aBroker {
		s.parts = max(s.parts, 2)
	}
}

// has is the position up to which the sink has everything.
func (k *sinkState) has() Position { return k.record.at.Position }

// owed is rule D1: the next that the process would deliver.
func (w *moment) owed(i int, p *proc) (d delivery, ok bool) {
	pieces := w.pieces(p)
	if w.s.off("H1: each generation delivers its own") || w.s.off("H21: a sink that is back starts at the cut") {
		pieces = pieces[len(pieces)-1:]
	}
	now := SinkState{Confirmed: p.confirmed}
	if f := p.head.Sinks["out"].Fill; f != nil && p.confirmed == p.head.Sinks["out"].Confirmed {
		now.Fill = &Fill{f.Branch, f.Parts, p.filled.Delivered, p.filled.Through}
	}
	all, err := OwedOver(pieces, "out", now)
	if w.s.off("H1: each generation delivers its own") {
		all, err = w.ownOnly(p, pieces[0])
	}
	if err != nil && !w.behind(i, p) {
		w.breaks("%s: %v", w.nameOf(i), err)
	}
	if err != nil || len(all) == 0 {
		return d, false
	}
	if w.s.off("H2: the dead are waited for") && all[0].Manifest.Branch != w.s.branches[p.branch] {
		return d, false
	}
	o := all[0]
	d = delivery{
		from: Place{o.From, o.Part}, to: Place{Position: o.To}, gap: o.Gap,
		entry: w.find(o.Manifest), last: w.find(all[len(all)-1].Manifest),
	}
	if o.From == o.To {
		d.to.Part = o.Part + 1
	}
	if w.s.off("D10: the first delivery begins at the cut") && o.From != o.To {
		d.from.Part = 0
	}
	return d.inParts(w.s), true
}

// inParts is the first part of a delivery.
func (d delivery) inParts(s *setting) delivery {
	if s.sink == aDatabase && s.parts > 1 {
		d.to = Place{Position: d.from.Position, Part: 1}
	}
	return d
}

// nextPart is the part behind one; false if there is none.
func (d delivery) nextPart(s *setting) (delivery, bool) {
	if s.sink != aDatabase || d.part+1 >= s.parts {
		return d, false
	}
	d.part++
	d.from = d.to
	if d.to = (Place{Position: d.from.Position, Part: d.part + 1}); d.part == s.parts-1 {
		d.to = Place{Position: d.entry.Position}
	}
	return d, true
}

// ownOnly is what a branch owes that has no regard for others.
func (w *moment) ownOnly(p *proc, piece Piece) (all []Owed, err error) {
	for _, m := range piece.Manifests {
		if o, ok := OwedBy(m, "out"); ok && o.To > p.confirmed {
			all = append(all, o)
		}
	}
	return all, nil
}

func (w *moment) find(m Manifest) *logEntry { return w.logs[w.logOf(m.Branch)].at(m.Epoch) }

// pieces are what the generations up to the process's own have put out.
func (w *moment) pieces(p *proc) (all []Piece) {
	chain, err := w.chain()
	if p.live == none && w.fillsNow(p) {
		chain = []Link{{Branch: w.s.branches[p.branch], To: AllPositions}}
	}
	if err != nil {
		return []Piece{{}}
	}
	for _, link := range chain {
		piece := Piece{Link: link}
		l := &w.logs[w.logOf(link.Branch)]
		for _, e := range l.truth {
			switch {
			case link.Ended() && (link.Hash == "" || e.Epoch > link.Final), l.at(e.Epoch) != e, e.Kind == Seal:
			case link.Branch == w.s.branches[p.branch] && e.Epoch > p.head.Epoch:
			default:
				piece.Manifests = append(piece.Manifests, e.Manifest)
			}
		}
		if all = append(all, piece); link.Branch == w.s.branches[p.branch] {
			break
		}
	}
	return all
}

// behind is D4's look at the log: a newer generation, or a newer owner.
func (w *moment) behind(i int, p *proc) bool {
	head, _, _ := w.headOf(p.branch)
	if p.live == none && !p.rest {
		return head.Sealed() || head.Manifest.Owner != w.ownerOf(i) || !w.fillsNow(p)
	}
	return p.at == disagreed && head.Sealed() || w.newest().Branch != w.s.branches[p.branch] || head.Manifest.Owner != w.ownerOf(i)
}

// makeRecord is D2.
func (k *sinkState) makeRecord(w *moment) func(int, *proc) bool {
	return func(i int, p *proc) bool {
		k := &w.sink
		start := p.head.Sinks["out"].RecordAt()
		if w.s.off("D2: a record is made where the sink begins") {
			start = p.head.Sinks["out"].Start
		}
		if !k.record.there {
			k.record = remembered{there: true, at: Place{Position: start}, id: w.ownerOf(i), by: p.branch}
			w.say("%s makes the sink's record", w.nameOf(i))
			p.made = k.record.id
			return true
		}
		by := w.s.branches[k.record.by]
		v := StandingView{
			Own: w.s.branches[p.branch], Live: p.live != none, Start: start, Branch: by, At: k.record.at, Ended: w.over(k.record.by),
			WasLive: w.wasLive(k.record.by), Untouched: k.record.entry == nil,
		}
		step := DecideStanding(v)
		switch {
		case w.s.off("D10: a record is taken as it is") && step == ReplaceRecord:
			step = AdoptRecord
		case w.s.off("D10: a branch that may be live is not waited for") && step == BeingFilled:
			step = ReplaceRecord
		}
		switch step {
		case AdoptRecord:
			w.say("%s finds the sink's record made", w.nameOf(i))
			p.made = k.record.id
		case ReplaceRecord:
			w.say("%s finds the sink's record of %s, which it is to replace", w.nameOf(i), by)
			p.made, p.takes = w.ownerOf(i), k.record.id
		case BeingFilled:
			return false
		default:
			p.at = disagreed
			w.say("%s finds the sink's record at %s, and has none", w.nameOf(i), k.record.at)
		}
		return true
	}
}

// start is the first step of a delivery.
func (k *sinkState) start(w *moment, i int, p *proc, d delivery) bool {
	p.sent, p.at = d, delivering
	return k.step(w, i, p)
}

// step is one step of a delivery.
func (*sinkState) step(w *moment, i int, p *proc) bool {
	k := &w.sink
	if p.at == disagreed {
		return k.explain(w, i, p)
	}
	switch k.kind {
	case aDatabase:
		return k.databaseStep(w, i, p)
	case aBroker:
		return k.brokerStep(w, i, p)
	default:
		return k.folderStep(w, i, p)
	}
}

// decide is rule D3, inside of the fence.
func (k *sinkState) decide(w *moment, i int, p *proc) DeliveryStep {
	d := &p.sent
	v := DeliveryView{
		From: d.from, To: d.to, Gap: d.gap, Manifest: d.entry.hash, ID: p.head.Sinks["out"].Record, Confirmed: p.confirmed,
		Head: d.last.Position, HeadManifest: d.last.hash,
	}
	if d.last.Live == nil { // all that is owed fills the sink
		v.Head, v.HeadManifest = d.from.Position, ""
	}
	if k.record.there {
		v.Record = &SinkRecord{Place: k.record.at, ID: k.record.id}
		if k.record.entry != nil {
			v.Record.Manifest = k.record.entry.hash
		}
	}
	step := k.decided(w, v)
	if step == Disagree {
		_, why := DecideDelivery(v)
		w.say("%s finds that %s", w.nameOf(i), why)
	} else {
		w.say("%s reads the sink's record, %s, and %s %s", w.nameOf(i), k.record.at, map[DeliveryStep]string{Apply: "goes on to", Skip: "passes over"}[step], d.to)
	}
	return step
}

// decided is the decision, with the rule that is off.
func (k *sinkState) decided(w *moment, v DeliveryView) DeliveryStep {
	switch {
	case w.s.off("H1: each generation delivers its own"):
		if v.Record != nil && v.Record.Position >= v.To.Position {
			return Skip
		}
		return Apply
	case w.s.off("H6, D2: the row comes with the first delivery"):
		if v.Record == nil {
			return Apply
		}
		v.ID = v.Record.ID
	case w.s.off("H22: what isn't there is to be delivered"):
		if v.Record != nil && !v.Record.Less(v.To) {
			return Skip
		}
		return Apply
	case w.s.off("D2: the record's id is not compared") && v.Record != nil:
		v.ID, v.Confirmed = v.Record.ID, 0
	case w.s.off("H22: manifests are not compared"):
		v.Manifest, v.HeadManifest = "", ""
	case w.s.off("D9: parts are told apart by positions alone"):
		v.To.Part, v.From.Part = 0, 0
		if v.Record.Part = 0; v.To.Position == v.From.Position {
			v.To.Position++
		}
	}
	step, _ := DecideDelivery(v)
	return step
}

// decideNow goes on from the decision.
func (k *sinkState) decideNow(w *moment, i int, p *proc) bool {
	switch k.decide(w, i, p) {
	case Apply:
		p.at = applying
	case Skip:
		k.done(w, i, p)
	default:
		k.release(i)
		p.at = disagreed
	}
	return true
}

// done goes on behind a delivery that the sink has.
func (k *sinkState) done(w *moment, i int, p *proc) {
	k.check(w)
	k.release(i)
	if d, more := p.sent.nextPart(w.s); more {
		p.sent, p.at = d, delivering
		return
	}
	if p.sent.from.Position == p.sent.to.Position {
		p.filled.Delivered, p.filled.Through = p.sent.to.Part, p.sent.entry.Epoch
	} else {
		p.confirmed = max(p.confirmed, p.sent.entry.Position)
	}
	k.again(p)
}

// again forgets the delivery: what is owed is looked at anew.
func (k *sinkState) again(p *proc) {
	p.sent, p.at = delivery{}, working
	switch {
	case p.rest:
		p.at = behind
	case p.live == none:
		p.at = following
	}
}

func (k *sinkState) release(i int) {
	if k.holder == int8(i) {
		k.holder = none
	}
}

// forget is what the sink's system does when a process has died.
func (k *sinkState) forget(i int) { k.release(i) }

// explain is rule D4.
func (k *sinkState) explain(w *moment, i int, p *proc) bool {
	switch {
	case w.behind(i, p):
		w.say("%s reads that the job goes on without it, and ends", w.nameOf(i))
		w.end(i, down)
	case w.left.loss == w.s.left.loss:
		return w.breaks("%s and the sink disagree, and nothing has been lost", w.nameOf(i))
	default:
		w.say("%s stops the job, and says why", w.nameOf(i))
		w.stopped = true
	}
	return true
}

// apply makes rows that everybody sees.
func (k *sinkState) apply(w *moment, d delivery, rows []row) {
	k.rows = append(k.rows[:len(k.rows):len(k.rows)], rows...)
	id := k.record.id
	if id == "" {
		id = "made late"
	}
	k.record = remembered{there: true, at: d.to, id: id, entry: d.entry, by: w.logOf(d.entry.Branch)}
	k.check(w)
}

// check holds the sink's rows against the chain: each position's, once, in order, from
// the generation that holds it.
func (k *sinkState) check(w *moment) {
	var want []row
	for _, e := range w.fillers(k.record.by) {
		want = append(want, row{e.Position, 0, e.id})
	}
	for e := range w.owedToSink() {
		for part := range w.s.parts {
			want = append(want, row{e.Position, part, e.id})
		}
	}
	for n, r := range k.rows {
		switch {
		case n < len(want) && r == want[n]:
			continue
		case n < len(want) && r.to == want[n].to && r.part == want[n].part:
			w.breaks("the sink has other rows of position %d than its epoch", r.to)
		default:
			w.breaks("the sink has %s: not each position once and in order", told(k.rows))
		}
	}
}

func told(rows []row) string {
	s := "positions"
	for _, r := range rows {
		s += fmt.Sprintf(" %d", r.to)
		if r.part > 0 {
			s += fmt.Sprintf("(part %d)", r.part+1)
		}
	}
	return s
}

// databaseStep locks the row and reads it, then writes and commits.
func (k *sinkState) databaseStep(w *moment, i int, p *proc) bool {
	if p.at == delivering {
		if k.record.there && k.holder != none {
			return false
		}
		if k.record.there {
			k.holder = int8(i)
		}
		return k.decideNow(w, i, p)
	}
	lateRow := w.s.off("H6, D2: the row comes with the first delivery")
	if k.holder != int8(i) && !lateRow {
		w.say("%s finds its session ended", w.nameOf(i))
		k.again(p)
		return true
	}
	switch k.doubtful(w, 3) {
	case 0:
		w.say("%s commits %s, part %d", w.nameOf(i), p.sent.entry, p.sent.part+1)
		k.apply(w, p.sent, []row{{p.sent.entry.Position, p.sent.part, p.sent.entry.id}})
		k.done(w, i, p)
	case 1:
		w.say("%s commits %s, and the answer is lost", w.nameOf(i), p.sent.entry)
		k.apply(w, p.sent, []row{{p.sent.entry.Position, p.sent.part, p.sent.entry.id}})
		k.release(i)
		k.again(p)
	case 2:
		w.say("%s commits %s, and the call is lost", w.nameOf(i), p.sent.entry)
		k.release(i)
		k.again(p)
	}
	return true
}

// doubtful is how the end of a delivery goes: 0 is well.
func (k *sinkState) doubtful(w *moment, ways int) int {
	if w.left.doubt == 0 {
		return 0
	}
	way := w.c.pick(ways)
	if way > 0 {
		w.left.doubt--
	}
	return way
}

// transactional is the id that a process gives to its transactions.
func transactional(w *moment, i int) int8 {
	if w.s.off("H4: a transactional id of the process's own") {
		return int8(i + 1)
	}
	return 0
}

// brokerStep starts the producer, reads the progress, writes in parts, and ends.
func (k *sinkState) brokerStep(w *moment, i int, p *proc) bool {
	id, d := transactional(w, i), &p.sent
	early := w.s.off("H3: the progress is read before the producer is started")
	if p.at == delivering {
		if (d.producer == 0) != early {
			k.startProducer(w, i, p, id)
			if early {
				p.at = applying
			}
			return true
		}
		if k.decideNow(w, i, p); p.at == applying && early {
			p.at, d.producer = delivering, 99
		}
		return true
	}
	if k.producers[id] != d.producer {
		w.say("%s is fenced by a newer producer", w.nameOf(i))
		k.fenced(w, i, p)
		return true
	}
	if d.half < w.s.parts {
		k.writePart(w, i, p, id)
		return true
	}
	return k.endTransaction(w, i, p, id)
}

func (k *sinkState) startProducer(w *moment, i int, p *proc, id int8) {
	k.producers[id]++
	k.open = slices.DeleteFunc(slices.Clone(k.open), func(o openRows) bool { return o.id == id })
	k.ends = slices.DeleteFunc(slices.Clone(k.ends), func(e lateEnd) bool { return e.id == id })
	p.sent.producer, p.sent.half = k.producers[id], 0
	w.say("%s starts its producer", w.nameOf(i))
}

// fenced is rule D7.
func (k *sinkState) fenced(w *moment, i int, p *proc) {
	if w.behind(i, p) && !w.s.off("H18: who is fenced starts again") {
		w.say("%s reads that the job goes on without it, and ends", w.nameOf(i))
		w.end(i, down)
		return
	}
	k.again(p)
}

func (k *sinkState) writePart(w *moment, i int, p *proc, id int8) {
	d := &p.sent
	n := slices.IndexFunc(k.open, func(o openRows) bool { return o.id == id })
	k.open = slices.Clone(k.open)
	if n < 0 {
		k.open = append(k.open, openRows{id: id, producer: d.producer})
		n = len(k.open) - 1
	}
	rows := k.open[n].rows
	k.open[n].rows = append(rows[:len(rows):len(rows)], row{d.entry.Position, d.half, d.entry.id})
	d.half++
	w.say("%s writes part %d of %s", w.nameOf(i), d.half, d.entry)
}

func (k *sinkState) endTransaction(w *moment, i int, p *proc, id int8) bool {
	way := k.doubtful(w, 4)
	w.say("%s ends its transaction%s", w.nameOf(i), [...]string{"", "; the answer is lost", "; the call is lost", "; the call is late"}[way])
	if way < 2 {
		k.commit(w, id, p.sent)
	}
	switch way {
	case 0:
		k.done(w, i, p)
		return true
	case 2, 3:
		if way == 3 {
			k.ends = append(k.ends[:len(k.ends):len(k.ends)], lateEnd{id, p.sent.producer, p.sent})
		}
	}
	producer := p.sent.producer
	d := p.sent
	k.again(p)
	if w.s.off("H5: the same producer goes on") {
		d.half, d.producer = 0, producer
		p.sent, p.at = d, delivering
	}
	return true
}

// commit makes what is open visible.
func (k *sinkState) commit(w *moment, id int8, d delivery) {
	n := slices.IndexFunc(k.open, func(o openRows) bool { return o.id == id })
	if n < 0 {
		return
	}
	rows := k.open[n].rows
	k.open = slices.Delete(slices.Clone(k.open), n, n+1)
	whole := len(rows) == w.s.parts
	before := k.record
	k.apply(w, d, rows)
	if !whole { // the record comes with the last part
		k.record = before
	}
}

// folderStep lists the folder, then gives the file its name.
func (k *sinkState) folderStep(w *moment, i int, p *proc) bool {
	if p.at == delivering {
		return k.decideNow(w, i, p)
	}
	d := p.sent
	to := d.entry.Position
	w.say("%s names the file of position %d", w.nameOf(i), to)
	if !slices.Contains(k.files, to) {
		k.files = append(k.files[:len(k.files):len(k.files)], to)
	}
	if to > k.has() {
		k.apply(w, d, []row{{to, 0, d.entry.id}})
	}
	k.done(w, i, p)
	return true
}

// serve is what the sink's system does by itself: it ends idle sessions, late ends
// arrive, the consumer takes files.
func (*sinkState) serve(w *moment) bool {
	k := &w.sink
	switch {
	case k.kind == aDatabase && k.holder != none && !w.s.off("H6b: the server ends no session"):
		w.say("the server ends the session of %s", w.nameOf(int(k.holder)))
		k.holder = none
	case len(k.ends) > 0:
		e := k.ends[0]
		k.ends = slices.Clone(k.ends[1:])
		w.say("the late end of %s's transaction arrives", e.to.entry)
		if k.producers[e.id] == e.producer {
			k.commit(w, e.id, e.to)
		}
	case k.kind == aFolder:
		return k.consume(w)
	default:
		return false
	}
	return true
}

// consume is H23's contract: the newest file stays, and what is not above the highest
// taken is no news.
func (k *sinkState) consume(w *moment) bool {
	var left []Position
	for _, f := range k.files {
		switch {
		case f == slices.Max(k.files):
			left = append(left, f)
		case f > k.taken:
			k.taken = f
			w.say("the consumer takes the file of position %d", f)
		case w.s.off("H23: a consumer takes what it sees"):
			w.breaks("the consumer gets position %d twice", f)
		}
	}
	if len(left) == len(k.files) {
		return false
	}
	k.files = left
	return true
}

// lose is what happens to sinks that are not looked after, and to stores.
func (*sinkState) lose(w *moment) bool {
	k := &w.sink
	way := w.c.pick(3)
	w.left.loss--
	switch {
	case way == 0 && k.record.there:
		w.say("the sink loses its record")
		k.record, k.holder = remembered{}, none
	case way == 1 && len(k.rows) > w.s.parts:
		w.say("the sink goes back to position 1")
		k.rows, k.holder = k.rows[:w.s.parts], none
		k.record.at, k.record.entry = Place{Position: 1}, w.position(1)
	case way == 2:
		return w.storeBack()
	default:
		return false
	}
	return true
}

// storeBack puts a copy of the store in its place, which lacks main's last epoch.
func (w *moment) storeBack() bool {
	l := &w.logs[0]
	n := len(l.truth) - 1
	if len(w.live) > 1 || n < 1 || l.truth[n].Kind != Data || len(w.late) > 0 {
		return false
	}
	w.say("the store goes back to before %s, and all processes are started anew", l.truth[n])
	l.truth, l.held = l.truth[:n:n], l.held[:n:n]
	for i := range w.procs {
		w.end(i, down)
	}
	return true
}
