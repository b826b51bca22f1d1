package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/window"
)

// sharing is an operator whose windows share what is theirs together: a record is
// folded into one pane, and a window's value is that of its panes when it closes. The
// entries of the state are panes, which go with the last window that they are in.
//
// Which windows have closed is told by the time alone, and a window is there if one of
// its panes is; so that panes are all that has to be kept. No pane of a window that
// has closed changes any more: a record in it would be in that window, and is late.
//
// A pane is known by its key and its bounds. Two definitions can have panes of the same
// bounds: those of one must go before those of the other come.
type sharing[K comparable, S, T any] struct {
	windows[K, S, T]
	pane, other located // of the last record, and of the last one that was in another

	keys map[K]uint32 // their numbers in held
	held []paned[S]
	free []uint32 // numbers that may be used again

	turns turns    // keys of which windows close in one slot, by their ranks among those in ready
	same  []uint32 // ranks of those whose windows end at one time
}

// located is a pane, and when its first window ends.
type located struct {
	window.Span
	first int64
}

// paned is a key with panes.
type paned[S any] struct {
	panes []pane[S] // by their times
	due   int64     // when its next window or pane ends; notDue: it has none
}

// notDue is behind all that is due.
const notDue = math.MaxInt64

// pane is an entry of the table. Beside it stands what was worked out of a piece of time
// that the pane divides; see [sharing.join].
type pane[S any] struct {
	start  int64
	entry  uint32
	known  bool
	joined S
}

// sharePanes makes the windows share their panes.
func sharePanes[K comparable, S, T any](w *windows[K, S, T]) *sharing[K, S, T] {
	p := &sharing[K, S, T]{windows: *w, keys: map[K]uint32{}}
	p.table.whenLoaded, p.table.meets = p.loaded, p.meets
	p.table.observer = p.observe
	return p
}

// paneSize is what a pane takes in memory beside its entry, about.
func paneSize[S any]() int { return int(unsafe.Sizeof(pane[S]{})) }

// panesOnly decodes the rows of a table, and refuses those that are no panes: a window,
// say, that was imported.
func panesOnly[K comparable, S any](t *TableSpec[In[K], S], windows *window.Definition) func(*state.Entry) (In[K], uint64, error) {
	decode := t.decodeRow
	return func(e *state.Entry) (In[K], uint64, error) {
		r, hash, err := decode(e)
		if pane, ok := windows.Pane(int64(r.Window.Start)); err == nil && (!ok || pane != spanOf(r.Window)) {
			err = &StateError{State: t.Name, Key: fmt.Sprint(r.Key), Cause: fmt.Errorf("there is an entry for [%d, %d), expected one of the panes that the %s windows share, here [%d, %d): what is put into this state has to be of these", r.Window.Start, r.Window.End, windows.Kind, pane.Start, pane.End)}
		}
		return r, hash, err
	}
}

// take puts what has come into the pane of its time.
func (p *sharing[K, S, T]) take(a taken[S, T]) {
	p.in.operator = p.Table.Operator
	t, ok := p.time()
	if !ok {
		p.lose(a, &p.losses.untimed)
		return
	}
	if !p.pane.Holds(t) && !p.find(t) {
		p.in.Fail(p.Table.Operator, p.Windows.Refusal(t))
		return
	}
	if p.closed(p.pane.first) {
		p.lose(a, &p.losses.late)
		return
	}
	p.see(t)
	at := windowOf(p.pane.Span)
	n, e := p.table.enterRow(windowHash(p.key.Hash, at), In[K]{p.key.Key, at})
	isNew := !e.present
	p.add(e, a)
	if isNew {
		p.enter(p.key.Key, n)
	}
}

// meets is the hash of the pane that a key's record of a time is likely to meet.
func (p *sharing[K, S, T]) meets(key uint64, t int64) uint64 {
	pane := p.pane.Span
	if p.other.Holds(t) {
		pane = p.other.Span
	}
	return windowHash(key, windowOf(pane))
}

// find finds the pane of a time. Times come out of order, so that two panes are remembered.
func (p *sharing[K, S, T]) find(t int64) bool {
	p.pane, p.other = p.other, p.pane
	if p.pane.Holds(t) {
		return true
	}
	pane, ok := p.Windows.Pane(t)
	if !ok {
		return false
	}
	first, _ := p.Windows.NextWindow(t, math.MinInt64) // who has a pane has windows
	p.pane = located{pane, first.End}
	return true
}

// enter notes a pane that has come.
func (p *sharing[K, S, T]) enter(key K, entry uint32) {
	number := p.number(key)
	k := &p.held[number]
	start := int64(p.table.at(entry).row.Window.Start)
	k.panes = slices.Insert(k.panes, placeOf(k.panes, start), pane[S]{start: start, entry: entry})
	if due := p.next(k, p.bound()); due < k.due {
		k.due = due
		p.due.add(due, number)
	}
}

// number is a key's number.
func (p *sharing[K, S, T]) number(key K) uint32 {
	number, ok := p.keys[key]
	if ok {
		return number
	}
	if last := len(p.free) - 1; last >= 0 {
		number, p.free = p.free[last], p.free[:last]
	} else {
		number = uint32(len(p.held))
		p.held = append(p.held, paned[S]{due: notDue})
	}
	p.keys[key] = number
	return number
}

// release gives up a key that has no panes.
func (p *sharing[K, S, T]) release(key K, number uint32) {
	delete(p.keys, key)
	p.held[number] = paned[S]{due: notDue}
	p.free = append(p.free, number)
}

// placeOf is the place of the first of some panes that begins at an instant or later.
func placeOf[S any](panes []pane[S], at int64) int {
	if n := len(panes); n == 0 || panes[n-1].start < at {
		return n
	}
	return sort.Search(len(panes), func(i int) bool { return panes[i].start >= at })
}

// nextWindow is the first of a key's windows that end after an instant. It is that of
// its first pane which has one: those of later ones end no earlier.
func (p *sharing[K, S, T]) nextWindow(k *paned[S], after int64) (next window.Span, ok bool) {
	if next, ok = p.Windows.NextWindow(k.panes[0].start, after); ok {
		return next, true
	}
	i := sort.Search(len(k.panes), func(i int) bool {
		_, ok := p.Windows.NextWindow(k.panes[i].start, after)
		return ok
	})
	if i == len(k.panes) {
		return window.Span{}, false
	}
	return p.Windows.NextWindow(k.panes[i].start, after)
}

// next is when the first of a key's windows ends of those that end after an instant, or
// its first pane goes.
func (p *sharing[K, S, T]) next(k *paned[S], after int64) int64 {
	due, _ := p.Windows.LastEnd(k.panes[0].start)
	if next, ok := p.nextWindow(k, after); ok {
		due = min(due, next.End)
	}
	return due
}

// loaded notes the panes that were stored.
func (p *sharing[K, S, T]) loaded() {
	for n := range p.table.made {
		if e := p.table.at(n); e.present {
			p.brought(e)
			k := &p.held[p.number(e.row.Key)]
			k.panes = append(k.panes, pane[S]{start: int64(e.row.Window.Start), entry: n})
		}
	}
	for number := range p.held {
		k := &p.held[number]
		slices.SortFunc(k.panes, func(a, b pane[S]) int { return cmp.Compare(a.start, b.start) })
		k.due = p.next(k, p.closedBefore)
		p.due.add(k.due, uint32(number))
	}
}

// observe is told of panes that go otherwise than by time. That is what is deleted by
// request, which is all that a key has.
func (p *sharing[K, S, T]) observe(r In[K], _ uint64, added bool) {
	if number, ok := p.keys[r.Key]; ok && !added {
		p.release(r.Key, number)
	}
}

func (p *sharing[K, S, T]) nextTick() int64 {
	if !p.processing() {
		return never
	}
	return p.due.soonest(func(d due) bool { return p.held[d.number].due == d.at })
}

// pass closes the windows whose time has passed: by slot, in a slot by time, and of one
// time by key.
func (p *sharing[K, S, T]) pass(in *Instance) {
	bound := p.bound()
	all := p.due.take(bound, p.ready[:0])
	ready, first := all[:0], p.over[:0]
	for _, d := range all {
		if k := &p.held[d.number]; k.due == d.at { // otherwise it has gone, or is due at another time
			k.due = notDue
			ready, first = append(ready, d), append(first, k.panes[0].entry)
		}
	}
	p.ready, p.over, p.slot = ready, first, -1
	if len(ready) == 0 {
		return
	}
	for rest := p.table.inOrder(first); len(rest) > 0 && in.failed == nil; {
		same := firstSlot(rest)
		rest = rest[len(same):]
		p.closeInSlot(same, bound)
	}
}

// closeInSlot closes windows of the keys of a slot. These are given by their places in
// ready, and are in their order.
func (p *sharing[K, S, T]) closeInSlot(keys []placed, bound int64) {
	for rank, k := range keys {
		p.turns.add(p.ready[k.at].at, uint32(rank))
	}
	for {
		first, ok := p.turns.next(bound)
		if !ok {
			return
		}
		same := append(p.same[:0], first.number)
		for d, ok := p.turns.next(first.at); ok; d, ok = p.turns.next(first.at) {
			same = append(same, d.number)
		}
		p.same = same
		slices.Sort(same)
		for _, rank := range same {
			number := p.ready[keys[rank].at].number
			next := p.close(number, first.at)
			switch {
			case p.in.failed != nil:
				return
			case next <= bound:
				p.turns.add(next, rank)
			case next != notDue:
				p.held[number].due = next
				p.due.add(next, number)
			}
		}
	}
}

// close closes the window of a key that ends then, if there is one, and lets go the panes
// that are in no other window. It tells when something is due with the key next.
func (p *sharing[K, S, T]) close(number uint32, end int64) (next int64) {
	k := &p.held[number]
	key := p.table.at(k.panes[0].entry).row.Key
	if p.results != nil {
		if at, ok := p.nextWindow(k, end-1); ok && at.End == end {
			hash := p.table.at(k.panes[0].entry).hash
			p.putOut(hash, In[K]{key, windowOf(at)}, p.join(k, placeOf(k.panes, at.Start), placeOf(k.panes, at.End), at))
			if p.in.failed != nil {
				return notDue
			}
		}
	}
	for len(k.panes) > 0 {
		if last, _ := p.Windows.LastEnd(k.panes[0].start); last > end {
			return p.next(k, end)
		}
		p.table.finish(k.panes[0].entry)
		k.panes[0] = pane[S]{}
		k.panes = k.panes[1:]
	}
	p.release(key, number)
	return notDue
}

// join is what some panes of a key, those of a window, come to.
//
// Two neighbouring pieces of time of 2^n microseconds each, the first of which begins at
// a multiple of 2^(n+1), are always put together before anything else is put to them.
// So the order of the merges depends on the times of the panes alone, and what a piece
// that lies in one window has come to is there for those that follow. It is kept with
// the first pane of the second half; no pane comes into such a piece any more.
func (p *sharing[K, S, T]) join(k *paned[S], from, to int, in window.Span) S {
	if to-from == 1 {
		return p.Table.own(p.table.at(k.panes[from].entry).value)
	}
	last := k.panes[to-1].start
	half := int64(1) << (bits.Len64(uint64(k.panes[from].start^last)) - 1)
	middle := last &^ (half - 1)
	at := from + 1 + placeOf(k.panes[from+1:to], middle)
	whole := half > 0 && middle-in.Start >= half && in.End-middle >= half
	if whole && k.panes[at].known {
		return p.Table.own(k.panes[at].joined)
	}
	value, other := p.join(k, from, at, in), p.join(k, at, to, in)
	p.Merge(&value, &other)
	if whole {
		k.panes[at].joined, k.panes[at].known = p.Table.own(value), true
	}
	return value
}
