package engine

import (
	"cmp"
	"slices"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/window"
)

// WindowSpec describes an operator that folds records by key and window.
type WindowSpec[K comparable, S, T any] struct {
	// Table is the state; its entries are the windows that may still change, or the
	// panes that these share.
	Table *TableSpec[In[K], S]
	// Windows says which windows a time is in.
	Windows *window.Definition
	// Allowed is how long a window waits for late records behind its end, in
	// microseconds.
	Allowed int64
	// Fold folds a record into a window's value, and Merge makes one value of two, the
	// later window's being the other's; nil: that can't be done.
	Fold  func(*S, T)
	Merge func(*S, *S)
	// Ahead tells that records are folded before they are sent to the key's shard, and
	// what comes of that is merged there. Merge is needed, and Late gets nothing then.
	Ahead bool
	// Results is where what a window has come to arrives, once it can't change any more.
	Results *Node[Result[K, S]]
	// Firings is where it arrives before that, too.
	Firings *Firings[K, S]
	// Late is where records arrive that came too late, or have no time.
	Late *Node[T]
}

// Result is what a window has come to.
type Result[K comparable, S any] struct {
	Key    K
	Window Window
	Value  S
}

// succession is the definitions in force, given how far the windows have come.
func (w *WindowSpec[K, S, T]) succession(at epoch.Windows) window.Succession {
	if at.Succession != nil {
		return *at.Succession
	}
	return window.Begin(w.Windows)
}

// last is where the last window ends that a time up to the latest one seen is in.
func (w *WindowSpec[K, S, T]) last(at epoch.Windows) int64 {
	seen := int64(at.Seen)
	end := seen + 1
	spans, _ := w.succession(at).Append(nil, seen)
	for _, s := range spans {
		end = max(end, s.End)
	}
	if w.Table.Panes { // a window may begin with a pane, and end as late as its last one says
		if pane, ok := w.Windows.Pane(seen); ok {
			if last, ok := w.Windows.LastEnd(pane.Start); ok {
				end = max(end, last)
			}
		}
	}
	return end
}

// processing tells whether the windows are of the epoch's clock.
func (w *WindowSpec[K, S, T]) processing() bool { return w.Windows.Clock == window.ProcessingTime }

// AddWindows adds an operator that folds each record of keyed into the windows of its
// key that its time is in.
func AddWindows[K comparable, S, T any](g *Graph, keyed Keyed[K, T], spec *WindowSpec[K, S, T]) {
	if spec.processing() {
		g.ticks = true
	}
	if spec.Table.Panes {
		spec.Table.entrySize += paneSize[S]()
		spec.Table.decodeRow = panesOnly(spec.Table, spec.Windows)
	}
	g.windowed = append(g.windowed, &windowedSpec{spec.Table.Operator, keyed.Stage.Times, spec.processing(), spec.Allowed, spec.last})
	takes := func(in *Instance) func(taken[S, T]) {
		return sharedPart(in, spec, "windows", func() func(taken[S, T]) { return openWindows(in, keyed, spec) })
	}
	keyed.Node.Consume(func(in *Instance) func(*T) {
		take := takes(in)
		if spec.Ahead {
			return nil
		}
		return func(v *T) { take(taken[S, T]{record: v}) }
	})
	if spec.Ahead {
		foldAhead(keyed.exchange, spec, takes)
	}
}

// openWindows makes the operator in one shard, and returns what takes things there.
func openWindows[K comparable, S, T any](in *Instance, keyed Keyed[K, T], spec *WindowSpec[K, S, T]) func(taken[S, T]) {
	w := &windows[K, S, T]{
		WindowSpec: spec, in: in, key: keyed.Stage.keyContext(in), table: spec.Table.table(in),
		late: spec.Late.instantiate(in), due: newDues(),
	}
	if spec.Results.Consumed() {
		w.results = spec.Results.instantiate(in)
	}
	w.firings = openFirings(in, spec.Firings)
	if in.build != nil {
		return func(taken[S, T]) {}
	}
	w.losses = in.lossesOf(spec.Table.Operator)
	w.begin()
	if spec.Table.Panes {
		p := sharePanes(w)
		in.timed = append(in.timed, p)
		return p.take
	}
	w.table.whenLoaded, w.table.meets = w.loaded, w.meets
	in.timed = append(in.timed, w)
	if spec.Windows.Kind == window.SessionKind {
		return w.takeSession
	}
	return w.take
}

// windows is the operator in one shard.
type windows[K comparable, S, T any] struct {
	*WindowSpec[K, S, T]
	in      *Instance
	key     *KeyContext[K]
	table   *Table[In[K], S]
	finder  window.Finder
	results func(*Result[K, S]) // nil: nobody wants them
	firings *firings[K, S]      // nil: likewise
	late    func(*T)
	losses  *losses
	due     dues // entries, by when something is to be done with them

	// Where windows ended that were closed when the run began, and the latest time of
	// records that were late for sessions of another gap; [connector.NoTime]: nowhere, and
	// none.
	closedBefore, lateBefore int64
	seenBefore               int64 // the latest time that had come into one

	last   Window // that a record was folded into
	ready  []due  // what is due by now
	found  []window.Span
	over   []uint32 // numbers of entries
	outs   []out    // how these are put out
	slot   int      // of the result that was put out last; -1: there is none yet
	result Result[K, S]
}

// begin has the windows go on from where they stand.
func (w *windows[K, S, T]) begin() {
	at := w.in.run.windowsOf(w.Table.Operator)
	w.closedBefore, w.lateBefore, w.seenBefore = int64(at.Closed), int64(at.Late), int64(at.Seen)
	w.finder = w.succession(at).Finder()
	if w.firings != nil {
		w.firings.passed = max(w.closedBefore, w.now())
	}
}

// windowsOf is how far an operator's windows had come when the run began.
func (r *Run) windowsOf(operator string) epoch.Windows {
	return epoch.Manifest{Windows: r.o.Windows}.WindowsOf(operator)
}

// now is the time that windows close by.
func (w *windows[K, S, T]) now() int64 {
	if w.processing() {
		return w.in.clock
	}
	return w.in.mark
}

// time is the time of the record in hand; ok is false if it has none.
func (w *windows[K, S, T]) time() (t int64, ok bool) {
	if w.processing() {
		return w.in.clock, true
	}
	return w.in.time, w.in.time != connector.NoTime
}

// bound is where windows have ended that are closed; [connector.NoTime]: nowhere yet.
func (w *windows[K, S, T]) bound() int64 {
	if now := w.now(); now != connector.NoTime {
		return max(w.closedBefore, now-w.Allowed)
	}
	return w.closedBefore
}

// closed tells whether nothing changes a window any more that ends then.
func (w *windows[K, S, T]) closed(end int64) bool {
	bound := w.bound()
	return bound != connector.NoTime && end <= bound
}

// see notes a time that is in a window.
func (w *windows[K, S, T]) see(t int64) {
	if t > w.losses.seen {
		w.losses.seen = t
	}
}

func (w *windows[K, S, T]) take(a taken[S, T]) {
	w.in.operator = w.Table.Operator
	t, ok := w.time()
	if !ok {
		w.lose(a, &w.losses.untimed)
		return
	}
	if span, ok := w.finder.One(t); ok {
		if w.closed(span.End) {
			w.lose(a, &w.losses.late)
			return
		}
		w.see(t)
		w.put(windowOf(span), a)
		return
	}
	if w.found, ok = w.finder.Append(w.found[:0], t); !ok {
		w.in.Fail(w.Table.Operator, w.Windows.Refusal(t))
		return
	}
	// A record is in all of its windows, or in none and late: so is one whose windows are
	// those of a definition that is no more.
	if len(w.found) == 0 {
		w.lose(a, &w.losses.late)
		return
	}
	for _, span := range w.found {
		if w.closed(span.End) {
			w.lose(a, &w.losses.late)
			return
		}
	}
	w.see(t)
	for _, span := range w.found {
		w.put(windowOf(span), w.again(a))
	}
}

// lose gives a record to whoever wants what is late.
func (w *windows[K, S, T]) lose(a taken[S, T], count *int64) {
	if a.record == nil {
		*count += a.partial.records
		return
	}
	*count++
	w.late(a.record)
}

// meets is the hash of the entry that a key's next record is likely to meet.
func (w *windows[K, S, T]) meets(key uint64, _ int64) uint64 {
	if w.Windows.Kind == window.SessionKind {
		return key
	}
	return windowHash(key, w.last)
}

// put puts what has come into a window.
func (w *windows[K, S, T]) put(at Window, a taken[S, T]) {
	w.last = at
	n, e := w.table.enterRow(windowHash(w.key.Hash, at), In[K]{w.key.Key, at})
	isNew := !e.present
	w.add(e, a)
	if isNew {
		w.due.add(w.next(int64(at.End)), n)
	}
	w.changed(e, n)
}

// next is when something is to be done next with an entry whose window ends then.
func (w *windows[K, S, T]) next(end int64) int64 {
	if w.firings != nil && end > w.firings.passed {
		return end
	}
	return end + w.Allowed
}

// changed notes an entry that a late record has changed.
func (w *windows[K, S, T]) changed(e *entry[In[K], S], n uint32) {
	if w.firings == nil || int64(e.row.Window.End) > w.firings.passed || e.parting&changedLate != 0 {
		return
	}
	e.parting |= changedLate
	w.firings.late = append(w.firings.late, n)
	w.in.overdue = true
}

// loaded plans what is to be done with the entries that were stored.
func (w *windows[K, S, T]) loaded() {
	for n := range w.table.made {
		if e := w.table.at(n); e.present {
			w.plan(n, e)
			w.brought(e)
		}
	}
}

// brought takes what is stored for seen where no epoch has told what was: it was brought
// in from elsewhere.
func (w *windows[K, S, T]) brought(e *entry[In[K], S]) {
	if w.seenBefore == connector.NoTime {
		w.see(int64(e.row.Window.End) - 1)
	}
}

// plan puts an entry among those to which something is to be done. A session is held
// when it is closed for as long as it takes until no record can come any more that
// would have been in it.
func (w *windows[K, S, T]) plan(n uint32, e *entry[In[K], S]) {
	end := int64(e.row.Window.End)
	if w.Windows.Kind == window.SessionKind && w.closedBefore != connector.NoTime && end <= w.closedBefore {
		w.due.add(end+w.Allowed+w.Windows.Gap, n)
		return
	}
	w.due.add(w.next(end), n)
}

func (w *windows[K, S, T]) nextTick() int64 {
	if !w.processing() {
		return never
	}
	next := w.due.soonest(func(due) bool { return true })
	if f := w.firings; f != nil && f.every > 0 && next != never {
		next = min(next, (window.FloorDivide(w.in.clock, f.every)+1)*f.every)
	}
	return next
}

// pass closes the windows whose time has passed, and puts out those that are to be put
// out before or meanwhile.
func (w *windows[K, S, T]) pass(in *Instance) {
	now := w.now()
	if now == connector.NoTime {
		return
	}
	session := w.Windows.Kind == window.SessionKind
	w.over, w.outs = w.over[:0], w.outs[:0]
	before := w.due.passed // what has closed up to there was put out then
	w.ready = w.due.take(now, w.ready[:0])
	for i, d := range w.ready {
		if i%ahead == 0 {
			w.table.fetchDue(w.ready[i:min(i+ahead, len(w.ready))])
		}
		e := w.table.at(d.number)
		end := int64(e.row.Window.End)
		closes := end + w.Allowed
		switch {
		case !e.present || e.parting&(isDone|isOut) != 0: // it has gone, or is another's number by now
		case end > now: // it was extended, or is another one by now
			w.due.add(w.next(end), d.number)
		case closes > now:
			if timing := w.firings.timing(e, now); timing != "" {
				w.out(e, d.number, out{timing: timing})
			}
			w.due.add(closes, d.number)
		case session && (closes <= before || end <= w.closedBefore): // it is only held
			if gone := closes + w.Windows.Gap; gone > now {
				w.due.add(gone, d.number)
			} else {
				w.table.finish(d.number)
			}
		default:
			w.out(e, d.number, out{w.firings.timing(e, now), true})
		}
	}
	if w.firings != nil {
		w.fire(now)
	}
	w.putOutAll()
	for i, n := range w.over {
		if in.failed != nil {
			return
		}
		e := w.table.at(n)
		e.parting &^= isOut
		if !w.outs[i].closes {
			continue
		}
		if gone := int64(e.row.Window.End) + w.Allowed + w.Windows.Gap; session && gone > now {
			w.due.add(gone, n)
		} else {
			w.table.finish(n)
		}
	}
}

// out is how an entry is put out.
type out struct {
	timing Timing // of its firing; empty: it has none
	closes bool   // it is a result
}

// out has an entry be put out.
func (w *windows[K, S, T]) out(e *entry[In[K], S], n uint32, how out) {
	e.parting |= isOut
	w.over, w.outs = append(w.over, n), append(w.outs, how)
}

// putOutAll puts out what windows have come to: by slot, and in a slot by time.
func (w *windows[K, S, T]) putOutAll() {
	if w.results == nil && w.firings == nil || len(w.over) == 0 {
		return
	}
	w.slot = -1
	for rest := w.table.inOrder(w.over); len(rest) > 0; {
		same := firstSlot(rest)
		rest = rest[len(same):]
		if len(same) > 1 {
			slices.SortStableFunc(same, func(a, b placed) int {
				return cmp.Compare(w.table.at(w.over[a.at]).row.Window.End, w.table.at(w.over[b.at]).row.Window.End)
			})
		}
		for _, p := range same {
			e, how := w.table.at(w.over[p.at]), w.outs[p.at]
			if w.firings != nil && how.timing != "" {
				w.fireOne(e, how.timing)
			}
			if w.results != nil && how.closes && w.in.failed == nil {
				w.putOut(e.hash, e.row, w.Table.own(e.value))
			}
			if w.in.failed != nil {
				return
			}
		}
	}
}

// putOut puts out what a window has come to. Results of a slot follow one another.
func (w *windows[K, S, T]) putOut(hash uint64, at In[K], value S) {
	w.stand(hash, at)
	w.result = Result[K, S]{at.Key, at.Window, value}
	w.results(&w.result)
}

// stand readies the instance to put out a window.
func (w *windows[K, S, T]) stand(hash uint64, at In[K]) {
	end := int64(at.Window.End) - 1
	if s := int(SlotOf(hash)); s != w.slot {
		w.slot = s
		w.in.fireAt(s, end)
	}
	w.in.operator, w.in.time, w.key.Key = w.Table.Operator, end, at.Key
}
