package compare

import (
	"context"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// tableSpan compares a span of a table: both sides' last rows of each key, merged by
// slot and key.
type tableSpan struct {
	c       *Comparison
	sides   [2]Side
	span    *span
	tally   *tally
	key     *schema.Schema
	compare func(a, b []byte) int
}

func (t *tableSpan) run(ctx context.Context) (err error) {
	if t.compare, err = schema.Comparer(t.key); err != nil {
		return err
	}
	t.tally.key = schema.JSON(t.key)
	var from [2]source
	b := &budget{t.c.options.Memory}
	for side := range from {
		if from[side], err = t.folded(ctx, side, b); err != nil {
			return err
		}
		defer from[side].close()
	}
	var at [2]*row
	for order := 0; ; {
		for side := range at {
			if order == 0 || (order < 0) == (side == oldSide) {
				if at[side], err = from[side].next(); err != nil {
					return err
				}
			}
		}
		old, now := at[oldSide], at[newSide]
		if old == nil && now == nil {
			return nil
		}
		switch order = t.order(old, now); {
		case order < 0:
			err = t.alone(oldSide, old)
		case order > 0:
			err = t.alone(newSide, now)
		default:
			err = t.both(old, now)
		}
		if err != nil {
			return err
		}
	}
}

// read begins to read a step's outbox.
func (t *tableSpan) read(ctx context.Context, side int, step Step) (source, error) {
	o, err := t.c.open(ctx, t.sides, side, step)
	if err != nil {
		return nil, err
	}
	if o.box.Key == nil {
		return nil, kindsDiffer
	}
	if !sameKeys(t.key, o.box.Key) {
		return nil, keysDiffer
	}
	r := t.c.read(ctx, o)
	r.compare, r.damaged = t.compare, disordered(t.sides[side].Job, step.Outbox)
	return r, nil
}

// order compares the places of two rows; a side that has ended is behind.
func (t *tableSpan) order(old, now *row) int {
	switch {
	case now == nil:
		return -1
	case old == nil:
		return 1
	case old.Slot != now.Slot:
		return int(old.Slot) - int(now.Slot)
	}
	return t.compare(old.Key, now.Key)
}

// alone counts a key of which the other side says nothing. A side that put it first
// may not have had it before, so that who took both at once has nothing to say.
func (t *tableSpan) alone(side int, r *row) error {
	if r.Op == connector.Delete && r.first == connector.Put {
		t.tally.CameAndWent++
		return nil
	}
	if side == oldSide {
		return t.tally.only(r, nil)
	}
	return t.tally.only(nil, r)
}

// both counts a key of which both sides say something.
func (t *tableSpan) both(old, now *row) error {
	switch gone, goes := old.Op == connector.Delete, now.Op == connector.Delete; {
	case gone && goes:
		t.tally.equal(old, now)
		return nil
	case gone || goes:
		return t.tally.only(old, now)
	}
	return t.tally.compare(old, now)
}

// sameKeys tells whether keys of two schemas have one encoding and one meaning.
func sameKeys(a, b *schema.Schema) bool {
	for _, d := range schema.Differences(a, b) {
		if d.Change != schema.DefaultChanged {
			return false
		}
	}
	return true
}
