package compare

import (
	"slices"

	"github.com/sluicestream/sluice/connector"
)

// tally is what comes of one span. It counts only once the span is done.
type tally struct {
	Counts
	c       *Comparison
	span    *span
	columns []ColumnCount
	samples []Sample
	key     asJSON // of a table's keys
	form    []byte // memory for canonical forms
	// forms are those of a stream's rows, by side.
	forms [2]*form
}

// streamPair is what makes canonical forms of a stream's rows.
func (t *tally) streamPair(side int, f *form) (*pair, error) {
	if f != t.forms[side] {
		return nil, formsDiffer
	}
	return t.c.pair(t.forms[oldSide], t.forms[newSide])
}

// same tells whether two rows are equal.
func (t *tally) same(old, now *row) (bool, error) {
	p, err := t.c.pair(old.form, now.form)
	if err != nil {
		return false, err
	}
	ok, err := p.equal(old.Row.Row, now.Row.Row)
	if err != nil {
		err = unreadable(t.c.job, t.c.result.Sink, err)
	}
	return ok, err
}

// equal counts a row that both sides have.
func (t *tally) equal(old, now *row) {
	t.Equal++
	if !sameWire(&old.Row, &now.Row) {
		t.Wires++
	}
}

// compare counts a row of each side, of which either may be the other changed.
func (t *tally) compare(old, now *row) error {
	same, err := t.same(old, now)
	switch {
	case err != nil:
		return err
	case same:
		t.equal(old, now)
		return nil
	}
	t.Changed++
	p, err := t.c.pair(old.form, now.form)
	if err != nil {
		return err
	}
	sampled := t.sampling()
	var s Sample
	err = p.differing(old.Row.Row, now.Row.Row, func(c *columnPair, before, after []byte) error {
		t.addColumn(c.name)
		if !sampled {
			return nil
		}
		column := ColumnSample{Column: c.name}
		var err error
		if column.Old, err = told(p.forms[oldSide].texts[c.at[oldSide]], before); err != nil {
			return err
		}
		if column.New, err = told(p.forms[newSide].texts[c.at[newSide]], after); err != nil {
			return err
		}
		s.Columns = append(s.Columns, column)
		return nil
	})
	if err == nil && sampled {
		err = t.addSample(s, old)
	}
	if err != nil {
		return unreadable(t.c.job, t.c.result.Sink, err)
	}
	return nil
}

// only counts a row that one side alone has: the other says nothing, or deletes its
// key.
func (t *tally) only(old, now *row) error {
	deletes := [2]bool{old != nil && old.Op == connector.Delete, now != nil && now.Op == connector.Delete}
	side := newSide
	if now == nil || deletes[newSide] && old != nil {
		side = oldSide
	}
	if side == oldSide {
		t.OnlyOld++
	} else {
		t.OnlyNew++
	}
	if deletes[side] {
		if side == oldSide {
			t.DeletesOnlyOld++
		} else {
			t.DeletesOnlyNew++
		}
	}
	if !t.sampling() {
		return nil
	}
	s := Sample{OldDeletes: deletes[oldSide], NewDeletes: deletes[newSide]}
	r := [2]*row{old, now}[side]
	if !deletes[side] {
		text, err := told(r.form.json, r.Row.Row)
		if err != nil {
			return unreadable(t.c.job, t.c.result.Sink, err)
		}
		if side == oldSide {
			s.Old = text
		} else {
			s.New = text
		}
	}
	if err := t.addSample(s, r); err != nil {
		return unreadable(t.c.job, t.c.result.Sink, err)
	}
	return nil
}

// sampling tells whether there is room for a sample.
func (t *tally) sampling() bool {
	return len(t.c.result.Samples)+len(t.samples) < t.c.options.Samples
}

func (t *tally) addSample(s Sample, r *row) (err error) {
	s.After, s.To = t.span.after, t.span.to
	if t.key != nil {
		s.Key, err = told(t.key, r.Key)
	}
	t.samples = append(t.samples, s)
	return err
}

func (t *tally) addColumn(name string) {
	i := slices.IndexFunc(t.columns, func(c ColumnCount) bool { return c.Column == name })
	if i < 0 {
		i = len(t.columns)
		t.columns = append(t.columns, ColumnCount{Column: name})
	}
	t.columns[i].Rows++
}
