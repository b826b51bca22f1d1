package postgres

import (
	"errors"
	"testing"
	"time"
)

// FuzzColumns turns what may be no row into columns: no input may end in a
// panic, and what is taken is taken whole, and by the check of new rows too.
func FuzzColumns(f *testing.F) {
	s := Insert[everyType]("t").(streamSink[everyType])
	rows, err := s.Rows()
	if err != nil {
		f.Fatal(err)
	}
	one := rat("1")
	row, err := rows.NewAppend()(nil, &everyType{At: time.Unix(0, 0), Mood: "ok", TextUUID: "00000000-0000-0000-0000-000000000000", Doc: "{}", Bytes: []byte("[]"),
		Price: *one, Wide: one, Texts: []*string{nil}, Ints: []int32{1}, List: []inner{{}}, Counts: map[string]int64{"a": 1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(row)
	f.Add(row[:len(row)/2])
	var plan rowPlan
	for _, c := range s.columns {
		e, err := newEncoder(c.schema, c.want)
		if err != nil {
			f.Fatal(err)
		}
		plan = append(plan, cell{column: c.name, encode: e.encode})
	}
	check, err := newChecker("t", s.columns, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		_, err := plan.append(nil, row)
		var refused *ValueError
		if checked := check.check(row); err == nil && checked != nil {
			t.Errorf("written, but the check says %v", checked)
		} else if isMisfit(err) && !errors.As(checked, &refused) {
			t.Errorf("not written: %v; the check says %v", err, checked)
		}
	})
}
