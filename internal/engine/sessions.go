package engine

import (
	"cmp"
	"slices"

	"github.com/sluicestream/sluice/connector"
)

// takeSession puts a record into the session of its key that it belongs to: one that it
// begins, one that it extends, or the one that several become by it.
//
// A session ends a gap behind its last record, by the gap that was in force when that
// came.
//
// A record is late if the session is closed that it would be alone, whatever others are
// open, or if one is that it would have come into. So a session that is closed has to be
// held for a gap longer only, until no record can come any more that is not late and would
// have been in it.
func (w *windows[K, S, T]) takeSession(a taken[S, T]) {
	w.in.operator = w.Table.Operator
	t, ok := w.time()
	if !ok {
		w.lose(a, &w.losses.untimed)
		return
	}
	own, ok := w.Windows.One(t)
	if !ok {
		w.in.Fail(w.Table.Operator, w.Windows.Refusal(t))
		return
	}
	if w.closed(own.End) || t <= w.lateBefore && w.lateBefore != connector.NoTime {
		w.lose(a, &w.losses.late)
		return
	}
	over, closed := w.over[:0], false
	for n := range w.table.all(w.key.Hash) {
		e := w.table.at(n)
		if e.row.Key != w.key.Key || !e.present || !own.Overlaps(spanOf(e.row.Window)) {
			continue
		}
		closed = closed || e.parting&isDone != 0 || w.closed(int64(e.row.Window.End))
		over = append(over, n)
	}
	w.over = over
	if closed {
		w.lose(a, &w.losses.late)
		return
	}
	w.see(t)
	if len(over) == 0 {
		n, e := w.table.enterRow(w.key.Hash, In[K]{w.key.Key, windowOf(own)})
		w.add(e, a)
		w.due.add(w.next(own.End), n)
		w.changed(e, n)
		return
	}
	if len(over) > 1 {
		slices.SortFunc(over, func(a, b uint32) int {
			return cmp.Compare(w.table.at(a).row.Window.Start, w.table.at(b).row.Window.Start)
		})
	}
	first := w.table.at(over[0])
	w.table.change(first, over[0])
	for _, n := range over[1:] {
		other := w.table.at(n)
		w.table.change(other, n)
		w.Merge(&first.value, &other.value)
		own = own.Cover(spanOf(other.row.Window))
		w.table.remove(other)
	}
	was := first.row.Window.End
	w.table.move(first, over[0], In[K]{w.key.Key, windowOf(own.Cover(spanOf(first.row.Window)))})
	w.add(first, a)
	if w.firings != nil && was != first.row.Window.End && int64(was) <= w.firings.passed { // it was put out where it ended before
		w.due.add(w.next(int64(first.row.Window.End)), over[0])
	}
	w.changed(first, over[0])
}
