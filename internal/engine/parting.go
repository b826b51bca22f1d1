package engine

// finish has an entry that nothing changes any more go with the epoch: it is stored no
// longer, and whoever has its row keeps that, with its last value. One that came within
// the epoch, and whose row nobody gets, goes at once.
func (t *Table[R, S]) finish(n uint32) {
	e := t.at(n)
	switch {
	case e.parting&isDone != 0:
	case e.mark == t.mark && !e.stored && len(t.appends) == 0 && t.changed == nil:
		t.discard(n)
	case e.mark == t.mark:
		e.parting |= isDone | changed | lately
	case e.mark == stepBefore:
		t.touch(e, n)
		e.parting |= isDone | changed
	default:
		t.touch(e, n)
		e.parting |= isDone
	}
}

// move gives an entry another row of the same hash. It must have been touched.
func (t *Table[R, S]) move(e *entry[R, S], n uint32, r R) {
	if e.row == r {
		return
	}
	if e.stored && e.parting&wasMoved == 0 {
		if t.moved == nil {
			t.moved = map[uint32]R{}
		}
		t.moved[n] = e.row
		e.parting |= wasMoved
	}
	e.row = r
}

// encodeParting encodes what is special about an entry that is done, or was moved.
func (t *Table[R, S]) encodeParting(e *entry[R, S], n uint32) {
	if e.parting&wasMoved != 0 {
		was := entry[R, S]{hash: e.hash, row: t.moved[n], stored: true}
		delete(t.moved, n)
		t.encodeEntry(&was, n)
	}
	if e.parting&isDone == 0 {
		e.parting &^= wasMoved
		return
	}
	if e.parting&changed != 0 && e.present {
		for i := range t.appends {
			if err := t.appendTo(i, e); err != nil {
				t.fail(e.row, err)
			}
		}
	}
	// An entry that was moved is stored under the row that has just gone.
	if e.parting&wasMoved == 0 && e.stored {
		gone := entry[R, S]{hash: e.hash, row: e.row}
		if err := t.appendEntry(&gone); err != nil {
			t.fail(e.row, err)
		}
	}
	var none S
	e.value, e.present, e.stored, e.parting = none, false, false, 0
}
