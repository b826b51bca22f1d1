package engine

import (
	"math"
	"math/bits"
)

// due is an entry of a table, by its number, and when something is to be done with it.
type due struct {
	at     int64
	number uint32
}

// dues are entries of a table by when they are due. An entry may be in it that is due
// later by now, or has gone.
//
// It is a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, 1990), which lives of time not
// going back: an entry stands in a row by the highest bit in which its time differs from
// the one up to which all have been taken out. As that moves on, a row is emptied as a
// whole, or spread over the rows before it; each entry moves a few times, beside others.
type dues struct {
	passed int64      // all that were due by then have been taken out, but for what has come since
	rows   [65]dueRow // by the number of the highest bit that differs
}

// dueRow is a row of a radix heap. The times in it lie before those in the next one.
type dueRow struct {
	all   []due
	first due // the soonest of them
}

func newDues() dues { return dues{passed: math.MinInt64} }

func (d *dues) add(at int64, number uint32) { d.rows[d.row(at)].add(due{at, number}) }

// row is the number of the row for a time.
func (d *dues) row(at int64) int {
	if at <= d.passed {
		return 0
	}
	return bits.Len64(uint64(at ^ d.passed))
}

func (r *dueRow) add(d due) {
	if len(r.all) == 0 || d.at < r.first.at {
		r.first = d
	}
	r.all = append(r.all, d)
}

// take takes out all that are due by now, in any order, and appends them to out.
func (d *dues) take(now int64, out []due) []due {
	last := d.row(now)
	for i := range last {
		out = append(out, d.rows[i].all...)
		d.rows[i].all = d.rows[i].all[:0]
	}
	d.passed = max(d.passed, now)
	row := d.rows[last].all
	d.rows[last].all = row[:0]
	for _, e := range row {
		if e.at <= now {
			out = append(out, e)
		} else { // it goes to a row before this one, where it differs from now
			d.add(e.at, e.number)
		}
	}
	return out
}

// soonest is when the first is due of those that stand, or [never]. Others are dropped
// where they are in the way.
func (d *dues) soonest(stands func(due) bool) int64 {
	for i := range d.rows {
		r := &d.rows[i]
		if len(r.all) > 0 && !stands(r.first) {
			all := r.all
			r.all = all[:0]
			for _, e := range all {
				if stands(e) {
					r.add(e)
				}
			}
		}
		if len(r.all) > 0 {
			return r.first.at
		}
	}
	return never
}
