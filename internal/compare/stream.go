package compare

import (
	"context"

	"github.com/cespare/xxhash/v2"
)

// window is how many rows are looked ahead for the place where two streams agree
// again. It bounds the rows that can be added or dropped at one place without those
// behind them counting as changed.
const window = 32

// ahead is a stream with the rows that come next.
type ahead struct {
	from source
	done bool
	// rows is a ring: rows[first] comes next.
	rows     [window]aheadRow
	first, n int
}

// aheadRow is a row that has been looked at.
type aheadRow struct {
	row
	buf     []byte
	print   uint64 // of what is compared exactly
	printed bool
}

func (a *ahead) row(i int) *aheadRow { return &a.rows[(a.first+i)%window] }

// fill looks at n rows, or as many as there are.
func (a *ahead) fill(n int) error {
	for a.n < n && !a.done {
		r, err := a.from.next()
		if err != nil {
			return err
		}
		if r == nil {
			a.done = true
			break
		}
		at := a.row(a.n)
		at.buf = append(append(at.buf[:0], r.Row.Row...), r.Wire...)
		at.row, at.printed = *r, false
		at.row.Row.Row = at.buf[:len(r.Row.Row)]
		if r.Wire != nil {
			at.Wire = at.buf[len(r.Row.Row):]
		}
		a.n++
	}
	return nil
}

func (a *ahead) drop(n int) {
	a.first = (a.first + n) % window
	a.n -= n
}

// inOrder compares two streams record by record. Where they part, the rows up to the
// nearest place at which they agree again are paired: those that have a partner have
// changed, the others are on one side alone.
func (t *tally) inOrder(ctx context.Context, from [2]source) error {
	old, now := &ahead{from: from[oldSide]}, &ahead{from: from[newSide]}
	unlike := 0 // no two of so many of the next rows are equal, as far as has been looked
	for {
		if err := old.fill(1); err != nil {
			return err
		}
		if err := now.fill(1); err != nil {
			return err
		}
		if old.n == 0 && now.n == 0 {
			return ctx.Err()
		}
		i, j := min(old.n, 1), min(now.n, 1) // how many rows of each are not equal
		if i+j == 2 {
			same, err := t.same(&old.row(0).row, &now.row(0).row)
			if err != nil {
				return err
			}
			if same {
				t.equal(&old.row(0).row, &now.row(0).row)
				old.drop(1)
				now.drop(1)
				continue
			}
			var found bool
			if i, j, found, err = t.part(old, now, unlike); err != nil {
				return err
			}
			if unlike = min(old.n, now.n) - 1; found {
				unlike = 0
			}
		}
		for k := range max(i, j) {
			var a, b *row
			if k < i {
				a = &old.row(k).row
			}
			if k < j {
				b = &now.row(k).row
			}
			if err := t.pair(a, b); err != nil {
				return err
			}
		}
		old.drop(i)
		now.drop(j)
	}
}

// pair counts rows that are known not to be equal.
func (t *tally) pair(old, now *row) error {
	if old == nil || now == nil {
		return t.only(old, now)
	}
	return t.compare(old, now)
}

// part tells how many rows of each side come before the nearest place at which they
// agree: the one with the fewest rows before it on the side that has more. Without one
// in the window it is a row of each. No two of the first unlike rows are equal.
func (t *tally) part(old, now *ahead, unlike int) (i, j int, found bool, err error) {
	if err := old.fill(window); err != nil {
		return 0, 0, false, err
	}
	if err := now.fill(window); err != nil {
		return 0, 0, false, err
	}
	agree := func(i, j int) (bool, error) {
		if i >= old.n || j >= now.n {
			return false, nil
		}
		a, b := old.row(i), now.row(j)
		if err := t.print(a, b); err != nil || a.print != b.print {
			return false, err
		}
		return t.same(&a.row, &b.row)
	}
	for far := max(1, unlike); far < window; far++ {
		for near := far; near >= 0; near-- {
			if ok, err := agree(far, near); ok || err != nil {
				return far, near, ok, err
			}
			if ok, err := agree(near, far); near < far && (ok || err != nil) {
				return near, far, ok, err
			}
		}
	}
	return 1, 1, false, nil
}

// print makes the prints of two rows: those of equal rows are equal.
func (t *tally) print(a, b *aheadRow) error {
	if a.printed && b.printed {
		return nil
	}
	p, err := t.c.pair(a.form, b.form)
	if err != nil {
		return err
	}
	for side, r := range [2]*aheadRow{a, b} {
		if r.printed {
			continue
		}
		if t.form, err = p.canonical(t.form[:0], side, r.Row.Row); err != nil {
			return unreadable(t.c.job, t.c.result.Sink, err)
		}
		r.print, r.printed = xxhash.Sum64(t.form), true
	}
	return nil
}
