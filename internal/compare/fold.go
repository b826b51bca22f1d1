package compare

import (
	"context"
)

// maxOpen bounds the outboxes of a side that are read at once: each holds some 300 KiB
// of buffers.
const maxOpen = 64

// fold merges a table's rows of several steps, the earlier steps first, to the last row
// of each key.
type fold struct {
	from    []source
	heads   []*row // by source; nil: at its end
	heap    []int  // the sources that have a head, least first
	compare func(a, b []byte) int
	moving  []int // the sources whose heads have been given out
	out     row
}

func newFold(compare func(a, b []byte) int, from []source) *fold {
	f := &fold{from: from, heads: make([]*row, len(from)), compare: compare}
	for i := range from {
		f.moving = append(f.moving, i)
	}
	return f
}

func (f *fold) next() (*row, error) {
	for _, i := range f.moving {
		r, err := f.from[i].next()
		if err != nil {
			return nil, err
		}
		if f.heads[i] = r; r != nil {
			f.push(i)
		}
	}
	f.moving = f.moving[:0]
	if len(f.heap) == 0 {
		return nil, nil
	}
	first := f.heads[f.heap[0]]
	for {
		last := f.pop()
		f.moving = append(f.moving, last)
		if len(f.heap) == 0 || f.order(f.heads[f.heap[0]], first) != 0 {
			f.out = *f.heads[last]
			f.out.first = first.first
			return &f.out, nil
		}
	}
}

func (f *fold) close() {
	for _, s := range f.from {
		s.close()
	}
}

// order compares the places of two rows.
func (f *fold) order(a, b *row) int {
	if a.Slot != b.Slot {
		return int(a.Slot) - int(b.Slot)
	}
	return f.compare(a.Key, b.Key)
}

// less orders sources by their heads, and those of one key by their age.
func (f *fold) less(i, j int) bool {
	order := f.order(f.heads[i], f.heads[j])
	return order < 0 || order == 0 && i < j
}

func (f *fold) push(i int) {
	f.heap = append(f.heap, i)
	for at := len(f.heap) - 1; at > 0; {
		above := (at - 1) / 2
		if !f.less(f.heap[at], f.heap[above]) {
			return
		}
		f.heap[at], f.heap[above] = f.heap[above], f.heap[at]
		at = above
	}
}

func (f *fold) pop() int {
	least, last := f.heap[0], len(f.heap)-1
	f.heap[0] = f.heap[last]
	f.heap = f.heap[:last]
	for at := 0; ; {
		below := 2*at + 1
		if below >= last {
			return least
		}
		if below+1 < last && f.less(f.heap[below+1], f.heap[below]) {
			below++
		}
		if !f.less(f.heap[below], f.heap[at]) {
			return least
		}
		f.heap[at], f.heap[below] = f.heap[below], f.heap[at]
		at = below
	}
}

// budget bounds the bytes that a span may hold.
type budget struct{ left int64 }

// heldOverhead is what a row costs beyond its bytes.
const heldOverhead = 320

// hold copies a row into memory of its own.
func (b *budget) hold(r *row) (row, error) {
	n := len(r.Key) + len(r.Row.Row) + len(r.Wire)
	if b.left -= int64(n + heldOverhead); b.left < 0 {
		return row{}, tooMany
	}
	buf := make([]byte, 0, n)
	keep := func(p []byte) []byte {
		if p == nil {
			return nil
		}
		buf = append(buf, p...)
		return buf[len(buf)-len(p) : len(buf) : len(buf)]
	}
	out := *r
	out.Key, out.Row.Row, out.Wire = keep(r.Key), keep(r.Row.Row), keep(r.Wire)
	return out, nil
}

func (b *budget) release(rows []row) {
	for i := range rows {
		b.left += int64(len(rows[i].Key) + len(rows[i].Row.Row) + len(rows[i].Wire) + heldOverhead)
	}
}

// inMemory gives rows that are held.
type inMemory struct {
	rows []row
	at   int
}

func (m *inMemory) next() (*row, error) {
	if m.at == len(m.rows) {
		return nil, nil
	}
	m.at++
	return &m.rows[m.at-1], nil
}

func (m *inMemory) close() {}

// folded reads a side of a table: of several steps, the last row of each key. All but
// the last maxOpen steps are merged in memory before.
func (t *tableSpan) folded(ctx context.Context, side int, b *budget) (source, error) {
	steps := t.span.steps[side]
	var merged *inMemory // of the steps before; nil: none are
	for {
		var from []source
		if merged != nil {
			from = append(from, merged)
		}
		n := min(len(steps), maxOpen-len(from))
		for _, step := range steps[:n] {
			r, err := t.read(ctx, side, step)
			if err != nil {
				newFold(t.compare, from).close()
				return nil, err
			}
			from = append(from, r)
		}
		steps = steps[n:]
		all := newFold(t.compare, from)
		if len(steps) == 0 {
			if len(from) == 1 {
				return from[0], nil
			}
			return all, nil
		}
		rows, err := holdAll(all, b)
		if err != nil {
			return nil, err
		}
		if merged != nil {
			b.release(merged.rows)
		}
		merged = &inMemory{rows: rows}
	}
}

// holdAll puts what a source gives into memory, and closes it.
func holdAll(s source, b *budget) (rows []row, err error) {
	defer s.close()
	for {
		r, err := s.next()
		if r == nil || err != nil {
			return rows, err
		}
		held, err := b.hold(r)
		if err != nil {
			return nil, err
		}
		rows = append(rows, held)
	}
}
