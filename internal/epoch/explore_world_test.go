package epoch

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// logEntry is a manifest with its bytes, the same one wherever it stands.
type logEntry struct {
	Manifest
	hash string
	data []byte
	id   int32
}

// generation is a live record with its bytes.
type generation struct {
	LiveRecord
	data []byte
	id   int32
}

// logOf is a branch, whose log is that of its only task.
type logOf struct {
	begun bool // it has a record
	from  *logEntry
	held  []*logEntry // what stands under each name
	floor Epoch
	// truth is what ever counted: every entry whose name was no freed one.
	truth []*logEntry
	given bool // a person gave the branch up
}

// pinOf is a branch's pin.
type pinOf struct {
	holder, log int8
	epoch       Epoch
}

// lateCreate is a create that its process has given up, and that may land.
type lateCreate struct {
	entry *logEntry
	live  *generation
}

// moment is a state.
type moment struct {
	s        *setting
	logs     []logOf
	live     []*generation
	procs    []proc
	late     []lateCreate
	pins     []pinOf
	objects  []int32 // that are there, sorted
	sink     sinkState
	left     failures
	replaced uint8 // builds that another has replaced, by their number
	harm     string
	stopped  bool // the job has stopped, and said why

	c     *chooser
	by    act
	words *[]string
}

// act is a move: whose, and which.
type act struct{ kind, who uint8 }

const (
	stepping   uint8 = iota // a process takes a step
	crashing                // it is killed
	hanging                 // it is stopped
	restarting              // it is started again
	landing                 // a late create lands
	serving                 // the sink's system does something by itself
	losing                  // and something happens to it
)

var (
	explored1 = Build{Executable: "one", Version: "1"}
	explored2 = Build{Executable: "two", Version: "1"}
	explored3 = Build{Executable: "three", Version: "2"}
	numbered  = []Build{explored1, explored2, explored3}
)

// newMoment is the state at the beginning: main has a base, and is live.
func newMoment(s *setting) *moment {
	if s.entries == nil {
		s.entries, s.lives, s.ids = map[string]*logEntry{}, map[string]*generation{}, map[string]int32{}
		s.batch, s.parts, s.most = max(s.batch, 1), max(s.parts, 1), max(s.most, 1)
	}
	w := &moment{s: s, logs: make([]logOf, len(s.branches)), left: s.left}
	base := Manifest{Kind: Base, Owner: s.roles[0].name + ".1", Version: "1", Build: explored1, Sources: w.sourcesAt(0, explored1), State: stateOf("1:", "", explored1)}
	if s.sink != noSink && !s.fresh {
		base.Sinks = map[string]SinkState{"out": {}}
	}
	w.identify(&base, 0, 0, "")
	first := s.entry(base)
	w.logs[0] = logOf{begun: true, held: []*logEntry{first}, truth: []*logEntry{first}}
	w.live = []*generation{s.generation(LiveRecord{Kind: First, Branch: MainBranch, Covers: map[string]Epoch{FirstTask: 0}})}
	for _, r := range s.roles {
		p := proc{life: 1, at: r.begins, branch: r.branch, live: none}
		if r.owns {
			p.at, p.branch, p.head, p.live = working, 0, first, 0
		}
		if r.dead {
			p = proc{life: 1, end: gone, live: none}
		}
		w.procs = append(w.procs, p)
	}
	w.sink.begin(s)
	return w
}

const none = -1

// clone copies what a step may change in place; slices are copied when they are.
func (w *moment) clone() *moment {
	n := *w
	n.logs, n.procs = slices.Clone(w.logs), slices.Clone(w.procs)
	return &n
}

// next are all the states behind one step.
func (w *moment) next(yield func(*moment) bool) {
	for _, a := range w.acts() {
		c := &chooser{}
		for more := true; more; more = c.turn() {
			n := w.clone()
			n.c, n.by = c, a
			if n.do(a) && !yield(n) {
				return
			}
		}
	}
}

// acts are the moves that may be possible.
func (w *moment) acts() (all []act) {
	for i, p := range w.procs {
		who := uint8(i)
		switch {
		case p.end == gone || p.end == hung:
		case p.end == down:
			all = append(all, act{restarting, who})
		default:
			all = append(all, act{stepping, who})
			if w.left.crash > 0 && w.begun(i) && (w.s.mayKill == nil || w.s.mayKill(w)) {
				all = append(all, act{crashing, who})
			}
			if w.left.hang > 0 {
				all = append(all, act{hanging, who})
			}
		}
	}
	for i := range w.late {
		all = append(all, act{landing, uint8(i)})
	}
	all = append(all, act{kind: serving})
	if w.left.loss > 0 {
		all = append(all, act{kind: losing})
	}
	return all
}

// begun tells whether there is anything that a process would lose.
func (w *moment) begun(i int) bool {
	p, r := w.procs[i], w.s.roles[i]
	return r.begins != choosing && (p.at != r.begins || p.head != nil) && (r.after == nil || r.after(w))
}

// do makes a move; false if it isn't possible.
func (w *moment) do(a act) bool {
	switch a.kind {
	case stepping:
		if after := w.s.roles[a.who].after; after != nil && !after(w) {
			return false
		}
		return w.step(int(a.who))
	case crashing:
		w.left.crash--
		w.say("%s is killed", w.nameOf(int(a.who)))
		w.end(int(a.who), down)
	case hanging:
		w.left.hang--
		w.say("%s is stopped, and hangs", w.nameOf(int(a.who)))
		w.procs[a.who].end = hung
	case restarting:
		return w.restart(int(a.who))
	case landing:
		late := w.late[a.who]
		w.late = slices.Delete(slices.Clone(w.late), int(a.who), int(a.who)+1)
		if late.entry != nil {
			w.say("the late create of %s lands", late.entry.name())
			w.land(late.entry)
		} else {
			w.say("the late create of live/%d (%s) lands", late.live.N, late.live.Branch)
			w.landLive(late.live)
		}
	case serving:
		return w.sink.serve(w)
	case losing:
		return w.sink.lose(w)
	}
	return true
}

// end ends a process, which loses its memory.
func (w *moment) end(i int, how ending) {
	w.sink.forget(i)
	w.procs[i] = proc{life: w.procs[i].life, end: how, live: none}
}

func (w *moment) restart(i int) bool {
	r := w.s.roles[i]
	if r.stays || w.procs[i].end != down {
		return false
	}
	w.procs[i] = proc{life: w.procs[i].life + 1, at: r.begins, branch: r.branch, live: none}
	w.say("%s is started again", w.nameOf(i))
	return true
}

func (w *moment) say(format string, args ...any) {
	if w.words != nil {
		*w.words = append(*w.words, fmt.Sprintf(format, args...))
	}
}

// breaks says that a promise is broken.
func (w *moment) breaks(format string, args ...any) bool {
	if w.harm == "" {
		w.harm = fmt.Sprintf(format, args...)
	}
	return true
}

func (w *moment) nameOf(i int) string { return w.s.roles[i].name }

func (e *logEntry) name() string { return fmt.Sprintf("%s/%d", e.Branch, e.Epoch) }

// String says what an entry is.
func (e *logEntry) String() string {
	s := fmt.Sprintf("%s (%s", e.name(), e.Kind)
	if e.Kind == Data {
		s += fmt.Sprintf(", position %d", e.Position)
	}
	if e.Live != nil {
		s += fmt.Sprintf(", live %d", *e.Live)
	}
	return s + ")"
}

// identify says which entry a manifest is, and whose; nothing else may differ between
// two processes that do the same.
func (w *moment) identify(m *Manifest, log int8, e Epoch, parent string) {
	m.Format, m.JobID, m.Branch, m.Task, m.Epoch, m.Parent = Format, "j", w.s.branches[log], FirstTask, e, parent
}

func (w *moment) logOf(branch string) int8 { return int8(slices.Index(w.s.branches, branch)) }

// at is what stands under a name.
func (l *logOf) at(e Epoch) *logEntry {
	if e < Epoch(len(l.held)) {
		return l.held[e]
	}
	return nil
}

// counts tells whether an entry belongs to its log.
func (w *moment) counts(e *logEntry) bool {
	l := &w.logs[w.logOf(e.Branch)]
	return e.Epoch < Epoch(len(l.truth)) && l.truth[e.Epoch] == e
}

// headOf is the end of a log, as it is read; a zero one if there is nothing, gone if it
// was all cleaned away.
func (w *moment) headOf(log int8) (head Head, last *logEntry, isGone bool) {
	l := &w.logs[log]
	if l.floor == AllEpochs {
		return Head{Seal: &Manifest{Kind: Seal, Branch: w.s.branches[log], Task: FirstTask}}, nil, true
	}
	var seal *logEntry
	for e := range slices.Backward(l.held) {
		last = l.held[e]
		if last == nil || Epoch(e) < l.floor && seal == nil {
			last = nil
			continue
		}
		if last.Kind == Seal && seal == nil {
			seal, last = last, nil
			continue
		}
		break
	}
	if last != nil {
		head.Manifest, head.Hash = last.Manifest, last.hash
	}
	if seal != nil {
		head.Seal = &seal.Manifest
	}
	return head, last, false
}

// land puts an entry under its name, if that is free.
func (w *moment) land(e *logEntry) Answer {
	l := &w.logs[w.logOf(e.Branch)]
	if l.at(e.Epoch) != nil {
		return Taken
	}
	held := slices.Clone(l.held)
	for Epoch(len(held)) <= e.Epoch {
		held = append(held, nil)
	}
	held[e.Epoch] = e
	l.held = held
	if e.Epoch < l.floor {
		return Created // at a name that was freed
	}
	switch {
	case e.Epoch != Epoch(len(l.truth)):
		w.breaks("%s stands behind nothing", e.name())
	case e.Epoch > 0 && l.truth[e.Epoch-1].hash != e.Parent:
		w.breaks("%s does not go on from the %s before it", e, l.truth[e.Epoch-1])
	}
	l.truth = append(slices.Clone(l.truth), e)
	if e.Live != nil && (int(*e.Live) >= len(w.live) || w.live[*e.Live].Branch != e.Branch) {
		w.breaks("%s is written under a generation that is another branch's", e)
	}
	w.checkState(e)
	w.checkOwner(e)
	w.checkInputs()
	w.checkNeeded()
	return Created
}

// landLive creates a live record.
func (w *moment) landLive(g *generation) Answer {
	if int(g.N) < len(w.live) {
		return Taken
	}
	before := w.live[len(w.live)-1]
	w.live = append(slices.Clone(w.live), g)
	w.rules(g, before)
	if _, err := w.chain(); err != nil {
		w.breaks("the chain of live records is broken: %v", err)
	}
	w.checkInputs()
	w.checkNeeded()
	return Created
}

// records are the live records.
func (w *moment) records() []LiveRecord {
	all := make([]LiveRecord, len(w.live))
	for i, g := range w.live {
		all[i] = g.LiveRecord
	}
	return all
}

func (w *moment) chain() ([]Link, error) { return ChainOf(w.records(), FirstTask) }

func (w *moment) newest() *generation { return w.live[len(w.live)-1] }

// liveEntries goes through the data epochs that count as live, in the order of their
// generations: each of a branch's under its number.
func (w *moment) liveEntries() iter.Seq2[*logEntry, *logEntry] {
	return func(yield func(before, e *logEntry) bool) {
		for _, g := range w.live {
			truth := w.logs[w.logOf(g.Branch)].truth
			for i, e := range truth {
				if e.Kind == Data && e.Live != nil && *e.Live == g.N && !yield(truth[i-1], e) {
					return
				}
			}
		}
	}
}

// position is the live data epoch of a position.
func (w *moment) position(p Position) *logEntry {
	for _, e := range w.liveEntries() {
		if e.Position == p {
			return e
		}
	}
	return nil
}

// mark is what a record leaves in the state: with the clock of its epoch, where each
// epoch reads one record.
func (w *moment) mark(record int64) string { return w.markAt(record, record) }

func (w *moment) markAt(record, now int64) string {
	if w.s.batch > 1 {
		return fmt.Sprintf(" %d", record)
	}
	return fmt.Sprintf(" %d@%d", record, now)
}

// valueAt is the state that comes of the records up to one.
func (w *moment) valueAt(next int64) (value string) {
	for r := int64(1); r <= next; r++ {
		if int(r) == w.s.forget {
			value = ""
		}
		value += w.mark(r)
	}
	return value
}

// deleted is a state without what was read.
func deleted(value string) string { return value[:2] }

// stateOf is a state with a value, which begins with the version of its form.
func stateOf(value, path string, by Build) map[string]StateEntry {
	s := StateEntry{Key: by.Version}
	s.Segments = []Segment{{Path: path, SHA256: value}}
	return map[string]StateEntry{"sums": s}
}

func valueOf(m Manifest) string { return m.State["sums"].Segments[0].SHA256 }

// sourcesAt are the sources at a record; where builds differ each has one of its own.
func (w *moment) sourcesAt(next int64, by Build) map[string]SourceState {
	all := map[string]SourceState{"orders": {Partitions: map[string]Offset{"0": {Next: next}}}}
	if w.s.foreign {
		all["only of "+by.Executable] = SourceState{Partitions: map[string]Offset{"0": {Next: 7}}}
	}
	return all
}

// boxOf is the object with an epoch's outputs; "" if it has none.
func boxOf(m Manifest) string {
	for _, o := range m.Sinks["out"].Outbox {
		return o.Path
	}
	return ""
}

func (w *moment) there(path string) bool {
	_, ok := slices.BinarySearch(w.objects, w.s.id(path))
	return path == "" || ok
}

func (w *moment) write(path string) {
	if id := w.s.id(path); !w.there(path) {
		at, _ := slices.BinarySearch(w.objects, id)
		w.objects = slices.Insert(slices.Clone(w.objects), at, id)
	}
}

func (w *moment) remove(path string) {
	if at, ok := slices.BinarySearch(w.objects, w.s.id(path)); ok {
		w.objects = slices.Delete(slices.Clone(w.objects), at, at+1)
	}
}

// key is a state as bytes, equal for equal states.
func (w *moment) key(b []byte) []byte {
	for i := range w.logs {
		l := &w.logs[i]
		b = appendInt(b, bit(l.begun)|bit(l.given)<<1, int(l.floor), len(l.held), len(l.truth), l.from.number())
		for _, e := range l.held {
			b = appendInt(b, e.number())
		}
		for _, e := range l.truth {
			b = appendInt(b, e.number())
		}
	}
	b = appendInt(b, len(w.live), len(w.late), len(w.pins), len(w.objects))
	for _, g := range w.live {
		b = appendInt(b, int(g.id))
	}
	late := slices.Clone(w.late)
	slices.SortFunc(late, func(a, b lateCreate) int { return a.number() - b.number() })
	for _, l := range late {
		b = appendInt(b, l.number())
	}
	for _, p := range w.pins {
		b = appendInt(b, int(p.holder), int(p.log), int(p.epoch))
	}
	for _, o := range w.objects {
		b = appendInt(b, int(o))
	}
	for i := range w.procs {
		b = w.procs[i].key(w.s, b)
	}
	b = w.sink.key(w.s, b)
	b = append(b, w.left.crash, w.left.hang, w.left.create, w.left.doubt, w.left.hasty, w.left.loss, w.replaced, byte(bit(w.stopped)))
	return append(b, w.harm...)
}

func (e *logEntry) number() int {
	if e == nil {
		return 0
	}
	return int(e.id)
}

func (l lateCreate) number() int {
	if l.live != nil {
		return -int(l.live.id)
	}
	return l.entry.number()
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

func appendInt(b []byte, all ...int) []byte {
	for _, n := range all {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

// withOut is a manifest's sinks with one of them changed.
func withOut(sinks map[string]SinkState, change func(*SinkState)) map[string]SinkState {
	all := maps.Clone(sinks)
	if s, ok := all["out"]; ok {
		change(&s)
		all["out"] = s
	}
	return all
}

// ownedBy tells which process, and which of its lives, an owner's id names.
func (w *moment) ownedBy(owner string) (i int, alive bool) {
	name, life, _ := strings.Cut(owner, ".")
	i = slices.IndexFunc(w.s.roles, func(r role) bool { return r.name == name })
	if i < 0 {
		return i, false
	}
	p := w.procs[i]
	return i, strconv.Itoa(int(p.life)) == life && p.end == up
}
