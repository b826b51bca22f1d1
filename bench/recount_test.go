package main

import "testing"

func TestRecount(t *testing.T) {
	orders := func(c *recount) {
		c.order("ann", 10, 2)
		c.order("ann", 5, 1)
		c.order("bob", 7, 1)
	}
	for _, c := range []struct {
		what                        string
		rows                        []string // user, a space, the row
		missing, more, wrong, again int64
	}{
		{what: "right", rows: []string{`ann {"Orders":1,"Cents":10,"At":5}`, `ann {"Orders":3,"Cents":25,"At":6}`, `bob {"Orders":1,"Cents":7,"At":6}`}},
		{what: "two are missing", rows: []string{`ann {"Orders":2,"Cents":20,"At":5}`}, missing: 2},
		{what: "one is counted twice", rows: []string{`ann {"Orders":4,"Cents":35,"At":5}`, `bob {"Orders":1,"Cents":7,"At":6}`}, more: 1},
		{what: "one for another", rows: []string{`ann {"Orders":3,"Cents":20,"At":5}`, `bob {"Orders":1,"Cents":7,"At":6}`}, wrong: 1},
		{what: "a row is repeated", rows: []string{`ann {"Orders":3,"Cents":25,"At":5}`, `bob {"Orders":1,"Cents":7,"At":6}`, `ann {"Orders":3,"Cents":25,"At":5}`}, again: 1},
		{what: "an old row comes late", rows: []string{`ann {"Orders":3,"Cents":25,"At":5}`, `bob {"Orders":1,"Cents":7,"At":6}`, `ann {"Orders":1,"Cents":10,"At":4}`}, missing: 2, again: 1},
		{what: "a user from nowhere", rows: []string{`ann {"Orders":3,"Cents":25,"At":5}`, `bob {"Orders":1,"Cents":7,"At":6}`, `eve {"Orders":2,"Cents":1,"At":4}`}, more: 2},
	} {
		r := newRecount()
		orders(r)
		for _, line := range c.rows {
			row, err := seenRow([]byte(line[4:]))
			if err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			r.row([]byte(line[:3]), row)
		}
		missing, more, wrong := r.missing()
		if missing != c.missing || more != c.more || wrong != c.wrong || r.again != c.again {
			t.Errorf("%s: %d missing, %d more, %d wrong, %d again; want %d, %d, %d, %d", c.what, missing, more, wrong, r.again, c.missing, c.more, c.wrong, c.again)
		}
		if r.records != 4 || r.rows != int64(len(c.rows)) {
			t.Errorf("%s: %d records and %d rows", c.what, r.records, r.rows)
		}
	}
	if _, err := seenRow([]byte(`{"Cents":1,"Orders":2}`)); err == nil {
		t.Error("a row of another form was read")
	}
}
