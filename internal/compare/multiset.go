package compare

import (
	"cmp"
	"context"
	"slices"
)

// held is a row of one side for which no equal one of the other has been found yet.
type held struct {
	row
	seq int // its place in the side's stream
	// items are the forms of the columns that have a tolerance.
	items [][]byte
}

// multiset compares streams of which only the contents are comparable: each row of one
// side is equal to one of the other. Rows that stand in the same order need no memory.
type multiset struct {
	tally  *tally
	budget budget
	// held has the rows of each side that have no equal yet, by the form of what is
	// compared exactly.
	held [2]map[string][]held
	seq  int
}

func newMultiset(t *tally) *multiset {
	m := &multiset{tally: t, budget: budget{t.c.options.Memory}}
	for side := range m.held {
		m.held[side] = map[string][]held{}
	}
	return m
}

// asMultiset compares two streams without their order, as long as it is not the same.
// Rows that remain are paired in their order: those that have a partner have changed,
// the others are on one side alone.
func (t *tally) asMultiset(ctx context.Context, from [2]source) error {
	m := newMultiset(t)
	for {
		var at [2]*row
		for side := range at {
			r, err := from[side].next()
			if err != nil {
				return err
			}
			at[side] = r
		}
		old, now := at[oldSide], at[newSide]
		if old == nil && now == nil {
			return m.settle(ctx)
		}
		if err := m.take(old, now); err != nil {
			return err
		}
	}
}

// take takes a row of each side, or of one.
func (m *multiset) take(old, now *row) error {
	if old != nil && now != nil {
		same, err := m.tally.same(old, now)
		if err != nil {
			return err
		}
		if same {
			m.tally.equal(old, now)
			return nil
		}
	}
	m.seq++
	for side, r := range [2]*row{old, now} {
		if r == nil {
			continue
		}
		if err := m.keep(side, r); err != nil {
			return err
		}
	}
	return nil
}

// keep holds a row, unless the other side holds an equal one.
func (m *multiset) keep(side int, r *row) error {
	p, err := m.tally.streamPair(side, r.form)
	if err != nil {
		return err
	}
	if m.tally.form, err = p.canonical(m.tally.form[:0], side, r.Row.Row); err != nil {
		return unreadable(m.tally.c.job, m.tally.c.result.Sink, err)
	}
	form := m.tally.form
	other := m.held[1-side]
	if rows := other[string(form)]; len(rows) > 0 && !p.tolerant {
		both := [2]*row{r, r}
		both[1-side] = &rows[0].row
		m.tally.equal(both[oldSide], both[newSide])
		m.budget.left += int64(len(form))
		m.budget.release([]row{rows[0].row})
		if rows = rows[1:]; len(rows) == 0 {
			delete(other, string(form))
		} else {
			other[string(form)] = rows
		}
		return nil
	}
	h := held{seq: m.seq}
	if m.budget.left -= int64(len(form)); m.budget.left < 0 {
		return tooMany
	}
	if h.row, err = m.budget.hold(r); err != nil {
		return err
	}
	if p.tolerant {
		if h.items, err = p.tolerated(side, r.Row.Row); err != nil {
			return unreadable(m.tally.c.job, m.tally.c.result.Sink, err)
		}
		for _, item := range h.items {
			m.budget.left -= int64(len(item)) + heldOverhead/2
		}
	}
	m.held[side][string(form)] = append(m.held[side][string(form)], h)
	return nil
}

// settle counts the rows that remain.
func (m *multiset) settle(ctx context.Context) error {
	var rest [2][]held
	for form, rows := range m.held[oldSide] {
		others := m.held[newSide][form]
		if err := m.near(rows, others, &rest); err != nil {
			return err
		}
		delete(m.held[newSide], form)
	}
	for _, rows := range m.held[newSide] {
		rest[newSide] = append(rest[newSide], rows...)
	}
	for side := range rest {
		slices.SortFunc(rest[side], func(a, b held) int { return cmp.Compare(a.seq, b.seq) })
	}
	for i := range max(len(rest[oldSide]), len(rest[newSide])) {
		var both [2]*row
		for side := range both {
			if i < len(rest[side]) {
				both[side] = &rest[side][i].row
			}
		}
		if err := m.tally.pair(both[oldSide], both[newSide]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// near pairs rows that differ in columns with a tolerance alone, each in the order of
// these columns' values: with one such column and a tolerance of Absolute or Time no
// other way finds more pairs.
func (m *multiset) near(old, now []held, rest *[2][]held) error {
	if len(old) > 0 && len(now) > 0 {
		slices.SortFunc(old, byItems)
		slices.SortFunc(now, byItems)
	}
	for len(old) > 0 && len(now) > 0 {
		same, err := m.tally.same(&old[0].row, &now[0].row)
		if err != nil {
			return err
		}
		switch {
		case same:
			m.tally.equal(&old[0].row, &now[0].row)
			old, now = old[1:], now[1:]
		case byItems(old[0], now[0]) < 0:
			rest[oldSide] = append(rest[oldSide], old[0])
			old = old[1:]
		default:
			rest[newSide] = append(rest[newSide], now[0])
			now = now[1:]
		}
	}
	rest[oldSide], rest[newSide] = append(rest[oldSide], old...), append(rest[newSide], now...)
	return nil
}

// byItems orders rows by the values of the columns that have a tolerance.
func byItems(a, b held) int {
	return cmp.Or(slices.CompareFunc(a.items, b.items, compareForms), cmp.Compare(a.seq, b.seq))
}
