package engine

import (
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/window"
)

// partial is what records of one key were folded to before they were sent. They are of
// one batch, and in the same windows: they are late together or not at all, since
// watermarks move between batches.
type partial[S any] struct {
	records int64
	value   S
}

// taken is what comes to an operator in a shard: a record, or else a partial value.
type taken[S, T any] struct {
	record  *T
	partial *partial[S]
}

// add puts what has come into an entry.
func (w *windows[K, S, T]) add(e *entry[In[K], S], a taken[S, T]) {
	switch {
	case a.record != nil:
		w.Fold(&e.value, *a.record)
	case e.present:
		w.Merge(&e.value, &a.partial.value)
	default:
		e.value = a.partial.value
	}
	w.table.put(e)
}

// again is what has come, for one of several entries that it is put into.
func (w *windows[K, S, T]) again(a taken[S, T]) taken[S, T] {
	if a.partial != nil {
		a.partial = &partial[S]{a.partial.records, w.Table.own(a.partial.value)}
	}
	return a
}

// partials is an operator of windows in one sender of records: it holds a value for each
// key, and each piece of time within which windows are the same, that the batch in hand
// has records of. With the batch's end they are sent, in the order of their first
// records, and begin anew.
type partials[K comparable, S, T any] struct {
	*WindowSpec[K, S, T]
	in     *Instance
	to     *laneWriter[K, partial[S]]
	copy   func(T) T // nil: the type holds nothing that could be shared
	finder window.Finder
	found  []window.Span

	// The records that are not folded yet, with their times, and the pieces of time that
	// they are in; folded is which of them is being folded.
	staged  []item[K, T]
	times   []int64
	within  []window.Span
	folded  int
	hashing hashing[K]

	held   []heldPartial[K, S]
	index  []uint32 // numbers in held plus one: open addressing with linear probing
	losses losses
}

// heldPartial is a partial value on its way to be sent.
type heldPartial[K comparable, S any] struct {
	item[K, partial[S]] // in the place of its first record
	within              window.Span
	latest              int64 // time of its records
}

// foldAhead has the records of an operator folded before x sends them. takes returns
// what takes them in a shard.
func foldAhead[K comparable, S, T any](x *exchange[K, T], spec *WindowSpec[K, S, T], takes func(in *Instance) func(taken[S, T])) {
	l := newLane[K, partial[S]](x.records.stage, nil)
	l.node.Consume(func(in *Instance) func(*partial[S]) {
		take := takes(in)
		return func(p *partial[S]) {
			in.merging = true
			take(taken[S, T]{partial: p})
			in.merging = false
		}
	})
	table := func(in *Instance) tableHandle { return spec.Table.table(in) }
	x.foldedAhead = append(x.foldedAhead, foldedAhead[K, T]{
		table: table,
		start: func(in *Instance) func(pieces []pieceOf) {
			return l.applier(in, []tableHandle{table(in)}, l.node.instantiate(in)).apply
		},
		sender: func(in *Instance, lane int) func(key K, v *T) {
			p := &partials[K, S, T]{
				WindowSpec: spec, in: in, to: l.writer(in, lane), copy: x.records.copy, hashing: hashing[K]{keys: l.stage.keys},
				finder: spec.succession(in.run.windowsOf(spec.Table.Operator)).Finder(),
				losses: losses{operator: spec.Table.Operator, seen: connector.NoTime},
			}
			in.writers, in.foldsAhead = append(in.writers, p), append(in.foldsAhead, p)
			return p.take
		},
	})
}

// take takes a record. It is folded together with others, so that the memory answers for
// their keys side by side, and once it can't be taken back any more.
func (p *partials[K, S, T]) take(key K, v *T) {
	t := p.in.time
	if p.processing() {
		t = p.in.Now()
	}
	var within window.Span
	if t != connector.NoTime {
		var ok bool
		if within, ok = p.pieceOf(t); !ok {
			p.in.Fail(p.Table.Operator, p.Windows.Refusal(t))
			return
		}
	}
	if n := len(p.staged); n >= ahead && (p.in.stage != 0 || p.staged[n-1].place.record() != p.in.base.record()) {
		p.settle()
	}
	p.staged = append(p.staged, item[K, T]{p.in.next(), 0, key, *v})
	if p.copy != nil {
		last := &p.staged[len(p.staged)-1]
		last.value = p.copy(last.value)
	}
	p.times, p.within = append(p.times, t), append(p.within, within)
}

// pieceOf is a piece of time around t whose times are all in the same windows, the longest
// that is known; ok is false where the windows refuse t. That of a session is none but t,
// since whether a record is late goes by its own time.
func (p *partials[K, S, T]) pieceOf(t int64) (of window.Span, ok bool) {
	only := window.Span{Start: t, End: t + 1}
	switch {
	case p.Table.Panes:
		return p.Windows.Pane(t)
	case p.Windows.Kind == window.SessionKind:
		_, ok := p.Windows.One(t)
		return only, ok
	}
	if of, ok = p.finder.One(t); ok {
		return of, true
	}
	p.found, ok = p.finder.Append(p.found[:0], t)
	return only, ok
}

// settle folds what is staged: nothing of it is taken back any more.
func (p *partials[K, S, T]) settle() {
	p.hashing.hash(p.in, p.staged)
	p.in.folding = p
	for p.folded = range p.staged {
		if p.times[p.folded] == connector.NoTime {
			p.losses.untimed++
		} else {
			p.fold(&p.staged[p.folded], p.times[p.folded], p.within[p.folded])
		}
	}
	p.in.folding = nil
	clear(p.staged) // the values' memory is the folds' to keep
	p.staged, p.times, p.within = p.staged[:0], p.times[:0], p.within[:0]
}

func (p *partials[K, S, T]) fold(it *item[K, T], time int64, within window.Span) {
	h := p.find(it, within)
	h.value.records++
	h.latest = max(h.latest, time)
	p.Fold(&h.value.value, it.value)
}

// find returns the partial value that a record belongs to; a new one is zero.
func (p *partials[K, S, T]) find(it *item[K, T], within window.Span) *heldPartial[K, S] {
	if 2*len(p.held) >= len(p.index) {
		p.grow()
	}
	mask := len(p.index) - 1
	pos := indexHash(it.hash, within) & mask
	for ; p.index[pos] != 0; pos = (pos + 1) & mask {
		if h := &p.held[p.index[pos]-1]; h.hash == it.hash && h.within == within && h.key == it.key {
			return h
		}
	}
	p.held = append(p.held, heldPartial[K, S]{item[K, partial[S]]{place: it.place, hash: it.hash, key: it.key}, within, connector.NoTime})
	p.index[pos] = uint32(len(p.held))
	return &p.held[len(p.held)-1]
}

// grow makes the index larger.
func (p *partials[K, S, T]) grow() {
	p.index = make([]uint32, max(64, 2*len(p.index)))
	mask := len(p.index) - 1
	for n := range p.held {
		pos := indexHash(p.held[n].hash, p.held[n].within) & mask
		for p.index[pos] != 0 {
			pos = (pos + 1) & mask
		}
		p.index[pos] = uint32(n + 1)
	}
}

func indexHash(key uint64, within window.Span) int {
	return int((key ^ uint64(within.Start)*0x9e3779b97f4a7c15) >> 32)
}

// blamed tells of the record that is being folded.
func (p *partials[K, S, T]) blamed() (operator, key string, place Place) {
	it := &p.staged[p.folded]
	return p.Table.Operator, fmt.Sprint(it.key), it.place
}

func (p *partials[K, S, T]) drop(record uint64) {
	p.staged = dropRecord(p.staged, record)
	p.times, p.within = p.times[:len(p.staged)], p.within[:len(p.staged)]
}

func (p *partials[K, S, T]) flush(b *batch) {
	for i := range p.held {
		p.to.send(&p.held[i].item, p.held[i].latest)
	}
	clear(p.held)
	clear(p.index)
	p.held = p.held[:0]
	b.epoch.lose(&p.losses)
	p.to.flush(b)
}
